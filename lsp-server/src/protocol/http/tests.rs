//! Clients that report nothing: what they get, and what is recorded of what their users did. The
//! engine is scripted.

use super::*;
use crate::testing;
use api::{Around, Asks, Client, File};
use feedback::clock::{Clock, ManualClock};
use feedback::event::{EventKind, Outcome};
use feedback::log::{EventLog, MemoryLog};
use fixtures::{HookedEngine, eventually};
use settings::Config;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const START: &str = "fn a() {\n    |\n}\n";

struct Api {
    clients: HttpClients,
    clock: Arc<ManualClock>,
    log: Arc<MemoryLog>,
    /// Requests that the engine has begun.
    asked: Arc<AtomicUsize>,
    /// The engine answers nothing as long as this is set.
    held: Arc<AtomicBool>,
    _folder: TempDir,
}

/// An API whose engine offers a call on an empty line, and a comment behind what is written there.
/// A request behind `hang` lasts until it is cancelled.
async fn api() -> Api {
    let (folder, home) = fixtures::home();
    let mut config = Config::default();
    config.gate.enabled = false;
    let (clock, log) = (Arc::new(ManualClock::starting_at(0)), Arc::new(MemoryLog::default()));
    let asked = Arc::new(AtomicUsize::new(0));
    let held = Arc::new(AtomicBool::new(false));
    let (count, holds) = (asked.clone(), held.clone());
    let engine = HookedEngine {
        generate: Box::new(move |scripted, request, abort| {
            count.fetch_add(1, Ordering::Relaxed);
            while holds.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let prompt = &request.prompt;
            let line = format!("{}{}", prompt.line, prompt.healing);
            scripted.answers = if line.trim().is_empty() { &["call(x);"] } else { &[" // why"] };
            scripted.takes = match line.trim() {
                "hang" => Duration::from_secs(600),
                _ => Duration::ZERO,
            };
            engine::Engine::generate(scripted, request, abort)
        }),
        ..fixtures::engine(&[]).hooked()
    };
    let app = testing::app::start(&home, config, engine, clock.clone(), log.clone()).await;
    Api { clients: HttpClients::new(app), clock, log, asked, held, _folder: folder }
}

fn request(client: &str, marked: &str) -> Request {
    let (before, after) = marked.split_once('|').expect("a cursor");
    let around = Around { before: before.into(), after: after.into() };
    let asks = match client {
        "infill" => Asks::AheadAtEachKey,
        "axios" => Asks::AheadAtNewText,
        _ => Asks::Plainly,
    };
    Request::new(Client { name: client.to_owned(), asks }, around)
}

impl Api {
    async fn ask(&self, client: &str, marked: &str) -> String {
        self.clients.complete(request(client, marked)).await.unwrap().text
    }

    fn pass(&self, ms: u64) {
        self.clock.advance(ms);
        self.clients.app.tick();
    }

