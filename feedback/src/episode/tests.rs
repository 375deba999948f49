use super::*;
use crate::event::{Decision, Defect, EventKind, KeptCheck, OfferId};
use crate::limits::{KNOWN_OFFERS_MAX, LEARNED_EPISODES_MAX, UNLABELLED_OFFERS_MAX};
use crate::testing::{accepted, completion, numbered, offer, outcome, served};
use std::collections::HashSet;

const TEN: &str = "0123456789";

fn fold(learned_through: Option<u64>, kinds: Vec<EventKind>) -> Fold {
    let mut fold = Fold::new("base", learned_through);
    for event in numbered(kinds) {
        fold.apply(&event);
    }
    fold
}

/// The offers of all labelled episodes in memory.
fn recent(fold: &Fold) -> Vec<OfferId> {
    fold.recent(usize::MAX, &HashSet::new()).offers()
}

#[test]
fn an_offer_counts_once_and_a_completion_without_one_counts_apart() {
    let fold = fold(None, vec![offer("a", TEN), offer("s", ""), accepted("a")]);
    assert_eq!(fold.counts(), Counts { total: 1, accepted: 1, no_offer: 1, ..Counts::default() });
    assert_eq!(fold.waiting(), 1);
}

#[test]
fn stronger_evidence_moves_the_label_and_weaker_does_not() {
    let fold = fold(
        None,
        vec![
            offer("a", TEN),
            outcome("a", Outcome::RejectedEdit, Evidence::Document),
            accepted("a"),
            outcome("a", Outcome::RejectedTimeout, Evidence::Clock),
        ],
    );
    assert_eq!(fold.counts(), Counts { total: 1, accepted: 1, ..Counts::default() });
    assert_eq!(fold.waiting(), 1);
}

#[test]
fn late_acceptance_rescues_an_offer_that_looked_unseen() {
    let unseen = outcome("a", Outcome::Unseen, Evidence::Document);
    let mut fold = fold(None, vec![offer("a", TEN), unseen, accepted("a")]);
    let batch = fold.take_batch(16).unwrap();
    assert_eq!(batch.episodes[0].reward(), Some(1.0));
}

#[test]
fn a_failed_update_gives_its_batch_back_in_order() {
    let rejected = outcome("b", Outcome::RejectedEsc, Evidence::ClientNotice);
    let mut fold = fold(None, vec![offer("a", TEN), offer("b", TEN), rejected, accepted("a")]);
    let batch = fold.take_batch(1).unwrap();
    assert_eq!((batch.episodes[0].completion.id.as_str(), batch.span()), ("b", (2, 2)));
    fold.return_batch(batch);
    let both = fold.take_batch(16).unwrap();
    let ids: Vec<_> = both.episodes.iter().map(|e| e.completion.id.as_str()).collect();
    assert_eq!((ids, both.span()), (vec!["b", "a"], (2, 3)));
    assert!(fold.take_batch(16).is_none());
}

#[test]
fn a_batch_taken_before_something_was_forgotten_is_void() {
    let events = || vec![offer("a", TEN), offer("b", TEN), accepted("a"), accepted("b")];
    let mut fold = fold(None, events());
    let batch = fold.take_batch(16).unwrap();
    let kept = events().into_iter().filter(|kind| kind.offer_id() != "a").collect();
    fold.replace(self::fold(None, kept));
    assert!(!fold.is_current(&batch));
    fold.return_batch(batch);
    let batch = fold.take_batch(16).unwrap();
    assert_eq!((batch.offers(), fold.is_current(&batch)), (vec!["b".to_owned()], true));
}

#[test]
fn events_after_the_verdict_reach_the_episode_that_waits() {
    let kept = |share| EventKind::Kept { id: "a".into(), check: KeptCheck::HalfMinute, share };
    let typed = EventKind::Replacement { id: "b".into(), tokens: vec![7, 8] };
    let mut fold = fold(
        None,
        vec![
            offer("a", TEN),
            offer("b", TEN),
            accepted("a"),
            outcome("b", Outcome::RejectedEdit, Evidence::Document),
            kept(1.0),
            typed,
            kept(0.5),
        ],
    );
    let batch = fold.take_batch(2).unwrap();
    assert_eq!(batch.episodes[0].reward(), Some(0.5));
    assert_eq!(batch.episodes[1].replacement, Some(vec![7, 8]));
}

#[test]
fn a_demonstration_waits_and_is_no_verdict() {
    let typed = |id: &str| EventKind::Replacement { id: id.into(), tokens: vec![7] };
    let events = vec![offer("s", ""), offer("t", ""), typed("s"), typed("unknown")];
    let mut all = fold(None, events.clone());
    assert_eq!((all.waiting(), all.waiting_demonstrations()), (0, 1));
    let batch = all.take_batch(9).unwrap();
    assert_eq!((batch.offers(), batch.span()), (vec!["s".to_owned()], (2, 2)));
    assert_eq!(batch.episodes[0].replacement, Some(vec![7]));
    assert_eq!(batch.episodes[0].reward(), None);
    let after = fold(Some(2), events);
    assert_eq!((after.waiting_demonstrations(), recent(&after).len()), (0, 1), "learned from");
}

