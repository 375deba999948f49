//! Apps and daemons for unit tests, and the measurements that use them.

pub mod app;
mod burst;
pub mod daemon;
mod http;
mod load;
mod next_edit;
mod overhead;

use feedback::job::Distribution;
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the row of a report on how long requests took.
fn row(times: &[Duration]) -> Value {
    let ms = times.iter().map(|time| time.as_secs_f32() * 1000.0).collect();
    let Distribution { count, p50, p95, max, .. } = Distribution::of(ms);
    json!({"requests": count, "p50_ms": p50, "p95_ms": p95, "max_ms": max})
}
