//! `cargo xtask screencast`: the last demo as a terminal recording in one SVG, and its table as
//! text. Nothing is left out or added. Pauses longer than [`MAX_PAUSE_S`] are cut, and time runs
//! faster.

use crate::demo::Results;
use crate::workspace::Workspace;
use anstyle_svg::{Term, WIN10_CONSOLE};
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Rows of the recorded terminal.
const ROWS: usize = 30;
/// A longer pause, such as an update, is cut to this time, in seconds of the demo.
const MAX_PAUSE_S: f64 = 3.0;
/// How long the recording plays, in seconds.
const PLAY_S: f64 = 45.0;
/// How long the last picture, which shows the table, stays, in seconds.
const REST_S: f64 = 12.0;
/// The height of a line and the padding in the pictures of `anstyle-svg`, in pixels.
const LINE_PX: usize = 18;
const PADDING_PX: usize = 10;

pub fn run(workspace: &Workspace) -> Result<()> {
    let results = Results::of(workspace);
    let transcript = read(&results.transcript)?;
    let table = read(&results.summary)?;
    let svg = draw(&transcript, &table)?;
    let docs = workspace.root.join("docs");
    for (name, content) in [("demo.svg", &svg), ("demo.txt", &table)] {
        let path = docs.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("{}", path.display());
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path)
        .with_context(|| format!("cannot read {}: run `cargo xtask demo` first", path.display()))
}

fn draw(transcript: &str, table: &str) -> Result<String> {
    let screen = format!("{}\n\n{}", transcript.trim_end(), table.trim_end());
    let times: Vec<Option<f64>> = screen.lines().map(elapsed_s).collect();
    let still = Term::new().palette(WIN10_CONSOLE).render_svg(&screen);
    animate(&still, &shown_at(&times))
}

/// The time at the beginning of a transcript line: `  12.3s`, perhaps after a colour code.
fn elapsed_s(line: &str) -> Option<f64> {
    let line = match line.strip_prefix('\u{1b}') {
        Some(coloured) => coloured.split_once('m')?.1,
        None => line,
    };
    line.split_once('s')?.0.trim().parse().ok()
}

/// The time at which each line appears, in seconds of the recording. A line without a time
/// appears with the line before it.
fn shown_at(times: &[Option<f64>]) -> Vec<f64> {
    let mut clock = 0.0;
    let mut last = None;
    let shown: Vec<f64> = times
        .iter()
        .map(|time| {
            if let Some(time) = time {
                clock += (time - last.unwrap_or(*time)).clamp(0.0, MAX_PAUSE_S);
                last = Some(*time);
            }
            clock
        })
        .collect();
    let scale = if clock > 0.0 { PLAY_S / clock } else { 0.0 };
    shown.into_iter().map(|at| at * scale).collect()
}

/// Animates a still picture: its lines roll in from below, as in a terminal of [`ROWS`] rows. A
/// viewer without animation shows the last picture.
fn animate(still: &str, shown_at: &[f64]) -> Result<String> {
    let total_s = PLAY_S + REST_S;
    let offset = |lines: usize| (ROWS as i64 - lines as i64) * LINE_PX as i64;
    let mut frames = String::new();
    for (index, at) in shown_at.iter().enumerate() {
        // Lines that appear together need one frame, that of the last line.
        if shown_at.get(index + 1) == Some(at) {
            continue;
        }
        let percent = 100.0 * at / total_s;
        let y = offset(index + 1);
        // Writing to a String cannot fail.
        let _ = write!(frames, "{percent:.3}%{{transform:translateY({y}px)}}");
    }
    let rest = offset(shown_at.len());
    let style = format!(
        "    .roll {{ transform: translateY({rest}px); animation: roll {total_s}s step-end \
         infinite }}\n    \
         @keyframes roll {{ {frames} 100%{{transform:translateY({rest}px)}} }}\n    \
         @media (prefers-reduced-motion: reduce) {{ .roll {{ animation: none }} }}\n  </style>"
    );
    let height = ROWS * LINE_PX + 2 * PADDING_PX;

    let (head, body) = still.split_once('\n').context("the picture of anstyle-svg is empty")?;
    let head = head
        .split_once("height=\"")
        .and_then(|(before, after)| Some((before, after.split_once('"')?.1)))
        .map(|(before, after)| format!("{before}height=\"{height}px\"{after}"))
        .context("the picture of anstyle-svg has no height")?;
    ensure!(
        body.contains("</style>") && body.contains("<text ") && body.contains("</text>"),
        "the picture of anstyle-svg has an unexpected form"
    );
    let body = body
        // Browsers do not apply `opacity` to a part of a text element.
        .replacen(".dimmed { opacity:", ".dimmed { fill-opacity:", 1)
        .replacen("</style>", style.trim_start(), 1)
        .replacen("<text ", "<g class=\"roll\"><text ", 1)
        .replacen("</text>", "</text></g>", 1);
    Ok(format!("{head}\n{body}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSCRIPT: &str = "\u{1b}[2m   0.5s\u{1b}[0m frozen a < b\n\
                              \u{1b}[2m   1.5s\u{1b}[0m learning ok\n\
                              \u{1b}[2m 101.5s\u{1b}[0m update\n";

    #[test]
    fn times_are_read_through_colours_and_long_pauses_are_cut() {
        let times: Vec<_> = TRANSCRIPT.lines().map(elapsed_s).collect();
        assert_eq!(times, [Some(0.5), Some(1.5), Some(101.5)]);
        assert_eq!(elapsed_s("quarter  arm  asked"), None);
        let shown = shown_at(&[Some(0.5), Some(1.5), None, Some(101.5)]);
        assert_eq!(shown, [0.0, PLAY_S / 4.0, PLAY_S / 4.0, PLAY_S]);
        assert_eq!(shown_at(&[None, None]), [0.0, 0.0]);
    }

    #[test]
    fn the_recording_holds_every_line_and_rolls() {
        let svg = draw(TRANSCRIPT, "quarter  arm\n1  frozen\n").unwrap();
        assert!(svg.contains("frozen a &lt; b") && svg.contains("quarter  arm"), "{svg}");
        assert_eq!(svg.matches("translateY").count(), 5, "three frames, the end, the still");
        assert!(svg.contains(".dimmed { fill-opacity:"), "dim text is dim in a browser");
        assert!(svg.contains(&format!("height=\"{}px\"", ROWS * LINE_PX + 2 * PADDING_PX)));
        assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    }
}