#[test]
fn a_defect_that_was_never_shown_is_learned_from_and_starts_no_update() {
    let decision = Decision { defect: Some(Defect::WhitespaceOnly), ..Decision::default() };
    let defective = Completion { shown: String::new(), decision, ..completion("s") };
    let mut fold = fold(None, vec![served(defective), offer("t", "")]);
    assert_eq!((fold.waiting(), fold.counts().no_offer), (0, 2));
    assert_eq!(fold.take_batch(9).unwrap().offers(), ["s"]);
}

#[test]
fn a_label_is_returned_once_and_again_only_when_it_changes() {
    let unseen = outcome("a", Outcome::Unseen, Evidence::Document);
    let typed = outcome("a", Outcome::TypedThrough { utf16: 5 }, Evidence::ClientNotice);
    let kinds = [offer("a", TEN), unseen, typed.clone(), typed, accepted("a")];
    let mut fold = Fold::new("base", None);
    let labels: Vec<_> = numbered(kinds)
        .map(|event| fold.apply(&event).map(|label| (label.at_ms, label.reward, label.before)))
        .collect();
    let expected = [None, None, Some((20, 0.5, None)), None, Some((40, 1.0, Some(0.5)))];
    assert_eq!(labels, expected);
}

#[test]
fn after_a_restart_only_labels_younger_than_the_last_update_wait() {
    let rejected = outcome("b", Outcome::RejectedEdit, Evidence::Document);
    let events = vec![offer("a", TEN), offer("b", TEN), accepted("a"), rejected];
    assert_eq!(fold(Some(2), events).waiting(), 1);
}

/// A model may need so much memory for prompts that an update cannot learn from all of its batch.
#[test]
fn what_an_update_has_left_out_waits_for_the_next_one_also_after_a_restart() {
    let names = ["a", "b", "c"];
    let events = || -> Vec<EventKind> {
        names.iter().flat_map(|name| [offer(name, TEN), accepted(name)]).collect()
    };
    let mut live = fold(None, events());
    let batch = live.take_batch(9).unwrap();
    assert_eq!(batch.span(), (1, 5));
    live.learned(batch, &["b".into(), "unknown".into()]);
    assert_eq!((live.waiting(), recent(&live).len()), (1, 3));

    // The next daemon folds the log anew, or continues from what was saved before the update.
    let left_out = || HashSet::from([OfferId::from("b")]);
    let mut anew = Fold::new("base", None);
    assert!(anew.learned_through(Some(5), left_out()));
    numbered(events()).for_each(|event| {
        anew.apply(&event);
    });
    let mut saved = fold(None, events());
    assert!(saved.learned_through(Some(5), left_out()));
    assert!(live == anew && live == saved);

    let batch = live.take_batch(9).unwrap();
    assert_eq!((batch.offers(), batch.span()), (vec!["b".to_owned()], (3, 3)));
    live.return_batch(batch);
    let batch = live.take_batch(9).unwrap();
    live.learned(batch, &[]);
    assert_eq!((live.waiting(), recent(&live).len()), (0, 3));
    assert!(saved.learned_through(Some(5), HashSet::new()));
    assert!(live == saved, "what another update has learned from waits no more");
}

#[test]
fn the_freshest_of_what_was_learned_from_is_kept_also_after_a_restart() {
    let kinds = (0..LEARNED_EPISODES_MAX + 3).flat_map(|i| {
        let id = format!("o{i}");
        [offer(&id, "x"), accepted(&id)]
    });
    let kinds: Vec<EventKind> = kinds.collect();
    let mut live = fold(None, kinds.clone());
    let batch = live.take_batch(usize::MAX).unwrap();
    live.learned(batch, &[]);
    let kept: Vec<OfferId> = (3..LEARNED_EPISODES_MAX + 3).map(|i| format!("o{i}")).collect();
    assert_eq!(recent(&live), kept);
    // The next daemon folds the same log anew.
    assert_eq!(recent(&fold(Some(u64::MAX), kinds)), kept);
}

#[test]
fn the_freshest_episodes_are_given_without_those_of_some_offers_and_wait_all_the_same() {
    let names = ["a", "b", "c", "d"];
    let kinds = names.iter().flat_map(|name| [offer(name, TEN), accepted(name)]).collect();
    let fold = fold(Some(3), kinds);
    let recent = fold.recent(2, &HashSet::from(["c".into()]));
    assert_eq!(recent.offers(), ["b", "d"].map(OfferId::from));
    assert_eq!(fold.waiting(), 2, "two of the four were learned from, and none was taken");
}

#[test]
fn offers_of_another_base_model_are_counted_and_not_learned_from() {
    let other = Completion { model_sha256: "another".into(), ..completion("a") };
    let fold = fold(None, vec![served(other), accepted("a")]);
    assert_eq!((fold.counts().accepted, fold.waiting()), (1, 0));
}

#[test]
fn memory_is_bounded_however_many_offers_are_never_labelled() {
    let offers = 3 * KNOWN_OFFERS_MAX;
    let fold = fold(None, (0..offers).map(|i| offer(&format!("c{i}"), TEN)).collect());
    assert_eq!(fold.counts().total, offers as u64);
    assert!(fold.unlabelled.len() <= UNLABELLED_OFFERS_MAX);
    assert!(fold.known.len() <= KNOWN_OFFERS_MAX);
}
