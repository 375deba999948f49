//! The model: its file, the memory that it needs, and how fast it answers here.

use super::{ANSWER_LIMIT, Check, Patient};
use crate::cli::events::each_offer;
use feedback::event::Completion;
use feedback::job::Distribution;
use models::manifest::Manifest;
use models::size::Size;
use models::store::{Store, StoreError};
use report::status::Status;
use std::collections::VecDeque;
use sysinfo::{MemoryRefreshKind, System};

/// The memory that a model needs in addition to its file, in bytes: its KV cache and buffers.
const BESIDES_FILE: u64 = 300 << 20;

/// The completions whose times are reported, the latest ones.
const TIMED: usize = 200;

/// A completion that takes longer than this comes too late for most people, in milliseconds.
const SLOW_MS: f64 = 1_000.0;

pub fn model(patient: &Patient) -> Vec<Check> {
    const NAME: &str = "model";
    let manifest = patient.configured.model();
    let served = patient.status.as_ref().ok().filter(|status| status.daemon.is_some());
    if let Some(status) = served.filter(|status| status.model.sha256 != manifest.sha256) {
        let found = format!("the daemon serves {}, {}", status.model.name, backend(status));
        let trouble = status.restart_trouble.as_deref().and_then(|told| told.split_once(": "));
        return vec![match trouble {
            Some((missing, fix)) => Check::wrong(NAME, format!("{missing}; {found}"), fix),
            None => Check::good(NAME, found),
        }];
    }
    let path = match Store::new(patient.home.models()).verified(manifest) {
        Ok(path) => path,
        Err(error) => {
            let (found, fix) = wrong_file(manifest, &error);
            return vec![Check::wrong(NAME, found, fix)];
        }
    };
    let size = Size(manifest.bytes);
    let file = format!("{}, {size}, its checksum is right", manifest.name);
    if let Some(status) = served {
        return vec![Check::good(NAME, format!("{file}; {}", backend(status)))];
    }
    let config = &patient.configured.config;
    let (gpu_layers, prompt_tokens) = (config.model.gpu_layers, config.lab.prompt_tokens);
    let found = match engine::llama::placement(&path, gpu_layers, prompt_tokens) {
        Ok(placement) => Check::good(NAME, format!("{file}; it would be computed on: {placement}")),
        Err(error) => {
            let error = error.to_string();
            // The file is whole, so fetching it again would not help.
            let other = "`hone model list` names other models";
            let (error, fix) = error.split_once("; ").unwrap_or((&error, other));
            Check::wrong(NAME, format!("{file}; {error}"), fix)
        }
    };
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    vec![found, memory(manifest.bytes, system.total_memory(), system.available_memory())]
}

/// The model for next edits, if one is set. The check of the settings reports one that cannot be
/// asked.
pub fn next_edit_model(patient: &Patient) -> Option<Check> {
    const NAME: &str = "next edits";
    let manifest = patient.configured.next_edit_model()?;
    Some(match Store::new(patient.home.models()).verified(manifest) {
        Ok(_) => {
            let [size, needs] = [manifest.bytes, manifest.bytes + BESIDES_FILE].map(Size);
            let file = format!("{}, {size}, its checksum is right", manifest.name);
            Check::good(NAME, format!("{file}; it needs about {needs} of memory more"))
        }
        Err(error) => {
            let (found, fix) = wrong_file(manifest, &error);
            Check::note(NAME, found, fix)
        }
    })
}

/// What is wrong with a model's file, and what to do about it.
fn wrong_file(manifest: &Manifest, error: &StoreError) -> (String, String) {
    let (name, error) = (&manifest.name, error.to_string());
    let found = error.split("; run").next().unwrap_or(&error);
    (format!("{name}: {found}"), format!("`hone model pull {name}` fetches it"))
}

fn backend(status: &Status) -> &str {
    status.model.backend.as_deref().unwrap_or("not loaded")
}

/// Whether the model fits into memory along with what else runs.
fn memory(model_bytes: u64, total: u64, available: u64) -> Check {
    const NAME: &str = "memory";
    let needed = model_bytes + BESIDES_FILE;
    let [needs, all, free] = [needed, total, available].map(Size);
    let found = format!("the model needs about {needs}; of {all}, {free} are free");
    let smaller = "`hone model list` names smaller models, and `hone model use NAME` chooses one";
    if total < needed {
        Check::wrong(NAME, found, smaller)
    } else if available < needed {
        Check::note(NAME, found, format!("close other programs, or take another model: {smaller}"))
    } else {
        Check::good(NAME, found)
    }
}

/// How fast the last completions were, by their records.
pub async fn speed(patient: &Patient<'_>) -> Option<Check> {
    patient.status.as_ref().ok()?;
    let mut times = Times::default();
    let read = each_offer(patient.home, |history| {
        times.add(history.completion());
        Ok(())
    });
    let read = tokio::time::timeout(ANSWER_LIMIT, read).await;
    read.ok()?.ok()?;
    Some(times.check())
}

/// The times of the latest completions.
#[derive(Default)]
struct Times(VecDeque<Time>);

#[derive(Clone, Copy)]
struct Time {
    total_ms: f64,
    decode_ms: f64,
    tokens: usize,
}

impl Times {
    fn add(&mut self, completion: &Completion) {
        if self.0.len() == TIMED {
            self.0.pop_front();
        }
        self.0.push_back(Time {
            total_ms: completion.timing.total_ms.into(),
            decode_ms: completion.timing.decode_ms.into(),
            tokens: completion.tokens.len(),
        });
    }

    fn check(&self) -> Check {
        const NAME: &str = "speed";
        if self.0.is_empty() {
            return Check::good(NAME, "not known yet: nothing was completed");
        }
        let totals = Distribution::of(self.0.iter().map(|time| time.total_ms as f32).collect());
        let (half, most) = (f64::from(totals.p50), totals.p95);
        let tokens: usize = self.0.iter().map(|time| time.tokens).sum();
        let seconds = self.0.iter().map(|time| time.decode_ms).sum::<f64>() / 1000.0;
        let rate = match seconds > 0.0 {
            true => format!("; {:.0} tokens a second", tokens as f64 / seconds),
            false => String::new(),
        };
        let found = match self.0.len() {
            1 => format!("the last completion came within {half:.0} ms{rate}"),
            count => format!(
                "of the last {count} completions, half came within {half:.0} ms and 95 % within \
                 {most:.0} ms{rate}"
            ),
        };
        if half > SLOW_MS {
            return Check::note(NAME, found, "`hone model list` names smaller models");
        }
        Check::good(NAME, found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn memory_that_is_short_is_told_from_memory_that_is_taken() {
        let state =
            |total: u64, available: u64| memory(1 << 30, total << 30, available << 30).state;
        assert_eq!(state(16, 8), State::Good);
        assert_eq!(state(16, 1), State::Note);
        assert_eq!(state(1, 1), State::Wrong);
    }

    #[test]
    fn the_latest_completions_count() {
        let mut times = Times::default();
        assert_eq!(times.check().state, State::Good);
        for total_ms in [100.0, 200.0, 2_000.0] {
            times.0.push_back(Time { total_ms, decode_ms: 500.0, tokens: 10 });
        }
        let check = times.check();
        assert_eq!(
            check.found,
            "of the last 3 completions, half came within 200 ms and 95 % within 2000 ms; 20 tokens \
             a second"
        );
        times.0.iter_mut().for_each(|time| time.total_ms += 1_000.0);
        assert_eq!(times.check().state, State::Note);
    }
}
