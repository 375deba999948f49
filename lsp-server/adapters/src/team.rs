//! What is kept of a team, in the folder `team` of Hone's home: the shared part as it was received
//! last, what rounding left out of the last contribution, and the ledger of contributions.

use anyhow::{Context, Result, ensure};
use feedback::event::OfferId;
use models::file::{is_temporary, remove_file, write_atomic};
use models::team::core::Core;
use models::team::frame::Frame;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The version of `ledger.json`.
const LEDGER_FORMAT: u32 = 1;

/// The number of contributions of which the ledger knows the offers. Of older ones it knows that
/// they were made.
const CONTRIBUTIONS_MAX: usize = 256;

/// The beginning of the name of a message that is handed to the daemon.
const MESSAGE_PREFIX: &str = "message-";

pub struct TeamFiles {
    folder: PathBuf,
}

/// The contributions that left this machine, and the shared part that came in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    pub format: u32,
    /// How many contributions were made with which noise, as a multiple of the largest norm.
    pub mechanisms: Vec<Mechanism>,
    /// The ε that all of them have spent, if each had noise.
    pub epsilon: Option<f64>,
    /// The latest contributions, oldest first.
    pub contributions: Vec<Contributed>,
    /// What became of the last version that was received.
    pub received: Option<Received>,
    /// The address of the team whose shared part is here.
    pub team: Option<String>,
    /// The first version of this team that was kept. What may come later is counted from it.
    #[serde(default)]
    pub joined: Option<Joined>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    pub version: u64,
    pub at_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mechanism {
    pub noise: f64,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contributed {
    pub at_ms: u64,
    /// The version of the shared part that it changes.
    pub version: u64,
    /// The offers that it learned from. They are empty once any of them is forgotten.
    pub offers: Vec<OfferId>,
    /// Something that it learned from was forgotten since.
    pub forgotten: bool,
    /// It was sent to another team than the one that this machine is in now.
    pub elsewhere: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Received {
    pub at_ms: u64,
    pub version: u64,
    /// SHA-256 of its numbers, as hex digits.
    #[serde(default)]
    pub core: String,
    pub outcome: Outcome,
    /// Why it is not served, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of a version of the shared part on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is on trial against what serves.
    Trial,
    /// It serves, because `lab.trial` is off.
    Serves,
    /// The holdout check or a guardrail refused it, and it was not kept.
    Refused,
    /// It was here already.
    Same,
}

impl TeamFiles {
    /// The files of the home whose adapters lie in this folder.
    pub fn next_to(adapters: &Path) -> TeamFiles {
        TeamFiles::at(adapters.with_file_name("team"))
    }

    pub fn at(folder: PathBuf) -> TeamFiles {
        TeamFiles { folder }
    }

    pub fn core_file(&self) -> PathBuf {
        self.folder.join("shared.core")
    }

    fn left_file(&self) -> PathBuf {
        self.folder.join("left.bin")
    }

    fn ledger_file(&self) -> PathBuf {
        self.folder.join("ledger.json")
    }

    /// A file for a message that is handed to the daemon.
    pub fn message_file(&self) -> Result<PathBuf> {
        self.make_folder()?;
        Ok(self.folder.join(format!("{MESSAGE_PREFIX}{}.json", std::process::id())))
    }

    /// Removes the messages, and the files that were not written to their end, of processes that
    /// ended in the middle. A message that is under way fails.
    pub fn remove_unfinished(&self) -> Result<()> {
        let cannot = || format!("{}: cannot be read", self.folder.display());
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.with_context(cannot)?,
        };
        for entry in entries {
            let path = entry.with_context(cannot)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(MESSAGE_PREFIX) || is_temporary(&path) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    fn make_folder(&self) -> Result<()> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("{}: cannot be made", self.folder.display()))
    }

    /// The shared part that was received last; version 0 before the first. A file that cannot be
    /// used, as one for another base model, counts as none: the next round brings the whole.
    pub fn core(&self, frame: &Frame) -> Core {
        let path = self.core_file();
        if !path.exists() {
            return Core::zero(frame);
        }
        Core::read(frame, &path).unwrap_or_else(|error| {
            tracing::warn!("{error:#}; the team's next round brings it again");
            Core::zero(frame)
        })
    }

    /// Makes these the files of the team at this address. What another team has sent goes. That
    /// something was sent to it stays in the ledger, because the privacy that it spent adds up.
    pub fn follow_team(&self, address: &str) -> Result<()> {
        let mut ledger = self.ledger()?;
        if ledger.team.as_deref() == Some(address) {
            return Ok(());
        }
        // Without an address the files are older than it, and are those of this team.
        if ledger.team.is_some() {
            remove(&self.core_file())?;
            remove(&self.left_file())?;
            ledger.contributions.iter_mut().for_each(|made| made.elsewhere = true);
            ledger.received = None;
            ledger.joined = None;
        }
        ledger.team = Some(address.to_owned());
        self.write_ledger(&ledger)
    }

    pub fn write_core(&self, frame: &Frame, core: &Core) -> Result<()> {
        self.make_folder()?;
        core.write(frame, &self.core_file())
    }

    /// Returns what rounding left out of the last contribution. A file that cannot be used counts
    /// as nothing: less than half a step of each number is lost with it.
    pub fn left(&self, frame: &Frame) -> Vec<f32> {
        let bytes = std::fs::read(self.left_file()).unwrap_or_default();
        let values = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let values: Vec<f32> = values.filter(|value| value.is_finite()).collect();
        if values.len() == frame.numbers() { values } else { vec![0.0; frame.numbers()] }
    }

    pub fn write_left(&self, left: &[f32]) -> Result<()> {
        self.make_folder()?;
        let (path, bytes) = (self.left_file(), left.iter().flat_map(|value| value.to_le_bytes()));
        write_atomic(&path, &bytes.collect::<Vec<u8>>())
            .with_context(|| format!("{}: cannot be written", path.display()))
    }

    pub fn ledger(&self) -> Result<Ledger> {
        let path = self.ledger_file();
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Ledger { format: LEDGER_FORMAT, ..Ledger::default() });
            }
            Err(error) => {
                return Err(error).with_context(|| format!("{}: cannot be read", path.display()));
            }
        };
        let ledger: Ledger = serde_json::from_slice(&text).with_context(|| {
            format!("{}: damaged; nothing is contributed until it is put right", path.display())
        })?;
        ensure!(
            ledger.format == LEDGER_FORMAT,
            "{}: it has format {}, this Hone reads {LEDGER_FORMAT}",
            path.display(),
            ledger.format
        );
        Ok(ledger)
    }

    pub fn write_ledger(&self, ledger: &Ledger) -> Result<()> {
        self.make_folder()?;
        let path = self.ledger_file();
        write_atomic(&path, &serde_json::to_vec_pretty(ledger)?)
            .with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// Returns what contributions have learned from these offers, in a sentence for the user;
    /// `None` if none has. `everything` stands for all offers there ever were.
    pub fn note(&self, offers: &HashSet<OfferId>, everything: bool) -> Option<String> {
        let ledger = match self.ledger() {
            Ok(ledger) => ledger,
            Err(error) => {
                return Some(format!(
                    "it is not known whether a contribution to the team's adapter learned from \
                     it ({error:#})"
                ));
            }
        };
        let count =
            ledger.contributions.iter().filter(|made| everything || made.saw(offers)).count();
        let first =
            ledger.contributions.iter().find(|made| everything || made.saw(offers))?.version;
        Some(format!(
            "{} to the team's adapter, the first to version {first}, learned from it. What was \
             sent is part of a sum with that of others, and cannot be taken out of it. What was \
             left to send is dropped, and no further contribution learns from it; the team's \
             administrator can rebuild the adapter without a round (`hone-team drop`)",
            printable::count(count, "contribution")
        ))
    }

    /// Drops what is left to send, and which offers contributions learned from, if they learned
    /// from any of these. A ledger that cannot be read does not prevent forgetting: nothing is
    /// contributed until it is put right.
    pub fn forget(&self, offers: &HashSet<OfferId>, everything: bool) -> Result<()> {
        if !self.ledger_file().exists() {
            return Ok(());
        }
        let Ok(mut ledger) = self.ledger() else { return remove(&self.left_file()) };
        let mut any = false;
        for made in ledger.contributions.iter_mut().filter(|made| everything || made.saw(offers)) {
            (made.offers, made.forgotten, any) = (vec![], true, true);
        }
        if any {
            remove(&self.left_file())?;
            self.write_ledger(&ledger)?;
        }
        Ok(())
    }
}

