//! `hone-lab labels`: what the label rules make of a person's recorded session.
//!
//! The offers of the recording's own tool stand where the engine's would, and the session is played
//! into the server's own machine (`offers`) twice: once with nothing but the document, and once
//! with the reports of an editor. What the person accepted and undid is known from the recording
//! alone.

mod offer;
mod play;
mod score;
mod table;

use crate::bench;
use anyhow::Result;
use play::{Play, Played};
use rehearsal::recording::reader;
use score::Score;
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// A recorded session (workspaceRecording@1.0) in which another tool made offers
    #[arg(long, value_name = "FILE")]
    recording: PathBuf,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let recording = reader::file(&arguments.recording)?;
    if let Some(fault) = &recording.fault {
        eprintln!("{fault}");
    }
    let document = Play::of(&recording, false);
    let reports = Play::of(&recording, true);
    let Played { offers, unfit, edits_taken, alternatives_taken, .. } = &document;
    let score = Score::of(&document);
    let measured = json!({
        "fault": recording.fault,
        "offers": offers.len(),
        "answers_that_do_not_fit": unfit,
        "accepts": score.accepts,
        "of_edits": edits_taken.len(),
        "of_alternatives": alternatives_taken,
        "undone": score.undone,
        "document": score,
        "reports": Score::of(&reports),
    });
    bench::print(&measured, arguments.json, table::table)
}
