//! Events: the append-only record of what was served and what became of it.
//!
//! An event is written once and never edited. Its meaning is derived by folding
//! ([`crate::episode`]), so a better interpretation of the same events is a replay and
//! not a migration.

mod next_edit;

pub use next_edit::{NextEdit, NextEditKind, NextEditOutcome};

use crate::experts::ChosenExperts;
use serde::{Deserialize, Serialize};

/// The version of the stored form of [`Event`], written next to every record.
pub const EVENT_FORMAT: u8 = 1;

/// Identifies one offer for as long as it lives. Clients must not interpret it.
pub type OfferId = String;

/// `0` is the base model; `1, 2, …` are the versions of the adapter registry.
pub type AdapterVersion = u32;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Position in the log, assigned by [`crate::log::EventLog::append`].
    pub seq: u64,
    /// Milliseconds since the Unix epoch on the daemon's clock.
    pub at_ms: u64,
    #[serde(flatten)]
    pub kind: EventKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The engine answered. If `shown` is empty, the user was offered nothing.
    Completion(Box<Completion>),
    /// The client said that the offer was on screen.
    Shown { id: OfferId },
    /// The user accepted the first `accepted_utf16` units of the offer so far.
    PartlyAccepted { id: OfferId, accepted_utf16: u32 },
    /// The final outcome of the offer.
    Outcome { id: OfferId, outcome: Outcome, evidence: Evidence },
    /// The share of an accepted text that still stands some time later.
    Kept { id: OfferId, check: KeptCheck, share: f32 },
    /// The text that the user wrote instead of an offer that was not accepted, or where nothing
    /// was offered. `tokens` are those of the healed text and of what was typed, up to
    /// the end of the line.
    Replacement { id: OfferId, tokens: Vec<u32> },
    /// The likelihood of the text that the user finally wrote, under two adapters.
    Compared {
        id: OfferId,
        /// Tokens of the text.
        tokens: u32,
        /// Log-probability of the whole text under each adapter, in nats.
        logprobs: Vec<(AdapterVersion, f32)>,
        /// The adapters whose greedy decoding gives exactly this text.
        greedy: Vec<AdapterVersion>,
    },
    /// An edit elsewhere was offered.
    NextEdit(Box<NextEdit>),
    /// The outcome of the edit. A later event overrides an earlier one.
    NextEditOutcome { id: OfferId, outcome: NextEditOutcome, evidence: Evidence },
}

/// The time at which an accepted text was looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptCheck {
    /// The user undid it right after accepting it.
    Undone,
    HalfMinute,
    TwoMinutes,
    TenMinutes,
}

impl EventKind {
    pub fn offer_id(&self) -> &OfferId {
        match self {
            EventKind::Completion(completion) => &completion.id,
            EventKind::NextEdit(edit) => &edit.id,
            EventKind::Shown { id }
            | EventKind::PartlyAccepted { id, .. }
            | EventKind::Outcome { id, .. }
            | EventKind::Kept { id, .. }
            | EventKind::Replacement { id, .. }
            | EventKind::Compared { id, .. }
            | EventKind::NextEditOutcome { id, .. } => id,
        }
    }
}

/// The exact behaviour record of one completion: enough to recompute every
/// log-probability the serving policy used, without tokenising anything again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    pub id: OfferId,
    /// Path of the document, or its URI if it is not a file. `hone forget` goes by it.
    pub path: String,
    /// Paths or URIs of the other documents that the prompt quotes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// The paths of these documents behind their links, of those that were opened by a link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub real_names: Vec<String>,
    pub language: String,
    /// SHA-256 of the served GGUF, hex.
    pub model_sha256: String,
    pub adapter: AdapterVersion,
    pub sampling: Sampling,
    /// Token ids of the whole prompt, from BOS or the first FIM token on.
    pub prompt: Vec<u32>,
    /// The adapter acts on `prompt[adapter_from..]` and on every generated
    /// token; `prompt[..adapter_from]` is always computed by the base.
    pub adapter_from: usize,
    /// Text cut from the end of the prompt so that it ends on a token boundary;
    /// the first tokens were constrained to reproduce it (token healing).
    pub healing: String,
    /// Generated tokens in order, a terminating stop token included.
    pub tokens: Vec<TokenRecord>,
    pub stop: StopReason,
    /// The text that the client was given, after post-processing.
    pub shown: String,
    /// Byte offset of `shown` in the concatenated pieces of `tokens`.
    pub shown_from: usize,
    pub timing: Timing,
    pub decision: Decision,
    #[serde(default, skip_serializing_if = "Typed::is_nothing")]
    pub typed: Typed,
    /// The experts that `prompt[adapter_from..]` and the generated tokens went through. `None` if
    /// the model has no experts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<ChosenExperts>,
}

impl Completion {
    /// The part of the prompt that the base computes, whichever adapter serves.
    pub fn base_prompt(&self) -> &[u32] {
        self.prompt.get(..self.adapter_from).unwrap_or_default()
    }
}

/// The typing in a document since the completion that was recorded there before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typed {
    /// Characters, without indentation and without what was accepted or pasted.
    pub chars: u32,
    /// Line breaks.
    pub lines: u32,
}

impl Typed {
    pub fn is_nothing(&self) -> bool {
        *self == Typed::default()
    }
}

/// The decision about an answer before the client saw it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The user invoked the completion. Such an answer passes the gate.
    pub invoked: bool,
    pub gate: Option<GateRecord>,
    /// Set if the adapter was drawn for a trial; its version is [`Completion::adapter`].
    pub arm: Option<ArmRecord>,
    /// The defect that makes the text unusable, whoever the user is.
    pub defect: Option<Defect>,
}

