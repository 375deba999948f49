//! The typist against a scripted server in this process. From the messages alone, the server keeps
//! its own copy of the document and its own labels.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rehearsal::client::{ACCEPT_COMMAND, Client, framing};
use rehearsal::developer::disturbance::{Disturbance, Disturbed};
use rehearsal::developer::history::{FileChange, Hunk, lines};
use rehearsal::developer::pairs::closes_of_others;
use rehearsal::developer::{Editor, Manner, NOISE, OfferOutcome, PlaceDraws, RejectBy};
use rehearsal::document::{Document, Encoding, Position, Range};
use rehearsal::run::ledger::LabelCounts;
use rehearsal::run::typist::Typist;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, BufReader};
use std::sync::{Arc, Mutex};

const EXACT: Manner = Manner::Exact { noise: NOISE };

/// What the scripted server saw.
#[derive(Default)]
struct Seen {
    document: Option<Document>,
    closed_text: Option<String>,
    offers: usize,
    shown: Vec<String>,
    accepted: Vec<String>,
    rejected: Vec<(String, String)>,
    clock_ms: u64,
    changes: usize,
    saves: usize,
    /// The texts that the changes put in, each behind the text that it took the place of.
    edits: Vec<(String, String)>,
    /// True if an offer takes the place of the marks behind the cursor that it closes.
    replaces: bool,
}

/// What to offer, given the document and the cursor's byte offset.
type Script = Box<dyn Fn(&str, usize) -> Option<String> + Send>;

fn serve(script: Script) -> (Client, Arc<Mutex<Seen>>) {
    let (their_reader, our_writer) = io::pipe().unwrap();
    let (our_reader, mut their_writer) = io::pipe().unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let state = Arc::clone(&seen);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(their_reader);
        while let Ok(Some(message)) = framing::read(&mut reader) {
            let result = state.lock().unwrap().receive(&message, &script);
            if let Some(id) = message.get("id") {
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                framing::write(&mut their_writer, &answer).unwrap();
            }
        }
    });
    (Client::over(our_reader, our_writer), seen)
}

impl Seen {
    fn receive(&mut self, message: &Value, script: &Script) -> Value {
        let params = &message["params"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        match message["method"].as_str().unwrap() {
            "textDocument/didOpen" => {
                let opened = text(&params["textDocument"]["text"]);
                self.document = Some(Document::new(opened, Encoding::Utf16));
            }
            "textDocument/didChange" => {
                self.changes += 1;
                let document = self.document.as_mut().unwrap();
                for change in params["contentChanges"].as_array().unwrap() {
                    let (start, end) = match Range::deserialize(&change["range"]) {
                        Ok(range) => (document.offset(range.start), document.offset(range.end)),
                        Err(_) => (0, document.text().len()),
                    };
                    let removed = document.text()[start..end].to_owned();
                    document.replace(start, end, change["text"].as_str().unwrap());
                    self.edits.push((removed, text(&change["text"])));
                }
            }
            "textDocument/didClose" => {
                self.closed_text = self.document.take().map(|document| document.text().to_owned());
            }
            "textDocument/inlineCompletion" => {
                let document = self.document.as_ref().unwrap();
                let cursor = Position::deserialize(&params["position"]).unwrap();
                let at = document.offset(cursor);
                let offered = script(document.text(), at);
                let behind = &document.text()[at..];
                let behind = behind[..behind.find(['\r', '\n']).unwrap_or(behind.len())].to_owned();
                let items: Vec<Value> = offered
                    .into_iter()
                    .map(|offered| {
                        let marks = if self.replaces { marks(&offered, &behind) } else { 0 };
                        let character = cursor.character + marks as u32;
                        let end = Position { character, ..cursor };
                        self.offers += 1;
                        json!({
                            "insertText": offered,
                            "range": {"start": cursor, "end": end},
                            "command": {"title": "", "command": ACCEPT_COMMAND,
                                        "arguments": [self.offers.to_string()]},
                        })
                    })
                    .collect();
                return json!({"items": items});
            }
            "textDocument/didSave" => self.saves += 1,
            "textDocument/didShowCompletion" => {
                self.shown.push(text(&params["item"]["command"]["arguments"][0]));
            }
            "workspace/executeCommand" => self.accepted.push(text(&params["arguments"][0])),
            "hone/didReject" => self.rejected.push((text(&params["id"]), text(&params["reason"]))),
            "hone/advanceClock" => self.clock_ms += params["ms"].as_u64().unwrap(),
            method => panic!("unexpected {method}"),
        }
        Value::Null
    }
}

/// Returns how many marks behind the cursor an offer closes.
fn marks(offered: &str, behind: &str) -> usize {
    let quote = behind.chars().next().filter(|mark| "\"'`".contains(*mark));
    closes_of_others(offered, quote).min(behind.len())
}

/// Nothing happens in addition to the developer's typing.
const CALM: Disturbed = Disturbed { format: None, import: None, second_cursor: None, typo: false };

/// A developer who never slips.
fn calm(reject_by: RejectBy) -> PlaceDraws {
    PlaceDraws { reject_by, slip: 0.9, pause_ms: 500.0 }
}

fn typist(client: &Client) -> Typist<'_> {
    Typist::new(client, LabelCounts::default())
}

