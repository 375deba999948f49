//! The machine's resources for learning: power and memory.

use settings::LearningConfig;
use starship_battery::{Manager, State};
use sysinfo::{MemoryRefreshKind, System};

/// The memory that must stay free during an update, in MiB.
const SPARE_MB: u64 = 512;

/// The memory that an update needs in addition to the base model, in MiB: for prompts, activations,
/// the adapter with its gradient, and the optimizer's state.
const UPDATE_MB: u64 = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    pub on_battery: bool,
    pub memory_mb: u64,
    pub available_mb: u64,
}

impl Resources {
    /// Asks the operating system, which may take some milliseconds.
    pub fn now() -> Resources {
        let mut system = System::new();
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        Resources {
            on_battery: on_battery(),
            memory_mb: system.total_memory() >> 20,
            available_mb: system.available_memory() >> 20,
        }
    }

    /// The reason why no update may start, if there is one.
    pub fn reason_not_to_start(&self, config: &LearningConfig, model_bytes: u64) -> Option<String> {
        self.power(config).or_else(|| self.too_large(config, model_bytes >> 20)).or_else(|| {
            let needed = (model_bytes >> 20) + UPDATE_MB + SPARE_MB;
            (self.available_mb < needed).then(|| {
                format!("{} MiB of memory are free, an update needs {needed}", self.available_mb)
            })
        })
    }

    /// A pass of the learner reads the whole model, the experts that no token uses included. One
    /// that is too large for it never learns on this machine, however much memory is free.
    fn too_large(&self, config: &LearningConfig, model_mb: u64) -> Option<String> {
        let limit_mb = self.learner_limit_mb(config);
        (model_mb > limit_mb).then(|| {
            format!(
                "the learner holds the whole model, which has {model_mb} MiB, and may hold \
                 {limit_mb}; raise learning.memory_limit_mb or serve a smaller model"
            )
        })
    }

    /// The reason why the running update must stop, if there is one.
    pub fn reason_to_stop(&self, config: &LearningConfig) -> Option<String> {
        self.power(config).or_else(|| {
            (self.available_mb < SPARE_MB)
                .then(|| format!("only {} MiB of memory are free", self.available_mb))
        })
    }

    fn power(&self, config: &LearningConfig) -> Option<String> {
        (self.on_battery && !config.on_battery).then(|| {
            "on battery power; `hone config set learning.on_battery true` learns there too".into()
        })
    }

    /// The learner's memory limit in MiB: the configured one, or half of the machine's memory.
    pub fn learner_limit_mb(&self, config: &LearningConfig) -> u64 {
        match config.memory_limit_mb {
            0 => self.memory_mb / 2,
            limit => limit,
        }
    }
}

/// Returns whether the machine runs on battery power; false if there is no battery or it cannot be
/// asked.
fn on_battery() -> bool {
    let batteries = Manager::new().and_then(|manager| manager.batteries());
    let discharges = |state: State| matches!(state, State::Discharging | State::Empty);
    batteries.is_ok_and(|mut batteries| {
        batteries.any(|battery| battery.is_ok_and(|battery| discharges(battery.state())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLUGGED: Resources = Resources { on_battery: false, memory_mb: 8192, available_mb: 4096 };
    const MODEL_BYTES: u64 = 500 << 20;

    fn reason_not_to_start(resources: Resources, config: &LearningConfig) -> String {
        resources.reason_not_to_start(config, MODEL_BYTES).unwrap_or_default()
    }

    #[test]
    fn battery_power_forbids_learning_unless_it_is_allowed() {
        let config = LearningConfig::default();
        assert_eq!(reason_not_to_start(PLUGGED, &config), "");
        let unplugged = Resources { on_battery: true, ..PLUGGED };
        assert!(reason_not_to_start(unplugged, &config).contains("on battery power"));
        assert!(unplugged.reason_to_stop(&config).is_some(), "also in the middle of an update");
        let allowed = LearningConfig { on_battery: true, ..config };
        assert_eq!(reason_not_to_start(unplugged, &allowed), "");
        assert_eq!(unplugged.reason_to_stop(&allowed), None);
    }

    #[test]
    fn little_memory_forbids_a_start_and_very_little_ends_what_runs() {
        let config = LearningConfig::default();
        let tight = Resources { available_mb: 1523, ..PLUGGED };
        assert_eq!(
            reason_not_to_start(tight, &config),
            "1523 MiB of memory are free, an update needs 1524"
        );
        assert_eq!(tight.reason_to_stop(&config), None, "a running update has its memory already");
        let starved = Resources { available_mb: 511, ..PLUGGED };
        assert_eq!(starved.reason_to_stop(&config).unwrap(), "only 511 MiB of memory are free");
    }

    /// Qwen3-Coder-30B-A3B on a machine with 32 GiB.
    #[test]
    fn a_model_that_is_larger_than_the_learner_may_be_never_starts() {
        let config = LearningConfig::default();
        let machine = Resources { memory_mb: 32 << 10, available_mb: 30 << 10, ..PLUGGED };
        let reason = machine.reason_not_to_start(&config, 18_556_689_568).unwrap();
        assert!(reason.contains("which has 17697 MiB, and may hold 16384; raise"), "{reason}");
        let raised = LearningConfig { memory_limit_mb: 20_000, ..config };
        assert_eq!(machine.reason_not_to_start(&raised, 18_556_689_568), None);
    }

    #[test]
    fn the_limit_is_half_of_the_memory_unless_it_is_set() {
        let config = LearningConfig::default();
        assert_eq!(PLUGGED.learner_limit_mb(&config), 4096);
        let set = LearningConfig { memory_limit_mb: 900, ..config };
        assert_eq!(PLUGGED.learner_limit_mb(&set), 900);
    }

    #[test]
    fn this_machine_can_be_asked() {
        let now = Resources::now();
        assert!(now.memory_mb > 0 && now.available_mb <= now.memory_mb, "{now:?}");
    }
}
