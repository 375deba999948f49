//! The gate is asked about an offer, with what the user set.

use feedback::event::GateRecord;
use policy::gate::Recent;
use policy::gate::features::{Surroundings, features};
use services::Services;
use settings::Config;

/// What the gate decides about an offer in these surroundings.
pub fn ask_gate<'a>(
    services: &Services,
    config: &Config,
    language: &str,
    seen: impl FnOnce(Recent) -> Surroundings<'a>,
) -> GateRecord {
    let gate = services.recorder.gate();
    let mut record = gate.judge(&features(&seen(gate.recent())), config.gate_threshold(language));
    if !config.gate.enabled {
        record.propensity = 1.0;
    }
    record
}
