//! `--adopt`: hands over what a rehearsal has learned to the user's own Hone, if it is worth it.
//!
//! What is adopted is the base model behind the gate, with or without an adapter. It is judged
//! over the later half of the stream, where Hone met each place before it learned from it. There
//! it must do better than the base model with every offer shown. An adapter must also improve on
//! what the gate gives without it; it has passed the daemon's holdout check, which asks whether
//! it still expects ordinary code about as well as the base model does.
//!
//! All arms met the same places. That says more than the daemon's trial can, where each place is
//! answered by only one of two adapters.

use crate::limits::COMMITS_MIN;
use crate::report::stats::{self, ArmPair, Comparison, RelativeChange};
use crate::run::arm::ArmKind;
use crate::run::{ArmResult, RunResult};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The arms that `--adopt` runs, in this order.
pub const ARMS: [ArmKind; 3] = [ArmKind::Frozen, ArmKind::Gate, ArmKind::PpoGate];

/// Share of the completed characters that showing fewer offers may cost.
const COMPLETED_LOSS_MAX: f64 = 0.05;

/// What serves in the user's own Hone when the rehearsal begins. Only that gives way to what is
/// adopted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    active: u64,
    /// It changes when the user forgets something.
    pub generation: u64,
}

impl Basis {
    /// Asks the user's own Hone.
    pub fn now(hone: &Path) -> Result<Basis> {
        let list = list(hone, None)?;
        let number = |key: &str| list[key].as_u64().with_context(|| format!("no {key} is listed"));
        Ok(Basis { active: number("active")?, generation: number("generation")? })
    }
}

/// What is adopted, and what it would have given.
pub struct Adoption {
    /// The home with the gate's verdicts and the adapter.
    home: PathBuf,
    /// The adapter, or why none is adopted.
    adapter: Result<AdoptedAdapter>,
    /// Compared with the base model and every offer shown.
    gain: Comparison,
}

struct AdoptedAdapter {
    version: u64,
    /// Compared with the gate without the adapter.
    gain: Comparison,
}

impl Adoption {
    /// # Errors
    /// Says why nothing is worth adopting.
    pub fn of(result: &RunResult, seed: u64) -> Result<Adoption> {
        let [frozen, gated, learned] = result.arms.as_slice() else {
            bail!("--adopt compares {} arms", ARMS.len());
        };
        let compare = |from: &ArmResult, to: &ArmResult| {
            let later_half = result.places / 2..usize::MAX;
            let records = [&from.record, &to.record];
            stats::compare(&[ArmPair::new(records, &result.commits, &later_half)], seed)
        };
        let adapter = AdoptedAdapter::of(learned, compare(gated, learned)).and_then(|adapter| {
            check_gain(&compare(frozen, learned))?;
            Ok(adapter)
        });
        let adopted = if adapter.is_ok() { learned } else { gated };
        let gain = compare(frozen, adopted);
        check_gain(&gain)?;
        let home = adopted.home.clone().filter(|home| home.is_dir());
        let home = home.context("its home is gone: delete the --work folder and rehearse anew")?;
        Ok(Adoption { home, adapter, gain })
    }

    /// Registers the adapter, which learned from the repository in the folder `history`, and makes
    /// it serve, and makes the gate start from the verdicts of the
    /// rehearsal. Both happen in the home that `hone` itself uses.
    ///
    /// # Errors
    /// Something was forgotten since the rehearsal began, or another adapter serves.
    pub fn hand_over(&self, hone: &Path, basis: &Basis, history: &Path) -> Result<String> {
        ensure!(
            Basis::now(hone)?.generation == basis.generation,
            "something was forgotten since the rehearsal began, and it may have learned from it; \
             rehearse again"
        );
        let adapter = match &self.adapter {
            Ok(adapter) => format!(
                "adapter v{} serves from now on (`hone adapter rollback` takes it back): {} \
                 compared with the gate alone",
                adapter.hand_over(&self.home, hone, basis, history)?,
                changes_text(&adapter.gain)
            ),
            Err(why) => format!("no adapter: {why:#}"),
        };
        let gate = ["gate".as_ref(), "--adopt".as_ref(), self.home.as_os_str()];
        let gate = run_hone(hone, None, &gate)?;
        Ok(format!(
            "adopted: {}\n{adapter}\n\
             over the later half of these commits it would have given you {}",
            gate.trim(),
            changes_text(&self.gain)
        ))
    }
}

impl AdoptedAdapter {
    /// # Errors
    /// Says why the gate does as well without the adapter.
    fn of(learned: &ArmResult, gain: Comparison) -> Result<AdoptedAdapter> {
        let version = learned.status.adapter.active.filter(|version| *version > 0);
        let version = version.context("so few places led to no update: try a larger --limit")?;
        ensure!(
            improves_on_gate(&gain),
            "over the later half it gave {} compared with the gate alone",
            changes_text(&gain)
        );
        Ok(AdoptedAdapter { version, gain })
    }

