//! `--keep`: hands what a rehearsal has learned to the user's own Hone, if it is
//! worth it.
//!
//! What is kept is the base behind the gate, or that and an adapter. Over the later
//! half of the stream, each place of which was met before it was learned from, it must
//! do better than the base with every offer shown; and the adapter, which has passed the
//! daemon's door (it expects ordinary code about as well as the base does), must add to
//! what the gate gives without it. All met the same places, which tells more than the
//! daemon's trial could, where each place is answered by one of two.

use crate::limits::COMMITS_MIN;
use crate::report::stats::{self, Comparison, Pair};
use crate::run::arm::Kind;
use crate::run::{ArmOutcome, Outcome};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The arms it takes, in this order.
pub const ARMS: [Kind; 3] = [Kind::Frozen, Kind::Gate, Kind::PpoGate];

/// Completed characters that offers shown less often may cost, as a share.
const MOST_LOST: f64 = 0.05;

/// What is kept, and what it would have given.
pub struct Keepsake {
    /// Where the gate's verdicts are, and the adapter.
    home: PathBuf,
    adapter: Result<Adapter>,
    /// Beside the base with every offer shown.
    gave: Comparison,
}

struct Adapter {
    version: u64,
    /// Beside the gate without it.
    added: Comparison,
}

impl Keepsake {
    /// # Errors
    /// Why nothing of it is worth keeping.
    pub fn of(outcome: &Outcome, seed: u64) -> Result<Keepsake> {
        let [frozen, gated, learned] = outcome.arms.as_slice() else {
            bail!("--keep compares {} arms", ARMS.len());
        };
        let beside = |one: &ArmOutcome, other: &ArmOutcome| {
            let later = outcome.places / 2..usize::MAX;
            stats::compare(
                &[Pair::new([&one.record, &other.record], &outcome.commits, &later)],
                seed,
            )
        };
        let adapter = Adapter::of(learned, beside(gated, learned)).and_then(|adapter| {
            worth(&beside(frozen, learned))?;
            Ok(adapter)
        });
        let kept = if adapter.is_ok() { learned } else { gated };
        let gave = beside(frozen, kept);
        worth(&gave)?;
        let home = kept.home.clone().filter(|home| home.is_dir());
        let home = home.context("its home is gone: delete the --work folder and rehearse anew")?;
        Ok(Keepsake { home, adapter, gave })
    }

    /// Registers and serves the adapter, and has the gate start from its verdicts;
    /// in the home that `hone` itself would use.
    pub fn hand_over(&self, hone: &Path) -> Result<String> {
        let adapter = match &self.adapter {
            Ok(adapter) => format!(
                "adapter v{} serves from now on (`hone adapter rollback` takes it back): {} beside \
                 the gate alone",
                adapter.hand_over(&self.home, hone)?,
                sentence(&adapter.added)
            ),
            Err(why) => format!("no adapter: {why:#}"),
        };
        let gate = ["gate".as_ref(), "--adopt".as_ref(), self.home.as_os_str()];
        let gate = say(hone, None, &gate)?;
        Ok(format!(
            "kept: {}\n{adapter}\nover the later half of these commits it would have given you {}",
            gate.trim(),
            sentence(&self.gave)
        ))
    }
}

impl Adapter {
    /// # Errors
    /// Why the gate does as well without it.
    fn of(learned: &ArmOutcome, added: Comparison) -> Result<Adapter> {
        let version = learned.status.adapter.active.filter(|version| *version > 0);
        let version = version.context("no update came of so few places: try a larger --limit")?;
        ensure!(
            adds(&added),
            "over the later half it gave {} beside the gate alone",
            sentence(&added)
        );
        Ok(Adapter { version, added })
    }

    /// Answers its version there.
    fn hand_over(&self, home: &Path, hone: &Path) -> Result<u64> {
        let theirs = list(hone, Some(home))?;
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
        Ok(version)
    }
}

/// In accept rate and completed characters no worse, and better in one of them. No
/// interval: what a few hundred places teach is less than they can prove. What is learned
/// on from it stands trial, with the base beside it.
fn adds(beside_gate: &Comparison) -> bool {
    let (Some(accepted), Some(completed)) =
        (&beside_gate.accept_rate, &beside_gate.completed_chars)
    else {
        return false;
    };
    let gains = [accepted.relative, completed.relative];
    gains.iter().all(|gain| *gain >= 0.0) && gains.iter().any(|gain| *gain > 0.0)
}