/// Types a change the way a rehearsal does, asking at two places of each line.
fn type_out(
    typist: &mut Typist,
    change: &FileChange,
    draws: PlaceDraws,
) -> Vec<Option<OfferOutcome>> {
    type_out_with(typist, change, draws, &mut || CALM)
}

fn type_out_with(
    typist: &mut Typist,
    change: &FileChange,
    draws: PlaceDraws,
    disturb: &mut dyn FnMut() -> Disturbed,
) -> Vec<Option<OfferOutcome>> {
    let mut outcomes = Vec::new();
    let after = lines(&change.after);
    typist.open(&change.path, change.language, &change.before).unwrap();
    for hunk in &change.hunks {
        typist.delete_lines(hunk.added.start, hunk.removed.len()).unwrap();
        for line in hunk.added.clone() {
            let text = after[line].trim_end_matches(['\r', '\n']);
            let indent = text.len() - text.trim_start().len();
            typist.begin_line(line, text, indent, &after[line][text.len()..]).unwrap();
            let middle = (indent..text.len())
                .find(|at| *at >= (indent + text.len()) / 2 && text.is_char_boundary(*at));
            for point in [Some(indent), middle].into_iter().flatten() {
                typist.type_to(point).unwrap();
                if point < text.len() && typist.is_at(point) {
                    let answer = typist.ask().unwrap();
                    let disturbed = disturb();
                    outcomes.push(
                        answer.offer.map(|offer| {
                            typist.respond(&offer, draws, EXACT, &disturbed).unwrap().0
                        }),
                    );
                }
            }
            typist.finish_line().unwrap();
        }
        typist.finish_hunk().unwrap();
        typist.save().unwrap();
    }
    typist.close(Some(&change.after)).unwrap();
    outcomes
}

fn change(before: &str, after: &str, hunks: &[Hunk]) -> FileChange {
    FileChange {
        commit: "0".repeat(40),
        path: "src/größe (1).rs".to_owned(),
        renamed_from: None,
        language: "rust",
        before: before.to_owned(),
        after: after.to_owned(),
        hunks: hunks.to_vec(),
    }
}

const NEW_FILE: &str =
    "fn main() {\n    let größe = \"🙂🙂\".len();\n\n\tprintln!(\"{größe}\");\n}";

fn new_file() -> FileChange {
    change("", NEW_FILE, &[Hunk { removed: 0..0, added: 0..5 }])
}

