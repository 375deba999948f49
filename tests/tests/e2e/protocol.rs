//! The protocol's promises, checked message by message against the real server.

use feedback::event::{Completion, Evidence, Outcome, StopReason};
use models::fim::template;
use models::fim_tokens::FimTokens;
use models::gguf::Gguf;
use models::vocab::Vocab;
use rehearsal::client::{Client, TriggerKind, items};
use rehearsal::document::{Encoding, Position, Range};
use serde_json::{Value, json};
use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, PATIENCE, QUICK};

/// LSP's code for a request that was cancelled or superseded.
const CANCELLED: Option<i64> = Some(-32800);
const INVALID_PARAMS: Option<i64> = Some(-32602);

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

/// A home, and a document whose prompt takes the model seconds. On any machine, that is long
/// enough for another message to arrive meanwhile.
fn slow_home() -> (Home, String) {
    let home = Home::with(Model::Smol, &format!("{QUICK}lab.prefix_chars = 20000\n"));
    let lines = (0..400).map(|n| format!("let value_{n} = compute(\"{n}\", {n});\n"));
    (home, lines.chain(["let last = |\n".to_owned()]).collect())
}

/// Waits until the server has handled every notification.
fn settle(editor: &Client) {
    editor.status().expect("a status");
}

fn pieces(vocab: &Vocab, ids: impl IntoIterator<Item = u32>) -> Vec<u8> {
    ids.into_iter().flat_map(|id| vocab.piece(id).to_vec()).collect()
}

fn vocab(model: Model) -> Vocab {
    Vocab::from_gguf(&Gguf::open(&model.file()).unwrap()).unwrap()
}

#[test]
fn initialize_says_what_the_server_can_do() {
    let home = home();
    let editor = Client::spawn(home.hone().arg("lsp")).unwrap();
    let answer = editor.initialize(&[]).unwrap();
    let can = &answer["capabilities"];
    assert_eq!(answer["serverInfo"]["name"], "hone");
    assert!(can["inlineCompletionProvider"].is_object(), "{can}");
    assert_eq!(can["executeCommandProvider"]["commands"], json!(["hone.accept"]));
    assert_eq!(can["textDocumentSync"], 2, "incremental");
    assert_eq!(can["positionEncoding"], "utf-16", "the protocol's default");
    let line = || editor.wait_notification("didChangeStatus", PATIENCE).expect("a line").params;
    // The answer comes while the model is loaded, unless that is done already.
    let loading = json!({"busy": true, "kind": "Normal", "message": "loading the model"});
    let first = line();
    let ready = if first == loading { line() } else { first };
    let expected = json!({"busy": false, "kind": "Normal", "message": "smollm2-135m"});
    assert_eq!(ready, expected);
}

#[test]
fn an_item_is_inserted_at_the_cursor_and_carries_its_accept_command() {
    let home = home();
    let editor = home.editor();
    let week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.complete().unwrap();
    let at = week.position();
    assert_eq!(item.range, Some(Range { start: at, end: at }));
    assert_eq!(item.raw["command"]["command"], "hone.accept");
    assert_eq!(item.raw["command"]["arguments"], json!([item.id]));
    assert!(!item.insert_text.contains('\n'));
}

/// An emoji is one character, two UTF-16 units and four bytes. Counting in the wrong unit would
/// complete at another place, and insert the text there.
#[test]
fn columns_are_counted_in_the_clients_encoding() {
    let vocab = vocab(Model::Smol);
    let line = "let s = \"🙂🙂é\"; // Monday, Tuesday, Wednesday, ";
    for (offered, column) in [
        (vec![Encoding::Utf8, Encoding::Utf16], line.len()),
        (vec![Encoding::Utf16, Encoding::Utf8], line.encode_utf16().count()),
        (vec![], line.encode_utf16().count()),
    ] {
        let home = home();
        let editor = Client::spawn(home.hone().args(["lsp", "--manual-clock"])).unwrap();
        editor.initialize(&offered).unwrap();
        assert_eq!(editor.encoding(), *offered.first().unwrap_or(&Encoding::Utf16));

        let (uri, at) = ("file:///project/s.rs", Position { line: 1, character: column as u32 });
        editor.open(uri, "rust", &format!("// 🙂\n{line}\n// end\n")).unwrap();
        let offers = editor.inline_completion(uri, at, TriggerKind::Automatic).unwrap();
        let item = offers.first().expect("an offer");
        let here = Range { start: at, end: at };
        assert_eq!(item.range, Some(here));
        let asked = home.completions().remove(0);
        let mut before = pieces(&vocab, asked.prompt);
        before.extend(asked.healing.as_bytes());
        assert_eq!(String::from_utf8(before).unwrap(), format!("// 🙂\n{line}"));

        editor.change(uri, Some(here), &item.insert_text).unwrap();
        settle(&editor);
        assert_eq!(home.outcomes(&item.id), [(Outcome::Accepted, Evidence::Document)]);
    }
}

