//! The fate of a log whose bytes change on disk, measured on the real database:
//! flipped bits, and files that are cut.

use crate::event::{Event, EventKind};
use crate::log::EventLog;
use crate::sled_log::SledLog;
use crate::testing;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

const LOG: &str = "events.sled";
const EVENTS: u64 = 300;
/// Rounds for each kind of damage.
const ROUNDS: u64 = 60;

/// A linear congruential generator (Knuth's MMIX).
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit.max(1)
    }
}

fn accepted(number: u64) -> EventKind {
    testing::accepted(&format!("{number}-{}", "x".repeat(200)))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all.sort();
    all
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(file, target).unwrap();
    }
}

/// Returns what a reader finds: the events, and how the log describes its own damage.
fn read(path: &Path) -> Result<(Vec<Event>, Option<String>), String> {
    let read = catch_unwind(|| {
        let log = SledLog::open(path).map_err(|error| error.to_string())?;
        let mut events = vec![];
        log.scan(0, &mut |event| {
            events.push(event);
            ControlFlow::Continue(())
        })
        .map_err(|error| error.to_string())?;
        Ok((events, log.damage()))
    });
    read.unwrap_or_else(|_| Err("panic".into()))
}

/// Writes a log of [`EVENTS`] events, and flushes it.
fn written(folder: &Path) -> Vec<Event> {
    let log = SledLog::open(&folder.join(LOG)).unwrap();
    let events = (0..EVENTS).map(|i| log.append(i, accepted(i)).unwrap()).collect();
    log.flush().unwrap();
    events
}

/// Flips one bit of a file of the log, or cuts off its end.
fn damage(file: &Path, draws: &mut Draws, cut: bool) {
    let mut bytes = std::fs::read(file).unwrap();
    // sled makes its files longer than what it has written.
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(1, |last| last as u64 + 1);
    if cut {
        bytes.truncate(draws.below(used) as usize);
    } else {
        let bit = draws.below(used * 8) as usize;
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    std::fs::write(file, bytes).unwrap();
}

/// An event that was flushed is there, or the log reports that it is gone. No event ever
/// turns into another one, and the events that are left are the first ones, without a
/// gap. `-- --nocapture` prints the table in ADR 0004.
#[test]
fn lost_events_are_reported_and_none_is_made_up() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    std::fs::create_dir(&whole).unwrap();
    let written = written(&whole);
    let mut table = BTreeMap::<(String, &str, &str), u64>::new();
    for (round, kind) in (0..ROUNDS).flat_map(|round| [(round, "bit"), (round, "cut")]) {
        let mut draws = Draws(2 * round + 1);
        let home = dir.path().join("damaged");
        let _ = std::fs::remove_dir_all(&home);
        copy(&whole, &home);
        let files = files(&home.join(LOG));
        let file = &files[draws.below(files.len() as u64) as usize];
        damage(file, &mut draws, kind == "cut");
        let found = match read(&home.join(LOG)) {
            Err(reason) => {
                assert_ne!(reason, "panic", "{kind} {round}");
                assert!(reason.contains(LOG) && reason.contains("cannot open"), "{reason}");
                "refused, named"
            }
            Ok((events, damage)) if events == written => {
                assert_eq!(damage, None, "{kind} {round}");
                "whole"
            }
            Ok((events, damage)) => {
                assert!(
                    written.starts_with(&events),
                    "{kind} {round}: there is a gap, or another event"
                );
                let named = format!("events {} to {} were on disk", events.len(), EVENTS - 1);
                let damage = damage.expect("the loss is reported");
                assert!(damage.contains(&named), "{kind} {round}: {damage}");
                if damage.contains("damaged-1") {
                    "set aside, named"
                } else {
                    "beginning kept, rest named"
                }
            }
        };
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        *table.entry((name, kind, found)).or_default() += 1;
    }
    for ((file, kind, found), times) in table {
        println!("| {file} | {kind} | {found} | {times} |");
    }
}

/// A log that does not open may hold anything, so forgetting something removes it too.
#[test]
fn a_log_that_was_set_aside_is_removed_when_something_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path());
    let path = dir.path().join(LOG);
    let conf = std::fs::read(path.join("conf")).unwrap();
    std::fs::write(path.join("conf"), &conf[..conf.len() / 2]).unwrap();
    let log = SledLog::open(&path).unwrap();
    let aside = dir.path().join("events.sled.damaged-1");
    assert!(log.damage().is_some_and(|damage| damage.contains("damaged-1")) && aside.exists());
    log.append(0, accepted(0)).unwrap();
    log.retain(&|_| true).unwrap();
    assert!(!aside.exists());
}

#[test]
fn numbers_of_lost_events_are_not_given_again() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path());
    let path = dir.path().join(LOG);
    let db = path.join("db");
    let length = std::fs::metadata(&db).unwrap().len();
    std::fs::File::options().write(true).open(&db).unwrap().set_len(length / 2).unwrap();
    let log = SledLog::open(&path).unwrap();
    assert!(log.damage().is_some());
    assert_eq!(log.append(0, accepted(0)).unwrap().seq, EVENTS);
    log.flush().unwrap();
    drop(log);
    assert_eq!(SledLog::open(&path).unwrap().damage(), None, "it is reported once");
}