fn edited_file() -> FileChange {
    change(
        "one\r\ntwo\r\nthree\r\nfour",
        "zero\r\none\r\n  2 and a half\r\nthree\r\nfour\r\nfive",
        &[
            Hunk { removed: 0..0, added: 0..1 },
            Hunk { removed: 1..2, added: 2..3 },
            Hunk { removed: 3..4, added: 4..6 },
        ],
    )
}

/// Offers the real rest of the line, cut to `chars` characters.
fn truth(after: &str, chars: usize) -> Script {
    let lines: Vec<String> = after.lines().map(str::to_owned).collect();
    Box::new(move |text, cursor| {
        let line = text[..cursor].matches('\n').count() - text.matches("added_by_a_tool").count();
        let typed = &text[text[..cursor].rfind('\n').map_or(0, |newline| newline + 1)..cursor];
        let rest = lines[line].strip_prefix(typed).expect("what is typed is true");
        (!rest.is_empty()).then(|| rest.chars().take(chars).collect())
    })
}

fn wrong() -> Script {
    Box::new(|_, _| Some("quite wrong".to_owned()))
}

#[test]
fn the_document_is_the_real_one_at_the_end_on_both_sides() {
    for file in [new_file(), edited_file()] {
        for reject_by in [RejectBy::TypingOn, RejectBy::Escape, RejectBy::Waiting] {
            let nothing: Script = Box::new(|_, _| None);
            let scripts = [
                nothing,
                wrong(),
                truth(&file.after, usize::MAX),
                truth(&file.after, 10),
                truth(&file.after, 3),
            ];
            for script in scripts {
                let (client, seen) = serve(script);
                type_out(&mut typist(&client), &file, calm(reject_by));
                // Once a request is answered, the server has read everything before it.
                client.advance_clock(0).unwrap();
                assert_eq!(seen.lock().unwrap().closed_text.as_deref(), Some(&*file.after));
            }
        }
    }
}

/// Types a whole new file in an editor that closes brackets. Returns what the server saw.
fn in_vscode(text: &str, script: Script, draws: PlaceDraws, replaces: bool) -> Seen {
    let ending_lines = text.split_inclusive('\n').count();
    let file = FileChange {
        language: "javascript",
        ..change("", text, &[Hunk { removed: 0..0, added: 0..ending_lines }])
    };
    let (client, seen) = serve(script);
    seen.lock().unwrap().replaces = replaces;
    let mut developer = typist(&client).with_editor(Editor::Vscode);
    type_out(&mut developer, &file, draws);
    client.advance_clock(0).unwrap();
    std::mem::take(&mut *seen.lock().unwrap())
}

fn nothing() -> Script {
    Box::new(|_, _| None)
}

#[test]
fn brackets_are_closed_and_typed_over() {
    let seen = in_vscode("f(x);", nothing(), calm(RejectBy::TypingOn), true);
    let edits: Vec<_> = seen.edits.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let typed = [("", "f"), ("", "()"), ("", "x"), (")", ")"), ("", ";")];
    assert_eq!(edits[1..], typed, "the first one opens the line");
}

#[test]
fn enter_between_brackets_puts_the_closing_one_on_a_line_of_its_own() {
    let seen = in_vscode("if (x) {\n  y();\n}\n", nothing(), calm(RejectBy::TypingOn), true);
    assert!(seen.edits.contains(&(String::new(), "\n  \n".to_owned())), "{:?}", seen.edits);
    let closing = seen.edits.iter().filter(|(_, text)| text.contains('}')).count();
    assert_eq!(closing, 1, "it is not typed again: {:?}", seen.edits);
    assert_eq!(seen.closed_text.as_deref(), Some("if (x) {\n  y();\n}\n"));
}