/// Text that is already behind the cursor is not offered again. The answer is an empty list.
#[test]
fn nothing_to_offer_is_an_empty_list() {
    let home = home();
    let editor = home.editor();
    let offered = Buffer::open(&editor, "a.rs", WEEK).complete().unwrap().insert_text;
    // The model does not see the suffix, so it generates the same text again.
    let again = WEEK.replace('|', &format!("|{offered}"));
    let again = Buffer::open(&editor, "b.rs", &again);
    let pending = editor
        .inline_completion_async(again.uri(), again.position(), TriggerKind::Automatic)
        .unwrap();
    let answer = editor.wait(pending).unwrap();
    assert_eq!(answer["items"], json!([]));
    assert_eq!(answer["_hone"]["reason"], "repeats_text");
    let not_offered = home.completions().remove(1);
    assert_eq!(not_offered.shown, "");
    assert_eq!(home.status()["episodes"]["total"], 1, "a completion without an offer is no offer");
    assert_eq!(home.status()["episodes"]["no_offer"], 1);
}

#[test]
fn a_cancelled_request_ends_and_the_next_is_answered() {
    let (home, text) = slow_home();
    let editor = home.editor();
    let slow = Buffer::open(&editor, "slow.rs", &text);
    let pending = editor
        .inline_completion_async(slow.uri(), slow.position(), TriggerKind::Automatic)
        .unwrap();
    editor.cancel(&pending).unwrap();
    assert_eq!(editor.wait(pending).unwrap_err().code(), CANCELLED);
    let next = Buffer::open(&editor, "week.rs", WEEK).complete().unwrap();
    let only: Vec<_> = home.completions().into_iter().map(|completion| completion.id).collect();
    assert_eq!(only, [next.id], "a cancelled request is not recorded");
}

#[test]
fn a_newer_request_supersedes_the_older() {
    let (home, text) = slow_home();
    let editor = home.editor();
    let slow = Buffer::open(&editor, "slow.rs", &text);
    let week = Buffer::open(&editor, "week.rs", WEEK);
    let ask = |buffer: &Buffer| {
        editor
            .inline_completion_async(buffer.uri(), buffer.position(), TriggerKind::Automatic)
            .unwrap()
    };
    let (older, newer) = (ask(&slow), ask(&week));
    assert_eq!(editor.wait(older).unwrap_err().code(), CANCELLED);
    assert_eq!(items(editor.wait(newer).unwrap()).unwrap().len(), 1);
    assert_eq!(home.completions().len(), 1);
}

#[test]
fn an_edit_while_computing_supersedes() {
    let (home, text) = slow_home();
    let editor = home.editor();
    let mut slow = Buffer::open(&editor, "slow.rs", &text);
    let pending = editor
        .inline_completion_async(slow.uri(), slow.position(), TriggerKind::Automatic)
        .unwrap();
    slow.type_text("x");
    assert_eq!(editor.wait(pending).unwrap_err().code(), CANCELLED);
    assert_eq!(home.completions().len(), 0);
}

/// A request in one window never supersedes a request in another.
#[test]
fn another_editor_waits_its_turn_and_is_answered() {
    let home = home();
    let (one, two) = (home.editor(), home.editor());
    let (here, there) = (Buffer::open(&one, "a.rs", WEEK), Buffer::open(&two, "b.rs", WEEK));
    let ask = |client: &Client, buffer: &Buffer| {
        client
            .inline_completion_async(buffer.uri(), buffer.position(), TriggerKind::Automatic)
            .unwrap()
    };
    let (first, second) = (ask(&one, &here), ask(&two, &there));
    for (client, pending) in [(&one, first), (&two, second)] {
        assert_eq!(items(client.wait(pending).unwrap()).unwrap().len(), 1);
    }
}

#[test]
fn a_change_to_a_document_never_opened_is_one_warning() {
    let home = home();
    let editor = home.editor();
    let uri = "file:///project/ghost.rs";
    editor.change(uri, None, "let x = 1;").unwrap();
    let warning = editor.wait_notification("window/logMessage", PATIENCE).expect("a warning");
    assert_eq!(warning.params["type"], 2, "a warning");
    let message = warning.params["message"].as_str().unwrap();
    assert_eq!(message, format!("{uri}: was never opened here; open the file again"));

    let start = Position { line: 0, character: 0 };
    let asked = editor.inline_completion(uri, start, TriggerKind::Automatic).unwrap_err();
    assert_eq!(asked.code(), INVALID_PARAMS);
    assert!(asked.to_string().contains("ghost.rs: was never opened here"), "{asked}");

    assert!(
        Buffer::open(&editor, "week.rs", WEEK).complete().is_some(),
        "the connection continues"
    );
}

#[test]
fn a_position_past_the_end_is_an_error_that_names_the_file_and_the_fix() {
    let home = home();
    let editor = home.editor();
    let week = Buffer::open(&editor, "week.rs", WEEK);
    let past = Position { line: 17, character: 0 };
    let error = editor.inline_completion(week.uri(), past, TriggerKind::Automatic).unwrap_err();
    assert_eq!(error.code(), INVALID_PARAMS);
    let error = error.to_string();
    for part in ["/project/week.rs", "line 17", "2 lines", "close and open the file again"] {
        assert!(error.contains(part), "{part} is in {error}");
    }
    // By LSP, a column past the end of its line means the end of the line.
    let wide = Position { line: 0, character: 999 };
    let offers = editor.inline_completion(week.uri(), wide, TriggerKind::Automatic).unwrap();
    assert_eq!(offers.len(), 1);
}

