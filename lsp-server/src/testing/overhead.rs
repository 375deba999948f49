//! Measures what the server itself costs a keystroke, for `cargo xtask bench overhead`. Fifty
//! editors type at the same time over real connections into a real log, on an engine that answers
//! at once. The test asserts that every request was answered, but not how fast.

use crate::testing::daemon::{Editor, TestDaemon};
use crate::testing::row;
use completion::document::Position;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use std::collections::HashSet;
use std::os::unix::net::UnixStream as Socket;
use std::time::{Duration, Instant};

const EDITORS: usize = 50;

/// The keys that each editor types in each round.
const KEYS: usize = 80;

/// The mean time between two keystrokes: eight a second.
const KEY_MS: u64 = 125;

/// The lines around the typed ones. They are more than the prompt's window.
const LINES_ABOVE: u32 = 200;
const LINES_BELOW: u32 = 100;

/// The results of one editor.
#[derive(Default)]
struct EditorResult {
    times: Vec<Duration>,
    /// The ids of the offers that it got. Each request that reached the engine has one.
    offers: HashSet<String>,
}

/// The keystrokes as an editor sends them. A new line comes with its indentation.
fn keys(editor: usize) -> impl Iterator<Item = String> {
    (0..).flat_map(move |line| {
        let text = format!("let value_{editor}_{line} = call(x);");
        text.chars().map(String::from).chain(["\n    ".to_owned()]).collect::<Vec<_>>()
    })
}

async fn type_along(socket: Socket, number: usize, hurried: bool) -> EditorResult {
    let mut editor = Editor::over(socket).await;
    let uri = format!("file:///{number}.rs");
    let line = |i| format!("fn number_{i}() -> u32 {{ {i} }}\n");
    let above: String = (0..LINES_ABOVE).map(line).collect();
    let below: String = (0..LINES_BELOW).map(line).collect();
    editor.open(&uri, &format!("{above}    \n{below}")).await;
    let mut at = Position { line: LINES_ABOVE, column: 4 };
    let mut random = StdRng::seed_from_u64(number as u64);
    let mut seen = EditorResult::default();
    for key in keys(number).take(KEYS) {
        if !hurried {
            let pause = random.random_range(0..2 * KEY_MS);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let change = editor.change(&uri, at, &key);
        match key.strip_prefix('\n') {
            Some(indent) => at = Position { line: at.line + 1, column: indent.len() as u32 },
            None => at.column += key.len() as u32,
        }
        let (id, request) = editor.completion(&uri, at);
        let began = Instant::now();
        editor.send(&change).await;
        editor.send(&request).await;
        let answer = editor.answer().await;
        seen.times.push(began.elapsed());
        assert_eq!(answer["id"], id, "{answer}");
        let offer = &answer["result"]["items"][0]["command"]["arguments"][0];
        seen.offers.insert(offer.as_str().expect("an offer").to_owned());
    }
    seen
}

/// Runs all editors on a thread of their own, so that their time does not count as the server's.
fn type_all(sockets: Vec<Socket>, hurried: bool) -> Vec<EditorResult> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut editors = tokio::task::JoinSet::new();
        for (number, socket) in sockets.into_iter().enumerate() {
            editors.spawn(type_along(socket, number, hurried));
        }
        editors.join_all().await
    })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: `cargo xtask bench overhead`"]
async fn bench_overhead_of_fifty_editors() {
    let daemon = TestDaemon::start(fixtures::engine(&["call(x);"])).await;
    let (mut report, mut computed) = (json!({"editors": EDITORS}), 0);
    for (name, hurried) in [("typing", false), ("hurried", true)] {
        let sockets = (0..EDITORS).map(|_| daemon.connect()).collect();
        let typing = tokio::task::spawn_blocking(move || type_all(sockets, hurried));
        let seen = typing.await.unwrap();
        let times: Vec<Duration> = seen.iter().flat_map(|seen| seen.times.clone()).collect();
        assert_eq!(times.len(), EDITORS * KEYS);
        computed += seen.iter().map(|seen| seen.offers.len()).sum::<usize>();
        report[name] = row(&times);
    }
    assert_eq!(daemon.app.services.recorder.counts().total, computed as u64);
    assert_eq!(
        daemon.completions_on_disk(),
        computed,
        "nothing was dropped on the way to the disk"
    );
    report["computed"] = json!(computed);
    // The line break separates the report from the output of the test runner.
    println!("\n{report}");
}
