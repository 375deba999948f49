//! The adapter registry: which adapters exist, where each came from, which one
//! serves. It alone names adapter files; anything else on disk is not loaded.
//!
//! `adapters/registry.json` is replaced whole (temp file, fsync, rename);
//! adapter files are immutable once registered.

use anyhow::{Context, Result, anyhow, bail, ensure};
use feedback::event::{AdapterVersion, OfferId};
use feedback::job::{Parent, UpdateReport};
use models::file::{publish_new, sha256, sha256_of, sync_folder_of, write_atomic};
use policy::trial::{Arms, End, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Version of `registry.json`. Format 1 knew no trials, format 2 no checksum.
const REGISTRY_FORMAT: u32 = 3;

/// The first that has a checksum.
const CHECKED_FORMAT: u64 = 3;

const REGISTRY_FILE: &str = "registry.json";

/// The same again, for when the first is damaged.
const REGISTRY_COPY: &str = "registry.copy.json";

/// Adapter files kept: enough to roll back to; older ones are removed, their
/// entries stay as history. One is tens of megabytes.
const KEPT_FILES: usize = 8;

/// How the names of files begin that have no number yet: those of a job and of an import
/// that have not ended.
const JOB_PREFIX: &str = "job-";
pub const IMPORT_PREFIX: &str = "import-";

/// In place of the job of an adapter that was trained elsewhere.
pub const IMPORTED: &str = "import";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    format: u32,
    /// SHA-256 of the file, this field's text left empty.
    #[serde(default)]
    checksum: String,
    /// 0: the base.
    active: AdapterVersion,
    /// What the next update learns on from, where that is not the active one.
    #[serde(default)]
    head: Option<AdapterVersion>,
    /// The trial under way.
    #[serde(default)]
    trial: Option<Arms>,
    adapters: Vec<Entry>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    pub version: AdapterVersion,
    /// 0: the base.
    pub parent: AdapterVersion,
    pub sha256: String,
    pub base_sha256: String,
    pub created_at_ms: u64,
    /// Log positions of the first and last label it learned from.
    pub labels: (u64, u64),
    /// The offers these labels were given to. An entry of a Hone that did not
    /// say counts as having learned from any.
    #[serde(default)]
    pub offers: Option<Vec<OfferId>>,
    /// It, or what it grew from, learned from something forgotten since: its
    /// file is gone.
    #[serde(default)]
    pub forgotten: bool,
    /// How its trial ended, once it did.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    pub report: UpdateReport,
}

/// An adapter that is to be registered. Its files are whole and have names of their own;
/// they get those of its number when it is registered.
#[derive(Debug)]
pub struct Candidate {
    pub entry: Entry,
    pub adapter: PathBuf,
    pub optimizer: Option<PathBuf>,
}

#[derive(Clone)]
pub struct Registry {
    folder: PathBuf,
    index: Index,
    /// Why `registry.json` must not be replaced: it cannot be read, and what it
    /// names is not lost yet.
    read_only_reason: Option<String>,
    /// It was read from the copy, which may be older than an adapter.
    is_from_copy: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("{}: format {found}, this Hone knows up to {REGISTRY_FORMAT}; update Hone", path.display())]
struct NewerFormat {
    path: PathBuf,
    found: u64,
}

impl Index {
    /// From now on this version serves, and is learned on from; a trial that
    /// was under way is over.
    fn serve(&mut self, version: AdapterVersion) {
        (self.active, self.head, self.trial) = (version, None, None);
    }

    fn empty() -> Index {
        Index {
            format: REGISTRY_FORMAT,
            checksum: String::new(),
            active: 0,
            head: None,
            trial: None,
            adapters: vec![],
        }
    }

    /// What the folder's registry says, and what was wrong with it.
    fn of(folder: &Path) -> (Result<Index>, Option<String>) {
        let (path, copy) = (folder.join(REGISTRY_FILE), folder.join(REGISTRY_COPY));
        // Hone never writes the copy alone: without it the other has been lost.
        let first = if copy.exists() && !path.exists() {
            Err(anyhow!("{}: missing; move the folder away to learn anew", path.display()))
        } else {
            Index::read(&path)
        };
        match first {
            Err(error) if copy.exists() && !error.is::<NewerFormat>() => match Index::read(&copy) {
                Ok(index) => {
                    let trouble = format!("{error:#}; its copy {} is used", copy.display());
                    (Ok(index), Some(trouble))
                }
                Err(_) => (Err(error), None),
            },
            read => (read, None),
        }
    }

