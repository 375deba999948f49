//! The daemon is killed by SIGKILL at any point: while it answers, appends to its log, registers
//! and swaps adapters, or rewrites the log. Nothing that was acknowledged is lost, nothing that
//! was forgotten comes back, and the editor can continue.

use feedback::event::{EventKind, Outcome};
use feedback::limits::{LOG_HANDOVER_MAX, LOG_HANDOVER_POLL};
use models::file::sha256;
use rehearsal::client::Client;
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tests::buffer::Buffer;
use tests::processes::signal;
use tests::scripts::{Quick, install};
use tests::soak::{Draws, percentiles, rounds, seed};
use tests::{Home, Model, QUICK};

const ROUNDS: u64 = 40;
const ROUNDS_LONG: u64 = 500;

/// The daemon of a round is killed within this time, whether it is ready or not.
const LIFE_MS: u64 = 600;

const TEXTS: &[&str] = &[
    "// Monday, Tuesday, Wednesday, |\n",
    "// one, two, three, |\n",
    "// January, February, March, |\n",
];

struct Fixture {
    home: Home,
    draws: Draws,
    /// Offers whose acceptance was acknowledged.
    acknowledged: Vec<String>,
    /// Offers in the file that some rounds forget.
    forgettable: Vec<String>,
    /// Those that were forgotten.
    forgotten: HashSet<String>,
}

impl Fixture {
    /// A home in which two labels start an update.
    fn new(seed: u64) -> Fixture {
        let config = format!("{QUICK}lab.batch_episodes = 2\nlab.max_tokens = 4\n");
        let config = config.replacen("lab.max_tokens = 8\n", "", 1);
        let mut home = Home::with(Model::Smol, &config);
        let script = home.path().join("learner.sh");
        install(&script, &Quick::of(&home).learner());
        home.set_env("HONE_LEARNER", &script);
        let (acknowledged, forgettable, forgotten) = Default::default();
        Fixture { home, draws: Draws::new(seed), acknowledged, forgettable, forgotten }
    }

    /// The registry can be read, and the file of its active adapter is undamaged.
    fn check_registry(&self) {
        let path = self.home.path().join("adapters/registry.json");
        let Ok(text) = std::fs::read_to_string(&path) else { return };
        let registry: Value = serde_json::from_str(&text).expect("a whole registry");
        let active = &registry["active"];
        let entries = registry["adapters"].as_array().expect("adapters");
        let Some(entry) = entries.iter().find(|entry| entry["version"] == *active) else {
            assert_eq!(active, 0);
            return;
        };
        let file = format!("adapters/v{:04}.gguf", active.as_u64().expect("a version"));
        let file = self.home.path().join(file);
        assert_eq!(sha256(&file).expect("the active adapter's file"), entry["sha256"]);
    }

    fn check_log(&self) {
        let events = self.home.events();
        assert!(events.is_sorted_by(|a, b| a.seq < b.seq), "a number was used twice");
        let accepted: HashSet<&str> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Outcome { id, outcome: Outcome::Accepted, .. } => Some(id.as_str()),
                _ => None,
            })
            .collect();
        for id in &self.acknowledged {
            assert!(accepted.contains(id.as_str()), "{id} was acknowledged and is gone");
        }
        let known: HashSet<&str> =
            events.iter().map(|event| event.kind.offer_id().as_str()).collect();
        for id in &self.forgotten {
            assert!(!known.contains(id.as_str()), "{id} was forgotten and is back");
        }
    }
}

/// Kills the daemon after some time; the thread returns when that was.
fn kill_after(
    pid: u64,
    after: Duration,
    done: Arc<AtomicBool>,
) -> std::thread::JoinHandle<Instant> {
    std::thread::spawn(move || {
        std::thread::sleep(after);
        signal("-9", pid);
        let at = Instant::now();
        done.store(true, Ordering::SeqCst);
        at
    })
}

