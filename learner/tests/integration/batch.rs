//! The choice of episodes that are learned from, and of their tokens.

use crate::common::{CLOSED, CLOSED_BEFORE_AN_EMPTY_LINE, MIDDLE, NEWLINE, episode, write_gguf};
use feedback::episode::Episode;
use feedback::event::{Outcome, Sampling, StopReason, TokenRecord};
use feedback::experts::{ChosenExperts, ExpertLayout};
use feedback::job::Hyper;
use learner::ppo::batch::{Batch, BatchError, BatchInputs, Dropped, Sample, offers_left};
use models::gguf::Gguf;
use models::vocab::Vocab;

const SHA256: &str = "base";

/// The experts of the base.
const EXPERTS: ExpertLayout = ExpertLayout { experts: 8, used: 2, layers: 2 };

/// The batch of `episodes` for a job whose parent is version 5.
fn batch(episodes: &[Episode]) -> Batch {
    try_batch(episodes, &Hyper::default()).unwrap()
}

fn try_batch(episodes: &[Episode], hyper: &Hyper) -> Result<Batch, BatchError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("base.gguf");
    write_gguf(&path, "qwen2", 1);
    let vocab = Vocab::from_gguf(&Gguf::open(&path).unwrap()).unwrap();
    let inputs = BatchInputs {
        vocab: &vocab,
        base_sha256: SHA256,
        context_tokens: 256,
        experts: Some(EXPERTS),
        parent: 5,
        hyper,
    };
    Batch::new(episodes, &inputs)
}

/// An accepted episode, served by version 5. The tokens 0, 1, 2 … are "a", "b", "c" ….
fn accepted(seq: u64, tokens: &[u32]) -> Episode {
    let mut episode = episode(seq, SHA256, tokens, Outcome::Accepted);
    episode.completion.adapter = 5;
    episode
}

fn only(episode: Episode) -> Sample {
    let mut batch = batch(&[episode]);
    assert_eq!(batch.samples.len(), 1);
    batch.samples.remove(0)
}

fn trained(episode: Episode) -> Vec<u32> {
    only(episode).targets.iter().map(|target| target.token).collect()
}

#[test]
fn what_cannot_be_learned_from_is_dropped_and_counted() {
    let mut episodes: Vec<Episode> = (0..9).map(|seq| accepted(seq, &[0, 1])).collect();
    episodes[1].outcome = None;
    episodes[2].outcome.as_mut().unwrap().0 = Outcome::Superseded;
    episodes[3].completion.model_sha256 = "another".into();
    episodes[4].completion.adapter = 0;
    episodes[5].completion.adapter = 10;
    episodes[6].completion.adapter = 1;
    episodes[7].completion.shown = String::new();
    episodes[8].completion.tokens.clear();
    let batch = batch(&episodes);
    let seqs: Vec<u64> = batch.samples.iter().map(|sample| sample.seq).collect();
    assert_eq!(seqs, [0, 6], "version 1 is four versions away, which is the limit");
    let expected = Dropped { unlabelled: 2, stale: 2, other_base: 1, empty: 2, memory: 0 };
    assert_eq!(batch.dropped, expected);
    assert_eq!(batch.dropped.total(), 7);
}

#[test]
fn advantage_is_reward_minus_the_value_of_no_offer() {
    let mut episodes: Vec<Episode> = (0..3).map(|seq| accepted(seq, &[0, 1, 2, 3])).collect();
    episodes[1].outcome.as_mut().unwrap().0 = Outcome::RejectedEsc;
    episodes[2].outcome.as_mut().unwrap().0 = Outcome::PartlyAccepted { utf16: 2 };
    let batch = batch(&episodes);
    let numbers: Vec<_> = batch.judged().map(|(_, v)| (v.reward, v.advantage)).collect();
    assert_eq!(numbers, [(1.0, 0.75), (0.0, -0.25), (0.5, 0.25)]);
    assert_eq!(batch.mean_of(|verdict| verdict.reward), 0.5);
}

#[test]
fn the_tail_is_the_adapters_part_of_the_prompt_and_all_but_the_last_token() {
    let sample = only(accepted(3, &[0, 1, 2]));
    assert_eq!(sample.prompt, [37, 34, 0, 28, 38, 29, 30, 3]);
    assert_eq!(sample.tail, [MIDDLE, 0, 1]);
    assert_eq!(sample.targets.len(), 3);
    assert!(sample.verdict.unwrap().by_parent);
}