fn worth(gave: &Comparison) -> Result<()> {
    let (Some(accepted), Some(completed)) = (&gave.accept_rate, &gave.completed_chars) else {
        bail!("too little was offered in the later half of the stream to tell");
    };
    let Some(interval) = accepted.interval else {
        bail!(
            "the later half of the stream has fewer than {COMMITS_MIN} commits, too few to tell: try a larger --limit"
        );
    };
    ensure!(
        interval.low > 0.0,
        "over the later half {:+.0} % of what was offered was taken, beside the base; from so few \
         places that may be chance ({:+.0} to {:+.0} %): try a larger --limit",
        100.0 * accepted.relative,
        100.0 * interval.low,
        100.0 * interval.high
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
    fn what_may_be_chance_is_not_kept() {
        let mut outcome = outcome();
        let refused = |outcome: &Outcome| match Keepsake::of(outcome, 1) {
            Ok(_) => panic!("it was kept"),
            Err(error) => format!("{error:#}"),
        };
        outcome.arms.truncate(2);
        assert!(refused(&outcome).contains("3 arms"), "{}", refused(&outcome));
        outcome.arms.push(outcome.arms[1].clone());
        // All arms took the same, over four commits.
        assert!(refused(&outcome).contains("too few to tell"), "{}", refused(&outcome));
    }

    #[test]
    fn an_adapter_must_add_to_what_the_gate_gives() {
        let learned = outcome().arms.remove(1);
        let refused = |learned: &ArmOutcome, added| match Adapter::of(learned, added) {
            Ok(_) => panic!("it was kept"),
            Err(error) => format!("{error:#}"),
        };
        assert_eq!(Adapter::of(&learned, gave(0.02, 0.0)).unwrap().version, 1);
        assert!(Adapter::of(&learned, gave(0.0, 0.1)).is_ok());
        assert!(refused(&learned, gave(0.0, 0.0)).contains("beside the gate alone"));
        assert!(refused(&learned, gave(0.3, -0.01)).contains("-1 % completed characters"));
        assert!(refused(&learned, gave(-0.01, 0.3)).contains("-1 % accept rate"));
        let mut idle = learned;
        idle.status.adapter.active = Some(0);
        assert!(refused(&idle, gave(0.3, 0.3)).contains("no update"));
    }

    /// A change of so much, to a twentieth.
    fn gave(accepted: f64, completed: f64) -> Comparison {
        let change = |relative: f64| {
            let interval = Some(stats::Interval { low: relative - 0.05, high: relative + 0.05 });
            Some(stats::Change { from: 1.0, to: 1.0 + relative, relative, interval })
        };
        Comparison {
            accept_rate: change(accepted),
            shown: change(-0.2),
            completed_chars: change(completed),
            completed_ratio: change(completed),
        }
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
        let with = Adapter { version: 7, added: gave(0.02, 0.03) };
        let kept = Keepsake { home: theirs.clone(), adapter: Ok(with), gave: gave(0.2, 0.0) };
        let told = kept.hand_over(&hone).unwrap();
        assert!(told.contains("adapter v7 serves") && told.contains("9 verdicts"), "{told}");
        assert!(told.contains("+3 % completed characters beside the gate alone"), "{told}");
        let log = std::fs::read_to_string(&said).unwrap();
        let calls: Vec<&str> = log.lines().map(|line| line.split_once(": ").unwrap().1).collect();
        let adopt = format!("gate --adopt {}", theirs.display());
        let expected = [
            "adapter list --json",
            "adapter import v7.gguf",
            "adapter list --json",
            "adapter use 7",
            adopt.as_str(),
        ];
        assert_eq!(calls, expected);
        let homes: Vec<bool> = log.lines().map(|line| line.starts_with("theirs: ")).collect();
        assert_eq!(homes, [true, false, false, false, false], "theirs is only read");

        std::fs::remove_file(&said).unwrap();
        let why = Err(anyhow::anyhow!("it adds nothing"));
        let kept = Keepsake { home: theirs, adapter: why, gave: gave(0.2, 0.0) };
        let told = kept.hand_over(&hone).unwrap();
        assert!(told.contains("9 verdicts\nno adapter: it adds nothing\n"), "{told}");
        assert_eq!(std::fs::read_to_string(&said).unwrap(), format!(": {adopt}\n"));
    }

    #[test]
    fn more_taken_is_worth_it_unless_much_less_is_completed() {
        assert!(worth(&gave(0.2, 0.0)).is_ok());
        assert!(worth(&gave(0.2, -0.04)).is_ok());
        assert!(worth(&gave(0.2, -0.2)).is_err());
        assert!(worth(&gave(0.04, 0.2)).unwrap_err().to_string().contains("may be chance"));
        let mut of_few = gave(0.2, 0.0);
        of_few.accept_rate.as_mut().unwrap().interval = None;
        assert!(worth(&of_few).unwrap_err().to_string().contains("commits"));
        let said = sentence(&gave(0.2, 0.1));
        assert_eq!(said, "+20 % accept rate, -20 % offers, +10 % completed characters");
    }
}