#[test]
fn soak_kill_9_at_any_point_loses_nothing() {
    let seed = seed();
    let mut fixture = Fixture::new(seed);
    let editor = fixture.home.editor();
    let pid_of = |status: Value| status["daemon"]["pid"].as_u64().expect("a daemon's pid");
    let (mut recovered, mut killed) = (vec![], 0);
    let all = rounds(ROUNDS, ROUNDS_LONG);
    for round in 0..all {
        let pid = pid_of(editor.status().expect("a status"));
        let dead = Arc::new(AtomicBool::new(false));
        let after = Duration::from_millis(fixture.draws.below(LIFE_MS));
        let killer = kill_after(pid, after, dead.clone());
        // Meanwhile another process may forget a file, or roll the adapter back.
        let args: &[&str] = match fixture.draws.below(4) {
            0 => &["forget", "--file", "/project/forget.rs", "--yes"],
            1 => &["adapter", "rollback"],
            _ => &["status", "--json"],
        };
        let forgets = args[0] == "forget";
        let mut other = fixture.home.hone();
        other.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        let mut other = other.spawn().expect("hone runs");
        let before = fixture.forgettable.len();

        let mut number = 0;
        loop {
            // A round that forgets accepts nothing in that file, for it could come later.
            let name = match fixture.draws.below(4) {
                0 if !forgets => "forget.rs".to_owned(),
                _ => format!("{}.rs", fixture.draws.below(20)),
            };
            let was_dead = dead.load(Ordering::SeqCst);
            let text = *fixture.draws.pick(TEXTS);
            let mut buffer = Buffer::open(&editor, &name, text);
            let offer = buffer.complete();
            if was_dead {
                // A request during a forget may have no answer.
                let offer = offer.or_else(|| buffer.complete());
                assert!(offer.is_some(), "completions continue");
                break;
            }
            number += 1;
            let Some(offer) = offer else { continue };
            buffer.insert(&offer.insert_text);
            if editor.accept(&offer.id).is_ok() {
                if name == "forget.rs" {
                    fixture.forgettable.push(offer.id);
                } else {
                    fixture.acknowledged.push(offer.id);
                }
            }
        }
        let died = killer.join().expect("a killer");
        recovered.push(died.elapsed().as_secs_f64());
        killed += 1;
        if other.wait().expect("hone ends").success() && forgets {
            fixture.forgotten.extend(fixture.forgettable.drain(..before));
        }
        fixture.check_registry();
        let status = editor.status().expect("a status");
        let trouble = &status["learner"]["last_error"];
        let is_damage = trouble.as_str().is_some_and(|text| text.contains("damaged"));
        assert!(!is_damage, "seed {seed}, round {round}, after {number} offers: {trouble}");
        if round % 20 == 0 || round + 1 == all {
            fixture.check_log();
        }
    }
    let adapters = editor.status().expect("a status")["learner"]["updates"].clone();
    eprintln!(
        "{killed} kills, {} acknowledged acceptances, {} forgotten, {adapters} adapters; \
         seconds from the kill to the next completion: {}",
        fixture.acknowledged.len(),
        fixture.forgotten.len(),
        percentiles(recovered)
    );
    assert!(
        fixture.acknowledged.len() as u64 > all / 4,
        "too few acceptances to conclude anything"
    );
    editor.shutdown().expect("the editor still has its first connection");
}

/// After a torn write or a bad sector, the daemon says which events are gone and keeps the rest.
#[test]
fn a_damaged_event_log_is_named_and_completions_and_learning_continue() {
    let home = Home::with(Model::Smol, QUICK);
    let accept = |editor: &Client, number: usize| {
        let mut buffer = Buffer::open(editor, &format!("{number}.rs"), TEXTS[number % 3]);
        let offer = buffer.offer();
        buffer.accept(&offer);
    };
    let db = home.path().join("data/events.sled/db");
    for part in [2, 3, 5, 9] {
        let editor = home.editor();
        (0..6).for_each(|number| accept(&editor, number));
        editor.shutdown().unwrap();
        home.output(&["stop"]);
        let before = home.events();
        let end = before.last().expect("events").seq;

        let mut bytes = std::fs::read(&db).unwrap();
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap();
        bytes[used / part] ^= 1;
        std::fs::write(&db, bytes).unwrap();

        let editor = home.editor();
        let status = editor.status().unwrap();
        let trouble = status["learner"]["last_error"].as_str().expect("a reason").to_owned();
        let named = format!(" to {end} were on disk and are gone");
        assert!(trouble.contains("events.sled: damaged; events ") && trouble.contains(&named));
        accept(&editor, 7);
        let after = home.events();
        let kept = after.iter().take_while(|event| event.seq <= end).count();
        assert!(kept < before.len() && after[..kept] == before[..kept], "{trouble}");
        assert_eq!(after[kept].seq, end + 1, "no number is used twice");
        editor.shutdown().unwrap();
        home.output(&["stop"]);
    }
    home.output(&["forget", "--all", "--yes"]);
    let left: Vec<_> = std::fs::read_dir(home.path().join("data")).unwrap().collect();
    assert!(
        left.len() <= 3,
        "only the log, its mark and the clock's history may be left: {left:?}"
    );
}

