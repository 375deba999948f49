//! `--keep`: hands what a rehearsal has learned to the user's own Hone, if it is
//! worth it.
//!
//! The bar has two parts. The adapter has passed the daemon's own: the door (it
//! expects ordinary code about as well as the base does) and a trial against the
//! base on the stream. And over the later half of the stream, each place of which
//! was met before it was learned from, the whole did better than the base.

use crate::run::{ArmOutcome, Outcome};
use crate::stats::{self, Comparison, Pair};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Completed characters that offers shown less often may cost, as a share.
const MOST_LOST: f64 = 0.05;

/// What is kept, and what it would have given.
pub struct Keepsake {
    home: PathBuf,
    version: u64,
    gave: Comparison,
}

impl Keepsake {
    /// # Errors
    /// Why it is not worth keeping.
    pub fn of(outcome: &Outcome, seed: u64) -> Result<Keepsake> {
        let [frozen, learned] = outcome.arms.as_slice() else {
            bail!("--keep compares two arms");
        };
        let version = learned.status.adapter.active.filter(|version| *version > 0);
        let version = version.with_context(|| {
            format!(
                "no adapter has won its trial in {} places: try a larger --limit, or an earlier \
                 --since",
                outcome.places
            )
        })?;
        let gave = later_half(frozen, learned, outcome.places, seed);
        worth(&gave)?;
        let home = learned.home.clone().filter(|home| home.is_dir());
        let home = home.context("its home is gone: delete the --work folder and rehearse anew")?;
        Ok(Keepsake { home, version, gave })
    }

    /// Registers and serves the adapter, and has the gate start from its verdicts;
    /// in the home that `hone` itself would use.
    pub fn hand_over(&self, hone: &Path) -> Result<String> {
        let theirs = list(hone, Some(&self.home))?;
        let path = theirs
            .iter()
            .find(|adapter| adapter["version"].as_u64() == Some(self.version))
            .and_then(|adapter| adapter["path"].as_str())
            .with_context(|| format!("the rehearsal's v{} is gone", self.version))?;
        say(hone, None, &["adapter".as_ref(), "import".as_ref(), path.as_ref()])?;
        let ours = list(hone, None)?;
        let version = ours.iter().filter_map(|adapter| adapter["version"].as_u64()).max();
        let version = version.context("the adapter was not imported")?;
        say(hone, None, &["adapter".as_ref(), "use".as_ref(), version.to_string().as_ref()])?;
        let gate = ["gate".as_ref(), "--adopt".as_ref(), self.home.as_os_str()];
        let gate = say(hone, None, &gate)?;
        Ok(format!(
            "kept: adapter v{version} serves from now on (`hone adapter rollback` takes it back); \
             {}\nover the later half of these commits it would have given you {}",
            gate.trim(),
            sentence(&self.gave)
        ))
    }
}

fn later_half(frozen: &ArmOutcome, learned: &ArmOutcome, places: usize, seed: u64) -> Comparison {
    let later = places / 2..usize::MAX;
    stats::compare(&[Pair::new(&frozen.record, &learned.record, &later)], seed)
}

fn worth(gave: &Comparison) -> Result<()> {
    let (Some(accepted), Some(completed)) = (&gave.accept_rate, &gave.completed_chars) else {
        bail!("too little was offered in the later half of the stream to tell");
    };
    ensure!(
        accepted.low > 0.0,
        "over the later half {:+.0} % of what was offered was taken, beside the base; from so few \
         places that may be chance ({:+.0} to {:+.0} %): try a larger --limit",
        100.0 * accepted.relative,
        100.0 * accepted.low,
        100.0 * accepted.high
    );
    ensure!(
        completed.relative >= -MOST_LOST,
        "over the later half it would have completed {:.0} % fewer characters than the base",
        -100.0 * completed.relative
    );
    Ok(())
}