/// An episode with a record of `tokens` tokens. Each of them went through other experts.
fn routed(mut episode: Episode, tokens: usize) -> Episode {
    let mut choices = EXPERTS.unknown(tokens);
    for token in 0..tokens {
        let id = token as u16;
        EXPERTS.put(&mut choices, token, 0, &[id, id + 1]);
        EXPERTS.put(&mut choices, token, 1, &[id + 2, id]);
    }
    episode.completion.experts = ChosenExperts::new(EXPERTS, &choices);
    episode
}

/// The first expert of each row in the first layer.
fn first_experts(sample: &Sample) -> Vec<u16> {
    sample.experts.chunks(4).map(|row| row[0]).collect()
}

#[test]
fn a_sample_has_the_experts_of_the_rows_that_were_served() {
    assert!(only(accepted(0, &[0, 1, 2])).experts.is_empty(), "none are recorded");
    // The tail is the middle token and all but the last generated one.
    let whole = only(routed(accepted(0, &[0, 1, 2]), 3));
    assert_eq!(whole.experts, [0, 1, 2, 0, 1, 2, 3, 1, 2, 3, 4, 2]);
    let mut cut = routed(accepted(0, &[0, 1, 2]), 3);
    cut.completion.shown = "ab".into();
    assert_eq!(first_experts(&only(cut)), [0, 1], "the rows of the tokens that were shown");
    assert_eq!(first_experts(&only(routed(accepted(0, &[0, 1, 2]), 1))), [0], "a short record");
    // What was typed instead agrees with what was offered in its first token.
    let mut typed = routed(accepted(0, &[0, 1, 2]), 3);
    typed.outcome.as_mut().unwrap().0 = Outcome::RejectedEsc;
    typed.replacement = Some(vec![0, 3, 4]);
    let hyper = Hyper { demonstration_coefficient: 1.0, ..Hyper::default() };
    let batch = try_batch(&[typed], &hyper).unwrap();
    let demonstration = batch.samples.iter().find(|sample| sample.verdict.is_none()).unwrap();
    assert_eq!(demonstration.tail, [MIDDLE, 0, 3]);
    assert_eq!(first_experts(demonstration), [0, 1]);
}

#[test]
fn experts_of_another_model_are_refused() {
    let mut other = accepted(7, &[0, 1]);
    let layout = ExpertLayout { layers: 3, ..EXPERTS };
    other.completion.experts = ChosenExperts::new(layout, &layout.unknown(2));
    let error = try_batch(&[other], &Hyper::default()).unwrap_err().to_string();
    let expected =
        "episode 7: it has 2 of 8 experts in 3 layers, and the model 2 of 8 in 2; drop it";
    assert!(error.starts_with(expected), "{error}");
    let mut twice = accepted(8, &[0, 1]);
    let mut choices = EXPERTS.unknown(1);
    EXPERTS.put(&mut choices, 0, 1, &[5, 5]);
    twice.completion.experts = ChosenExperts::new(EXPERTS, &choices);
    let error = try_batch(&[twice], &Hyper::default()).unwrap_err().to_string();
    assert!(error.contains("episode 8: it has the same expert twice in layer 1"), "{error}");
}

#[test]
fn what_post_processing_cut_off_is_not_trained() {
    let mut cut = accepted(0, &[0, 1, 2, 3]);
    cut.completion.shown = "ab".into();
    assert_eq!(trained(cut.clone()), [0, 1]);
    // A token is judged even if only a part of it was shown.
    cut.completion.tokens[1].id = 21;
    assert_eq!(trained(cut), [0, 21]);
}

#[test]
fn the_stop_token_is_trained_only_right_behind_the_shown_text() {
    let stopped = |shown: &str, stop: StopReason| {
        let mut episode = accepted(0, &[0, 1, NEWLINE]);
        episode.completion.shown = shown.into();
        episode.completion.stop = stop;
        trained(episode)
    };
    assert_eq!(stopped("ab", StopReason::Newline), [0, 1, NEWLINE]);
    assert_eq!(stopped("a", StopReason::Newline), [0], "the user did not see the text end there");
    assert_eq!(
        stopped("ab", StopReason::MaxTokens),
        [0, 1],
        "the token limit is not the policy's choice"
    );

    let mut control = accepted(0, &[0, 1]);
    control.completion.tokens.push(TokenRecord { id: MIDDLE, logprob: -1.0 });
    control.completion.stop = StopReason::StopToken;
    assert_eq!(trained(control), [0, 1, MIDDLE]);
}

