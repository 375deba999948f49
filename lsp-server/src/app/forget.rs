//! Forgets the offers within a scope, and the adapters that learned from them.

use crate::app::App;
use adapters::registry::Registry;
use anyhow::{Context, Result};
use privacy::forget_scope::{Forgotten, OffersToForget, Scope};
use services::Services;
use services::derived_state::DerivedInputs;
use services::handed_prompts::remove_prompts;
use services::recordings;
use std::sync::Arc;

/// What was forgotten, and the first thing that could not be removed with it.
type Done = (Forgotten, Result<()>);

impl App {
    /// Forgets in a task of its own, which continues if its caller does not wait for the end.
    pub async fn forget_to_the_end(self: &Arc<Self>, scope: Scope) -> Result<Forgotten> {
        let app = self.clone();
        let forgotten = host::tasks::ended(tokio::spawn(async move { app.forget(scope).await }));
        forgotten.await.context("forgetting broke off")?
    }

    /// Forgets what is recorded of the files that the scope names, and what the engine holds of any
    /// prompt.
    ///
    /// # Errors
    /// Something could not be removed or written. The rest is forgotten all the same as far as it
    /// does not depend on it, and the same call does what is left.
    pub async fn forget(self: &Arc<Self>, scope: Scope) -> Result<Forgotten> {
        let (access, named) = (self.services.access.clone(), scope.clone());
        let remembered = host::tasks::blocking(move || access.forgotten.add(&named)).await?;
        let is_by_user = scope.is_by_user();
        let forgotten = self.forget_recorded(scope).await;
        let has_erased = forgotten.as_ref().is_ok_and(|(forgotten, _)| !forgotten.is_nothing());
        let prompts = match is_by_user {
            true => self.forget_prompts().await,
            false if has_erased => self.remove_handed_prompts().await,
            false => Ok(()),
        };
        let (forgotten, removed) = forgotten?;
        let done = remembered.and(removed).and(prompts);
        if forgotten.adapters.is_empty() {
            return done.map(|()| forgotten);
        }
        if let Err(error) = self.offer_shared_again().await {
            // What is forgotten is gone all the same; the next version is tried again.
            tracing::warn!("the team's adapter is not tried again: {error:#}");
        }
        done.map(|()| forgotten)
    }

    /// Removes what was computed of any prompt, and recorded sessions. Sessions have forgotten by
    /// now, so no prompt comes later that quotes what is to be forgotten.
    async fn forget_prompts(&self) -> Result<()> {
        let folder = self.paths.recordings();
        let recordings = host::tasks::blocking(move || recordings::remove(&folder)).await?;
        let removed = self.remove_handed_prompts().await.and(recordings);
        let model = self.services.next_edit_model.as_ref();
        let of_edits = model.map_or(Ok(()), |model| model.unload());
        let unloaded = self.services.engine.unload().and(of_edits);
        removed.and(unloaded.context("the engine still holds prompts"))
    }

    /// Removes the files of computed prompts. They do not say of which document they are.
    async fn remove_handed_prompts(&self) -> Result<()> {
        let (handed, folder) = (self.services.handed_prompts.clone(), self.paths.prompts());
        let removed = host::tasks::blocking(move || match handed {
            Some(handed) => handed.forget(),
            // An earlier daemon may have left some.
            None => remove_prompts(&folder),
        });
        removed.await?
    }

    async fn forget_recorded(self: &Arc<Self>, scope: Scope) -> Result<Done> {
        let services = &self.services;
        // While this change lives, no update is promoted.
        let change = services.adapters.change().await;
        let is_by_user = scope.is_by_user();
        if is_by_user {
            // Sessions forget first. Otherwise a prompt that is recorded after the search would
            // quote what is to be forgotten.
            self.sessions.all().iter().for_each(|session| session.forget());
            services.recorder.forget_comparisons();
            services.requests.clear();
        }
        let (log, base) =
            (services.recorder.log().clone(), services.adapters.model().sha256.clone());
        let now_ms = services.clock.unix_ms();
        let (change, found) = change
            .blocking(move |registry| -> Result<_> {
                let damaged = log.set_aside()?;
                let removed = OffersToForget::remove_unsearchable(&scope, registry, &*log);
                let found = OffersToForget::search(&*log, scope, now_ms)?;
                let plan = found.plan(registry, &base, damaged);
                Ok((found, plan, removed))
            })
            .await?;
        let (found, plan, unsearchable) = found?;
        if !is_by_user && found.is_nothing() && services.recorder.is_current_log() {
            return Ok((plan, Ok(())));
        }
        // Sessions drop these offers before they are erased, so that no later event about them is
        // recorded.
        self.sessions.all().iter().for_each(|session| session.forget_offers(found.offers()));
        if plan.serves != change.registry().active() {
            let file = change.registry().adapter_file(plan.serves);
            change.load(plan.serves, file).await?;
        }
        let (forgotten, base) = (plan.clone(), services.adapters.model().sha256.clone());
        let withdraw = move |registry: &mut Registry| {
            found.withdraw(registry, &plan)?;
            let files = found.remove_files(registry);
            Ok((found, files, DerivedInputs::of(registry, &base)))
        };
        let (change, (found, files, inputs)) = change.commit(withdraw).await?;
        let erasing = self.services.clone();
        host::tasks::blocking(move || erase(&erasing, &found, &inputs)).await??;
        drop(change);
        let offers = printable::count(forgotten.offers, "offer");
        let adapters = printable::count(forgotten.adapters.len(), "adapter");
        tracing::info!("forgot {offers} and {adapters}");
        Ok((forgotten, unsearchable.and(files)))
    }

    /// Returns what [`App::forget`] would do.
    pub async fn plan_to_forget(&self, scope: Scope) -> Result<Forgotten> {
        let log = self.services.recorder.log().clone();
        let (registry, base) =
            (self.services.adapters.serving(), self.services.adapters.model().sha256.clone());
        let now_ms = self.services.clock.unix_ms();
        host::tasks::blocking(move || {
            let found = OffersToForget::search(&*log, scope, now_ms)?;
            Ok(found.plan(&registry, &base, log.set_aside()?))
        })
        .await?
    }
}

/// Erases the events, and derives everything again without them and without the adapters that are
/// withdrawn. This is done whatever was found and erased, because an earlier attempt may have
/// failed before it.
fn erase(services: &Services, found: &OffersToForget, inputs: &DerivedInputs) -> Result<()> {
    let recorder = &services.recorder;
    let erased = found.erase(&**recorder.log()).map_err(anyhow::Error::from);
    let checkpoint = recorder.read_again(inputs);
    if let Some(checkpoint) = erased.and(checkpoint)? {
        services.checkpoints.keep(recorder, checkpoint);
    }
    Ok(())
}
