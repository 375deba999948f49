//! Measures how long the search for secrets takes in a window of ordinary code.
//!
//! ```sh
//! cargo run --release -p feedback --example secrets_speed
//! ```
//!
//! Every window that is recorded is searched. The windows are pieces of this crate's own sources
//! without a secret in them, so no search ends early.

use feedback::secrets::find;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const WINDOW_BYTES: usize = 4_000;
const ROUNDS: usize = 100;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = ["sled_log.rs", "event.rs", "episode/fold.rs", "job.rs", "checkpoint.rs"];
    let mut windows = vec![];
    for file in files {
        let text = std::fs::read_to_string(folder.join(file)).expect("a source of this crate");
        let bytes = text.as_bytes().chunks(WINDOW_BYTES).filter(|part| part.len() == WINDOW_BYTES);
        windows.extend(bytes.map(|part| String::from_utf8_lossy(part).into_owned()));
    }
    let mut rounds: Vec<Duration> = (0..ROUNDS).map(|_| search(&windows)).collect();
    rounds.sort();
    let each = |round: Duration| round / windows.len() as u32;
    println!(
        "{} windows of {WINDOW_BYTES} bytes, {ROUNDS} rounds: median {:?}, fastest {:?} a window",
        windows.len(),
        each(rounds[ROUNDS / 2]),
        each(rounds[0]),
    );
}

/// The time that a search of all windows takes.
fn search(windows: &[String]) -> Duration {
    let started = Instant::now();
    windows.iter().for_each(|window| assert_eq!(find(black_box(window)), None));
    started.elapsed()
}