/// "ab" must be reproduced: "a", "ab" and "abc" fit. After "a", "b" must be reproduced: "b" and
/// "ba" fit.
#[test]
fn healing_narrows_the_softmax_until_its_text_is_reproduced() {
    let mut healed = accepted(0, &[0, 22, 2]);
    healed.completion.healing = "ab".into();
    healed.completion.shown = "ac".into();
    healed.completion.shown_from = 2;
    let sample = only(healed);
    let allowed: Vec<_> = sample.targets.iter().map(|t| t.allowed.as_deref()).collect();
    assert_eq!(allowed, [Some(&[0, 20, 21][..]), Some(&[1, 22][..]), None]);
}

#[test]
fn the_softmax_has_the_policys_temperature() {
    let mut warm = accepted(0, &[0]);
    assert_eq!(only(warm.clone()).targets[0].temperature, 1.0, "greedy decoding counts as 1");
    warm.completion.sampling = Sampling { temperature: 0.5, seed: 1 };
    assert_eq!(only(warm).targets[0].temperature, 0.5);
}

/// Episodes of one document follow each other, so that they share the rows of their prompts.
#[test]
fn samples_are_ordered_by_document_then_time() {
    let mut episodes: Vec<Episode> = (0..4).map(|seq| accepted(seq, &[0])).collect();
    for seq in [0, 2] {
        episodes[seq].completion.path = "src/main.rs".into();
    }
    let seqs: Vec<u64> = batch(&episodes).samples.iter().map(|sample| sample.seq).collect();
    assert_eq!(seqs, [1, 3, 0, 2]);
}

/// If the prompts of all do not fit into memory, what an update leaves out waits for the next
/// one. A prompt that is too long for any update would wait for ever.
#[test]
fn old_labels_come_first_and_those_that_are_left_wait() {
    let mut episodes: Vec<Episode> = [4, 2, 8, 6].map(|seq| accepted(seq, &[0])).into();
    episodes[0].completion.path = "src/main.rs".into();
    episodes[1].outcome.as_mut().unwrap().0 = Outcome::RejectedEsc;
    episodes[1].replacement = Some(vec![4]);
    let mut batch = batch(&episodes);
    let seqs = |samples: &[Sample]| samples.iter().map(|s| s.seq).collect::<Vec<_>>();
    assert_eq!(seqs(&batch.samples), [2, 2, 6, 8, 4], "the order in which they are computed");
    assert_eq!(batch.by_urgency(), [0, 1, 4, 2, 3]);

    let left = batch.keep(&[true, true, false, false, true]);
    assert_eq!((seqs(&batch.samples), seqs(&left)), (vec![2, 2, 4], vec![6, 8]));
    assert_eq!(batch.dropped.memory, 2);
    let too_long = left[0].prompt.clone();
    let fits_alone = |prompt: &[u32]| prompt != too_long;
    assert_eq!(offers_left(&left, &episodes, fits_alone), ["offer-8"]);
    assert_eq!(offers_left(&left, &episodes, |_| true), ["offer-8", "offer-6"]);
}

#[test]
fn the_invocation_token_is_named_only_if_every_tail_begins_with_it() {
    let mut episodes: Vec<Episode> = (0..2).map(|seq| accepted(seq, &[0])).collect();
    assert_eq!(batch(&episodes).invocation, Some(MIDDLE));
    episodes[1].completion.adapter_from = 7;
    assert_eq!(batch(&episodes).invocation, None);
    episodes[0].completion.adapter_from = 7;
    episodes[1].completion.prompt[7] = episodes[0].completion.prompt[7];
    assert_eq!(batch(&episodes).invocation, None, "only a control token can switch the adapter on");
}

#[test]
fn what_was_typed_instead_of_a_rejected_offer_is_a_demonstration() {
    let mut rejected = accepted(0, &[0, 1]);
    rejected.outcome.as_mut().unwrap().0 = Outcome::RejectedEsc;
    rejected.replacement = Some(vec![4, 5, 6]);
    let mut accepted_offer = accepted(1, &[0, 1]);
    accepted_offer.replacement = Some(vec![4]);
    let wanted = Hyper { demonstration_coefficient: 0.5, ..Hyper::default() };
    let batch = try_batch(&[rejected.clone(), accepted_offer], &wanted).unwrap();
    let demonstrations: Vec<&Sample> =
        batch.samples.iter().filter(|sample| sample.verdict.is_none()).collect();
    assert_eq!(demonstrations.len(), 1, "an accepted offer needs no demonstration");
    assert_eq!(demonstrations[0].seq, 0);
    let tokens: Vec<u32> = demonstrations[0].targets.iter().map(|target| target.token).collect();
    assert_eq!(tokens, [4, 5, 6]);
    assert_eq!(demonstrations[0].tail, [MIDDLE, 4, 5]);
    assert_eq!((batch.judged().count(), batch.tokens()), (2, 4));

    let unwanted = Hyper { demonstration_coefficient: 0.0, ..Hyper::default() };
    let none = try_batch(&[rejected.clone()], &unwanted).unwrap();
    assert_eq!(none.samples.len(), 1, "there is no demonstration loss");
    // Healing must reproduce "a". The policy could not have drawn a demonstration that
    // begins with something else.
    rejected.completion.healing = "a".into();
    let unhealed = try_batch(&[rejected], &wanted).unwrap();
    assert_eq!(unhealed.samples.len(), 1);
}