    /// Returns the adapter's version in the user's own home.
    fn hand_over(&self, home: &Path, hone: &Path, basis: &Basis, history: &Path) -> Result<u64> {
        let theirs = list(hone, Some(home))?;
        let theirs = theirs["adapters"].as_array();
        let path = theirs
            .into_iter()
            .flatten()
            .find(|adapter| adapter["version"].as_u64() == Some(self.version))
            .and_then(|adapter| adapter["path"].as_str())
            .with_context(|| format!("the rehearsal's v{} is gone", self.version))?;
        let (active, generation) = (basis.active.to_string(), basis.generation.to_string());
        let basis = ["--compared-with", &active, "--generation", &generation].map(OsStr::new);
        let history = ["--history".as_ref(), history.as_os_str()];
        let arguments =
            [&["adapter", "adopt", path].map(OsStr::new)[..], &basis, &history].concat();
        let adopted = run_hone(hone, None, &arguments)?;
        let adopted: serde_json::Value =
            serde_json::from_str(&adopted).context("`hone adapter adopt` printed no JSON")?;
        adopted["version"].as_u64().context("the adapter was not registered")
    }
}

/// Returns true if accept rate and completed characters are both no worse, and one of them is
/// better. This asks for no interval, because a few hundred places teach less than they can prove.
/// The next update that continues from this adapter stands trial against the base model.
fn improves_on_gate(gain: &Comparison) -> bool {
    let (Some(accepted), Some(completed)) = (&gain.accept_rate, &gain.completed_chars) else {
        return false;
    };
    let changes = [accepted.relative, completed.relative];
    changes.iter().all(|change| *change >= 0.0) && changes.iter().any(|change| *change > 0.0)
}

fn check_gain(gain: &Comparison) -> Result<()> {
    let (Some(accepted), Some(completed)) = (&gain.accept_rate, &gain.completed_chars) else {
        bail!("too little was offered in the later half of the stream to tell");
    };
    let Some(interval) = accepted.interval else {
        bail!(
            "the later half of the stream has fewer than {COMMITS_MIN} commits, too few to tell: \
             try a larger --limit"
        );
    };
    ensure!(
        interval.low > 0.0,
        "over the later half the accept rate is {:+.0} % compared with the base model; with so few \
         places that may be chance ({:+.0} to {:+.0} %): try a larger --limit",
        100.0 * accepted.relative,
        100.0 * interval.low,
        100.0 * interval.high
    );
    ensure!(
        completed.relative >= -COMPLETED_LOSS_MAX,
        "over the later half it would have completed {:.0} % fewer characters than the base model",
        -100.0 * completed.relative
    );
    Ok(())
}