    fn read(path: &Path) -> Result<Index> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Index::empty());
            }
            read => read.with_context(|| path.display().to_string())?,
        };
        let damaged = || format!("{}: damaged; move the folder away to learn anew", path.display());
        let value: serde_json::Value = serde_json::from_str(&text).with_context(damaged)?;
        let format = value["format"].as_u64();
        if let Some(newer) = format.filter(|&found| found > u64::from(REGISTRY_FORMAT)) {
            return Err(NewerFormat { path: path.to_owned(), found: newer }.into());
        }
        let index: Index = serde_json::from_value(value).with_context(damaged)?;
        let is_checked = format >= Some(CHECKED_FORMAT) || !index.checksum.is_empty();
        if is_checked && checksum(&text, &index.checksum) != index.checksum {
            return Err(anyhow!("wrong checksum")).with_context(damaged);
        }
        Ok(Index { format: REGISTRY_FORMAT, ..index })
    }

    /// As it is written.
    fn text(&mut self) -> Result<String> {
        self.checksum.clear();
        let text = serde_json::to_string_pretty(self)?;
        self.checksum = sha256_of(text.as_bytes());
        // No field before it holds text.
        Ok(text.replacen(&checksum_field(""), &checksum_field(&self.checksum), 1))
    }
}

fn checksum_field(checksum: &str) -> String {
    format!("\"checksum\": \"{checksum}\"")
}

/// What the checksum of a registry's text should be; `found` is the one it has.
fn checksum(text: &str, found: &str) -> String {
    sha256_of(text.replacen(&checksum_field(found), &checksum_field(""), 1).as_bytes())
}

impl Registry {
    /// Opens the registry for one base model. Completions must go on whatever
    /// its state: where the active adapter cannot be used, its nearest usable
    /// ancestor serves, and where `registry.json` cannot be read, the base does
    /// and nothing is learned. The second value says why.
    pub fn open(folder: &Path, base_sha256: &str) -> (Registry, Option<String>) {
        let (index, damage) = Index::of(folder);
        let (index, read_only_reason) = match index {
            Ok(index) => (index, None),
            Err(error) => (Index::empty(), Some(format!("{error:#}"))),
        };
        let is_from_copy = damage.is_some();
        let mut registry =
            Registry { folder: folder.to_owned(), index, read_only_reason, is_from_copy };
        let trouble = registry.settle(base_sha256).or(damage).or(registry.read_only_reason.clone());
        (registry, trouble)
    }

    /// Why no update can be registered, if so.
    pub fn read_only_reason(&self) -> Option<&str> {
        self.read_only_reason.as_deref()
    }

    /// The same, in a sentence for the user.
    pub fn learning_refusal(&self) -> Option<String> {
        let reason = self.read_only_reason.as_ref()?;
        Some(format!("nothing is learned, because an update could not be registered: {reason}"))
    }

    /// # Errors
    /// The registry is read-only; why.
    pub fn check_writable(&self) -> Result<()> {
        match &self.read_only_reason {
            Some(reason) => bail!("{reason}"),
            None => Ok(()),
        }
    }

    /// Serves the parent instead, because the engine refuses the active adapter.
    pub fn fall_back(&mut self) {
        let parent = self.entry(self.index.active).map_or(0, |entry| entry.parent);
        self.index.serve(parent);
    }

    /// Gives the candidate up, because the engine refuses it.
    pub fn fall_back_from_trial(&mut self) {
        (self.index.head, self.index.trial) = (None, None);
    }

    fn settle(&mut self, base_sha256: &str) -> Option<String> {
        let mut trouble = None;
        if let Some(head) = self.index.head
            && let Some(entry) = self.entry(head)
            && let Err(error) = self.usable(entry, base_sha256)
        {
            trouble = Some(format!("{error:#}; its trial is over"));
            (self.index.head, self.index.trial) = (None, None);
        }
        while let Some(entry) = self.entry(self.index.active) {
            match self.usable(entry, base_sha256) {
                Ok(()) => break,
                Err(error) => {
                    let parent = entry.parent;
                    trouble = Some(format!("{error:#}; serving v{parent} instead"));
                    self.index.serve(parent);
                }
            }
        }
        trouble
    }