fn remove(path: &Path) -> Result<()> {
    remove_file(path).with_context(|| format!("{}: cannot be removed", path.display()))
}

impl Ledger {
    /// The offers that contributions to this team have learned from.
    pub fn taken_up(&self) -> HashSet<OfferId> {
        self.to_this_team().flat_map(|made| made.offers.iter().cloned()).collect()
    }

    /// The newest version of this team's shared part that a contribution was made to. There is one
    /// at most for each: two sums for the same version, with and without this member, would differ
    /// by what it contributed.
    pub fn contributed_to(&self) -> Option<u64> {
        self.to_this_team().map(|made| made.version).max()
    }

    fn to_this_team(&self) -> impl Iterator<Item = &Contributed> {
        self.contributions.iter().filter(|made| !made.elsewhere)
    }

    /// Returns how many contributions were ever made.
    pub fn count(&self) -> u64 {
        self.mechanisms.iter().map(|mechanism| mechanism.count).sum()
    }

    pub fn add(&mut self, made: Contributed, noise: f64, epsilon: Option<f64>) {
        match self.mechanisms.iter_mut().find(|mechanism| mechanism.noise == noise) {
            Some(mechanism) => mechanism.count += 1,
            None => self.mechanisms.push(Mechanism { noise, count: 1 }),
        }
        self.epsilon = epsilon;
        self.contributions.push(made);
        let surplus = self.contributions.len().saturating_sub(CONTRIBUTIONS_MAX);
        self.contributions.drain(..surplus);
    }
}