/// An offer in a file with CRLF line ends stays before the line end and does not repeat it.
#[test]
fn a_crlf_document_keeps_its_line_ends() {
    let home = home();
    let editor = home.editor();
    let text = "fn main() {\r\n    // Monday, Tuesday, Wednesday, |\r\n}\r\n";
    let mut week = Buffer::open(&editor, "week.rs", text);
    // One column past the text would be between \r and \n, where no cursor can be.
    let mut past = week.position();
    past.character += 1;
    let offers = editor.inline_completion(week.uri(), past, TriggerKind::Automatic).unwrap();
    let item = &offers[0];
    assert!(item.insert_text.starts_with("Thursday"), "{item:?}");
    assert!(!item.insert_text.contains(['\r', '\n']), "{item:?}");
    week.insert(&item.insert_text);
    settle(&editor);
    assert_eq!(home.outcomes(&item.id), [(Outcome::Accepted, Evidence::Document)]);
}

/// A minified file is one line. Neither the prompt nor the wait grows with its length.
#[test]
fn a_line_of_five_megabytes_is_completed_from_its_end() {
    let home = home();
    let editor = home.editor();
    let unit = "var a=1;";
    let mut text = unit.repeat(5_000_000 / unit.len());
    let column = text.len() as u32;
    text.push_str(&unit.repeat(10));
    let uri = "file:///project/app.min.js";
    editor.open(uri, "javascript", &text).unwrap();
    let mut at = Position { line: 0, character: column };
    for typed in ["v", "a"] {
        editor.inline_completion(uri, at, TriggerKind::Automatic).unwrap();
        editor.change(uri, Some(Range { start: at, end: at }), typed).unwrap();
        at.character += 1;
    }
    let prompts: Vec<_> = home.completions().iter().map(|c| c.prompt.len()).collect();
    assert!(!prompts.is_empty() && prompts.iter().all(|tokens| *tokens < 600), "{prompts:?}");
}

#[test]
fn an_unknown_request_is_refused_and_the_connection_lives() {
    let home = home();
    let editor = home.editor();
    assert_eq!(editor.request("hone/teleport", Value::Null).unwrap_err().code(), Some(-32601));
    let known = editor.request("textDocument/inlineCompletion", json!({"speed": 3}));
    assert_eq!(known.unwrap_err().code(), INVALID_PARAMS);
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some());
}

/// The learner learns from this record and tokenises nothing again.
fn check_record(completion: &Completion, vocab: &Vocab, tokens: &FimTokens) {
    let text = pieces(vocab, completion.tokens.iter().map(|token| token.id));
    let healed = completion.healing.as_bytes();
    assert!(text.starts_with(healed), "the tokens begin with the healed text");
    assert_eq!(completion.shown_from, healed.len());
    assert!(text[completion.shown_from..].starts_with(completion.shown.as_bytes()));
    assert!(completion.tokens.iter().all(|token| token.logprob <= 0.0));
    match tokens.markers {
        Some(markers) => {
            assert_eq!(Some(completion.prompt[completion.adapter_from]), markers.middle)
        }
        None => assert!(completion.adapter_from < completion.prompt.len()),
    }
    let last = completion.tokens.last().map(|token| token.id).unwrap();
    match completion.stop {
        StopReason::Newline => assert!(vocab.piece(last).contains(&b'\n')),
        StopReason::StopToken => {
            assert!(vocab.piece(last).is_empty() || tokens.stop.contains(&last));
        }
        StopReason::MaxTokens => assert_eq!(completion.tokens.len(), 8),
        other => panic!("unexpected stop: {other:?}"),
    }
    assert_eq!(
        (completion.timing.prompt_reused + completion.timing.prompt_evaluated) as usize,
        completion.prompt.len()
    );
}

#[test]
fn every_completion_is_recorded_as_it_was_served() {
    for (model, name) in [(Model::Smol, "prefix-only"), (Model::Qwen, "qwen2.5-coder")] {
        let vocab = vocab(model);
        let tokens = template(name).unwrap().resolve(&vocab).unwrap();
        let home = Home::with(model, QUICK);
        let editor = home.editor();
        for (file, text) in [
            ("add.rs", "fn add(a: i32, b: i32) -> i32 {\n    |\n}\n"),
            ("half.rs", "fn largest(values: &[i32]) -> i32 {\n    *values.iter().ma|\n}\n"),
            ("top.rs", "|fn main() {}\n"),
        ] {
            Buffer::open(&editor, file, text).complete();
        }
        let completions = home.completions();
        assert_eq!(completions.len(), 3);
        for completion in &completions {
            check_record(completion, &vocab, &tokens);
            assert_eq!(completion.adapter, 0);
            assert!(home.status()["model"]["sha256"] == completion.model_sha256.as_str());
        }
    }
}