    fn usable(&self, entry: &Entry, base_sha256: &str) -> Result<()> {
        let path = self.adapter_file(entry.version);
        ensure!(
            !entry.forgotten,
            "{}: adapter v{} learned from what was forgotten since, and went with it",
            path.display(),
            entry.version
        );
        ensure!(
            entry.base_sha256 == base_sha256,
            "{}: adapter v{} was trained on another base model",
            path.display(),
            entry.version
        );
        let found = sha256(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
        ensure!(found == entry.sha256, "{}: damaged (wrong checksum)", path.display());
        Ok(())
    }

    pub fn active(&self) -> AdapterVersion {
        self.index.active
    }

    /// The trial under way.
    pub fn trial(&self) -> Option<Arms> {
        self.index.trial
    }

    /// What the next update learns on from; 0 is the base.
    pub fn head(&self) -> AdapterVersion {
        self.index.head.unwrap_or(self.index.active)
    }

    pub fn entry(&self, version: AdapterVersion) -> Option<&Entry> {
        self.index.adapters.iter().find(|entry| entry.version == version)
    }

    pub fn entries(&self) -> &[Entry] {
        &self.index.adapters
    }

    /// Number of the next candidate; never used twice. A number is also used if a file has
    /// it that the registry does not name: where the registry was lost, or its copy is a
    /// little older, that file may be all that is left of an adapter.
    pub fn next_version(&self) -> AdapterVersion {
        let is_there = |path: PathBuf| path.symlink_metadata().is_ok();
        let mut version = self.index.adapters.last().map_or(1, |entry| entry.version + 1);
        while is_there(self.adapter_file(version)) || is_there(self.optimizer_file(version)) {
            version += 1;
        }
        version
    }

    /// Log position of the last label that an adapter of this base learned from.
    /// What a forgotten one had learned from other files may be learned again.
    pub fn learned_through(&self, base_sha256: &str) -> Option<u64> {
        let of_base = |entry: &&Entry| entry.base_sha256 == base_sha256 && !entry.forgotten;
        let of_base = self.index.adapters.iter().filter(of_base);
        of_base.map(|entry| entry.labels.1).max()
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn adapter_file(&self, version: AdapterVersion) -> PathBuf {
        self.folder.join(format!("v{version:04}.gguf"))
    }

    pub fn optimizer_file(&self, version: AdapterVersion) -> PathBuf {
        self.folder.join(format!("v{version:04}.optimizer"))
    }

    /// Files that a job's learner writes: the adapter, and the optimizer's state. They have
    /// no number before the registry gives them one.
    pub fn job_files(&self, job: &str) -> (PathBuf, PathBuf) {
        let file = |ending| self.folder.join(format!("{JOB_PREFIX}{job}.{ending}"));
        (file("gguf"), file("optimizer"))
    }

    /// What an update starts from, as a job names it.
    pub fn parent(&self) -> Option<Parent> {
        let entry = self.entry(self.head())?;
        let optimizer = Some(self.optimizer_file(entry.version)).filter(|path| path.exists());
        Some(Parent {
            version: entry.version,
            path: self.adapter_file(entry.version),
            sha256: entry.sha256.clone(),
            optimizer,
        })
    }

    /// Registers a candidate, and makes it the one that serves.
    pub fn promote(&mut self, candidate: &Candidate) -> Result<()> {
        self.register(candidate, |index| index.serve(candidate.entry.version))?;
        self.prune();
        Ok(())
    }

    /// Registers a candidate, and has it take part in the trial under way, or in one that
    /// begins at log position `now`.
    pub fn start_trial(&mut self, candidate: &Candidate, now: u64) -> Result<Arms> {
        let version = candidate.entry.version;
        let since = self.index.trial.map_or(now, |trial| trial.since);
        let arms = Arms { candidate: version, incumbent: self.index.active, since };
        self.register(candidate, |index| (index.head, index.trial) = (Some(version), Some(arms)))?;
        self.prune();
        Ok(arms)
    }

    /// Registers a candidate that is not tried at all; learning does not go on
    /// from it.
    pub fn refuse(&mut self, candidate: &Candidate) -> Result<()> {
        self.register(candidate, |_| {})?;
        self.prune();
        Ok(())
    }

    /// Ends the trial under way.
    pub fn conclude(&mut self, verdict: Verdict) -> Result<()> {
        self.check_writable()?;
        let mut index = self.index.clone();
        let Some(arms) = index.trial.take() else { return Ok(()) };
        match verdict.end {
            End::Promoted => index.serve(arms.candidate),
            End::Dropped => index.head = None,
            End::Undecided => {}
        }
        for entry in index.adapters.iter_mut().filter(|entry| entry.version == arms.candidate) {
            entry.verdict = Some(verdict.clone());
        }
        self.replace(index)?;
        self.prune();
        Ok(())
    }

    /// Registers an adapter that was trained elsewhere, without serving it, and answers its
    /// number. The caller holds whoever else might take that.
    pub fn import(
        &mut self,
        file: &Path,
        sha256: String,
        base_sha256: &str,
        now_ms: u64,
    ) -> Result<AdapterVersion> {
        let version = self.next_version();
        let entry = Entry {
            version,
            parent: 0,
            sha256,
            base_sha256: base_sha256.to_owned(),
            created_at_ms: now_ms,
            labels: (0, 0),
            // It knows nothing of what is recorded here.
            offers: Some(vec![]),
            forgotten: false,
            verdict: None,
            report: UpdateReport { job: IMPORTED.into(), ..UpdateReport::default() },
        };
        let candidate = Candidate { entry, adapter: file.to_owned(), optimizer: None };
        self.register(&candidate, |_| {})?;
        Ok(version)
    }

    /// Names a candidate's files after its number, which replaces no file, and then writes
    /// the registry with its entry and this change. Where either fails, neither is done.
    fn register(&mut self, candidate: &Candidate, change: impl FnOnce(&mut Index)) -> Result<()> {
        self.check_writable()?;
        let version = candidate.entry.version;
        ensure!(self.entry(version).is_none(), "adapter v{version} is registered already");
        let mut index = self.index.clone();
        index.adapters.push(candidate.entry.clone());
        change(&mut index);
        let named = self.name_files(candidate)?;
        self.replace(index).inspect_err(|_| remove(&named))?;
        // They have a second name now.
        remove(candidate.optimizer.iter().chain([&candidate.adapter]));
        Ok(())
    }

    /// The new names of a candidate's files.
    fn name_files(&self, candidate: &Candidate) -> Result<Vec<PathBuf>> {
        let version = candidate.entry.version;
        let optimizer =
            candidate.optimizer.as_ref().map(|file| (file, self.optimizer_file(version)));
        let adapter = (&candidate.adapter, self.adapter_file(version));
        let mut named = vec![];
        for (from, to) in optimizer.into_iter().chain([adapter]) {
            if let Err(error) = publish_new(from, &to) {
                remove(&named);
                return Err(error).with_context(|| to.display().to_string());
            }
            named.push(to);
        }
        Ok(named)
    }

    /// Makes a registered version the one that serves; 0 is the base.
    pub fn activate(&mut self, version: AdapterVersion) -> Result<()> {
        self.check_writable()?;
        let mut index = self.index.clone();
        index.serve(version);
        self.replace(index)
    }

    /// Versions that learned from any of these offers, themselves or through
    /// what they grew from.
    pub fn learned_from(&self, offers: &HashSet<OfferId>) -> Vec<AdapterVersion> {
        let mut learned = vec![];
        if offers.is_empty() {
            return learned;
        }
        // A parent stands before its children.
        for entry in self.index.adapters.iter().filter(|entry| !entry.forgotten) {
            let own = entry.offers.as_ref();
            if own.is_none_or(|own| own.iter().any(|offer| offers.contains(offer)))
                || learned.contains(&entry.parent)
            {
                learned.push(entry.version);
            }
        }
        learned
    }

    /// What may serve once these versions are forgotten: the active one or its
    /// nearest sound ancestor.
    pub fn active_without(&self, learned: &[AdapterVersion], base_sha256: &str) -> AdapterVersion {
        let mut version = self.index.active;
        while let Some(entry) = self.entry(version) {
            if !learned.contains(&version) && self.usable(entry, base_sha256).is_ok() {
                break;
            }
            version = entry.parent;
        }
        version
    }

    /// Versions that are not forgotten.
    pub fn kept(&self) -> Vec<AdapterVersion> {
        let kept = self.index.adapters.iter().filter(|entry| !entry.forgotten);
        kept.map(|entry| entry.version).collect()
    }

    /// Removes the files of a job or an import that was cut short. The caller holds whoever
    /// else might be at work in the folder.
    pub fn remove_leftovers(&self) {
        if self.read_only_reason.is_some() || self.is_from_copy {
            return;
        }
        let Ok(files) = std::fs::read_dir(&self.folder) else { return };
        let (leftovers, others): (Vec<PathBuf>, Vec<PathBuf>) =
            files.flatten().map(|file| file.path()).partition(|path| has_no_number(path));
        let named =
            |entry: &Entry| [self.adapter_file(entry.version), self.optimizer_file(entry.version)];
        let named: HashSet<PathBuf> = self.index.adapters.iter().flat_map(named).collect();
        // Cut short between getting its number and being registered, a file has two names.
        let second_names = others.iter().filter(|&path| {
            !named.contains(path) && leftovers.iter().any(|leftover| is_one_file(leftover, path))
        });
        remove(second_names.chain(&leftovers));
    }

    /// Removes whatever lies beside the registry: what an update left behind too.
    pub fn clear_folder(&self) -> Result<()> {
        let cannot = |path: &Path| format!("{}: cannot be removed", path.display());
        let entries = std::fs::read_dir(&self.folder)
            .with_context(|| format!("{}: cannot be read", self.folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.file_name() != Some(OsStr::new(REGISTRY_FILE)) {
                let removed = match path.is_dir() {
                    true => std::fs::remove_dir_all(&path),
                    false => std::fs::remove_file(&path),
                };
                removed.with_context(|| cannot(&path))?;
            }
        }
        sync_folder_of(&self.folder.join(REGISTRY_FILE))
            .with_context(|| self.folder.display().to_string())
    }

    /// Removes these versions for good, and has `active` serve.
    pub fn forget(&mut self, learned: &[AdapterVersion], active: AdapterVersion) -> Result<()> {
        self.check_writable()?;
        let mut index = self.index.clone();
        let head_goes = index.head.is_some_and(|head| learned.contains(&head));
        if active != index.active || head_goes {
            index.serve(active);
        }
        for entry in index.adapters.iter_mut().filter(|entry| learned.contains(&entry.version)) {
            entry.forgotten = true;
        }
        self.replace(index)?;
        // Those of an earlier time too, whose removal may have been cut short.
        for entry in self.index.adapters.iter().filter(|entry| entry.forgotten) {
            for path in [self.adapter_file(entry.version), self.optimizer_file(entry.version)] {
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(error)
                            .with_context(|| format!("{}: cannot be removed", path.display()));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Whether a version may serve over this base.
    pub fn check(&self, version: AdapterVersion, base_sha256: &str) -> Result<()> {
        if version == 0 {
            return Ok(());
        }
        let entry = self.entry(version).with_context(|| {
            format!("no adapter v{version} is registered; `hone adapter list` shows what is there")
        })?;
        self.usable(entry, base_sha256)
    }

    /// Whether its file is still kept.
    pub fn is_kept(&self, version: AdapterVersion) -> bool {
        self.adapter_file(version).exists()
    }

    fn replace(&mut self, index: Index) -> Result<()> {
        let path = self.folder.join(REGISTRY_FILE);
        let mut index = index;
        let text = index.text()?;
        write_atomic(&path, text.as_bytes())
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        self.index = index;
        // The registry itself is in place: a copy that fails costs no update.
        if let Err(error) = write_atomic(&self.folder.join(REGISTRY_COPY), text.as_bytes()) {
            tracing::warn!("{}: not copied: {error}", path.display());
        }
        Ok(())
    }

    /// Files nobody will load again. Best effort: a file that stays costs space only.
    fn prune(&self) {
        let count = self.index.adapters.len();
        let in_use = [self.index.active, self.head()];
        for (i, entry) in self.index.adapters.iter().enumerate() {
            if in_use.contains(&entry.version) {
                continue;
            }
            let _ = std::fs::remove_file(self.optimizer_file(entry.version));
            if i + KEPT_FILES < count {
                let _ = std::fs::remove_file(self.adapter_file(entry.version));
            }
        }
    }
}

fn has_no_number(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [JOB_PREFIX, IMPORT_PREFIX].iter().any(|prefix| name.starts_with(prefix))
}

/// Whether these are two names of one file.
fn is_one_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| path.symlink_metadata().ok().map(|file| (file.dev(), file.ino()));
    identity(one).is_some() && identity(one) == identity(other)
}

/// Best effort: a file that stays costs space only.
fn remove<'a>(files: impl IntoIterator<Item = &'a PathBuf>) {
    for file in files {
        let _ = std::fs::remove_file(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(registry: &Registry, base: &str) -> Candidate {
        let version = registry.next_version();
        let (adapter, optimizer) = registry.job_files("j");
        std::fs::write(&adapter, format!("adapter {version}")).unwrap();
        std::fs::write(&optimizer, format!("state {version}")).unwrap();
        let entry = Entry {
            version,
            parent: registry.active(),
            sha256: sha256(&adapter).unwrap(),
            base_sha256: base.into(),
            created_at_ms: 0,
            labels: (u64::from(version) * 10, u64::from(version) * 10 + 9),
            offers: Some(vec![format!("offer-{version}")]),
            forgotten: false,
            verdict: None,
            report: serde_json::from_value(report()).unwrap(),
        };
        Candidate { entry, adapter, optimizer: Some(optimizer) }
    }

    fn report() -> serde_json::Value {
        let zero = serde_json::json!({"count":0,"mean":0.0,"p50":0.0,"p95":0.0,"max":0.0});
        serde_json::json!({
            "job":"j","candidate":1,"adapter_sha256":"","episodes_used":1,"episodes_dropped":0,
            "tokens_trained":1,"steps":1,"stopped_early":false,"mean_reward":0.0,
            "mean_advantage":0.0,"mismatch":zero,"ratio_before":zero,"steps_log":[],
            "logprob_rewarded":null,"logprob_unrewarded":null,"kl_base":0.0,"update_ratio":0.0,
            "load_ms":0,"prompt_ms":0,"train_ms":0,"total_ms":0,"peak_memory_mb":0})
    }

    fn with_three(folder: &Path) -> Registry {
        let (mut registry, _) = Registry::open(folder, "base");
        for _ in 0..3 {
            let next = candidate(&registry, "base");
            registry.promote(&next).unwrap();
        }
        registry
    }

    fn names(folder: &Path) -> Vec<String> {
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<_> = files.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_candidates_files_get_the_names_of_its_number_and_lose_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let (mut registry, _) = Registry::open(dir.path(), "base");
        registry.promote(&candidate(&registry, "base")).unwrap();
        let files = [REGISTRY_COPY, REGISTRY_FILE, "v0001.gguf", "v0001.optimizer"];
        assert_eq!(names(dir.path()), files);
        assert_eq!(std::fs::read(registry.optimizer_file(1)).unwrap(), b"state 1");
        let again =
            Candidate { entry: registry.entries()[0].clone(), ..candidate(&registry, "base") };
        assert!(registry.refuse(&again).unwrap_err().to_string().contains("registered already"));
    }

    /// Whatever comes between a job and its registration, it replaces no file.
    #[test]
    fn a_number_that_a_file_has_taken_meanwhile_is_not_given() {
        for (taken, other) in [("v0001.gguf", "v0001.optimizer"), ("v0001.optimizer", "v0001.gguf")]
        {
            let dir = tempfile::tempdir().unwrap();
            let (mut registry, _) = Registry::open(dir.path(), "base");
            let first = candidate(&registry, "base");
            std::fs::write(dir.path().join(taken), "somebody's").unwrap();
            let refused = format!("{:#}", registry.promote(&first).unwrap_err());
            assert!(refused.contains(taken), "{refused}");
            assert_eq!(std::fs::read(dir.path().join(taken)).unwrap(), b"somebody's");
            assert!(!dir.path().join(other).exists() && registry.entries().is_empty());
            assert_eq!(registry.next_version(), 2);
        }
    }

    #[test]
    fn a_registry_that_cannot_be_written_gives_no_number() {
        let dir = tempfile::tempdir().unwrap();
        let (mut registry, _) = Registry::open(dir.path(), "base");
        let first = candidate(&registry, "base");
        std::fs::create_dir(dir.path().join(REGISTRY_FILE)).unwrap();
        let refused = format!("{:#}", registry.promote(&first).unwrap_err());
        assert!(refused.contains("cannot be written"), "{refused}");
        assert_eq!(names(dir.path()), ["job-j.gguf", "job-j.optimizer", REGISTRY_FILE]);
        assert_eq!((registry.entries().len(), registry.active()), (0, 0));
    }

    #[test]
    fn what_was_cut_short_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut registry = with_three(dir.path());
        let kept = names(dir.path());
        // Killed while it trained; and after v4 got its number, before the registry knew.
        std::fs::write(dir.path().join("job-v4-0-1.gguf.7-0.tmp"), "half").unwrap();
        std::fs::write(dir.path().join("import-x"), "half").unwrap();
        let cut_short = candidate(&registry, "base");
        registry.name_files(&cut_short).unwrap();
        assert_eq!(registry.next_version(), 5);
        // Killed after v3 was registered, before its files lost their other names.
        std::fs::hard_link(registry.adapter_file(3), dir.path().join("job-v3.gguf")).unwrap();
        // Of an adapter that a lost registry named.
        std::fs::write(dir.path().join("v0007.gguf"), "adapter 7").unwrap();
        let all = names(dir.path());

        registry.is_from_copy = true;
        registry.remove_leftovers();
        assert_eq!(names(dir.path()), all, "a copy may not know of v4");
        registry.is_from_copy = false;
        registry.remove_leftovers();
        assert_eq!(names(dir.path()), [kept, vec!["v0007.gguf".into()]].concat());
        assert_eq!(registry.next_version(), 4);
    }

    /// A registry that was missing was taken for one that had never been written. The base
    /// served in silence, and what was written next took the place of the copy as well.
    #[test]
    fn a_lost_registry_gives_way_to_its_copy() {
        let dir = tempfile::tempdir().unwrap();
        with_three(dir.path());
        std::fs::remove_file(dir.path().join(REGISTRY_FILE)).unwrap();
        let (registry, trouble) = Registry::open(dir.path(), "base");
        let trouble = trouble.expect("it is told");
        assert!(trouble.contains("missing") && trouble.contains(REGISTRY_COPY), "{trouble}");
        assert_eq!((registry.active(), registry.read_only_reason()), (3, None));
        std::fs::write(dir.path().join(REGISTRY_COPY), "").unwrap();
        let (registry, _) = Registry::open(dir.path(), "base");
        assert!(registry.active() == 0 && registry.read_only_reason().is_some());
    }

    #[test]
    fn promotion_survives_reopening_with_its_lineage() {
        let dir = tempfile::tempdir().unwrap();
        with_three(dir.path());
        let (registry, trouble) = Registry::open(dir.path(), "base");
        assert_eq!((registry.active(), registry.entry(3).unwrap().parent, trouble), (3, 2, None));
        assert_eq!((registry.next_version(), registry.learned_through("base")), (4, Some(39)));
        assert_eq!(registry.learned_through("other"), None);
    }

    #[test]
    fn a_damaged_adapter_gives_way_to_its_parent_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = with_three(dir.path()).adapter_file(3);
        std::fs::write(&path, "flipped").unwrap();
        let (registry, trouble) = Registry::open(dir.path(), "base");
        assert_eq!(registry.active(), 2);
        let trouble = trouble.unwrap();
        assert!(trouble.contains("v0003.gguf: damaged"), "{trouble}");
        assert!(trouble.contains("serving v2 instead"), "{trouble}");
        assert_eq!(registry.next_version(), 4, "a number is never used twice");
    }

    #[test]
    fn an_adapter_of_another_base_is_not_served() {
        let dir = tempfile::tempdir().unwrap();
        with_three(dir.path());
        let (registry, trouble) = Registry::open(dir.path(), "other");
        assert_eq!(registry.active(), 0);
        assert!(trouble.unwrap().contains("another base model"));
    }

    #[test]
    fn a_registry_of_the_first_format_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v0001.gguf");
        std::fs::write(&path, "adapter 1").unwrap();
        let first = serde_json::json!({"format": 1, "active": 1, "adapters": [{
            "version": 1, "parent": 0, "sha256": sha256(&path).unwrap(), "base_sha256": "base",
            "created_at_ms": 0, "labels": [3, 9], "report": report()}]});
        std::fs::write(dir.path().join("registry.json"), first.to_string()).unwrap();
        let (registry, trouble) = Registry::open(dir.path(), "base");
        assert_eq!((registry.active(), registry.head(), trouble), (1, 1, None));
        assert_eq!(registry.trial(), None);
    }

    /// One bad sector must not cost what was learned in months.
    #[test]
    fn a_damaged_registry_gives_way_to_its_copy() {
        let folder = tempfile::tempdir().unwrap();
        let (mut registry, _) = Registry::open(folder.path(), "base");
        registry.promote(&candidate(&registry, "base")).unwrap();
        let path = folder.path().join(REGISTRY_FILE);
        let whole = std::fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() / 2], b"", b"{\"format\": 2, \"active\": 0}"] {
            std::fs::write(&path, damaged).unwrap();
            let (registry, trouble) = Registry::open(folder.path(), "base");
            let trouble = trouble.expect("it is told");
            assert!(trouble.contains("damaged") && trouble.contains(REGISTRY_COPY), "{trouble}");
            assert_eq!((registry.active(), registry.read_only_reason()), (1, None));
        }
        // What is written next heals it.
        let (mut registry, _) = Registry::open(folder.path(), "base");
        registry.activate(0).unwrap();
        let (registry, trouble) = Registry::open(folder.path(), "base");
        assert_eq!((registry.active(), trouble), (0, None));
        // With both gone, the base serves and nothing is overwritten.
        std::fs::write(&path, "").unwrap();
        std::fs::write(folder.path().join(REGISTRY_COPY), "").unwrap();
        let (registry, _) = Registry::open(folder.path(), "base");
        assert!(registry.active() == 0 && registry.read_only_reason().is_some());
    }

    /// Somebody else's number would serve, or be learned on from.
    #[test]
    fn a_bit_that_leaves_the_registry_readable_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        with_three(dir.path());
        let path = dir.path().join(REGISTRY_FILE);
        let whole = std::fs::read(&path).unwrap();
        let mut readable = 0;
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            readable += usize::from(serde_json::from_slice::<Index>(&damaged).is_ok());
            std::fs::write(&path, damaged).unwrap();
            let read = Index::read(&path);
            assert!(read.is_err(), "bit {} of byte {} was read", bit % 8, bit / 8);
        }
        assert!(readable > 1_000, "or this test tells nothing: {readable}");
    }

    #[test]
    fn registries_of_earlier_hones_open_and_are_written_as_todays() {
        for format in [1, 2] {
            let dir = tempfile::tempdir().unwrap();
            let registry = with_three(dir.path());
            let path = dir.path().join(REGISTRY_FILE);
            let mut old = serde_json::to_value(&registry.index).unwrap();
            old["format"] = format.into();
            old.as_object_mut().unwrap().remove("checksum");
            if format == 1 {
                old.as_object_mut().unwrap().retain(|key, _| key != "trial" && key != "head");
            }
            std::fs::write(&path, old.to_string()).unwrap();
            let (mut registry, trouble) = Registry::open(dir.path(), "base");
            assert_eq!((registry.active(), trouble), (3, None), "format {format}");
            registry.activate(2).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains("\"format\": 3") && text.contains("\"checksum\": \""));
            assert_eq!(Registry::open(dir.path(), "base").0.active(), 2);
        }
    }

    #[test]
    fn a_registry_of_a_newer_hone_is_refused_untouched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("registry.json");
        std::fs::write(&path, r#"{"format": 4, "surprise": true}"#).unwrap();
        let (mut registry, trouble) = Registry::open(dir.path(), "base");
        assert!(trouble.unwrap().contains("registry.json: format 4"));
        assert_eq!(registry.active(), 0, "the base serves");
        let next = candidate(&registry, "base");
        assert!(registry.promote(&next).is_err());
        assert!(std::fs::read_to_string(path).unwrap().contains("surprise"));
    }

    #[test]
    fn rolling_back_survives_reopening_and_the_next_number_is_still_new() {
        let dir = tempfile::tempdir().unwrap();
        let mut registry = with_three(dir.path());
        registry.activate(1).unwrap();
        let (registry, _) = Registry::open(dir.path(), "base");
        assert_eq!((registry.active(), registry.next_version()), (1, 4));
        assert_eq!(registry.parent().unwrap().version, 1, "learning goes on from there");
    }

    #[test]
    fn what_learned_from_a_forgotten_offer_goes_with_all_that_grew_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut registry = with_three(dir.path());
        registry.activate(1).unwrap();
        let sibling = candidate(&registry, "base");
        registry.promote(&sibling).unwrap();
        let offers = HashSet::from(["offer-2".to_owned()]);
        let learned = registry.learned_from(&offers);
        assert_eq!(learned, [2, 3], "v4 grew from v1");
        assert_eq!(registry.active_without(&learned, "base"), 4);
        registry.activate(3).unwrap();
        assert_eq!(registry.active_without(&learned, "base"), 1);

        registry.forget(&learned, 1).unwrap();
        let (registry, trouble) = Registry::open(dir.path(), "base");
        assert_eq!((registry.active(), trouble, registry.next_version()), (1, None, 5));
        assert!(!registry.adapter_file(2).exists() && !registry.adapter_file(3).exists());
        assert!(registry.adapter_file(1).exists() && registry.adapter_file(4).exists());
        assert!(registry.check(2, "base").unwrap_err().to_string().contains("went with it"));
        assert_eq!(registry.learned_from(&offers), Vec::<AdapterVersion>::new());
        assert_eq!(registry.learned_from(&HashSet::new()), Vec::<AdapterVersion>::new());
    }

    #[test]
    fn an_adapter_that_does_not_say_counts_as_taught_and_its_labels_may_be_learned_again() {
        let dir = tempfile::tempdir().unwrap();
        let (mut registry, _) = Registry::open(dir.path(), "base");
        let first = candidate(&registry, "base");
        registry.promote(&first).unwrap();
        let mut silent = candidate(&registry, "base");
        silent.entry.offers = None;
        registry.promote(&silent).unwrap();
        assert_eq!(registry.learned_through("base"), Some(29));
        let learned = registry.learned_from(&HashSet::from(["elsewhere".to_owned()]));
        assert_eq!(learned, [2]);
        registry.forget(&learned, 1).unwrap();
        assert_eq!(registry.learned_through("base"), Some(19));
    }

    #[test]
    fn only_a_sound_adapter_of_this_base_may_serve() {
        let dir = tempfile::tempdir().unwrap();
        let registry = with_three(dir.path());
        assert!(registry.check(0, "base").is_ok() && registry.check(2, "base").is_ok());
        let refused = |version, base| registry.check(version, base).unwrap_err().to_string();
        assert!(refused(9, "base").contains("no adapter v9"));
        assert!(refused(2, "other").contains("another base model"));
        std::fs::remove_file(registry.adapter_file(2)).unwrap();
        assert!(refused(2, "base").contains("v0002.gguf: cannot be read"));
    }

    #[test]
    fn a_trial_lets_updates_go_on_and_ends_in_one_of_three_ways() {
        let ends = |end| {
            let dir = tempfile::tempdir().unwrap();
            let mut registry = with_three(dir.path());
            let first = candidate(&registry, "base");
            assert_eq!(registry.start_trial(&first, 70).unwrap().candidate, 4);
            assert_eq!((registry.active(), registry.head()), (3, 4), "v3 serves meanwhile");
            let second = candidate(&registry, "base");
            let arms = registry.start_trial(&second, 99).unwrap();
            assert_eq!(arms, Arms { candidate: 5, incumbent: 3, since: 70 }, "the same trial");
            registry.conclude(Verdict { end, reason: "why".into(), offers: 9 }).unwrap();
            let (registry, trouble) = Registry::open(dir.path(), "base");
            assert_eq!((trouble, registry.trial()), (None, None));
            assert_eq!(registry.entry(5).unwrap().verdict.as_ref().unwrap().end, end);
            (registry.active(), registry.head())
        };
        assert_eq!(ends(End::Promoted), (5, 5));
        assert_eq!(ends(End::Dropped), (3, 3));
        assert_eq!(ends(End::Undecided), (3, 5));
    }

    #[test]
    fn a_trial_is_over_when_the_user_chooses_or_its_candidate_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let mut registry = with_three(dir.path());
        let first = candidate(&registry, "base");
        registry.start_trial(&first, 70).unwrap();
        std::fs::write(registry.adapter_file(4), "flipped").unwrap();
        let (reopened, trouble) = Registry::open(dir.path(), "base");
        assert!(trouble.unwrap().contains("its trial is over"));
        assert_eq!((reopened.active(), reopened.head(), reopened.trial()), (3, 3, None));
        registry.activate(1).unwrap();
        assert_eq!((registry.head(), registry.trial()), (1, None));
    }

    #[test]
    fn old_files_are_removed_and_the_newest_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (mut registry, _) = Registry::open(dir.path(), "base");
        for _ in 0..KEPT_FILES + 2 {
            let next = candidate(&registry, "base");
            registry.promote(&next).unwrap();
        }
        assert!(!registry.adapter_file(2).exists());
        assert!(registry.adapter_file(3).exists());
        assert_eq!(registry.entries().len(), KEPT_FILES + 2);
    }
}