impl Contributed {
    fn saw(&self, offers: &HashSet<OfferId>) -> bool {
        self.offers.iter().any(|offer| offers.contains(offer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> (tempfile::TempDir, TeamFiles) {
        let home = tempfile::tempdir().unwrap();
        let files = TeamFiles::next_to(&home.path().join("adapters"));
        (home, files)
    }

    fn made(version: u64, offers: &[&str]) -> Contributed {
        let offers = offers.iter().map(|offer| (*offer).into()).collect();
        Contributed { at_ms: 5, version, offers, forgotten: false, elsewhere: false }
    }

    #[test]
    fn forgetting_names_the_contributions_and_drops_what_is_left_of_them() {
        let (_home, files) = files();
        let offers = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
        assert_eq!(files.note(&offers(&["o1"]), false), None);
        files.forget(&offers(&["o1"]), true).unwrap();
        let mut ledger = files.ledger().unwrap();
        ledger.add(made(0, &["o1", "o2"]), 0.0, None);
        ledger.add(made(1, &["o3"]), 0.0, None);
        files.write_ledger(&ledger).unwrap();
        files.write_left(&[0.5]).unwrap();

        assert_eq!(files.note(&offers(&["o9"]), false), None);
        files.forget(&offers(&["o9"]), false).unwrap();
        assert!(files.left_file().exists(), "it has nothing to do with what was forgotten");

        let note = files.note(&offers(&["o3"]), false).unwrap();
        assert!(note.starts_with("1 contribution to") && note.contains("version 1"), "{note}");
        files.forget(&offers(&["o3"]), false).unwrap();
        assert!(!files.left_file().exists());
        let ledger = files.ledger().unwrap();
        assert_eq!((ledger.count(), ledger.contributions[1].offers.len()), (2, 0));
        assert!(ledger.contributions[1].forgotten && !ledger.contributions[0].forgotten);
        assert!(files.note(&HashSet::new(), true).unwrap().starts_with("2 contributions to"));
    }

    #[test]
    fn what_the_team_has_taken_up_is_learned_from_once() {
        let mut ledger = Ledger::default();
        ledger.add(made(0, &["o1", "o2"]), 0.0, None);
        ledger.add(made(1, &["o3"]), 0.0, None);
        let offers = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
        assert_eq!(ledger.taken_up(), offers(&["o1", "o2", "o3"]));
        assert_eq!(ledger.contributed_to(), Some(1));
    }

    #[test]
    fn another_team_begins_anew_and_what_was_sent_stays_counted() {
        let (_home, files) = files();
        let mut ledger = files.ledger().unwrap();
        ledger.add(made(4, &["o1"]), 2.0, Some(0.5));
        files.write_ledger(&ledger).unwrap();
        files.follow_team("here:1").unwrap();
        assert_eq!(files.ledger().unwrap().contributed_to(), Some(4), "it was this team's");
        files.write_left(&[0.5]).unwrap();
        std::fs::write(files.core_file(), "of the first team").unwrap();
        files.follow_team("here:1").unwrap();
        assert!(files.core_file().exists() && files.left_file().exists());
        files.follow_team("there:1").unwrap();
        assert!(!files.core_file().exists() && !files.left_file().exists());
        let ledger = files.ledger().unwrap();
        assert_eq!((ledger.contributed_to(), ledger.taken_up().len()), (None, 0));
        assert_eq!((ledger.count(), ledger.epsilon), (1, Some(0.5)));
        let offers = ["o1".into()].into_iter().collect();
        assert!(files.note(&offers, false).is_some(), "it learned from it all the same");
    }

    #[test]
    fn forgetting_continues_without_a_ledger_that_can_be_read() {
        let (_home, files) = files();
        files.write_left(&[0.5]).unwrap();
        std::fs::write(files.ledger_file(), "{").unwrap();
        files.forget(&HashSet::new(), true).unwrap();
        assert!(!files.left_file().exists());
        let note = files.note(&HashSet::new(), true).unwrap();
        assert!(note.contains("not known") && note.contains("ledger.json"), "{note}");
    }

    #[test]
    fn a_damaged_ledger_is_an_error_that_names_it() {
        let (_home, files) = files();
        files.make_folder().unwrap();
        for text in ["", "{", "{\"format\": 9, \"mechanisms\": [], \"contributions\": []}"] {
            std::fs::write(files.ledger_file(), text).unwrap();
            let error = format!("{:#}", files.ledger().unwrap_err());
            assert!(error.contains("ledger.json"), "{error}");
        }
    }

    #[test]
    fn contributions_are_counted_by_their_noise_and_the_list_is_bounded() {
        let mut ledger = Ledger::default();
        for number in 0..CONTRIBUTIONS_MAX as u64 + 10 {
            ledger.add(made(number, &["o"]), if number < 3 { 0.0 } else { 1.5 }, Some(0.25));
        }
        assert_eq!(ledger.mechanisms[0], Mechanism { noise: 0.0, count: 3 });
        assert_eq!(ledger.count(), CONTRIBUTIONS_MAX as u64 + 10);
        assert_eq!(ledger.contributions.len(), CONTRIBUTIONS_MAX);
        assert_eq!(ledger.contributions[0].version, 10);
    }
}
