//! A working day of fifty editors on a scripted engine, run as fast as possible. Memory must not
//! grow after noon.

use completion::document::{Document, Position};
use feedback::clock::{Clock, ManualClock};
use feedback::sled_log::SledLog;
use ropey::Rope;
use session::request::Trigger;
use session::{Session, SessionError};
use settings::Config;
use std::sync::Arc;
use std::time::Duration;

const SESSIONS: usize = 50;

/// The lines that each editor writes.
const LINES: u64 = 20;
const LINES_LONG: u64 = 2_000;

/// The time that a line takes to write. 2,000 lines are a working day of eight hours.
const LINE_MS: u64 = 14_400;

/// The growth of memory that is allowed between noon and evening. By noon of the long form, the
/// log's cache and every fold have reached their bounds, so what is left is the allocator's.
const GROWTH_MB: f64 = 16.0;

/// The number of measurements in a day.
const MEASUREMENTS: u64 = 10;

fn lines() -> u64 {
    match std::env::var("HONE_SOAK").ok().and_then(|share| share.parse::<f64>().ok()) {
        Some(share) => ((LINES_LONG as f64 * share) as u64).max(LINES),
        None => LINES,
    }
}

fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}

/// Writes one line: accepts one offer, types the next one out, and rejects the third. Returns the
/// number of offers.
async fn write_line(session: &Session, editor: usize, number: u64) -> u64 {
    let uri = format!("file:///{editor}-{}.rs", number / 200);
    if number.is_multiple_of(200) {
        if number > 0 {
            session.close(&format!("file:///{editor}-{}.rs", number / 200 - 1));
        }
        let (path, language) = (uri.clone(), "rust".into());
        session.open(uri.clone(), Document { path, language, version: 0, text: Rope::new() });
    }
    let line = (number % 200) as u32;
    let at = |column: u32| Position { line, column };
    let insert = |column: u32, text: &str| {
        session.change(&uri, 1, vec![(Some((at(column), at(column))), text.to_owned())]).unwrap();
    };
    let typed = format!("value_{number}.");
    for (column, c) in typed.chars().enumerate() {
        insert(column as u32, &c.to_string());
    }
    let column = typed.len() as u32;
    let offers = match session.complete(&uri, at(column), Trigger::Automatic, None).await {
        Ok(completed) => completed.suggestions,
        Err(SessionError::Superseded) => vec![],
        Err(error) => panic!("{error}"),
    };
    let Some(offer) = offers.first() else {
        insert(column, "\n");
        return 0;
    };
    session.shown(&offer.id);
    match number % 3 {
        0 => {
            insert(column, &offer.text);
            session.accepted(&offer.id).unwrap();
        }
        1 => {
            for (typed, c) in offer.text.chars().enumerate() {
                insert(column + typed as u32, &c.to_string());
            }
        }
        _ => insert(column, "other()"),
    }
    let end = column + if number % 3 == 2 { 7 } else { offer.text.encode_utf16().count() as u32 };
    insert(end, "\n");
    1
}

/// The test below.
const DAY: &str = "testing::load::soak_fifty_editors_hold_no_more_in_the_evening_than_at_noon";

/// Is set in the process that the day runs in.
const ALONE: &str = "HONE_TEST_ALONE";

/// What a process holds is measured, and other tests take memory and give it back. So the day runs
/// in a process of its own.
#[test]
fn soak_fifty_editors_hold_no_more_in_the_evening_than_at_noon() {
    if std::env::var_os(ALONE).is_some() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        return runtime.block_on(day());
    }
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    let ran = alone.args([DAY, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let told = [ran.stdout, ran.stderr].map(|told| String::from_utf8_lossy(&told).into_owned());
    eprintln!("{}", told.concat());
    assert!(ran.status.success() && told[0].contains("1 passed"));
}

async fn day() {
    let engine = fixtures::engine(&["call(x);", "call(y);", "close();"]);
    let (_folder, home) = fixtures::home();
    let clock = Arc::new(ManualClock::starting_at(0));
    let log = Arc::new(SledLog::open(&home.event_log()).unwrap());
    let mut config = Config::default();
    config.gate.enabled = false;
    config.learning.enabled = false;
    let app = super::app::start(&home, config, engine, clock.clone(), log).await;
    let sessions: Vec<_> = (0..SESSIONS).map(|_| app.session()).collect();
    let (all, mut held, mut offers) = (lines(), vec![], 0);
    for number in 0..all {
        let mut writing = tokio::task::JoinSet::new();
        for (editor, session) in sessions.iter().cloned().enumerate() {
            writing.spawn(async move { write_line(&session, editor, number).await });
        }
        while let Some(wrote) = writing.join_next().await {
            offers += wrote.unwrap();
        }
        clock.advance(LINE_MS);
        app.tick();
        if (number + 1) * MEASUREMENTS / all > number * MEASUREMENTS / all {
            while !app.services.checkpoints.is_idle() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            held.push(resident_mb());
        }
    }
    app.services.recorder.flush().await.unwrap();
    eprintln!(
        "{SESSIONS} editors, {all} lines each, {offers} offers: MiB held after each tenth: {}",
        held.iter().map(|mb| format!("{mb:.0}")).collect::<Vec<_>>().join(" ")
    );
    assert!(offers > all * SESSIONS as u64 / 2, "{offers}");
    assert_eq!(app.services.recorder.counts().total, offers);
    assert_eq!(held.len() as u64, MEASUREMENTS);
    let (noon, evening) = held.split_at(held.len() / 2);
    let most = evening.iter().fold(0.0, |most: f64, mb| most.max(*mb));
    let noon = noon.last().copied().unwrap_or_default();
    assert!(most - noon < GROWTH_MB, "{noon} MiB at noon, {most} MiB later");
}