/// Files with everything that opens and closes, and much that does not.
const NESTED: [&str; 6] = [
    "foo(\n  'a (b',\n  [1, 2],\n);\nif (x) {\n  bar(y => {\n    y\n  })\n} else {\n}\n",
    "x = [\n{\n}]\n)\n}\ny = `a\n${b}\n`;\n",
    "const a = {\r\n  b: (\r\n    c\r\n  ),\r\n};",
    "f({ a: [\n  'it\\'s', \"\\\"\"\n], b: '\n' })",
    "// don't (close\n{ // \"this\n}\n",
    "a(b, // c\n  d)\n  .e({\n    f,\n    ...g })\n",
];

/// Whatever the editor closes by itself, the file is the real one in the end.
#[test]
fn an_editor_that_closes_brackets_leaves_the_real_document() {
    for text in NESTED {
        for reject_by in [RejectBy::TypingOn, RejectBy::Escape, RejectBy::Waiting] {
            for (slip, replaces) in [(0.9, true), (0.9, false), (0.0, true), (0.03, false)] {
                for chars in [usize::MAX, 10, 4] {
                    let draws = PlaceDraws { slip, ..calm(reject_by) };
                    let seen = in_vscode(text, truth(text, chars), draws, replaces);
                    assert_eq!(seen.closed_text.as_deref(), Some(text));
                }
                let draws = PlaceDraws { slip, ..calm(reject_by) };
                for script in [nothing(), wrong()] {
                    let seen = in_vscode(text, script, draws, replaces);
                    assert_eq!(seen.closed_text.as_deref(), Some(text));
                }
            }
        }
    }
}

/// `f(｜)` and `g(x)`, where the last bracket of the line is the offer's own.
#[test]
fn the_rest_of_the_line_is_right_with_and_without_the_marks_behind_it() {
    for (rest, offered) in [("gamma(x)", "gamma(x)"), ("gamma)", "gamma")] {
        let text = format!("f({rest}");
        let script: Script = Box::new(move |_, _| Some(offered.to_owned()));
        let (client, _seen) = serve(script);
        let mut developer = typist(&client).with_editor(Editor::Vscode);
        developer.open("a.js", "javascript", "").unwrap();
        developer.begin_line(0, &text, 0, "").unwrap();
        developer.type_to(2).unwrap();
        let offer = developer.ask().unwrap().offer.expect("an offer");
        let answer = developer.respond(&offer, calm(RejectBy::TypingOn), EXACT, &CALM).unwrap();
        let chars = offered.len();
        assert_eq!(answer, (OfferOutcome::Accepted { chars }, false), "{text}");
        developer.finish_line().unwrap();
        developer.finish_hunk().unwrap();
        developer.close(Some(&text)).unwrap();
    }
}

/// The same for texts that nobody would write.
#[test]
fn an_editor_that_closes_brackets_copes_with_any_text() {
    let mut rng = StdRng::seed_from_u64(7);
    let parts = ["(", ")", "[", "]", "{", "}", "'", "\"", "`", "\\", "x", " ", "\n", "\n  ", ","];
    for _ in 0..300 {
        let length = rng.random_range(1..60);
        let text: String = (0..length).map(|_| parts[rng.random_range(0..parts.len())]).collect();
        let script = truth(&text, rng.random_range(1..30));
        let draws = PlaceDraws { slip: rng.random(), ..calm(RejectBy::TypingOn) };
        let seen = in_vscode(&text, script, draws, rng.random());
        assert_eq!(seen.closed_text.as_deref(), Some(&*text), "{text:?}");
    }
}