fn sentence(gave: &Comparison) -> String {
    let part = |change: &Option<stats::Change>, what: &str| {
        let change = change.as_ref()?;
        Some(format!("{:+.0} % {what}", 100.0 * change.relative))
    };
    let parts = [
        part(&gave.accept_rate, "accept rate"),
        part(&gave.shown, "offers"),
        part(&gave.completed_chars, "completed characters"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn list(hone: &Path, home: Option<&Path>) -> Result<Vec<serde_json::Value>> {
    let list = say(hone, home, &["adapter", "list", "--json"].map(OsStr::new))?;
    let list: serde_json::Value =
        serde_json::from_str(&list).context("`hone adapter list` printed no JSON")?;
    Ok(list["adapters"].as_array().cloned().unwrap_or_default())
}

/// What `hone` answers.
fn say(hone: &Path, home: Option<&Path>, arguments: &[&OsStr]) -> Result<String> {
    let mut command = Command::new(hone);
    command.args(arguments).stdin(Stdio::null());
    if let Some(home) = home {
        command.env("HONE_HOME", home);
    }
    let output = command.output().with_context(|| format!("{}: cannot be run", hone.display()))?;
    let words = arguments.join(OsStr::new(" "));
    ensure!(
        output.status.success(),
        "`hone {}`: {}",
        words.to_string_lossy(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::outcome;

    #[test]
    fn what_did_not_win_or_may_be_chance_is_not_kept() {
        let mut outcome = outcome();
        let refused = |outcome: &Outcome| match Keepsake::of(outcome, 1) {
            Ok(_) => panic!("it was kept"),
            Err(error) => format!("{error:#}"),
        };
        outcome.arms.truncate(2);
        // Both arms took everything.
        assert!(refused(&outcome).contains("may be chance"), "{}", refused(&outcome));
        outcome.arms[1].status.adapter.active = Some(0);
        assert!(refused(&outcome).contains("no adapter has won"), "{}", refused(&outcome));
    }

    /// A `hone` that notes what it is asked, and in whose home.
    #[cfg(unix)]
    #[test]
    fn adapter_and_gate_are_handed_to_the_users_own_home() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (hone, said) = (folder.path().join("hone"), folder.path().join("said"));
        let theirs = folder.path().join("theirs");
        let script = format!(
            "#!/bin/sh\necho \"${{HONE_HOME##*/}}: $*\" >> {}\ncase \"$*\" in\n\
             'adapter list --json') echo '{{\"adapters\": [{{\"version\": 7, \"path\": \"v7.gguf\"}}]}}' ;;\n\
             gate*) echo 'the gate starts from 9 verdicts' ;;\nesac\n",
            said.display()
        );
        std::fs::write(&hone, script).unwrap();
        std::fs::set_permissions(&hone, PermissionsExt::from_mode(0o755)).unwrap();
        let gave = Comparison {
            accept_rate: None,
            shown: None,
            completed_chars: None,
            completed_ratio: None,
        };
        let kept = Keepsake { home: theirs.clone(), version: 7, gave };
        let told = kept.hand_over(&hone).unwrap();
        assert!(told.contains("adapter v7 serves") && told.contains("9 verdicts"), "{told}");
        let said = std::fs::read_to_string(said).unwrap();
        let calls: Vec<&str> = said.lines().map(|line| line.split_once(": ").unwrap().1).collect();
        let adopt = format!("gate --adopt {}", theirs.display());
        let expected = [
            "adapter list --json",
            "adapter import v7.gguf",
            "adapter list --json",
            "adapter use 7",
            adopt.as_str(),
        ];
        assert_eq!(calls, expected);
        let homes: Vec<bool> = said.lines().map(|line| line.starts_with("theirs: ")).collect();
        assert_eq!(homes, [true, false, false, false, false], "theirs is only read");
    }

    #[test]
    fn more_taken_is_worth_it_unless_much_less_is_completed() {
        let change = |relative: f64| {
            let (low, high) = (relative - 0.05, relative + 0.05);
            Some(stats::Change { from: 1.0, to: 1.0 + relative, relative, low, high })
        };
        let gave = |accepted: f64, completed: f64| Comparison {
            accept_rate: change(accepted),
            shown: change(-0.2),
            completed_chars: change(completed),
            completed_ratio: change(completed),
        };
        assert!(worth(&gave(0.2, 0.0)).is_ok());
        assert!(worth(&gave(0.2, -0.04)).is_ok());
        assert!(worth(&gave(0.2, -0.2)).is_err());
        assert!(worth(&gave(0.04, 0.2)).is_err());
        let said = sentence(&gave(0.2, 0.1));
        assert_eq!(said, "+20 % accept rate, -20 % offers, +10 % completed characters");
    }
}
