//! Learners that are shell scripts: quick ones, and broken ones.

use crate::adapters::{report, write_adapter_of};
use crate::{Home, Model};
use feedback::job::LearnerLine;
use models::file::sha256;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Reads a job and finds its id, which an honest report carries, and where its
/// adapter belongs.
pub const READ_JOB: &str = "\
read -r job || exit 0
id=$(printf '%s' \"$job\" | grep -o '\"id\":\"v[^\"]*\"' | head -n 1 | cut -d '\"' -f 4)
out=$(printf '%s' \"$job\" | grep -o '\"adapter_out\":\"[^\"]*\"' | cut -d '\"' -f 4)
";

/// Stays, as a learner does between two jobs.
pub const STAY: &str = "exec sleep 1000\n";

/// Writes the script atomically: one that is running goes on as it was.
pub fn install(script: &Path, body: &str) {
    let new = script.with_extension("new");
    std::fs::write(&new, format!("#!/bin/sh\n{body}")).expect("a script");
    std::fs::set_permissions(&new, Permissions::from_mode(0o700)).expect("its mode");
    std::fs::rename(&new, script).expect("a script in place");
}

/// What a learner does at once for every job: a sound adapter that changes nothing.
pub struct Quick {
    adapter: PathBuf,
    report: PathBuf,
}

impl Quick {
    pub fn of(home: &Home) -> Quick {
        Quick::noisy(home, 0.0)
    }

    /// One whose adapter changes what the model says, the more the noisier.
    pub fn noisy(home: &Home, noise: f32) -> Quick {
        let (adapter, path) = (home.path().join("quick.gguf"), home.path().join("quick.json"));
        let base = sha256(&Model::Smol.file()).expect("a model");
        let sha = write_adapter_of(&adapter, &base, noise);
        let line = LearnerLine::Done(Box::new(report("JOB", 1, &sha)));
        let text = serde_json::to_string(&line).expect("a report");
        std::fs::write(&path, format!("{text}\n")).expect("a report");
        Quick { adapter, report: path }
    }

    /// The script's lines that put the adapter in place.
    pub fn put(&self) -> String {
        format!("cp {} \"$out\"\n", self.adapter.display())
    }

    /// The script's lines that say so.
    pub fn tell(&self) -> String {
        format!("sed \"s/JOB/$id/\" {}\n", self.report.display())
    }

    /// A learner that does both, job after job.
    pub fn learner(&self) -> String {
        format!("while true; do\n{READ_JOB}{}{}done\n", self.put(), self.tell())
    }
}
