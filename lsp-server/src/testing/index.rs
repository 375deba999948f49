//! Measures the index of a workspace, for `cargo xtask bench index`: how long a whole build takes,
//! what it needs of memory, and what look-ups take at random places of its files.

use crate::config::patterns::Patterns;
use crate::platform::process::lower_thread_priority;
use crate::workspace::status::FolderState;
use crate::workspace::{Snapshot, Workspaces};
use feedback::clock::SystemClock;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};

const FILES: usize = 10_000;
const FOLDERS: usize = 400;

/// The names of the made files, and the words that names are made of.
const NAMES: usize = 20_000;
const SYLLABLES: &[&str] = &[
    "ledger", "entry", "total", "parse", "http", "node", "user", "index", "cache", "token", "file",
    "line", "read", "write", "open", "close", "start", "stop", "count", "find", "merge", "split",
    "queue", "event", "state", "value", "error", "config", "path", "name", "time", "size",
];

const LOOK_UPS: usize = 2_000;

/// What a look-up is given: the text around the cursor, and the prompt's window, in bytes.
const NEAR_BEFORE: usize = 1_000;
const NEAR_BEHIND: usize = 300;
const WINDOW: usize = 4_000;

/// The longest wait for the build.
const PATIENCE: Duration = Duration::from_secs(900);

/// A name; low numbers are drawn much more often, as in real code.
fn name(draws: &mut StdRng) -> String {
    let number = (NAMES as f64).powf(draws.random::<f64>()) as usize;
    let part = |shift: usize| SYLLABLES[(number / shift) % SYLLABLES.len()];
    format!("{}_{}_{}", part(1), part(SYLLABLES.len()), number % 97)
}

fn made_file(draws: &mut StdRng) -> String {
    let mut text = format!("use crate::{}::{};\n\n", name(draws), name(draws));
    for _ in 0..draws.random_range(2..9) {
        text += &format!("pub fn {}({}: &str) -> usize {{\n", name(draws), name(draws));
        for _ in 0..draws.random_range(3..18) {
            let line = match draws.random_range(0..4) {
                0 => format!("let {} = self.{}.{}();", name(draws), name(draws), name(draws)),
                1 => format!("if {} > {} {{ return 0; }}", name(draws), name(draws)),
                2 => format!("self.{}({}, {});", name(draws), name(draws), name(draws)),
                _ => format!("// The {} of the {}.", name(draws), name(draws)),
            };
            text += &format!("    {line}\n");
        }
        text += "}\n\n";
    }
    text
}

fn made_tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let mut draws = StdRng::seed_from_u64(1);
    for number in 0..FILES {
        let folder = number % FOLDERS;
        let folder = tree.path().join(format!("part{}/module{folder}", folder % 20));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("file{number}.rs")), made_file(&mut draws)).unwrap();
    }
    tree
}

fn process_mb() -> f64 {
    let pid = sysinfo::get_current_pid().unwrap();
    let mut system = System::new();
    let memory = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, memory);
    system.process(pid).unwrap().memory() as f64 / 1e6
}

/// Builds the folder as the server does; answers the snapshot and the report.
fn build(root: &Path, forgotten: PathBuf) -> (Arc<Snapshot>, Value) {
    let before = process_mb();
    let clock = Arc::new(SystemClock::default());
    let workspaces = Workspaces::new(forgotten, Patterns::none(), clock);
    let _open = workspaces.open(root).unwrap();
    let started = Instant::now();
    let mut most: f64 = 0.0;
    let status = loop {
        std::thread::sleep(Duration::from_millis(50));
        most = most.max(process_mb());
        let status = workspaces.status().remove(0);
        if status.state == FolderState::Ready {
            break status;
        }
        assert!(started.elapsed() < PATIENCE, "{status:?}");
    };
    let report = json!({
        "files": status.files,
        "left_out": status.left_out,
        "limit": status.limit,
        "chunks": status.chunks,
        "text_mb": status.text_bytes as f64 / 1e6,
        "build_s": status.build_ms.unwrap_or(0) as f64 / 1e3,
        "process_mb": process_mb() - before,
        "process_most_mb": most - before,
    });
    let snapshot = workspaces.holding(&root.join("any").to_string_lossy()).unwrap().snapshot();
    (snapshot, report)
}

