//! An invoked completion has several offers. Each has its own record, and only the one that
//! was on screen gets a label.

use feedback::event::{Evidence, Outcome};
use rehearsal::client::{Client, Item};
use std::collections::HashSet;
use tests::buffer::Buffer;
use tests::{Home, Model, PATIENT, QUICK, learn};

/// Places where several continuations are likely.
const PLACES: [&str; 3] = [
    "fn sum(values: &[i64]) -> i64 {\n    values.|\n}\n",
    "fn main() {\n    let args: Vec<String> = std::env::args().coll|\n}\n",
    "fn largest(values: &[i32]) -> i32 {\n    let mut |\n}\n",
];

fn outcomes(home: &Home, editor: &Client, items: &[Item]) -> Vec<Vec<(Outcome, Evidence)>> {
    // The answer to any request comes after the notifications before it.
    editor.status().expect("a status");
    items.iter().map(|item| home.outcomes(&item.id)).collect()
}

#[test]
fn an_invoked_completion_has_several_offers_and_a_typed_one_has_one() {
    for model in [Model::Smol, Model::Qwen] {
        let home = Home::with(model, PATIENT);
        let editor = home.editor();
        for (i, place) in PLACES.iter().enumerate() {
            let buffer = Buffer::open(&editor, &format!("{i}.rs"), place);
            let first = buffer.complete().expect("an offer");
            let all = buffer.ask();
            assert!((2..=3).contains(&all.len()), "{place}: {all:?}");
            assert_eq!((&all[0].id, &all[0].insert_text), (&first.id, &first.insert_text));
            let texts: HashSet<_> = all.iter().map(|item| &item.insert_text).collect();
            let ids: HashSet<_> = all.iter().map(|item| &item.id).collect();
            assert_eq!((texts.len(), ids.len()), (all.len(), all.len()), "{all:?}");
            assert_eq!(buffer.ask().len(), all.len(), "the same offers again");
        }
    }
}

/// The learner computes each token's log-probability again. An alternative with a wrong key or
/// position would differ by whole nats. Unlikely tokens differ more between the two
/// implementations than likely ones, so the bounds are wider than those of `parity`.
#[test]
fn an_alternative_is_recorded_as_it_was_served() {
    for model in [Model::Smol, Model::Qwen] {
        let home = Home::with(model, QUICK);
        let editor = home.editor();
        let mut taken = vec![];
        for (i, place) in PLACES.iter().enumerate() {
            let mut buffer = Buffer::open(&editor, &format!("{i}.rs"), place);
            let last = buffer.ask().pop().expect("an offer");
            editor.did_show(&last).expect("didShowCompletion is sent");
            buffer.accept(&last);
            taken.push(last.id);
        }
        for completion in home.completions().iter().filter(|one| taken.contains(&one.id)) {
            assert!(completion.tokens.iter().all(|token| token.logprob <= 0.0));
        }
        learn(&editor);
        let report = &home.registry()["adapters"][0]["report"];
        assert_eq!(report["episodes_used"], PLACES.len());
        let mismatch = &report["mismatch"];
        assert!(mismatch["count"].as_u64() >= Some(10), "{mismatch}");
        for (value, bound) in [("p50", 0.15), ("mean", 0.15), ("max", 1.0)] {
            assert!(mismatch[value].as_f64().is_some_and(|found| found <= bound), "{mismatch}");
        }
    }
}

#[test]
fn accepting_another_offer_rejects_nothing() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    let mut buffer = Buffer::open(&editor, "a.rs", PLACES[0]);
    let first = buffer.offer();
    let all = buffer.ask();
    editor.did_show(&all[1]).expect("didShowCompletion is sent");
    editor.advance_clock(5_000).expect("time passes");
    buffer.accept(&all[1]);
    let mut expected = vec![
        vec![(Outcome::Superseded, Evidence::Document)],
        vec![(Outcome::Accepted, Evidence::Document)],
    ];
    expected.resize(all.len(), vec![(Outcome::Unseen, Evidence::Document)]);
    assert_eq!(all[0].id, first.id);
    assert_eq!(outcomes(&home, &editor, &all), expected);
    assert_eq!(home.status()["learner"]["waiting"], 1);
}

#[test]
fn rejecting_the_offer_on_screen_labels_no_other() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    let buffer = Buffer::open(&editor, "a.rs", PLACES[0]);
    let all = buffer.ask();
    editor.did_show(&all[0]).expect("didShowCompletion is sent");
    editor.did_reject(&all[0].id, "esc").expect("didReject is sent");
    let mut expected = vec![vec![(Outcome::RejectedEsc, Evidence::ClientNotice)]];
    expected.resize(all.len(), vec![(Outcome::Unseen, Evidence::Document)]);
    assert_eq!(outcomes(&home, &editor, &all), expected);
}