/// The vocabulary of Qwen has a token for `)` with one line break, and another with two. Which
/// one the tokenizer uses depends on the line below, so both count as the right one.
#[test]
fn the_line_that_was_typed_ends_the_same_before_an_empty_line() {
    let mut rejected = accepted(0, &[0, 1]);
    rejected.outcome.as_mut().unwrap().0 = Outcome::RejectedEsc;
    rejected.replacement = Some(vec![CLOSED, 4, CLOSED]);
    let batch = batch(&[rejected]);
    let typed = batch.samples.iter().find(|sample| sample.verdict.is_none()).unwrap();
    let equivalents: Vec<&[u32]> =
        typed.targets.iter().map(|target| &*target.equivalents).collect();
    assert_eq!(equivalents, [&[][..], &[], &[CLOSED_BEFORE_AN_EMPTY_LINE]]);
    let (judged, _) = batch.judged().next().unwrap();
    assert!(
        judged.targets.iter().all(|target| target.equivalents.is_empty()),
        "a sampled token has no equivalents"
    );
}

#[test]
fn a_reject_is_credited_to_the_first_token_that_differs() {
    // The tokens 0, 1, 2 … are "a", "b", "c" ….
    let credited = |said: &[u32], typed: &[u32]| {
        let mut rejected = accepted(0, said);
        rejected.outcome.as_mut().unwrap().0 = Outcome::RejectedEsc;
        rejected.replacement = (!typed.is_empty()).then(|| typed.to_vec());
        let batch = try_batch(&[rejected], &Hyper::default()).unwrap();
        let (sample, verdict) = batch.judged().next().unwrap();
        assert_eq!(verdict.offered, said.len());
        assert_eq!(sample.targets.len(), verdict.credited.len());
        assert_eq!(verdict.behaviour.len(), verdict.credited.len());
        verdict.credited.clone()
    };
    assert_eq!(
        credited(&[0, 1, 2, 3], &[0, 1, 5, 6]),
        [false, false, true],
        "what follows a wrong token is left out"
    );
    assert_eq!(credited(&[0, 1], &[5]), [true]);
    assert_eq!(credited(&[0, 1, 2], &[0, 1]), [false], "what the user types next is unknown");
    assert_eq!(
        credited(&[0, 1, 2], &[0, 1, NEWLINE]),
        [false, false, true],
        "the offer continues where the line ended"
    );
    assert_eq!(credited(&[0, 1], &[]), [true; 2], "what the user typed is unknown");
    let accepted_batch = batch(&[accepted(0, &[0, 1])]);
    let (_, verdict) = accepted_batch.judged().next().unwrap();
    assert!(
        verdict.credited.iter().all(|credited| *credited),
        "all of an accepted text is credited"
    );
}

#[test]
fn what_was_typed_where_nothing_was_offered_is_a_demonstration_of_its_own() {
    let mut no_offer = accepted(0, &[0]);
    no_offer.outcome = None;
    no_offer.completion.shown = String::new();
    no_offer.completion.adapter = 40;
    no_offer.replacement = Some(vec![4, 5]);
    let wanted = Hyper { demonstration_coefficient: 0.5, ..Hyper::default() };
    let batch = try_batch(&[no_offer.clone(), accepted(1, &[0, 1])], &wanted).unwrap();
    let seen: Vec<_> = batch.samples.iter().map(|s| (s.seq, s.verdict.is_some())).collect();
    assert_eq!(seen, [(0, false), (1, true)], "it does not matter which adapter offered nothing");
    assert_eq!(batch.dropped.total(), 0);
    let unwanted = Hyper { demonstration_coefficient: 0.0, ..Hyper::default() };
    assert!(try_batch(&[no_offer.clone()], &unwanted).is_err());
    assert_eq!(try_batch(&[no_offer.clone()], &wanted).unwrap().samples.len(), 1);
}