/// All that tools and second cursors do is undone before the file is saved.
#[test]
fn a_disturbed_developer_leaves_the_real_document() {
    let all = [
        Disturbance::Formatter,
        Disturbance::AutoImport,
        Disturbance::SecondCursor,
        Disturbance::Typo,
    ];
    let mut edits = Vec::new();
    for text in NESTED {
        for seed in 0..30 {
            let mut rng = StdRng::seed_from_u64(seed);
            let file = FileChange {
                language: "javascript",
                ..change("", text, &[Hunk { removed: 0..0, added: 0..lines(text).len() }])
            };
            let script = if seed % 2 == 0 { truth(text, 12) } else { wrong() };
            let (client, seen) = serve(script);
            let mut developer = typist(&client).with_editor(Editor::Vscode);
            let mut disturb = || Disturbed::draw(&all, &mut rng);
            type_out_with(&mut developer, &file, calm(RejectBy::TypingOn), &mut disturb);
            client.advance_clock(0).unwrap();
            let seen = seen.lock().unwrap();
            assert_eq!(seen.closed_text.as_deref(), Some(text), "seed {seed}");
            assert_eq!(seen.saves, 1);
            edits.extend(seen.edits.iter().cloned());
        }
    }
    let import = "import added_by_a_tool;\n";
    for (removed, inserted) in [("", import), ("x", ""), ("()", ""), ("", "  ")] {
        let edit = (removed.to_owned(), inserted.to_owned());
        assert!(edits.contains(&edit), "an import, a second cursor, a pair, blanks: {edit:?}");
    }
}

#[test]
fn an_offer_of_three_characters_is_not_shown() {
    let file = change("", "value = compute()", &[Hunk { removed: 0..0, added: 0..1 }]);
    for (editor, shown) in [(Editor::Vscode, 0), (Editor::Plain, 2)] {
        let (client, seen) = serve(truth(&file.after, 3));
        let mut developer = typist(&client).with_editor(editor);
        let outcomes = type_out(&mut developer, &file, calm(RejectBy::TypingOn));
        client.advance_clock(0).unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!((seen.shown.len(), outcomes.iter().flatten().count()), (shown, shown));
        let hidden = seen.rejected.iter().filter(|(_, reason)| reason == "hidden").count();
        assert_eq!(hidden, 2 - shown, "the server is told");
        let unseen = developer.ledger().counts().unseen;
        assert_eq!(unseen, 2 - shown as u64);
    }
}

/// `f(｜)` and the offer `x);` in the place of nothing: the bracket is closed twice.
#[test]
fn an_offer_that_closes_what_the_editor_closed_is_noticed() {
    for (replaces, twice) in [(false, true), (true, false)] {
        let text = "call(some_value);";
        let script: Script = Box::new(|text, cursor| {
            text[..cursor].ends_with('(').then(|| "some_value);".to_owned())
        });
        let file = FileChange {
            language: "javascript",
            ..change("", text, &[Hunk { removed: 0..0, added: 0..1 }])
        };
        let (client, seen) = serve(script);
        seen.lock().unwrap().replaces = replaces;
        let mut developer = typist(&client).with_editor(Editor::Vscode);
        developer.open(&file.path, file.language, "").unwrap();
        developer.begin_line(0, text, 0, "").unwrap();
        developer.type_to(5).unwrap();
        let offer = developer.ask().unwrap().offer.expect("an offer");
        let answer = developer.respond(&offer, calm(RejectBy::TypingOn), EXACT, &CALM).unwrap();
        assert_eq!(answer, (OfferOutcome::Accepted { chars: 12 }, twice));
        developer.finish_line().unwrap();
        developer.close(Some(text)).unwrap();
    }
}

#[test]
fn a_right_offer_is_shown_then_inserted_then_reported() {
    let file = new_file();
    let (client, seen) = serve(truth(&file.after, usize::MAX));
    let mut developer = typist(&client);
    let outcomes = type_out(&mut developer, &file, calm(RejectBy::TypingOn));
    client.advance_clock(0).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(
        outcomes.len(),
        4,
        "one for each line with code, because nothing is left to ask for"
    );
    assert_eq!(outcomes[1], Some(OfferOutcome::Accepted { chars: 23 }));
    assert_eq!(seen.shown, ["1", "2", "3", "4"]);
    assert_eq!(seen.accepted, seen.shown);
    assert_eq!(seen.clock_ms, 4 * 700, "each offer was looked at");
    let counts = LabelCounts { total: 4, accepted: 4, ..Default::default() };
    assert_eq!(developer.ledger().counts(), counts);
    // Five lines opened, four offers inserted.
    assert_eq!(seen.changes, 9);
}

