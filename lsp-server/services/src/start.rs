//! Opens the services on a home: the registry, the log and all that is folded from it.

use crate::Services;
use crate::adapter_service::{AdapterService, ServedModel};
use crate::checkpoint::Checkpoints;
use crate::context_budget::ContextBudget;
use crate::derived_state::{DerivedInputs, DerivedState};
use crate::handed_prompts::HandedPrompts;
use crate::health::{Health, TroubleSource};
use crate::next_edit_model::NextEditModel;
use crate::parts::Parts;
use crate::recorder::Recorder;
use crate::settings::Settings;
use crate::snooze::Snoozes;
use adapters::registry::Registry;
use anyhow::Result;
use engine::worker::EngineHandle;
use feedback::clock::Clock;
use feedback::log::EventLog;
use host::paths::Paths;
use privacy::Privacy;
use privacy::access::Access;
use settings::Config;
use std::sync::Arc;

impl Services {
    pub async fn start(
        paths: &Paths,
        config: Config,
        model: ServedModel,
        engine: EngineHandle,
        clock: Arc<dyn Clock>,
        log: Arc<dyn EventLog>,
        next_edit_model: Option<Arc<NextEditModel>>,
    ) -> Result<Arc<Services>> {
        let health = Arc::new(Health::default());
        let registry = usable_registry(paths, &model, &engine, &health).await;
        if let Some(damage) = log.damage() {
            tracing::warn!("{damage}");
            health.report(TroubleSource::EventLog, damage);
        }
        // The log may be younger than the adapters, after `data` was removed or an older copy of it
        // was put back. Labels with numbers that an adapter has learned would count as learned.
        if let Some(learned) = registry.learned_through(&model.sha256) {
            log.number_from(learned + 1)?;
        }
        let generation = log.generation();
        let derived = DerivedState::of(&*log, &DerivedInputs::of(&registry, &model.sha256))?;
        let checkpoint = derived.checkpoint_if_worth(generation)?;
        let privacy = Arc::new(Privacy::default());
        let settings = Arc::new(Settings::new(config));
        let recorder = Arc::new(Recorder::new(
            log,
            clock.clone(),
            privacy.clone(),
            settings.clone(),
            health.clone(),
            derived,
        ));
        let ignored = settings.current().not_stored.clone();
        let access = Arc::new(Access::new(privacy.clone(), paths.forgotten(), ignored));
        let handed_prompts = clock.passes().then(|| HandedPrompts::new(paths, &model.sha256));
        let adapters = AdapterService::new(model, engine.clone(), recorder.clone(), registry);
        let services = Arc::new(Services {
            settings,
            recorder,
            adapters: Arc::new(adapters),
            context_budget: ContextBudget::new(&engine.info().speed, &*clock),
            engine,
            next_edit_model,
            privacy,
            clock: clock.clone(),
            parts: Arc::new(Parts::new(health.clone())),
            health,
            checkpoints: Arc::new(Checkpoints::default()),
            access,
            activity: Arc::default(),
            requests: Arc::default(),
            snoozes: Arc::new(Snoozes::new(clock)),
            handed_prompts,
        });
        match checkpoint {
            Some(checkpoint) => services.checkpoints.keep(&services.recorder, checkpoint),
            None => services.checkpoints.after(services.recorder.next_seq()),
        }
        Ok(services)
    }
}

/// Opens the registry and gives up every adapter that the engine cannot load.
async fn usable_registry(
    paths: &Paths,
    model: &ServedModel,
    engine: &EngineHandle,
    health: &Health,
) -> Registry {
    let (mut registry, mut trouble) = Registry::open(&paths.adapters(), &model.sha256);
    registry.remove_leftovers();
    while registry.active() > 0 {
        let active = registry.active();
        let path = registry.adapter_file(active);
        match engine.load_adapter(active, path.clone(), vec![]).await {
            Ok(_) => break,
            Err(error) => {
                trouble = Some(format!("{}: cannot be served: {error}", path.display()));
                registry.fall_back();
            }
        }
    }
    // The candidate of a trial, or what the next update starts from and is compared with.
    let (head, active) = (registry.head(), registry.active());
    if head != active && head > 0 {
        let path = registry.adapter_file(head);
        if let Err(error) = engine.load_adapter(head, path.clone(), vec![active]).await {
            let path = path.display();
            trouble = Some(format!("{path}: learning does not continue from it: {error}"));
            registry.fall_back_from_head();
        }
    }
    if let Some(trouble) = trouble {
        tracing::warn!("{trouble}");
        health.report(TroubleSource::Adapters, trouble);
    }
    registry
}