/// The texts of all files, in the order of their names.
fn texts(snapshot: &Snapshot) -> Vec<(String, Arc<str>)> {
    let mut names: Vec<String> = snapshot.retrieval.names().map(str::to_owned).collect();
    names.sort();
    let text = |name: String| snapshot.retrieval.text(&name).map(|text| (name, text));
    names.into_iter().filter_map(text).collect()
}

/// How long it takes to put all texts into each index, in seconds, at the priority of the server's
/// thread.
fn times_to_build(files: &[(String, Arc<str>)]) -> (f64, f64) {
    std::thread::scope(|scope| {
        let building = scope.spawn(|| {
            lower_thread_priority();
            let started = Instant::now();
            let mut index = retrieval::Index::default();
            files.iter().for_each(|(name, text)| {
                let _ = index.put(name, text.clone());
            });
            let of_code = started.elapsed().as_secs_f64();
            drop(index);
            let started = Instant::now();
            let mut memory = memory::Memory::default();
            files.iter().for_each(|(name, text)| {
                let _ = memory.put(name, text.clone());
            });
            (of_code, started.elapsed().as_secs_f64())
        });
        building.join().unwrap()
    })
}

fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn times(mut times: Vec<Duration>, build_s: f64, index_bytes: usize, found: usize) -> Value {
    times.sort();
    let ms =
        |share: f64| times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e3;
    json!({
        "build_s": build_s, "index_mb": index_bytes as f64 / 1e6, "look_ups": times.len(),
        "found": found, "p50_ms": ms(0.5), "p95_ms": ms(0.95), "max_ms": ms(1.0),
    })
}

#[test]
#[ignore = "a measurement: `cargo xtask bench index`"]
fn bench_index_of_a_workspace() {
    let given = std::env::var_os("HONE_BENCH_TREE").map(PathBuf::from);
    let made = given.is_none().then(made_tree);
    let root = given.unwrap_or_else(|| made.as_ref().unwrap().path().to_owned());
    let home = tempfile::tempdir().unwrap();
    let (snapshot, folder) = build(&root, home.path().join("forgotten"));
    let files = texts(&snapshot);
    let (of_code, of_lines) = times_to_build(&files);
    let mut draws = StdRng::seed_from_u64(2);
    let (mut searches, mut matches, mut hits, mut places) = (vec![], vec![], 0, 0);
    for _ in 0..LOOK_UPS {
        let (name, text) = &files[draws.random_range(0..files.len())];
        let at = boundary(text, draws.random_range(0..=text.len()));
        let from = |before: usize| boundary(text, at.saturating_sub(before));
        let to = |behind: usize| boundary(text, at + behind);
        let line = text[..at].matches('\n').count();
        let started = Instant::now();
        let found = snapshot.retrieval.search(&retrieval::Query {
            text: &text[from(NEAR_BEFORE)..to(NEAR_BEHIND)],
            window: &text[from(WINDOW)..to(WINDOW / 4)],
            shown: Some((name, &(line.saturating_sub(100)..line + 25))),
            count: 5,
            a_file: 2,
            ..retrieval::Query::default()
        });
        searches.push(started.elapsed());
        hits += usize::from(!found.is_empty());
        let (before, after) = text.split_at(at);
        let started = Instant::now();
        let found = snapshot.memory.find(&memory::Query {
            file: name,
            before,
            after,
            lines: 5,
            ..memory::Query::default()
        });
        matches.push(started.elapsed());
        places += usize::from(!found.is_empty());
    }
    let (code, lines) = (snapshot.retrieval.stats(), snapshot.memory.stats());
    let report = json!({
        "folder": folder,
        "retrieval": times(searches, of_code, code.index_bytes, hits),
        "memory": times(matches, of_lines, lines.index_bytes, places),
    });
    println!("\n{report}");
}