#[test]
fn wrong_offers_are_rejected_as_drawn() {
    let file = edited_file();
    let asked = 8;
    for reject_by in [RejectBy::TypingOn, RejectBy::Escape, RejectBy::Waiting] {
        let (client, seen) = serve(wrong());
        let mut developer = typist(&client);
        let outcomes = type_out(&mut developer, &file, calm(reject_by));
        client.advance_clock(0).unwrap();
        let seen = seen.lock().unwrap();
        let mut counts = LabelCounts { total: asked, ..Default::default() };
        let (outcome, label) = match reject_by {
            RejectBy::TypingOn => (OfferOutcome::TypedOn, &mut counts.rejected_edit),
            RejectBy::Escape => (OfferOutcome::Escaped, &mut counts.rejected_esc),
            RejectBy::Waiting => (OfferOutcome::TimedOut, &mut counts.rejected_timeout),
        };
        *label = asked;
        assert_eq!(developer.ledger().counts(), counts);
        assert_eq!(outcomes, vec![Some(outcome); asked as usize]);
        let escapes = if reject_by == RejectBy::Escape { asked as usize } else { 0 };
        assert_eq!(seen.rejected.len(), escapes);
        assert!(seen.rejected.iter().all(|(_, reason)| reason == "esc"));
        let wait_ms = if reject_by == RejectBy::Waiting { 11_000 } else { 0 };
        assert_eq!(seen.clock_ms, asked * (700 + wait_ms));
        assert!(seen.accepted.is_empty());
    }
}

#[test]
fn a_short_right_offer_is_typed_through_one_character_at_a_time() {
    let file = change("", "value = compute()", &[Hunk { removed: 0..0, added: 0..1 }]);
    let (client, seen) = serve(truth(&file.after, 3));
    let mut developer = typist(&client);
    type_out(&mut developer, &file, calm(RejectBy::TypingOn));
    client.advance_clock(0).unwrap();
    let counts = LabelCounts { total: 2, typed_through: 2, ..Default::default() };
    assert_eq!(developer.ledger().counts(), counts);
    // The line; v, a, l, "ue", " ", "=", " "; c, o, m, "pute", "(", ")".
    assert_eq!(seen.lock().unwrap().changes, 1 + 7 + 6);
}

#[test]
fn a_near_miss_is_accepted_and_fixed() {
    let file =
        change("", "    total = compute(größe, items)\n", &[Hunk { removed: 0..0, added: 0..1 }]);
    let (client, seen) = serve(Box::new(|_, _| Some("total = compute(größen, items)".to_owned())));
    let mut developer = typist(&client);
    let outcomes = type_out(&mut developer, &file, calm(RejectBy::TypingOn));
    client.advance_clock(0).unwrap();
    assert_eq!(outcomes, [Some(OfferOutcome::Mended { chars: 29, of: 30 })]);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.closed_text.as_deref(), Some(&*file.after));
    assert_eq!((seen.accepted.len(), seen.changes), (1, 3), "the line, the offer, the fix");
    let counts = LabelCounts { total: 1, accepted: 1, ..Default::default() };
    assert_eq!(developer.ledger().counts(), counts);
}

#[test]
fn a_wrong_offer_accepted_by_mistake_is_undone() {
    let file = new_file();
    let (client, seen) = serve(wrong());
    let mut developer = typist(&client);
    let outcomes =
        type_out(&mut developer, &file, PlaceDraws { slip: 0.0, ..calm(RejectBy::TypingOn) });
    client.advance_clock(0).unwrap();
    assert!(
        outcomes.iter().all(|outcome| *outcome == Some(OfferOutcome::Undone { of: 11 })),
        "{outcomes:?}"
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen.closed_text.as_deref(), Some(&*file.after));
    assert_eq!(seen.accepted.len(), outcomes.len());
}