/// The gate's view of one answer: enough to learn from its outcome, and to weigh it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateRecord {
    /// Version of the list of features. The gate learns from records of its own version.
    pub features_version: u32,
    pub features: Vec<f32>,
    /// P(accepted), as predicted.
    pub probability: f32,
    /// P(shown), in (0, 1]. The gate draws, so that it can find out that it was wrong.
    pub propensity: f32,
    /// The text, if it was held back; then [`Completion::shown`] is empty.
    pub held_back: Option<String>,
}

impl GateRecord {
    /// Returns the features, if they are those of this version of a list.
    pub fn features_of<const N: usize>(&self, version: u32) -> Option<[f64; N]> {
        let features: &[f32; N] = self.features.as_slice().try_into().ok()?;
        (self.features_version == version).then(|| features.map(f64::from))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ArmRecord {
    /// Log position at which the trial began: its name.
    pub trial: u64,
    /// P(this adapter was drawn), in (0, 1].
    pub propensity: f32,
}

/// A defect that makes a text unusable, found without asking the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Defect {
    /// It consists of white space alone.
    WhitespaceOnly,
    /// All of it stands around the cursor already.
    RepeatsSuffix,
    /// A bracket closes another kind than was opened.
    Unbalanced,
    /// It contains the written form of a special token.
    SpecialToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TokenRecord {
    pub id: u32,
    /// ln π(token | context) under the policy that sampled it, in nats: softmax
    /// at [`Sampling::policy_temperature`], over the tokens that healing
    /// allowed at that step.
    pub logprob: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// `0` decodes greedily.
    pub temperature: f32,
    pub seed: u64,
}

impl Sampling {
    pub const GREEDY: Sampling = Sampling { temperature: 0.0, seed: 0 };

    /// Greedy decoding has no density of its own. Its log-probs are those of the model's
    /// softmax at temperature 1, as in every PPO on served text.
    pub fn policy_temperature(&self) -> f32 {
        if self.temperature > 0.0 { self.temperature } else { 1.0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A token holding a newline was generated. It is recorded and not shown.
    Newline,
    /// An end-of-generation or FIM token was generated. It is recorded and not shown.
    StopToken,
    /// In an answer of several lines, the block that was begun has ended. The tokens
    /// that show this are recorded and not shown.
    BlockEnd,
    /// An answer of several lines has as many lines as were wanted.
    MaxLines,
    MaxTokens,
    /// The time budget ran out.
    Budget,
    /// The line became too unlikely to be offered. In older records only the next token
    /// was too unlikely: it is not recorded, and the text before it was offered.
    LowConfidence,
    /// The answer repeats itself. The tokens that show this are recorded and not shown.
    Repetition,
    /// No token fits what healing must reproduce.
    HealingFailed,
}

impl StopReason {
    /// True when the last recorded token is the model's own decision to stop.
    pub fn is_policy_choice(self) -> bool {
        matches!(self, StopReason::Newline | StopReason::StopToken | StopReason::BlockEnd)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Prompt tokens whose KV was already there.
    pub prompt_reused: u32,
    pub prompt_evaluated: u32,
    pub prompt_ms: f32,
    pub decode_ms: f32,
    /// From the request's arrival to its answer, including the time in the queue.
    pub total_ms: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    Accepted,
    /// The user accepted this many UTF-16 units, in words or lines, and then left it.
    PartlyAccepted {
        utf16: u32,
    },
    /// The user typed this many UTF-16 units of it, character for character.
    TypedThrough {
        utf16: u32,
    },
    RejectedEsc,
    RejectedTimeout,
    RejectedEdit,
    /// A request elsewhere replaced it before anything was decided.
    Superseded,
    /// It was gone before the user can have read it. This is no label.
    Unseen,
}

/// The evidence of an outcome, weakest first: a later event with stronger
/// evidence overrides an earlier one ([`Outcome::outweighs`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    Clock,
    Document,
    ClientNotice,
    Command,
}

impl Outcome {
    /// Returns true if this outcome takes the place of the one that is known. Stronger evidence
    /// does, and of two parts that were accepted, the longer one contains the other.
    pub fn outweighs(self, evidence: Evidence, known: Option<(Outcome, Evidence)>) -> bool {
        use Outcome::PartlyAccepted;
        let Some((outcome, by)) = known else { return true };
        match (self, outcome) {
            (PartlyAccepted { utf16 }, PartlyAccepted { utf16: known }) if evidence == by => {
                utf16 > known
            }
            _ => evidence > by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_another_version_or_number_are_not_read() {
        let gate = GateRecord {
            features_version: 3,
            features: vec![1.0, 0.5],
            probability: 0.5,
            propensity: 1.0,
            held_back: None,
        };
        assert_eq!(gate.features_of(3), Some([1.0, 0.5]));
        assert_eq!(gate.features_of::<2>(2), None);
        assert_eq!(gate.features_of::<3>(3), None);
    }

    #[test]
    fn a_next_edit_reads_back_as_it_was_written() {
        let stored = concat!(
            r#"{"seq":1,"at_ms":2,"event":"next_edit","id":"a","path":"/a.rs","language":"rust","#,
            r#""line":3,"rule":18446744073709551615,"kind":"rewrite_with_holes","support":2,"#,
            r#""invoked":false,"gate":null}"#
        );
        let read: Event = serde_json::from_str(stored).unwrap();
        assert_eq!(read.kind.offer_id(), "a");
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
        let outcome = r#"{"seq":1,"at_ms":2,"event":"next_edit_outcome","id":"a","#.to_owned()
            + r#""outcome":"made_by_hand","evidence":"document"}"#;
        let read: Event = serde_json::from_str(&outcome).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), outcome);
    }
}