    /// Returns what was offered, with what became of it last.
    fn offers(&self) -> Vec<(String, Option<Outcome>)> {
        let mut offers: Vec<(String, String, Option<Outcome>)> = vec![];
        let scanned = self.log.scan(0, &mut |event| {
            match event.kind {
                EventKind::Completion(made) => offers.push((made.id, made.shown, None)),
                EventKind::Outcome { id, outcome, .. } => {
                    let known = offers.iter_mut().find(|offer| offer.0 == id);
                    known.expect("its offer is recorded before").2 = Some(outcome);
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
        scanned.unwrap();
        offers.into_iter().map(|(_, text, outcome)| (text, outcome)).collect()
    }

    fn outcomes(&self) -> Vec<Option<Outcome>> {
        self.offers().into_iter().map(|(_, outcome)| outcome).collect()
    }
}

#[tokio::test]
async fn what_stands_in_the_next_request_was_accepted() {
    let api = api().await;
    assert_eq!(api.ask("zed", START).await, "call(x);");
    api.pass(2_000);
    api.ask("zed", "fn a() {\n    call(x);\n    |\n}\n").await;
    assert_eq!(api.outcomes(), [Some(Outcome::Accepted), None]);
}

#[tokio::test]
async fn an_offer_is_accepted_however_long_it_was_looked_at() {
    let api = api().await;
    api.ask("zed", START).await;
    api.pass(60_000);
    assert_eq!(api.outcomes(), [Some(Outcome::Unseen)], "nobody knows so far");
    api.ask("zed", "fn a() {\n    call(x);|\n}\n").await;
    assert_eq!(api.outcomes()[0], Some(Outcome::Accepted));
}

#[tokio::test]
async fn who_types_along_is_asked_nothing_of_and_who_leaves_has_rejected() {
    let api = api().await;
    api.ask("zed", START).await;
    api.pass(1_000);
    assert_eq!(api.ask("zed", "fn a() {\n    ca|\n}\n").await, "ll(x);");
    assert_eq!(api.asked.load(Ordering::Relaxed), 1, "the engine is asked nothing");
    assert_eq!(api.outcomes(), [None]);
    api.pass(1_000);
    api.ask("zed", "fn a() {\n    cat|\n}\n").await;
    assert_eq!(api.outcomes()[0], Some(Outcome::RejectedEdit));
}

#[tokio::test]
async fn most_of_an_offer_that_was_typed_counts() {
    let api = api().await;
    api.ask("zed", START).await;
    api.pass(1_000);
    api.ask("zed", "fn a() {\n    call(y|\n}\n").await;
    assert_eq!(api.outcomes()[0], Some(Outcome::TypedThrough { utf16: 5 }));
}

#[tokio::test]
async fn what_cannot_have_been_read_is_no_verdict() {
    let api = api().await;
    api.ask("zed", START).await;
    api.pass(100);
    api.ask("zed", "fn a() {\n    x|\n}\n").await;
    assert_eq!(api.outcomes()[0], Some(Outcome::Unseen));
    // The cursor moves, and nothing is written.
    api.pass(1_000);
    api.ask("zed", "fn a() {\n    x\n}\n|").await;
    assert_eq!(api.outcomes()[1], Some(Outcome::Unseen));
}

#[tokio::test]
async fn a_request_as_if_accepted_is_recorded_once_the_client_is_there() {
    let api = api().await;
    assert_eq!(api.ask("infill", START).await, "call(x);");
    assert_eq!(api.ask("infill", "fn a() {\n    call(x);|\n}\n").await, " // why");
    assert_eq!(api.offers(), [("call(x);".into(), None)]);
    // The user presses Tab, and the client asks what follows the answer that it has.
    api.pass(3_000);
    api.ask("infill", "fn a() {\n    call(x); // why|\n}\n").await;
    let second = (" // why".into(), None);
    assert_eq!(api.offers(), [("call(x);".into(), Some(Outcome::Accepted)), second]);
    api.pass(3_000);
    api.ask("infill", "fn a() {\n    call(x); // why not|\n}\n").await;
    assert_eq!(api.outcomes()[..2], [Some(Outcome::Accepted); 2]);
}

#[tokio::test]
async fn a_request_as_if_accepted_says_nothing_of_an_offer_that_is_rejected() {
    let api = api().await;
    api.ask("infill", START).await;
    api.ask("infill", "fn a() {\n    call(x);|\n}\n").await;
    api.pass(2_000);
    assert_eq!(api.ask("infill", "fn a() {\n    call(x);|\n}\n").await, " // why");
    assert_eq!(api.ask("infill", "fn a() {\n    ca|\n}\n").await, "ll(x);", "typed along");
    api.pass(2_000);
    api.ask("infill", "fn a() {\n    let|\n}\n").await;
    let offers = api.offers();
    assert_eq!(offers[0], ("call(x);".into(), Some(Outcome::RejectedEdit)));
    assert_eq!(offers.len(), 2, "the answer that was never reached is not recorded");
}

/// While llama.vim waits for the answer to its request as if an offer was accepted, it does not ask
/// at the keys. What its user typed meanwhile came whole, and was taken for accepted.
#[tokio::test]
async fn what_was_typed_while_the_client_waited_was_not_accepted() {
    let api = Arc::new(api().await);
    api.ask("infill", START).await;
    api.held.store(true, Ordering::Relaxed);
    let asking = api.clone();
    let ahead =
        tokio::spawn(async move { asking.ask("infill", "fn a() {\n    call(x);|\n}\n").await });
    eventually("the engine computes", || api.asked.load(Ordering::Relaxed) == 2).await;
    api.pass(1_000);
    api.held.store(false, Ordering::Relaxed);
    assert_eq!(ahead.await.unwrap(), " // why");
    api.ask("infill", "fn a() {\n    call(x);\n    |\n}\n").await;
    assert_eq!(api.outcomes()[0], Some(Outcome::TypedThrough { utf16: 8 }));
}

/// curl takes a while to start, which Hone does not see, and llama.vim does not ask at the keys
/// meanwhile.
#[tokio::test]
async fn what_came_soon_after_another_request_was_not_accepted() {
    for (ms, expected) in [(249, Outcome::TypedThrough { utf16: 8 }), (250, Outcome::Accepted)] {
        let api = api().await;
        api.ask("infill", START).await;
        api.pass(1_000);
        api.ask("infill", "fn a() {\n    call(x);|\n}\n").await;
        api.pass(ms);
        api.ask("infill", "fn a() {\n    call(x);\n    |\n}\n").await;
        assert_eq!(api.outcomes()[0], Some(expected), "after {ms} ms");
    }
}

/// llama.vscode sends nothing while its user types along with an offer, so what comes whole was
/// taken only if nobody can have typed it since.
#[tokio::test]
async fn what_can_have_been_typed_since_an_offer_was_not_accepted() {
    for (ms, expected) in [(399, Outcome::Accepted), (400, Outcome::TypedThrough { utf16: 8 })] {
        for next in ["fn a() {\n    call(x);\n    |\n}\n", "fn a() {\n    call(x); // why|\n}\n"] {
            let api = api().await;
            api.ask("axios", START).await;
            assert_eq!(api.ask("axios", "fn a() {\n    call(x);|\n}\n").await, " // why");
            api.pass(ms);
            api.ask("axios", next).await;
            assert_eq!(api.outcomes()[0], Some(expected), "{next} after {ms} ms");
        }
    }
}

#[tokio::test]
async fn what_a_client_was_not_given_is_not_accepted() {
    for (limit, expected) in [(0, Outcome::Unseen), (4, Outcome::PartlyAccepted { utf16: 4 })] {
        let api = api().await;
        let mut asked = request("zed", START);
        asked.limits.max_tokens = Some(limit);
        api.clients.complete(asked).await.unwrap();
        api.pass(1_000);
        api.ask("zed", "fn a() {\n    call(x);\n    |\n}\n").await;
        assert_eq!(api.outcomes()[0], Some(expected), "{limit} tokens");
    }
}

#[tokio::test]
async fn programs_of_one_name_ask_at_once_about_similar_texts() {
    let api = Arc::new(api().await);
    api.held.store(true, Ordering::Relaxed);
    let ask = |number: usize| {
        let api = api.clone();
        tokio::spawn(async move { api.ask("zed", &format!("// {number}\n{START}")).await })
    };
    let asked: Vec<_> = [1, 2, 3, 3].into_iter().map(ask).collect();
    eventually("all are there", || api.clients.state.lock().texts.len() == 4).await;
    api.held.store(false, Ordering::Relaxed);
    for answer in asked {
        assert_eq!(answer.await.unwrap(), "call(x);");
    }
}

#[tokio::test]
async fn a_client_may_send_its_own_file_along() {
    let api = api().await;
    let file = File { name: "/p/a.rs".into(), text: "fn b() {}\n".into() };
    let named = Request { name: Some("/p/a.rs".into()), ..request("zed", START) };
    for _ in 0..2 {
        let asked = Request { files: vec![file.clone()], ..named.clone() };
        assert_eq!(api.clients.complete(asked).await.unwrap().text, "call(x);");
    }
}

/// llama.vscode asks again where its editor closes a bracket, because it has no offer with another
/// text behind the cursor.
#[tokio::test]
async fn a_bracket_that_the_editor_closed_does_not_end_an_offer_that_is_typed() {
    let api = api().await;
    api.ask("axios", START).await;
    api.pass(2_000);
    assert_eq!(api.ask("axios", "fn a() {\n    call(|)\n}\n").await, "x");
    api.pass(2_000);
    api.ask("axios", "fn a() {\n    call(x);\n    |\n}\n").await;
    assert_eq!(api.outcomes()[0], Some(Outcome::TypedThrough { utf16: 8 }));
}

#[tokio::test]
async fn a_word_that_comes_whole_was_taken() {
    let api = api().await;
    api.ask("infill", START).await;
    api.ask("infill", "fn a() {\n    call(x);|\n}\n").await;
    api.pass(2_000);
    assert_eq!(api.ask("infill", "fn a() {\n    call|\n}\n").await, "(x);");
    api.pass(2_000);
    api.ask("infill", "fn a() {\n    call!|\n}\n").await;
    assert_eq!(api.outcomes()[0], Some(Outcome::PartlyAccepted { utf16: 4 }));
}

#[tokio::test]
async fn an_answer_that_the_client_has_cut_is_taken_in_part() {
    let api = api().await;
    let mut asked = request("zed", START);
    asked.limits.max_tokens = Some(4);
    let answer = api.clients.complete(asked).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.tokens), ("call", 4), "a token is a byte here");
    api.pass(1_000);
    api.ask("zed", "fn a() {\n    call;|\n}\n").await;
    assert_eq!(api.outcomes()[0], Some(Outcome::PartlyAccepted { utf16: 4 }));
}

#[tokio::test]
async fn the_newest_request_of_a_client_wins_and_others_are_left_alone() {
    let api = Arc::new(api().await);
    let ask = |client: &'static str, marked: &'static str| {
        let api = api.clone();
        tokio::spawn(async move { api.ask(client, marked).await })
    };
    let older = ask("zed", "fn a() {\n    hang|\n}\n");
    eventually("the engine computes", || api.asked.load(Ordering::Relaxed) == 1).await;
    let other = ask("curl", START);
    eventually("both are there", || api.clients.state.lock().texts.len() == 2).await;
    assert!(!older.is_finished(), "the request of another client cancels nothing");
    assert_eq!(api.ask("zed", START).await, "call(x);");
    assert_eq!(older.await.unwrap(), "", "its client has a newer one");
    assert_eq!(other.await.unwrap(), "call(x);");
}

#[tokio::test]
async fn a_request_that_is_dropped_is_cancelled() {
    let api = Arc::new(api().await);
    let asking = api.clone();
    let asked = tokio::spawn(async move { asking.ask("zed", "fn a() {\n    hang|\n}\n").await });
    eventually("the engine computes", || api.asked.load(Ordering::Relaxed) == 1).await;
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    // The engine would be busy for ten minutes.
    assert_eq!(api.ask("curl", START).await, "call(x);");
}

#[tokio::test]
async fn texts_are_told_apart_and_limited() {
    let api = api().await;
    for number in 0..TEXTS_MAX + 3 {
        let text = format!("const NAME_{number}: &str = \"{number}\";\n").repeat(3);
        api.ask("zed", &format!("{text}|")).await;
        api.ask("zed", &format!("{text}\n|")).await;
    }
    let count = || {
        let state = api.clients.state.lock();
        (state.texts.len(), state.count)
    };
    assert_eq!(count(), (TEXTS_MAX, TEXTS_MAX as u64 + 3));
    api.pass(UNUSED_MAX_MS);
    api.ask("zed", START).await;
    assert_eq!(count().0, 1);
}

#[tokio::test]
async fn the_document_of_the_session_is_the_text_of_the_client() {
    let api = api().await;
    let lines: String = (0..400).map(|line| format!("let line_{line} = {line};\r\n")).collect();
    let at = |from: usize, cursor: usize, to: usize| {
        let text = |range: std::ops::Range<usize>| {
            lines.lines().take(to).collect::<Vec<_>>()[range].join("\r\n")
        };
        format!("{}\r\n|{}\r\n", text(from..cursor), text(cursor..to))
    };
    for (from, cursor, to) in [(50, 150, 200), (52, 152, 202), (40, 140, 190), (90, 190, 240)] {
        api.ask("zed", &at(from, cursor, to)).await;
    }
    let state = api.clients.state.lock();
    let [text] = state.texts.as_slice() else { panic!("{} texts", state.texts.len()) };
    let held = text.held();
    let all: String = (40..240).map(|line| format!("let line_{line} = {line};\r\n")).collect();
    assert_eq!(held, (all.clone(), all));
}

#[tokio::test]
async fn what_a_client_asks_is_listed_with_why() {
    let api = api().await;
    api.ask("zed", START).await;
    let latest = api.clients.app.services.requests.latest();
    assert_eq!((latest[0].path.as_str(), latest[0].line), ("untitled:zed/1/zed-1.rs", 2));
}

#[tokio::test]
async fn a_file_that_is_named_is_held_to_the_rules_of_its_name() {
    let api = api().await;
    let ask = async |name: &str| {
        let asked = Request { name: Some(name.into()), ..request("zed", START) };
        api.clients.complete(asked).await.unwrap();
        api.clients.state.lock().texts.clear();
    };
    ask("/p/a.rs").await;
    ask("src/b.rs").await;
    ask("/p/.env").await;
    ask("file:///p/.env").await;
    let mut paths = vec![];
    let scanned = api.log.scan(0, &mut |event| {
        if let EventKind::Completion(made) = event.kind {
            paths.push(made.path);
        }
        ControlFlow::Continue(())
    });
    scanned.unwrap();
    assert_eq!(paths, ["/p/a.rs", "untitled:zed/2/b.rs"], "nothing is stored of credentials");
}

#[tokio::test]
async fn who_turns_to_another_text_has_rejected_nothing() {
    let api = api().await;
    api.ask("zed", START).await;
    api.pass(1_000);
    api.ask("zed", "fn a() {\n    ca|\n}\n").await;
    let other = "const OTHER: &str = \"a text with nothing of the first\";\n".repeat(3);
    api.ask("zed", &format!("{other}|")).await;
    api.pass(60_000);
    assert_eq!(api.outcomes()[0], Some(Outcome::Superseded));
    api.ask("zed", "fn a() {\n    call(x);\n    |\n}\n").await;
    assert_eq!(api.outcomes()[0], Some(Outcome::Accepted), "they came back for it");
}

#[tokio::test]
async fn a_text_of_another_name_is_another_text() {
    let api = api().await;
    for name in ["/p/a.rs", "/p/.env"] {
        let asked = Request { name: Some(name.into()), ..request("zed", START) };
        api.clients.complete(asked).await.unwrap();
    }
    assert_eq!(api.offers().len(), 1, "nothing is stored of credentials");
}

#[tokio::test]
async fn warming_prepares_and_offers_nothing() {
    let api = api().await;
    let file = File { name: "b.rs".into(), text: "fn b() {}\n".into() };
    let warming = Request { is_warming: true, files: vec![file], ..request("infill", START) };
    assert_eq!(api.clients.complete(warming).await.unwrap(), Answer::default());
    let alone = Request { is_warming: true, ..request("infill", "|") };
    assert_eq!(api.clients.complete(alone).await.unwrap(), Answer::default());
    assert_eq!(api.clients.state.lock().texts.len(), 1, "an empty text is none");
    assert!(api.offers().is_empty());
}
