//! The services. Each owns one piece of the state that sessions, the learner and the reports share.
//!
//! Locks are taken in this order. Nobody takes an earlier lock while holding a later one:
//!
//! 1. the adapter change ([`adapter_service`]), which no request takes;
//! 2. a session's finder of next edits, which is held during a search and which no keystroke takes;
//! 3. the texts of HTTP clients (`protocol`), which are held during turns of their sessions;
//! 4. a session's state, which is not held during disk access or an await;
//! 5. the recorder's state ([`recorder`]), which is held during an append, but not during a flush;
//! 6. the cache of ignore files (`privacy`), which is not held while they are read;
//! 7. the state of the learner's preemption (`learning`), which is held while a signal is sent;
//! 8. the forwarder's copy of the documents (`daemon`), in a process of its own.
//!
//! [`health`], [`checkpoint`] and [`recent_requests`] have one lock each, which is held for one
//! assignment. That of [`handed_prompts`] is held while a file is written, and no request takes it.
//! The locks of [`next_edit_model`] are held for an assignment too, except one that is held while
//! the model is loaded, and only on the thread that loads.

// As in `lsp-server/src/lib.rs`: nothing is printed, and a module that starts a program says so.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::disallowed_types)]

pub mod activity;
pub mod adapter_service;
pub mod checkpoint;
pub mod context_budget;
pub mod derived_state;
pub mod handed_prompts;
pub mod health;
pub mod learner_status;
pub mod log_recovery;
pub mod next_edit_model;
pub mod part;
pub mod parts;
pub mod reason;
pub mod recent_requests;
pub mod recorder;
pub mod recordings;
pub mod settings;
pub mod snooze;
mod start;

use self::settings::Settings;
use activity::Activity;
use adapter_service::AdapterService;
use checkpoint::Checkpoints;
use context_budget::ContextBudget;
use engine::worker::EngineHandle;
use feedback::clock::Clock;
use handed_prompts::HandedPrompts;
use health::Health;
use next_edit_model::NextEditModel;
use parts::Parts;
use privacy::Privacy;
use privacy::access::Access;
use recent_requests::RecentRequests;
use recorder::Recorder;
use snooze::Snoozes;
use std::sync::Arc;

pub struct Services {
    pub settings: Arc<Settings>,
    pub recorder: Arc<Recorder>,
    pub adapters: Arc<AdapterService>,
    pub engine: EngineHandle,
    /// `None` if the settings name no model for next edits.
    pub next_edit_model: Option<Arc<NextEditModel>>,
    pub context_budget: ContextBudget,
    pub privacy: Arc<Privacy>,
    pub clock: Arc<dyn Clock>,
    pub health: Arc<Health>,
    pub parts: Arc<Parts>,
    pub checkpoints: Arc<Checkpoints>,
    /// The files that next edits may be looked for in, although they are not open.
    pub access: Arc<Access>,
    pub activity: Arc<Activity>,
    pub requests: Arc<RecentRequests>,
    pub snoozes: Arc<Snoozes>,
    /// `None` in a rehearsal, whose learners share prompts in another way.
    pub handed_prompts: Option<HandedPrompts>,
}

impl Services {
    /// Notes that somebody typed or asked for a completion. Periodic tasks continue, comparisons of
    /// adapters wait for a pause, and the model for next edits gives way.
    pub fn touch(&self) {
        self.activity.touch();
        self.engine.key();
        self.next_edit_model.iter().for_each(|model| model.interrupt());
    }
}
