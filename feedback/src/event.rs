//! Events: the append-only record of what was served and what became of it.
//!
//! An event is written once and never edited. Meaning is derived by folding
//! ([`crate::episode`]), so a better reading of the same events is a replay,
//! not a migration.

use serde::{Deserialize, Serialize};

/// Version of the stored form of [`Event`]; written beside every record.
pub const EVENT_FORMAT: u8 = 1;

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
}

impl EventKind {
    pub fn offer_id(&self) -> &OfferId {
        match self {
            EventKind::Completion(completion) => &completion.id,
            EventKind::Shown { id }
            | EventKind::PartlyAccepted { id, .. }
            | EventKind::Outcome { id, .. } => id,
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
    MaxTokens,
    /// The time budget ran out.
    Budget,
    /// The next token fell below the confidence floor (it is not recorded).
    LowConfidence,
    /// No token fits what healing must reproduce.
    HealingFailed,
}

impl StopReason {
    /// True when the last recorded token is the model's own decision to stop.
    pub fn is_policy_choice(self) -> bool {
        matches!(self, StopReason::Newline | StopReason::StopToken)
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
