//! Learners that are shell scripts: quick ones, and broken ones.

use crate::adapters::{report, write_adapter_of};
use crate::{Home, Model};
use feedback::job::LearnerLine;
use models::file::sha256;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Reads a job and takes two values from it: its id, which a true report repeats, and the
/// path that its adapter is to be written to.
pub const READ_JOB: &str = "\
read -r job || exit 0
id=$(printf '%s' \"$job\" | grep -o '\"id\":\"v[^\"]*\"' | head -n 1 | cut -d '\"' -f 4)
out=$(printf '%s' \"$job\" | grep -o '\"adapter_out\":\"[^\"]*\"' | cut -d '\"' -f 4)
";

/// Keeps running, as a learner does between two jobs.
pub const STAY: &str = "exec sleep 1000\n";

/// Writes the script atomically, so that a running one is not changed.
pub fn install(script: &Path, body: &str) {
    let new = script.with_extension("new");
    std::fs::write(&new, format!("#!/bin/sh\n{body}")).expect("a script");
    std::fs::set_permissions(&new, Permissions::from_mode(0o700)).expect("its mode");
    std::fs::rename(&new, script).expect("a script in place");
}

/// A learner that answers every job at once, with the same sound adapter.
pub struct Quick {
    adapter: PathBuf,
    report: PathBuf,
}

impl Quick {
    pub fn of(home: &Home) -> Quick {
        Quick::noisy(home, 0.0)
    }

    /// Its adapter changes what the model says; more noise changes more.
    pub fn noisy(home: &Home, noise: f32) -> Quick {
        let (adapter, path) = (home.path().join("quick.gguf"), home.path().join("quick.json"));
        let base = sha256(&Model::Smol.file()).expect("a model");
        let sha = write_adapter_of(&adapter, &base, noise);
        let line = LearnerLine::Done(Box::new(report("JOB", 1, &sha)));
        let text = serde_json::to_string(&line).expect("a report");
        std::fs::write(&path, format!("{text}\n")).expect("a report");
        Quick { adapter, report: path }
    }

    /// Script lines that put the adapter in place.
    pub fn put(&self) -> String {
        format!("cp {} \"$out\"\n", self.adapter.display())
    }

    /// Script lines that write the report.
    pub fn tell(&self) -> String {
        format!("sed \"s/JOB/$id/\" {}\n", self.report.display())
    }

    /// A script that does both for each job.
    pub fn learner(&self) -> String {
        format!("while true; do\n{READ_JOB}{}{}done\n", self.put(), self.tell())
    }
}
