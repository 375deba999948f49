//! Measures the time from an edit to the offer: 50 open files of 5,000 lines each, without a model.
//!
//! ```sh
//! cargo run --release -p next-edit --example speed
//! ```
//!
//! Each round makes two alike edits somewhere in the first file and asks for the next one. The
//! worst round is one whose rule fits nowhere: then all files are searched to their end.

use next_edit::{By, Edit, File, Language, NextEdits, Query};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ropey::Rope;
use std::fmt::Write;
use std::time::{Duration, Instant};

const FILES: usize = 50;
const LINES: usize = 5_000;
const ROUNDS: usize = 400;
const NAMES: usize = 3_000;
const LINES_APART_MAX: usize = 50;

fn main() {
    let mut random = StdRng::seed_from_u64(1);
    let texts: Vec<String> = (0..FILES).map(|_| made(&mut random)).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("{FILES} files, {} lines, {:.1} MB", FILES * LINES, bytes as f32 / 1e6);
    let language = Language::named("rust");
    let names: Vec<String> = (0..FILES).map(|at| format!("src/file{at}.rs")).collect();
    for (what, is_common) in [("a rule that fits", true), ("a rule that fits nowhere", false)] {
        let (mut edits, mut finds, mut found) = (vec![], vec![], 0);
        for _ in 0..ROUNDS {
            let mut next = NextEdits::default();
            let mut text = Rope::from_str(&texts[0]);
            let name = name(random.random_range(0..NAMES));
            let name = if is_common { name } else { format!("{name}_only_here") };
            // The user has written two such lines, and changes first the upper one.
            let upper = random.random_range(0..LINES / 2);
            let lower = upper + random.random_range(1..LINES_APART_MAX);
            for line in [lower, upper] {
                text.insert(text.line_to_char(line), &format!("self.{name}(here);\n"));
            }
            let mut cursor = 0;
            for line in [upper, lower + 1] {
                let start = text.line_to_char(line) + "self.".len();
                let edit = Edit { start, removed: name.len(), inserted: "changed".into() };
                let began = Instant::now();
                next.change(&names[0], language, &text, std::slice::from_ref(&edit), By::Person);
                edits.push(began.elapsed());
                text.remove(start..start + edit.removed);
                text.insert(start, &edit.inserted);
                cursor = text.char_to_byte(start + edit.inserted.len());
            }
            let first = text.to_string();
            let all = std::iter::once(&first).chain(&texts[1..]);
            let files: Vec<File> =
                names.iter().zip(all).map(|(name, text)| File { name, text, language }).collect();
            let began = Instant::now();
            let edits = next.find(&Query { files: &files, cursor, count: 1 });
            finds.push(began.elapsed());
            found += usize::from(edits.is_ok());
        }
        println!("{what}: found in {found} of {ROUNDS} rounds");
        report("  a change", edits);
        report("  the next edit", finds);
    }
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f32| times[((times.len() - 1) as f32 * share) as usize].as_secs_f32() * 1e3;
    println!("{what}: p50 {:.2} ms, p95 {:.2} ms, max {:.2} ms", at(0.5), at(0.95), at(1.0));
}

/// A name, drawn so that some stand in many lines and most in few.
fn name(at: usize) -> String {
    const PARTS: [&str; 12] = [
        "load", "store", "entry", "ledger", "index", "cache", "item", "parse", "token", "frame",
        "queue", "state",
    ];
    format!("{}_{}_{at}", PARTS[at % 12], PARTS[at / 12 % 12])
}

fn made(random: &mut StdRng) -> String {
    let mut text = String::new();
    for line in 0..LINES {
        let mut any = || name((random.random::<f32>().powi(3) * NAMES as f32) as usize);
        let (a, b, c) = (any(), any(), any());
        let _ = match line % 8 {
            0 => writeln!(text, "fn {a}({b}: &mut Ledger) -> Result<u64, Error> {{"),
            1 => writeln!(text, "    // What {a} has is counted with \"{b}\"."),
            7 => writeln!(text, "}}"),
            _ => writeln!(text, "    let {a} = self.{b}({c}, \"{line}\")?;"),
        };
    }
    text
}
