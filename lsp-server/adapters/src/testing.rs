//! Values for tests, also of other crates. They belong to no feature, for the reason that
//! `feedback/src/testing.rs` gives.

use crate::registry::Entry;
use feedback::event::AdapterVersion;
use feedback::job::UpdateReport;
use models::adapter::{LoraAdapter, LoraPair};

/// An adapter for this base model that changes nothing.
pub fn adapter(base_sha256: &str) -> LoraAdapter {
    let pair = LoraPair {
        name: "blk.0.attn_q.weight".into(),
        rows_out: 2,
        rows_in: 2,
        a: vec![0.5; 2],
        b: vec![0.0; 2],
    };
    LoraAdapter {
        architecture: "llama".into(),
        base_sha256: base_sha256.into(),
        rank: 1,
        shared_rank: 0,
        alpha: 1.0,
        invocation: vec![],
        pairs: vec![pair],
    }
}

/// The registry's entry of an adapter that was trained from the base and learned from no offer
/// that it names.
pub fn entry(version: AdapterVersion, sha256: String) -> Entry {
    Entry {
        version,
        parent: 0,
        sha256,
        base_sha256: "base".into(),
        created_at_ms: 0,
        labels: (0, 0),
        offers: vec![],
        history: None,
        forgotten: false,
        verdict: None,
        report: UpdateReport::default(),
    }
}
