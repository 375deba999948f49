//! Collects what `hone status` shows from the services.

use crate::app::App;
use crate::app::startup::next_edit_manifest;
use engine::unloading::Resident;
use models::manifest::Catalogue;
use models::store::Store;
use report::status::{
    AdapterStatus, ContextStatus, DaemonStatus, Evidence, LearnerView, ModelFile, ModelMemory,
    ModelStatus, NextEditModelStatus, Status,
};

impl App {
    pub fn status(&self) -> Status {
        let services = &self.services;
        let (model, registry) = (services.adapters.model(), services.adapters.serving());
        let settings = services.settings.current();
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            paths: self.paths.paths(),
            daemon: Some(DaemonStatus {
                pid: std::process::id(),
                uptime_s: self.started.elapsed().as_secs(),
                sessions: self.open_editors(),
                http_texts: self.http_texts(),
                memory_bytes: memory_in_use(),
                needs_restart: services.settings.needs_restart(),
            }),
            model: ModelStatus {
                name: model.name.clone(),
                arch: model.architecture.clone(),
                path: model.path.clone(),
                sha256: model.sha256.clone(),
                backend: Some(services.engine.info().backend.clone()),
                memory: Some(model_memory(services.engine.resident())),
                context: Some(self.context_status()),
                file: Some(if model.path.exists() { ModelFile::Here } else { ModelFile::Missing }),
            },
            next_edit_model: self.next_edit_model_status(),
            adapter: AdapterStatus::of(&registry, services.adapters.swaps()),
            learner: self.learner_view(),
            episodes: services.recorder.counts(),
            evidence: services
                .recorder
                .learned_state(|state| Evidence::of(state, &registry, settings.gate.enabled)),
            completions_paused: !settings.completion.enabled,
            last_request: services.requests.last_answered(),
            withheld: services.privacy.withheld(),
            // Whoever asks reads the file, which may have changed since this daemon read it.
            settings_problems: vec![],
            restart_trouble: None,
        }
    }

    /// The model that this process asks for next edits.
    fn next_edit_model_status(&self) -> Option<NextEditModelStatus> {
        let (services, models) = (&self.services, self.paths.models());
        let name = services.settings.next_edit_model()?;
        let catalogue = Catalogue::usable(&models).0;
        let manifest = next_edit_manifest(&catalogue, name).ok()?;
        let memory = services.next_edit_model.as_ref().and_then(|model| model.resident());
        Some(NextEditModelStatus::of(&Store::new(models), manifest, memory.map(model_memory)))
    }

    fn context_status(&self) -> ContextStatus {
        let services = &self.services;
        if !services.engine.info().reads_files {
            let reason = Some("this model does not read several files".into());
            return ContextStatus { chars: 0, reason };
        }
        match services.settings.current().completion.context_chars {
            Some(chars) => ContextStatus { chars, reason: None },
            None => ContextStatus {
                chars: services.context_budget.chars(),
                reason: Some(services.context_budget.reason()),
            },
        }
    }

    fn learner_view(&self) -> LearnerView {
        let services = &self.services;
        let (settings, registry) = (services.settings.current(), services.adapters.serving());
        // The labels are counted first, because a batch is taken after the state has changed.
        let waiting = services.recorder.labels_waiting();
        let learner = self.learner.borrow().clone();
        let last_error = services.health.latest();
        let architecture = &services.adapters.model().architecture;
        LearnerView::of(learner, &settings, architecture, &registry, waiting, last_error)
    }
}

fn model_memory(resident: Resident) -> ModelMemory {
    match resident {
        Resident::Loaded => ModelMemory::Loaded,
        Resident::Unloaded => ModelMemory::GivenBack,
        Resident::Loading => ModelMemory::Loading,
    }
}

/// The memory of this process in bytes, if the system reports it.
fn memory_in_use() -> Option<u64> {
    let pid = sysinfo::get_current_pid().ok()?;
    let mut system = sysinfo::System::new();
    system.refresh_processes(sysinfo::ProcessesToUpdate::Some(&[pid]), false);
    system.process(pid).map(sysinfo::Process::memory)
}
