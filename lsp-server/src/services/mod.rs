//! One owner for each piece of state that sessions, the learner and the reports share.
//!
//! Locks are taken in this order, and a later one is never held while an earlier one is taken:
//!
//! 1. the adapter change ([`adapter_service`]), which no request takes;
//! 2. a session's state, which is held across neither disk nor await;
//! 3. the recorder's state ([`recorder`]), which is held across an append in memory, not a flush;
//! 4. the cache of ignore files (`privacy`), which is held while they are read;
//! 5. the state of the learner's preemption (`learning`), which is held across one signal;
//! 6. the forwarder's copy of the documents (`daemon`), in a process of its own.
//!
//! [`health`] and [`checkpoint`] have a lock each that is held for one assignment.

pub mod adapter_service;
pub mod checkpoint;
pub mod derived_state;
pub mod health;
pub mod learner_status;
pub mod log_recovery;
pub mod recorder;
pub mod settings;

use crate::privacy::Privacy;
use adapter_service::AdapterService;
use checkpoint::Checkpoints;
use engine::worker::EngineHandle;
use feedback::clock::Clock;
use health::Health;
use recorder::Recorder;
use settings::Settings;
use std::sync::Arc;

pub struct Services {
    pub settings: Arc<Settings>,
    pub recorder: Arc<Recorder>,
    pub adapters: Arc<AdapterService>,
    pub engine: EngineHandle,
    pub privacy: Arc<Privacy>,
    pub clock: Arc<dyn Clock>,
    pub health: Arc<Health>,
    pub checkpoints: Arc<Checkpoints>,
}
