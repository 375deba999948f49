//! Forgets the offers within a scope, and the adapters that learned from them.

use crate::adapters::registry::Registry;
use crate::app::App;
use crate::privacy::forget_scope::{Forgotten, OffersToForget, Scope};
use crate::services::derived_state::DerivedInputs;
use anyhow::{Context, Result};
use std::sync::Arc;

impl App {
    /// Forgets what is recorded, what is indexed of the files that the scope names, and what the
    /// engine holds of any prompt. If the list of forgotten files cannot be written, or a prompt
    /// that waits for the learner cannot be deleted, the rest is forgotten all the same.
    pub async fn forget(self: &Arc<Self>, scope: Scope) -> Result<Forgotten> {
        let (workspaces, named) = (self.services.workspaces.clone(), scope.clone());
        let remembered = tokio::task::spawn_blocking(move || workspaces.forget(&named)).await?;
        let is_by_user = scope.is_by_user();
        let forgotten = self.forget_recorded(scope).await;
        // Sessions have forgotten by now, so no prompt comes later that quotes it.
        let handed = self.services.handed_prompts.clone().filter(|_| is_by_user);
        let prompts = match handed {
            Some(handed) => tokio::task::spawn_blocking(move || handed.forget()).await?,
            None => Ok(()),
        };
        let held = if is_by_user { self.services.engine.unload() } else { Ok(()) };
        let (forgotten, remembered) = (forgotten?, remembered.and(prompts));
        let remembered = remembered.and(held.context("the engine still holds prompts"));
        if forgotten.adapters.is_empty() {
            return remembered.map(|()| forgotten);
        }
        if let Err(error) = self.offer_shared_again().await {
            // What is forgotten is gone all the same; the next version is tried again.
            tracing::warn!("the team's adapter is not tried again: {error:#}");
        }
        remembered.map(|()| forgotten)
    }

    async fn forget_recorded(self: &Arc<Self>, scope: Scope) -> Result<Forgotten> {
        let services = &self.services;
        // While this change lives, no update is promoted.
        let change = services.adapters.change().await;
        if scope.is_by_user() {
            // Sessions forget first. Otherwise a prompt that is recorded after the search would
            // quote what is to be forgotten.
            self.sessions.all().iter().for_each(|session| session.forget());
            services.recorder.forget_comparisons();
            services.requests.clear();
        }
        let (log, base) =
            (services.recorder.log().clone(), services.adapters.model().sha256.clone());
        let (change, found) = change
            .blocking(move |registry| -> Result<(OffersToForget, Forgotten)> {
                OffersToForget::drop_unfinished(&scope, registry)?;
                let found = OffersToForget::search(&*log, scope)?;
                let plan = found.plan(registry, &base);
                Ok((found, plan))
            })
            .await?;
        let (found, plan) = found?;
        if found.changes_nothing(&plan) {
            return Ok(plan);
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
            Ok((found, DerivedInputs::of(registry, &base)))
        };
        let (change, (found, inputs)) = change.commit(withdraw).await?;
        let erasing = self.services.clone();
        tokio::task::spawn_blocking(move || -> Result<()> {
            found.erase(&**erasing.recorder.log())?;
            if let Some(checkpoint) = erasing.recorder.read_again(&inputs)? {
                erasing.checkpoints.keep(&erasing.recorder, checkpoint);
            }
            Ok(())
        })
        .await??;
        drop(change);
        let (offers, adapters) = (forgotten.offers, forgotten.adapters.len());
        tracing::info!("forgot {offers} offer(s) and {adapters} adapter(s)");
        Ok(forgotten)
    }

    /// What [`App::forget`] would do.
    pub async fn plan_to_forget(&self, scope: Scope) -> Result<Forgotten> {
        let log = self.services.recorder.log().clone();
        let (registry, base) =
            (self.services.adapters.serving(), self.services.adapters.model().sha256.clone());
        tokio::task::spawn_blocking(move || {
            Ok(OffersToForget::search(&*log, scope)?.plan(&registry, &base))
        })
        .await?
    }
}
