//! The start of an update: the parent of a job and its optimizer state, or a fresh adapter.

use crate::job::loaded_base::LoadedBase;
use crate::model::lora::Lora;
use crate::ppo::adam::Adam;
use crate::ppo::square::Square;
use crate::ppo::trained_part::TrainedPart;
use anyhow::{Context, ensure};
use feedback::job::{Hyper, Job, Train};
use models::adapter::LoraAdapter;
use models::file;
use models::team::core::Core;
use models::team::frame::Frame;
use std::path::Path;

/// The adapter and the state that the update of a job starts from.
pub(super) struct StartingAdapter {
    pub(super) lora: Lora,
    pub(super) optimizer: Adam,
    pub(super) part: TrainedPart,
    /// The tokens that switch the adapter on; empty if they are not known yet.
    pub(super) invocation: Vec<u32>,
}

impl StartingAdapter {
    /// The parent and its optimizer state, or a fresh adapter.
    pub(super) fn of(job: &Job, base: &LoadedBase) -> anyhow::Result<StartingAdapter> {
        let frame = Frame::of(&base.gguf, &base.sha256)?;
        let Hyper { lora_rank, lora_alpha, .. } = job.hyper;
        let fresh = || Lora::fresh(&base.model.shape, lora_rank, lora_alpha, job.seed);
        let Some(parent) = &job.parent else {
            let (lora, part) = (fresh()?, TrainedPart::Full);
            let (optimizer, invocation) = (part.optimizer(&lora), Vec::new());
            return Ok(StartingAdapter { lora, optimizer, part, invocation });
        };
        let (mut lora, invocation) =
            read_parent(&parent.path, &parent.sha256, base, &frame, &job.hyper)?;
        if let Train::Shared { core } = &job.train {
            let core = Core::read(&frame, core)?;
            let part = TrainedPart::Shared(Square::shared(&frame, &core, &lora)?);
            let optimizer = part.optimizer(&lora);
            return Ok(StartingAdapter { lora, optimizer, part, invocation });
        }
        if lora.shared_rank == lora.rank {
            lora = lora.with_private_part(fresh()?)?;
        }
        let part = TrainedPart::own(&frame, &lora)?;
        let optimizer = match &parent.optimizer {
            // An adapter can continue to learn without its momentum. If an unreadable state
            // were an error, every later job would fail too.
            Some(path) => {
                Adam::read(path, &part.lengths(&lora), &parent.sha256).unwrap_or_else(|error| {
                    eprintln!("hone-learner: {error:#}; Adam starts afresh");
                    part.optimizer(&lora)
                })
            }
            None => part.optimizer(&lora),
        };
        Ok(StartingAdapter { lora, optimizer, part, invocation })
    }
}

/// Reads the parent adapter and the tokens that switch it on. It keeps the rank and alpha that
/// it was made with, whatever is set for new adapters, because what it learned is lost in any
/// other shape.
fn read_parent(
    path: &Path,
    sha256: &str,
    base: &LoadedBase,
    frame: &Frame,
    hyper: &Hyper,
) -> anyhow::Result<(Lora, Vec<u32>)> {
    let found = file::sha256(path)
        .with_context(|| format!("cannot read the parent adapter {}", path.display()))?;
    ensure!(
        found.eq_ignore_ascii_case(sha256),
        "the parent adapter {} has SHA-256 {found}, the job names {sha256}; \
         roll back to another version",
        path.display()
    );
    let adapter = LoraAdapter::read(path)?;
    adapter.check_base(&base.gguf, &base.sha256)?;
    let private = adapter.rank - adapter.shared_rank.min(adapter.rank);
    let mut own = hyper.clone();
    if private > 0 {
        // The settings are those of a private part.
        let alpha = adapter.alpha / adapter.rank as f32 * private as f32;
        (own.lora_rank, own.lora_alpha) = (private, alpha);
    }
    own.check().with_context(|| {
        format!(
            "cannot learn on from the parent adapter {}; `hone adapter use 0` starts a new one",
            path.display()
        )
    })?;
    let lora = Lora::from_adapter(&adapter, &base.model.shape)
        .with_context(|| format!("cannot use the parent adapter {}", path.display()))?;
    if private > 0 {
        tell_kept_form(path, &own, &TrainedPart::own(frame, &lora)?, hyper);
    }
    Ok((lora, adapter.invocation))
}

/// Says that an adapter keeps what it has, if somebody has set something else for new adapters. A
/// history's adapter has the form of squares without being asked for it, and nothing is said.
fn tell_kept_form(path: &Path, own: &Hyper, part: &TrainedPart, hyper: &Hyper) {
    let path = path.display();
    if part.square().is_some() {
        return;
    }
    if own != hyper {
        eprintln!(
            "hone-learner: {path} has LoRA rank {} and alpha {} and keeps them; lab.ppo.lora_rank \
             = {} and lora_alpha = {} are for the next adapter that starts from the base",
            own.lora_rank, own.lora_alpha, hyper.lora_rank, hyper.lora_alpha
        );
    }
}
