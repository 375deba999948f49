//! The parts of the process that must live as long as it: tasks and the engine's thread. One that
//! panics is reported, and the process ends if nothing works without it.

use crate::health::{Health, TroubleSource};
use crate::part::Part;
use std::sync::Arc;
use tokio::sync::watch;

pub struct Parts {
    health: Arc<Health>,
    /// The first vital part that has died.
    vital: watch::Sender<Option<Part>>,
}

impl Parts {
    pub fn new(health: Arc<Health>) -> Parts {
        Parts { health, vital: watch::Sender::new(None) }
    }

    /// Starts a task that must live as long as the process, or until it returns.
    pub fn spawn(self: &Arc<Self>, part: Part, task: impl Future<Output = ()> + Send + 'static) {
        let parts = self.clone();
        tokio::spawn(async move {
            let ended = tokio::spawn(task).await;
            if ended.is_err_and(|error| error.is_panic()) {
                parts.died(part);
            }
        });
    }

    /// Watches a part that is no task. `panicked` resolves to true if it panics, and to false if it
    /// ends.
    pub fn watch(
        self: &Arc<Self>,
        part: Part,
        panicked: impl Future<Output = bool> + Send + 'static,
    ) {
        let parts = self.clone();
        tokio::spawn(async move {
            if panicked.await {
                parts.died(part);
            }
        });
    }

    fn died(&self, part: Part) {
        let reason = format!(
            "{part} has ended by a fault of Hone's own, whose place is in the daemon's log; \
             `hone restart` starts it again"
        );
        tracing::error!("{reason}");
        self.health.report(TroubleSource::Part(part), reason);
        if part.is_vital() {
            self.vital.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert(part);
                is_first
            });
        }
    }

    /// Resolves when a part has died without which the process cannot do its work.
    pub async fn vital_one_died(&self) -> Part {
        let mut vital = self.vital.subscribe();
        match vital.wait_for(Option::is_some).await.map(|part| *part) {
            Ok(Some(part)) => part,
            _ => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::eventually;
    use std::time::Duration;

    fn parts() -> (Arc<Health>, Arc<Parts>) {
        let health = Arc::new(Health::default());
        (health.clone(), Arc::new(Parts::new(health)))
    }

    #[tokio::test]
    async fn a_vital_part_that_panics_is_told_without_its_message() {
        let (health, parts) = parts();
        parts.spawn(Part::Trials, async {});
        parts.spawn(Part::Upkeep, async { panic!("let canary = 1;") });
        assert_eq!(parts.vital_one_died().await, Part::Upkeep);
        let reason = health.latest().unwrap();
        assert!(reason.contains("removes old events") && !reason.contains("canary"), "{reason}");
        // Whoever asks later gets the same answer.
        assert_eq!(parts.vital_one_died().await, Part::Upkeep);
    }

    #[tokio::test]
    async fn a_part_that_is_not_vital_is_told_and_the_others_live() {
        let (health, parts) = parts();
        parts.spawn(Part::Learning, async { panic!("let canary = 1;") });
        eventually("it is told", || health.latest().is_some()).await;
        assert!(health.latest().unwrap().starts_with("learning has ended"));
        let vital = tokio::time::timeout(Duration::ZERO, parts.vital_one_died()).await;
        assert!(vital.is_err(), "{vital:?}");
    }

    #[tokio::test]
    async fn a_part_that_ends_by_itself_is_no_trouble() {
        let (health, parts) = parts();
        parts.watch(Part::Engine, std::future::ready(false));
        tokio::task::yield_now().await;
        assert_eq!(health.latest(), None);
        parts.watch(Part::Engine, std::future::ready(true));
        assert_eq!(parts.vital_one_died().await, Part::Engine);
    }
}
