//! Months of use in one log: how long an append takes, and how long a start takes. No time
//! is asserted; `cargo xtask soak` prints the times for docs/lab/long-runs.md.

use feedback::episode::Fold;
use feedback::event::{Completion, Event, EventKind, TokenRecord};
use feedback::job::Distribution;
use feedback::log::EventLog;
use feedback::sled_log::SledLog;
use feedback::testing::{accepted, completion, served};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

const EVENTS: u64 = 5_000;
const EVENTS_LONG: u64 = 1_000_000;

/// Events of one offer: it was made, it was shown, and it had an outcome.
const EVENTS_AN_OFFER: u64 = 3;

/// Tokens of a prompt of 2,000 characters.
const PROMPT_TOKENS: u32 = 500;

/// The number of times that the memory in use is measured.
const MEASUREMENTS: u64 = 10;

/// Offers between two flushes.
const OFFERS_A_FLUSH: u64 = 4;

fn event_count() -> u64 {
    match std::env::var("HONE_SOAK").ok().and_then(|share| share.parse::<f64>().ok()) {
        Some(share) => ((EVENTS_LONG as f64 * share) as u64).max(EVENTS),
        None => EVENTS,
    }
}

fn offer(id: &str, number: u64) -> EventKind {
    served(Completion {
        path: format!("/project/src/{}.rs", number % 50),
        prompt: (0..PROMPT_TOKENS).map(|token| token * 37 + number as u32 % 100).collect(),
        adapter_from: 480,
        tokens: (0..8).map(|id| TokenRecord { id, logprob: -0.25 }).collect(),
        shown: "push(item);".into(),
        ..completion(id)
    })
}

fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}

fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { bytes(&path) } else { path.metadata().unwrap().len() })
        .sum()
}

#[test]
fn soak_a_long_log_is_appended_to_and_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let offers = event_count() / EVENTS_AN_OFFER;
    let (mut appends, mut flushes, mut held) = (vec![], vec![], vec![]);
    {
        let log = SledLog::open(&path).unwrap();
        for number in 0..offers {
            let id = format!("{number:x}-1");
            let events = [offer(&id, number), EventKind::Shown { id: id.clone() }, accepted(&id)];
            for kind in events {
                let begun = Instant::now();
                log.append(number, kind).unwrap();
                appends.push(begun.elapsed().as_secs_f64() * 1e6);
            }
            if (number + 1) * MEASUREMENTS / offers > number * MEASUREMENTS / offers {
                held.push(format!("{:.0}", resident_mb()));
            }
            if number % OFFERS_A_FLUSH == 0 {
                let begun = Instant::now();
                log.flush().unwrap();
                flushes.push(begun.elapsed().as_secs_f64() * 1e3);
            }
        }
        log.flush().unwrap();
    }
    // This includes the samples taken above, which take 8 bytes an append.
    eprintln!("MiB held after each tenth: {}", held.join(" "));
    let begun = Instant::now();
    let log = SledLog::open(&path).unwrap();
    let opened = begun.elapsed();
    let mut fold = Fold::new("base", None);
    let mut read = 0;
    log.scan(0, &mut |event: Event| {
        read += 1;
        fold.apply(&event);
        ControlFlow::Continue(())
    })
    .unwrap();
    let started = begun.elapsed();
    assert_eq!((read, log.damage()), (offers * EVENTS_AN_OFFER, None));
    assert_eq!(fold.counts().accepted, offers);
    eprintln!(
        "{read} events, {} MiB; append µs: {}; flush ms: {}; open {:.2} s, with all read and \
         folded {:.2} s",
        bytes(dir.path()) >> 20,
        distribution(appends),
        distribution(flushes),
        opened.as_secs_f64(),
        started.as_secs_f64()
    );
}

fn distribution(values: Vec<f64>) -> String {
    let Distribution { p50, p95, max, .. } =
        Distribution::of(values.into_iter().map(|value| value as f32).collect());
    format!("p50 {p50:.1}, p95 {p95:.1}, max {max:.1}")
}
