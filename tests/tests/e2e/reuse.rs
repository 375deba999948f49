//! The engine reuses what it has computed: prompts, and answers that the user types.

use feedback::event::{Completion, Timing};
use serde_json::json;
use std::thread::sleep;
use std::time::Duration;
use tests::buffer::Buffer;
use tests::{Home, Model, NOISE, QUICK};

/// The most tokens that a few typed characters cost.
const A_FEW: u32 = 12;

fn home(model: Model) -> Home {
    Home::with(model, QUICK)
}

fn last_timing(home: &Home) -> Timing {
    home.completions().pop().expect("a completion is recorded").timing
}

fn file(cursor_line: &str) -> String {
    let above = "// A line of the file above the cursor.\n".repeat(20);
    let below = "// A line of the file below the cursor.\n".repeat(10);
    format!("{above}{cursor_line}\n{below}")
}

/// Typing never computes the prompt again, on one line or over several.
#[test]
fn the_prompt_is_kept_between_keystrokes_and_lines() {
    for model in [Model::Smol, Model::Qwen] {
        let home = home(model);
        let editor = home.editor();
        let mut buffer = Buffer::open(&editor, "a.rs", &file("let total = |"));
        buffer.complete();
        for typed in ["0x", "ff;\n", "let other = ", "1;\n\n", "if total"] {
            buffer.type_text(typed);
            buffer.complete();
            let timing = last_timing(&home);
            assert!(timing.prompt_evaluated <= A_FEW, "{model:?}, {typed:?}: {timing:?}");
            assert!(timing.prompt_reused > 100, "{model:?}, {typed:?}: {timing:?}");
        }
    }
}

#[test]
fn a_cursor_that_rests_warms_the_prompt() {
    let home = home(Model::Smol);
    let editor = home.editor();
    // The time that it takes depends on the machine, so each attempt waits longer.
    let warmed = (0..6).any(|attempt| {
        let text = file(&format!("let try{attempt} = |"));
        let buffer = Buffer::open(&editor, &format!("{attempt}.rs"), &text);
        let position = serde_json::to_value(buffer.position()).unwrap();
        let at = json!({"textDocument": {"uri": buffer.uri()}, "position": position});
        editor.notify("textDocument/didFocus", at).unwrap();
        sleep(Duration::from_millis(500 << attempt));
        buffer.complete();
        last_timing(&home).prompt_evaluated <= A_FEW
    });
    assert!(warmed);
    // Clients written for Copilot send the document alone, or nothing.
    editor.notify("textDocument/didFocus", json!({"textDocument": {"uri": "file:///x"}})).unwrap();
    editor.notify("textDocument/didFocus", json!({})).unwrap();
    Buffer::open(&editor, "after.rs", "fn main() {\n    |\n}\n").complete();
}

/// The rest of an answer that the user types is what the model would generate again.
#[test]
fn the_rest_of_a_typed_answer_is_the_answer_of_a_new_request() {
    let line = "// Monday, Tuesday, Wednesday, |";
    let asked = |typed: &[&str]| -> Completion {
        let home = home(Model::Smol);
        let editor = home.editor();
        let mut buffer = Buffer::open(&editor, "week.rs", &file(line));
        for typed in typed {
            if let Some(offer) = buffer.complete() {
                // A rejected offer is not continued as the live one.
                editor.did_reject(&offer.id, "esc").unwrap();
            }
            buffer.type_text(typed);
        }
        buffer.complete();
        home.completions().pop().unwrap()
    };
    let along = asked(&["Th", "urs", "day,"]);
    let anew = asked(&["Thursday,"]);
    let ids = |c: &Completion| c.tokens.iter().map(|token| token.id).collect::<Vec<_>>();
    assert!(anew.shown.starts_with(" Friday"), "{:?}", anew.shown);
    assert_eq!((&along.shown, &along.prompt, ids(&along)), (&anew.shown, &anew.prompt, ids(&anew)));
    for (along, anew) in along.tokens.iter().zip(&anew.tokens) {
        assert!((along.logprob - anew.logprob).abs() < NOISE, "{along:?} {anew:?}");
    }
}

/// While an offer is read, the answer on the next line is computed, so it is there after the accept
/// and the line break.
#[test]
fn the_line_below_an_offer_is_computed_while_the_offer_is_read() {
    let home = home(Model::Smol);
    let editor = home.editor();
    // The time that it takes depends on the machine, so each attempt waits longer.
    let is_known = (0..6).any(|attempt| {
        let line = format!("// Week {attempt}: Monday, Tuesday, Wednesday, |");
        let mut buffer = Buffer::open(&editor, &format!("{attempt}.rs"), &file(&line));
        let offer = buffer.complete().expect("the rest of the week");
        sleep(Duration::from_millis(500 << attempt));
        buffer.accept(&offer);
        buffer.type_text("\n");
        buffer.complete();
        last_timing(&home).prompt_evaluated == 0
    });
    assert!(is_known);
}
