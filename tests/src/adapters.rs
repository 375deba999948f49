//! Adapters and reports for tests, made without a learner.

use feedback::job::UpdateReport;
use models::adapter::{LoraAdapter, LoraPair};
use std::path::Path;

/// Rows of SmolLM2-135M's first query map, in and out.
const QUERY_ROWS: usize = 576;
const RANK: usize = 4;

/// Writes an adapter for the small model that changes nothing. Returns its checksum.
pub fn write_adapter(path: &Path, base_sha256: &str) -> String {
    write_adapter_of(path, base_sha256, 0.0)
}

/// The same with noise of this size as its change.
pub fn write_adapter_of(path: &Path, base_sha256: &str, noise: f32) -> String {
    let query = LoraPair {
        name: "blk.0.attn_q.weight".into(),
        rows_out: QUERY_ROWS,
        rows_in: QUERY_ROWS,
        a: noise_of(RANK * QUERY_ROWS, 0.01),
        b: noise_of(QUERY_ROWS * RANK, noise),
    };
    let adapter = LoraAdapter {
        architecture: "llama".into(),
        base_sha256: base_sha256.into(),
        rank: RANK,
        shared_rank: 0,
        alpha: 8.0,
        invocation: vec![],
        pairs: vec![query],
    };
    adapter.write(path).expect("an adapter is written")
}

/// Neither regular nor random.
fn noise_of(count: usize, size: f32) -> Vec<f32> {
    (0..count).map(|index| size * (index as f32 * 12.9898).sin()).collect()
}

/// The report of a learner that has written such a file.
pub fn report(job: &str, candidate: u32, adapter_sha256: &str) -> UpdateReport {
    UpdateReport {
        job: job.into(),
        candidate,
        adapter_sha256: adapter_sha256.into(),
        episodes_used: 1,
        tokens_trained: 1,
        steps: 1,
        ..UpdateReport::default()
    }
}
