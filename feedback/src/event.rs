//! Events: the append-only record of what was served and what became of it.
//!
//! An event is written once and never edited. Meaning is derived by folding
//! ([`crate::episode`]), so a better reading of the same events is a replay,
//! not a migration.

use serde::{Deserialize, Serialize};

/// Version of the stored form of [`Event`]; written beside every record.
/// Format 1 had no [`Decision`] and nothing after an outcome.
pub const EVENT_FORMAT: u8 = 2;

/// Identifies one offer for as long as it lives; opaque to clients.
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
    /// The engine answered; `shown` may be empty, which is silence.
    Completion(Box<Completion>),
    /// The offer was seen: the client said so.
    Shown { id: OfferId },
    /// The user took the first `accepted_utf16` units of the offer so far.
    PartlyAccepted { id: OfferId, accepted_utf16: u32 },
    /// What finally became of the offer.
    Outcome { id: OfferId, outcome: Outcome, evidence: Evidence },
    /// How much of what was taken still stands, some time later.
    Kept { id: OfferId, check: KeptCheck, share: f32 },
    /// What the user wrote at the place of an offer that was not taken, or where
    /// nothing was offered: the tokens of the healed text and of what was typed,
    /// up to the end of the line.
    TypedInstead { id: OfferId, tokens: Vec<u32> },
    /// What the user wrote there in the end, in the eyes of two adapters: nats,
    /// summed over `tokens` tokens. `says`: those whose likeliest tokens are just
    /// this text.
    Compared {
        id: OfferId,
        tokens: u32,
        logprobs: Vec<(AdapterVersion, f32)>,
        #[serde(default)]
        says: Vec<AdapterVersion>,
    },
}

/// When it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptCheck {
    /// Taken back at once.
    Undone,
    HalfMinute,
    TwoMinutes,
    TenMinutes,
}

impl EventKind {
    pub fn offer_id(&self) -> &OfferId {
        match self {
            EventKind::Completion(completion) => &completion.id,
            EventKind::Shown { id }
            | EventKind::PartlyAccepted { id, .. }
            | EventKind::Outcome { id, .. }
            | EventKind::Kept { id, .. }
            | EventKind::TypedInstead { id, .. }
            | EventKind::Compared { id, .. } => id,
        }
    }
}

/// The exact behaviour record of one completion: enough to recompute every
/// log-probability the serving policy used, without tokenising anything again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    pub id: OfferId,
    /// Path (or URI when it is not a file) of the document: what `hone forget` goes by.
    pub path: String,
    /// The same of the other documents that the prompt holds excerpts of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
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
    /// What the client was given, after post-processing.
    pub shown: String,
    /// Byte offset of `shown` in the concatenated pieces of `tokens`.
    pub shown_from: usize,
    pub timing: Timing,
    #[serde(default)]
    pub decision: Decision,
}

/// What was decided about an answer before the client saw it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// The user asked by hand: such an answer passes the gate.
    pub by_hand: bool,
    pub gate: Option<GateRecord>,
    /// Drawn for a trial; the version is [`Completion::adapter`].
    pub arm: Option<ArmRecord>,
    /// What is wrong with the text, whoever would take it.
    pub broken: Option<Broken>,
}

/// The gate's view of one answer: enough to learn from its fate, and to weigh it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateRecord {
    /// Which list of features this is; another one cannot be learned from.
    pub features_version: u32,
    pub features: Vec<f32>,
    /// P(taken), as predicted.
    pub probability: f32,
    /// P(shown), in (0, 1]: the gate draws, so that it can find out that it was wrong.
    pub propensity: f32,
    /// The text, if it was held back; then [`Completion::shown`] is empty.
    pub held_back: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ArmRecord {
    /// Log position at which the trial began: its name.
    pub trial: u64,
    /// P(this adapter was drawn), in (0, 1].
    pub propensity: f32,
}

/// Faults that need no user to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Broken {
    /// Nothing but blanks.
    WhitespaceOnly,
    /// All of it stands around the cursor already.
    RepeatsSuffix,
    /// A bracket closes another kind than was opened.
    Unbalanced,
    /// The written form of a special token.
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

    /// Greedy decoding has no density of its own; its log-probs are those of
    /// the model's softmax at temperature 1, as in every PPO on served text.
    pub fn policy_temperature(&self) -> f32 {
        if self.temperature > 0.0 { self.temperature } else { 1.0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A token holding a newline was generated (it is recorded, not shown).
    Newline,
    /// An end-of-generation or FIM token was generated (recorded, not shown).
    StopToken,
    /// Of several lines: what was begun has ended; the tokens that say so are
    /// recorded, not shown.
    BlockEnd,
    /// Of several lines: there are as many as were wanted.
    MaxLines,
    MaxTokens,
    /// The time budget ran out.
    Budget,
    /// The line became too unlikely to be offered; of older records: the next token
    /// was (it is not recorded), and what came before it was offered.
    LowConfidence,
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
    /// From the request's arrival to its answer, queueing included.
    pub total_ms: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    Accepted,
    /// A word or a line was taken: this many UTF-16 units, then something else.
    PartlyAccepted {
        utf16: u32,
    },
    /// Typed by hand, character for character, this far.
    TypedThrough {
        utf16: u32,
    },
    RejectedEsc,
    RejectedTimeout,
    RejectedEdit,
    /// A request elsewhere took its place before anything was decided.
    Superseded,
    /// Gone before it can have been read; no label.
    Unseen,
}

/// How an outcome is known, weakest first: a later event with stronger
/// evidence overrides an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    Clock,
    Document,
    ClientNotice,
    Command,
}