fn changes_text(gain: &Comparison) -> String {
    let part = |change: &Option<RelativeChange>, what: &str| {
        let change = change.as_ref()?;
        Some(format!("{:+.0} % {what}", 100.0 * change.relative))
    };
    let parts = [
        part(&gain.accept_rate, "accept rate"),
        part(&gain.shown, "offers"),
        part(&gain.completed_chars, "completed characters"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Lists the adapters in a home; `None` is the user's own home.
fn list(hone: &Path, home: Option<&Path>) -> Result<serde_json::Value> {
    let list = run_hone(hone, home, &["adapter", "list", "--json"].map(OsStr::new))?;
    serde_json::from_str(&list).context("`hone adapter list` printed no JSON")
}

/// Returns what `hone` prints in a home; `None` is the user's own home.
fn run_hone(hone: &Path, home: Option<&Path>, arguments: &[&OsStr]) -> Result<String> {
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
    use crate::report::tests::run_result;

    #[test]
    fn a_difference_that_may_be_chance_is_not_adopted() {
        let mut result = run_result();
        let refused = |result: &RunResult| match Adoption::of(result, 1) {
            Ok(_) => panic!("it was adopted"),
            Err(error) => format!("{error:#}"),
        };
        result.arms.truncate(2);
        assert!(refused(&result).contains("3 arms"), "{}", refused(&result));
        result.arms.push(result.arms[1].clone());
        // All arms accepted the same offers, over four commits.
        assert!(refused(&result).contains("too few to tell"), "{}", refused(&result));
    }

    #[test]
    fn an_adapter_must_add_to_what_the_gate_gives() {
        let learned = run_result().arms.remove(1);
        let refused = |learned: &ArmResult, gain| match AdoptedAdapter::of(learned, gain) {
            Ok(_) => panic!("it was adopted"),
            Err(error) => format!("{error:#}"),
        };
        assert_eq!(AdoptedAdapter::of(&learned, gained(0.02, 0.0)).unwrap().version, 1);
        assert!(AdoptedAdapter::of(&learned, gained(0.0, 0.1)).is_ok());
        assert!(refused(&learned, gained(0.0, 0.0)).contains("compared with the gate alone"));
        assert!(refused(&learned, gained(0.3, -0.01)).contains("-1 % completed characters"));
        assert!(refused(&learned, gained(-0.01, 0.3)).contains("-1 % accept rate"));
        let mut idle = learned;
        idle.status.adapter.active = Some(0);
        assert!(refused(&idle, gained(0.3, 0.3)).contains("led to no update"));
    }

    /// Changes of this size, with intervals of 0.05 to both sides.
    fn gained(accepted: f64, completed: f64) -> Comparison {
        let change = |relative: f64| {
            let interval = Some(stats::Interval { low: relative - 0.05, high: relative + 0.05 });
            Some(RelativeChange { from: 1.0, to: 1.0 + relative, relative, interval })
        };
        Comparison {
            accept_rate: change(accepted),
            shown: change(-0.2),
            completed_chars: change(completed),
            completed_ratio: change(completed),
        }
    }

    /// The `hone` of this test is a script that notes what it is asked, and in which home.
    #[cfg(unix)]
    #[test]
    fn adapter_and_gate_are_handed_to_the_users_own_home() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (hone, said) = (folder.path().join("hone"), folder.path().join("said"));
        let theirs = folder.path().join("theirs");
        let script = format!(
            "#!/bin/sh\necho \"${{HONE_HOME##*/}}: $*\" >> {}\ncase \"$*\" in\n\
             'adapter list --json') echo '{}' ;;\n\
             'adapter adopt'*) echo '{}' ;;\n\
             gate*) echo 'the gate starts from 9 verdicts' ;;\nesac\n",
            said.display(),
            r#"{"active": 2, "generation": 5,
                "adapters": [{"version": 7, "path": "v7.gguf"}, {"version": 9}]}"#,
            r#"{"version": 8}"#
        );
        std::fs::write(&hone, script).unwrap();
        std::fs::set_permissions(&hone, PermissionsExt::from_mode(0o755)).unwrap();
        let with = AdoptedAdapter { version: 7, gain: gained(0.02, 0.03) };
        let adoption = Adoption { home: theirs.clone(), adapter: Ok(with), gain: gained(0.2, 0.0) };
        let basis = Basis { active: 2, generation: 5 };
        assert_eq!(Basis::now(&hone).unwrap(), basis);
        std::fs::remove_file(&said).unwrap();
        let told = adoption.hand_over(&hone, &basis, Path::new("/p/repo")).unwrap();
        assert!(told.contains("adapter v8 serves") && told.contains("9 verdicts"), "{told}");
        assert!(told.contains("+3 % completed characters compared with the gate alone"), "{told}");
        let log = std::fs::read_to_string(&said).unwrap();
        let calls: Vec<&str> = log.lines().map(|line| line.split_once(": ").unwrap().1).collect();
        let adopt = format!("gate --adopt {}", theirs.display());
        let expected = [
            "adapter list --json",
            "adapter list --json",
            "adapter adopt v7.gguf --compared-with 2 --generation 5 --history /p/repo",
            adopt.as_str(),
        ];
        assert_eq!(calls, expected);
        let homes: Vec<bool> = log.lines().map(|line| line.starts_with("theirs: ")).collect();
        assert_eq!(homes, [false, true, false, false], "theirs is only read");

        std::fs::remove_file(&said).unwrap();
        let why = Err(anyhow::anyhow!("it adds nothing"));
        let adoption = Adoption { home: theirs, adapter: why, gain: gained(0.2, 0.0) };
        let told = adoption.hand_over(&hone, &basis, Path::new("/p/repo")).unwrap();
        assert!(told.contains("9 verdicts\nno adapter: it adds nothing\n"), "{told}");
        let asked = format!(": adapter list --json\n: {adopt}\n");
        assert_eq!(std::fs::read_to_string(&said).unwrap(), asked);
        let older = Basis { active: 2, generation: 4 };
        let refused =
            adoption.hand_over(&hone, &older, Path::new("/p/repo")).unwrap_err().to_string();
        assert!(refused.contains("something was forgotten"), "{refused}");
    }

    #[test]
    fn more_accepted_is_worth_it_unless_much_less_is_completed() {
        assert!(check_gain(&gained(0.2, 0.0)).is_ok());
        assert!(check_gain(&gained(0.2, -0.04)).is_ok());
        assert!(check_gain(&gained(0.2, -0.2)).is_err());
        assert!(check_gain(&gained(0.04, 0.2)).unwrap_err().to_string().contains("may be chance"));
        let mut of_few = gained(0.2, 0.0);
        of_few.accept_rate.as_mut().unwrap().interval = None;
        assert!(check_gain(&of_few).unwrap_err().to_string().contains("commits"));
        let said = changes_text(&gained(0.2, 0.1));
        assert_eq!(said, "+20 % accept rate, -20 % offers, +10 % completed characters");
    }
}
