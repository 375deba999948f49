use super::*;
use crate::event::{Decision, KeptCheck};
use crate::testing::{accepted, completion, numbered, offer, outcome, served};

fn fold(learned_through: Option<u64>, kinds: Vec<EventKind>) -> Fold {
    let mut fold = Fold::new(RewardVersion::V1, "base", learned_through);
    for event in numbered(kinds) {
        fold.apply(&event);
    }
    fold
}

#[test]
fn an_offer_counts_once_and_silence_is_no_offer() {
    let fold = fold(None, vec![offer("a", "0123456789"), offer("s", ""), accepted("a")]);
    assert_eq!(fold.counts(), Counts { total: 1, accepted: 1, silent: 1, ..Counts::default() });
    assert_eq!(fold.waiting(), 1);
}

#[test]
fn stronger_evidence_moves_the_label_and_weaker_does_not() {
    let fold = fold(
        None,
        vec![
            offer("a", "0123456789"),
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
    let mut fold = fold(
        None,
        vec![
            offer("a", "0123456789"),
            outcome("a", Outcome::Unseen, Evidence::Document),
            accepted("a"),
        ],
    );
    let batch = fold.take_batch(16).unwrap();
    assert_eq!(batch.episodes[0].reward(RewardVersion::V1), Some(1.0));
}

#[test]
fn a_failed_update_gives_its_batch_back_in_order() {
    let mut fold = fold(
        None,
        vec![
            offer("a", "0123456789"),
            offer("b", "0123456789"),
            outcome("b", Outcome::RejectedEsc, Evidence::ClientNotice),
            accepted("a"),
        ],
    );
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
    let events =
        || vec![offer("a", "0123456789"), offer("b", "0123456789"), accepted("a"), accepted("b")];
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
fn what_happens_after_the_verdict_reaches_the_episode_that_waits() {
    let kept = |share| EventKind::Kept { id: "a".into(), check: KeptCheck::HalfMinute, share };
    let typed = EventKind::TypedInstead { id: "b".into(), tokens: vec![7, 8] };
    let mut fold = fold(
        None,
        vec![
            offer("a", "0123456789"),
            offer("b", "0123456789"),
            accepted("a"),
            outcome("b", Outcome::RejectedEdit, Evidence::Document),
            kept(1.0),
            typed,
            kept(0.5),
        ],
    );
    let batch = fold.take_batch(2).unwrap();
    assert_eq!(batch.episodes[0].reward(RewardVersion::V1), Some(0.5));
    assert_eq!(batch.episodes[1].instead, Some(vec![7, 8]));
}

#[test]
fn what_was_typed_where_nothing_was_offered_waits_and_is_no_verdict() {
    let typed = |id: &str| EventKind::TypedInstead { id: id.into(), tokens: vec![7] };
    let events = vec![offer("s", ""), offer("t", ""), typed("s"), typed("unknown")];
    let mut all = fold(None, events.clone());
    assert_eq!((all.waiting(), all.waiting_silences()), (0, 1));
    let batch = all.take_batch(9).unwrap();
    assert_eq!((batch.offers(), batch.span()), (vec!["s".to_owned()], (2, 2)));
    assert_eq!(batch.episodes[0].instead, Some(vec![7]));
    assert_eq!(batch.episodes[0].reward(RewardVersion::V1), None);
    let after = fold(Some(2), events);
    assert_eq!((after.waiting_silences(), after.replay(9).len()), (0, 1), "learned from");
}

#[test]
fn a_broken_text_that_was_never_shown_is_learned_from_and_starts_no_update() {
    let decision = Decision { broken: Some(Broken::WhitespaceOnly), ..Decision::default() };
    let broken = Completion { shown: String::new(), decision, ..completion("s") };
    let events = vec![served(broken), offer("t", "")];
    let mut fold = fold(None, events);
    assert_eq!((fold.waiting(), fold.counts().silent), (0, 2));
    assert_eq!(fold.take_batch(9).unwrap().offers(), ["s"]);
}

#[test]
fn a_verdict_is_told_once_and_again_only_when_it_changes() {
    let mut fold = Fold::new(RewardVersion::V1, "base", None);
    let mut seq = 0;
    let mut apply = |kind| {
        seq += 1;
        fold.apply(&Event { seq, at_ms: 7, kind }).map(|told| (told.reward, told.before))
    };
    apply(offer("a", "0123456789"));
    let unseen = outcome("a", Outcome::Unseen, Evidence::Document);
    assert_eq!(apply(unseen), None, "no verdict");
    let typed = outcome("a", Outcome::TypedThrough { utf16: 5 }, Evidence::ClientNotice);
    assert_eq!(apply(typed.clone()), Some((0.5, None)));
    assert_eq!(apply(typed), None);
    assert_eq!(apply(accepted("a")), Some((1.0, Some(0.5))));
}

#[test]
fn after_a_restart_only_labels_younger_than_the_last_update_wait() {
    let events = vec![
        offer("a", "0123456789"),
        offer("b", "0123456789"),
        accepted("a"),
        outcome("b", Outcome::RejectedEdit, Evidence::Document),
    ];
    assert_eq!(fold(Some(2), events).waiting(), 1);
}

#[test]
fn what_was_learned_from_is_replayed_freshest_first() {
    let kinds = (0..REPLAY_EPISODES_MAX + 3).flat_map(|i| {
        let id = format!("o{i}");
        [offer(&id, "x"), accepted(&id)]
    });
    let kinds: Vec<EventKind> = kinds.collect();
    let ids = |episodes: Vec<Episode>| -> Vec<String> {
        episodes.into_iter().map(|episode| episode.completion.id).collect()
    };
    let mut live = fold(None, kinds.clone());
    assert!(live.replay(2).is_empty(), "they wait for their first update");
    let batch = live.take_batch(usize::MAX).unwrap();
    live.learned(batch);
    let newest = [format!("o{}", REPLAY_EPISODES_MAX + 2), format!("o{}", REPLAY_EPISODES_MAX + 1)];
    assert_eq!(ids(live.replay(2)), newest);
    assert_eq!(live.replay(usize::MAX).len(), REPLAY_EPISODES_MAX);
    // Read again from the log by the next daemon.
    assert_eq!(ids(fold(Some(u64::MAX), kinds).replay(2)), newest);
}

#[test]
fn what_another_base_model_served_is_counted_and_not_learned_from() {
    let other = Completion { model_sha256: "another".into(), ..completion("a") };
    let fold = fold(None, vec![served(other), accepted("a")]);
    assert_eq!((fold.counts().accepted, fold.waiting()), (1, 0));
}

#[test]
fn memory_is_bounded_however_many_offers_are_never_labelled() {
    let mut fold = Fold::new(RewardVersion::V1, "base", None);
    for seq in 0..(3 * KNOWN_OFFERS_MAX as u64) {
        let kind = offer(&format!("c{seq}"), "0123456789");
        fold.apply(&Event { seq, at_ms: 0, kind });
    }
    assert_eq!(fold.counts().total, 3 * KNOWN_OFFERS_MAX as u64);
    assert!(fold.unlabelled.len() <= UNLABELLED_OFFERS_MAX);
    assert!(fold.fates.len() <= KNOWN_OFFERS_MAX);
}
