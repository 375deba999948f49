//! The whole loop with the default model: an offer is accepted, one is rejected by an edit, and
//! one by its timeout. The events record it, an update learns from it, the next completion comes
//! from the new adapter, and the accepted text has become likelier.

use feedback::event::{Completion, Evidence, Outcome};
use rehearsal::client::TriggerKind;
use std::time::Duration;
use tests::buffer::Buffer;
use tests::{Home, Model, PATIENT, eventually, learn};

/// How long a person who writes rests now and then.
const REST: Duration = Duration::from_secs(5);

const COUNTER: &str = "\
/// Counts how often each word occurs.
pub struct Counter {
    counts: HashMap<String, usize>,
}

impl Counter {
    pub fn new() -> Self {
        Counter { counts: HashMap::new() }
    }

    pub fn add(&mut self, word: &str) {
        |
    }
}
";

const STACK: &str = "\
pub struct Stack<T> {
    items: Vec<T>,
}

impl<T> Stack<T> {
    pub fn is_empty(&self) -> bool {
        |
    }
}
";

const AREA: &str = "\
struct Rectangle {
    width: f64,
    height: f64,
}

fn area(rectangle: &Rectangle) -> f64 {
    |
}
";

/// The log-probability in nats of the tokens that two completions both begin with, in each of
/// them, and the number of these tokens.
fn logprob_of_common(a: &Completion, b: &Completion) -> (f32, f32, usize) {
    let pairs = a.tokens.iter().zip(&b.tokens).take_while(|(a, b)| a.id == b.id);
    pairs.fold((0.0, 0.0, 0), |(in_a, in_b, count), (a, b)| {
        (in_a + a.logprob, in_b + b.logprob, count + 1)
    })
}

#[test]
fn feedback_becomes_an_adapter_that_serves_the_next_completion() {
    let home = Home::with(Model::Qwen, PATIENT);
    let editor = home.editor();

    let mut counter = Buffer::open(&editor, "counter.rs", COUNTER);
    let accepted = counter.offer();
    counter.accept(&accepted);

    let mut stack = Buffer::open(&editor, "stack.rs", STACK);
    let rejected = stack.offer();
    let other = if rejected.insert_text.starts_with('m') { "n" } else { "m" };
    stack.type_text(other);

    let area = Buffer::open(&editor, "area.rs", AREA);
    let ignored = area.offer();
    editor.advance_clock(9_999).unwrap();
    assert_eq!(home.outcomes(&ignored.id), [], "after nine seconds it is not rejected yet");
    editor.advance_clock(1).unwrap();

    let outcome = |id: &str| home.outcomes(id);
    assert_eq!(outcome(&accepted.id), [(Outcome::Accepted, Evidence::Document)]);
    assert_eq!(outcome(&rejected.id), [(Outcome::RejectedEdit, Evidence::Document)]);
    assert_eq!(outcome(&ignored.id), [(Outcome::RejectedTimeout, Evidence::Clock)]);
    let episodes = &editor.status().unwrap()["episodes"];
    let count = |name: &str| episodes[name].as_u64().unwrap();
    assert_eq!(count("total"), 3, "{episodes}");
    assert_eq!((count("accepted"), count("rejected_edit"), count("rejected_timeout")), (1, 1, 1));

    let status = learn(&editor);
    assert_eq!(status["adapter"]["active"], 1);
    assert_eq!((&status["adapter"]["parent"], &status["adapter"]["swaps"]), (&0.into(), &1.into()));
    assert_eq!(status["learner"]["waiting"], 0, "each label is learned from once");

    // The same place again, with the new adapter.
    let again = Buffer::open(&editor, "again.rs", COUNTER);
    again.complete();
    let completions = home.completions();
    let (before, after) = (&completions[0], completions.last().unwrap());
    assert_eq!((before.adapter, after.adapter), (0, 1));
    assert_eq!(before.prompt, after.prompt, "the same prompt, token for token");
    assert_eq!(before.adapter_from, after.adapter_from);
    let (was, is, tokens) = logprob_of_common(before, after);
    assert!(
        tokens > 0 && is > was,
        "accepted text: {was} nats before, {is} after, {tokens} tokens"
    );
}

#[test]
fn completions_continue_and_stay_whole_while_an_adapter_is_learned_and_swapped_in() {
    let home = Home::with(Model::Smol, PATIENT);
    let editor = home.editor();
    for i in 0..4 {
        let mut buffer = Buffer::open(&editor, &format!("label{i}.rs"), COUNTER);
        let offer = buffer.offer();
        buffer.accept(&offer);
    }
    assert!(editor.learn().unwrap().started);

    // Two files are completed in turns until the new adapter is active.
    let buffers = [Buffer::open(&editor, "a.rs", STACK), Buffer::open(&editor, "b.rs", AREA)];
    let mut asked = 0;
    eventually("a swap under load", || {
        for buffer in &buffers {
            let answer = editor
                .inline_completion_async(buffer.uri(), buffer.position(), TriggerKind::Automatic)
                .and_then(|pending| editor.wait(pending));
            answer.expect("no completion fails because of a swap");
            asked += 1;
        }
        // The adapter is checked in pauses, which begin three seconds after a request.
        std::thread::sleep(REST);
        editor.status().unwrap()["adapter"]["active"] == 1
    });
    for name in ["c.rs", "d.rs"] {
        Buffer::open(&editor, name, STACK).complete();
    }
    let versions: Vec<_> = home.completions().iter().map(|completion| completion.adapter).collect();
    assert!(versions.is_sorted(), "a completion keeps the adapter it began with: {versions:?}");
    assert_eq!((versions.first(), versions.last()), (Some(&0), Some(&1)), "asked {asked} times");
    assert_eq!(editor.status().unwrap()["adapter"]["swaps"], 1);
}

#[test]
fn an_adapter_is_still_served_after_a_restart() {
    let home = Home::with(Model::Smol, PATIENT);
    let editor = home.editor();
    let mut buffer = Buffer::open(&editor, "a.rs", COUNTER);
    let offer = buffer.offer();
    buffer.accept(&offer);
    learn(&editor);
    drop(editor);
    home.output(&["stop"]);

    let editor = home.editor();
    Buffer::open(&editor, "b.rs", COUNTER).complete();
    assert_eq!(home.completions().last().map(|completion| completion.adapter), Some(1));
    let status = home.status();
    assert_eq!(
        (&status["adapter"]["active"], &status["learner"]["waiting"]),
        (&1.into(), &0.into())
    );
}