/// If the optimizer's state cannot be read, its momentum is lost and learning continues.
#[test]
fn a_damaged_optimizer_state_is_named_and_learning_continues() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    for update in 1..=2 {
        let mut buffer = Buffer::open(&editor, "week.rs", TEXTS[0]);
        let offer = buffer.offer();
        buffer.accept(&offer);
        let status = tests::learn(&editor);
        assert_eq!(status["adapter"]["active"], update);
        let state = home.path().join(format!("adapters/v000{update}.optimizer"));
        let mut bytes = std::fs::read(&state).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&state, bytes).unwrap();
    }
    let log = home.daemon_log();
    assert!(
        log.contains("v0001.optimizer is not usable") && log.contains("starts afresh"),
        "{log}"
    );
}

/// A daemon that ends gives up its lock and then takes a while to be gone. The next daemon waits
/// for the event log for some seconds, so the log must be free by then. sled frees it a moment
/// after it is closed, in a thread of its own.
#[test]
fn whoever_gets_the_lock_of_a_daemon_that_ends_finds_its_log_free() {
    let home = Home::with(Model::Smol, QUICK);
    for stop in 1..=3 {
        let _editor = home.editor();
        let lock = File::open(home.path().join("run/daemon.lock")).unwrap();
        let database = File::open(home.path().join("data/events.sled/db")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| home.output(&["stop"]));
            lock.lock().unwrap();
            let locked = Instant::now();
            while database.try_lock().is_err() {
                assert!(locked.elapsed() < LOG_HANDOVER_MAX, "stop {stop}: the log is in use");
                std::thread::sleep(LOG_HANDOVER_POLL);
            }
            drop((lock, database));
        });
    }
}

/// Commands set a log aside that they could not open and did not say so, and the next `forget` of
/// one file removed all of it without a word.
#[test]
fn every_command_that_reads_a_damaged_log_names_it() {
    let home = Home::with(Model::Smol, QUICK);
    Buffer::open(&home.editor(), "week.rs", TEXTS[0]).offer();
    home.output(&["stop"]);
    let (log, fresh) = (home.path().join("data/events.sled"), Home::with(Model::Smol, QUICK));
    let conf = std::fs::read(log.join("conf")).unwrap();
    std::fs::write(log.join("conf"), &conf[..conf.len() / 2]).unwrap();
    let aside = home.path().join("data/events.sled.damaged-1").display().to_string();
    let noted = |run: std::process::Output, command: &str| {
        let text = [run.stdout, run.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.contains("damaged; events ") && text.contains(&aside), "{command}: {text}");
    };
    let mut commands =
        vec!["status", "gate", "adapter show", "report", "events", "events --verdicts"];
    commands.push("forget --file /other.rs");
    for command in commands {
        noted(home.run(&command.split(' ').collect::<Vec<_>>()), command);
    }
    noted(fresh.run(&["gate", "--adopt", &home.path().display().to_string()]), "gate --adopt");
    assert!(Path::new(&aside).exists(), "it goes only once something is forgotten");
    let told = home.output(&["forget", "--file", "/other.rs", "--yes"]);
    let note = format!("note: {aside}: nobody can tell what this damaged log holds");
    assert!(told.contains(&note), "{told}");
    assert!(!Path::new(&aside).exists());
    let told = home.output(&["forget", "--file", "/other.rs", "--yes"]);
    assert!(told.contains("nothing is recorded about /other.rs"), "{told}");
}
