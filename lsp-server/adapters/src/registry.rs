//! The adapter registry says which adapters exist, where each came from, and which one serves. Only
//! the registry names adapter files; any other file on disk is not loaded.
//!
//! `adapters/registry.json` is always replaced as a whole (temporary file, fsync, rename). An
//! adapter file never changes once it is registered.

pub mod adoption;
mod cleanup;
mod forgetting;
mod index;

use anyhow::{Context, Result, bail, ensure};
use cleanup::remove;
use feedback::event::{AdapterVersion, OfferId};
use feedback::job::{Parent, UpdateReport};
use index::Index;
use models::file::{publish_new, sha256};
use policy::trial::{Arms, End, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The number of adapter files of each base model that are kept to roll back to. Older files are
/// removed, because one takes tens of megabytes; their entries stay as history.
const KEPT_FILES: usize = 8;

/// The prefixes of files that have no number yet. They belong to a job or to an import that has not
/// ended.
const JOB_PREFIX: &str = "job-";
pub const IMPORT_PREFIX: &str = "import-";

/// What the job name begins with in the report of an adapter that was made for a version of the
/// part that a team shares.
pub const TEAM_JOB: &str = "team";

/// The job name in the report of an adapter that was imported.
pub const IMPORTED: &str = "import";

/// The job name in the report of an adapter that learned from the history of a repository.
pub const HISTORY_JOB: &str = "history";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    pub version: AdapterVersion,
    /// 0: the base.
    pub parent: AdapterVersion,
    pub sha256: String,
    pub base_sha256: String,
    pub created_at_ms: u64,
    /// The log positions of the first and the last label of its batch. It learned from all of them
    /// but for those that its report names as left out.
    pub labels: (u64, u64),
    /// The offers whose labels it learned from.
    pub offers: Vec<OfferId>,
    /// The folder of the repository from whose history it learned, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<PathBuf>,
    /// It learned, itself or through an ancestor, from something that was forgotten since. Its file
    /// is gone.
    pub forgotten: bool,
    /// The end of its trial, once the trial has ended.
    pub verdict: Option<Verdict>,
    pub report: UpdateReport,
}

/// Where an adapter that Hone itself has trained outside the daemon comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The folder of the repository from whose history it learned.
    pub history: PathBuf,
    pub report: Box<UpdateReport>,
}

/// An adapter that is to be registered. Its files are complete and have temporary names; they get
/// the names of its number when it is registered.
#[derive(Debug)]
pub struct AdapterCandidate {
    pub entry: Entry,
    pub adapter: PathBuf,
    pub optimizer: Option<PathBuf>,
}

/// The file of a registered adapter.
pub fn adapter_file(folder: &Path, version: AdapterVersion) -> PathBuf {
    folder.join(format!("v{version:04}.gguf"))
}

impl AdapterCandidate {
    /// Takes another number if its own, or a later one, was given to another adapter since. The
    /// caller must hold the lock that keeps others from taking the same number.
    pub fn take_number(&mut self, registry: &Registry) {
        if registry.entries().last().is_some_and(|last| last.version >= self.entry.version) {
            self.entry.version = registry.next_version();
            self.entry.report.candidate = self.entry.version;
        }
    }
}

#[derive(Clone)]
pub struct Registry {
    folder: PathBuf,
    index: Index,
    /// The reason why the registry is read-only: `registry.json` cannot be read, and the adapters
    /// that it names would be lost if it was replaced.
    read_only_reason: Option<String>,
    /// The registry was read from its copy, which may be older and lack the newest adapter.
    is_from_copy: bool,
}

impl Registry {
    /// Opens the registry for one base model. Completions must continue whatever the registry's
    /// state is. If the active adapter cannot be used, its nearest usable ancestor serves. If
    /// `registry.json` cannot be read, the base serves and nothing is learned. The second value
    /// gives the reason.
    pub fn open(folder: &Path, base_sha256: &str) -> (Registry, Option<String>) {
        let (index, damage) = Index::of(folder);
        let (index, read_only_reason) = match index {
            Ok(index) => (index, None),
            Err(error) => (Index::empty(), Some(format!("{error:#}"))),
        };
        let is_from_copy = damage.is_some();
        let mut registry =
            Registry { folder: folder.to_owned(), index, read_only_reason, is_from_copy };
        registry.index.switch_to(base_sha256);
        let trouble = registry
            .fall_back_to_usable(base_sha256)
            .or(damage)
            .or(registry.read_only_reason.clone());
        (registry, trouble)
    }

    /// The reason why no update can be registered, if there is one.
    pub fn read_only_reason(&self) -> Option<&str> {
        self.read_only_reason.as_deref()
    }

    /// The same reason in a sentence for the user.
    pub fn learning_refusal(&self) -> Option<String> {
        let reason = self.read_only_reason.as_ref()?;
        Some(format!("nothing is learned, because an update could not be registered: {reason}"))
    }

    /// # Errors
    /// The registry is read-only. The error gives the reason.
    pub fn check_writable(&self) -> Result<()> {
        match &self.read_only_reason {
            Some(reason) => bail!("{reason}"),
            None => Ok(()),
        }
    }

    /// Makes the parent serve, because the engine cannot load the active adapter.
    pub fn fall_back(&mut self) {
        let parent = self.entry(self.index.active).map_or(0, |entry| entry.parent);
        self.index.serve(parent);
    }

    /// Learning continues from the adapter that serves, because the engine cannot load the head.
    /// The trial ends if there is one, whose candidate the head is.
    pub fn fall_back_from_head(&mut self) {
        (self.index.head, self.index.trial) = (None, None);
    }

    fn fall_back_to_usable(&mut self, base_sha256: &str) -> Option<String> {
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

    /// The adapter that the next update starts from; 0 is the base.
    pub fn head(&self) -> AdapterVersion {
        self.index.head.unwrap_or(self.index.active)
    }

    pub fn entry(&self, version: AdapterVersion) -> Option<&Entry> {
        // The numbers rise in this list.
        let at = self.index.adapters.binary_search_by_key(&version, |entry| entry.version);
        at.ok().map(|at| &self.index.adapters[at])
    }

    pub fn entries(&self) -> &[Entry] {
        &self.index.adapters
    }

    /// The number of the next candidate. No number is used twice. A number also counts as used if a
    /// file has it that the registry does not name: after the registry was lost, or read from an
    /// older copy, that file may be all that is left of an adapter.
    pub fn next_version(&self) -> AdapterVersion {
        let is_there = |path: PathBuf| path.symlink_metadata().is_ok();
        let mut version = self.index.adapters.last().map_or(1, |entry| entry.version + 1);
        while is_there(self.adapter_file(version)) || is_there(self.optimizer_file(version)) {
            version += 1;
        }
        version
    }

    /// The log position of the last label that an adapter of this base learned from. Forgotten
    /// adapters do not count, so that the labels that are left are learned from again.
    pub fn learned_through(&self, base_sha256: &str) -> Option<u64> {
        self.kept_of(base_sha256).map(|entry| entry.labels.1).max()
    }

    /// The offers that updates of this base have left out, and that none has learned from since.
    pub fn left_out(&self, base_sha256: &str) -> HashSet<OfferId> {
        let mut left_out = HashSet::new();
        for entry in self.kept_of(base_sha256) {
            for learned in &entry.offers {
                left_out.remove(learned);
            }
            left_out.extend(entry.report.left_out.iter().cloned());
        }
        left_out
    }

    /// The entries of this base that are not forgotten.
    fn kept_of(&self, base_sha256: &str) -> impl Iterator<Item = &Entry> {
        let is_kept = move |entry: &&Entry| entry.base_sha256 == base_sha256 && !entry.forgotten;
        self.index.adapters.iter().filter(is_kept)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn adapter_file(&self, version: AdapterVersion) -> PathBuf {
        adapter_file(&self.folder, version)
    }

    pub fn optimizer_file(&self, version: AdapterVersion) -> PathBuf {
        self.folder.join(format!("v{version:04}.optimizer"))
    }

    /// The files that a job's learner writes: the adapter and the optimizer's state. They have no
    /// number until the registry gives them one.
    pub fn job_files(&self, job: &str) -> (PathBuf, PathBuf) {
        let file = |ending| self.folder.join(format!("{JOB_PREFIX}{job}.{ending}"));
        (file("gguf"), file("optimizer"))
    }

    /// The adapter that an update starts from, in the form that a job needs.
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

    /// Registers a candidate and makes it serve.
    pub fn promote(&mut self, candidate: &AdapterCandidate) -> Result<()> {
        self.register(candidate, |index| index.serve(candidate.entry.version))?;
        self.prune();
        Ok(())
    }

    /// Registers a candidate that joins the running trial, or a new trial that begins at log
    /// position `now`.
    pub fn start_trial(&mut self, candidate: &AdapterCandidate, now: u64) -> Result<Arms> {
        let version = candidate.entry.version;
        let since = self.index.trial.map_or(now, |trial| trial.since);
        let arms = Arms { candidate: version, incumbent: self.index.active, since };
        self.register(candidate, |index| (index.head, index.trial) = (Some(version), Some(arms)))?;
        self.prune();
        Ok(arms)
    }

    /// Registers a candidate that gets no trial. The next update does not start from it.
    pub fn refuse(&mut self, candidate: &AdapterCandidate) -> Result<()> {
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

    /// Registers an imported adapter without serving it and returns its number. The caller must
    /// hold the lock that keeps others from taking the same number.
    pub fn import(
        &mut self,
        file: &Path,
        sha256: String,
        base_sha256: &str,
        origin: Option<Origin>,
        now_ms: u64,
    ) -> Result<AdapterVersion> {
        let candidate = self.imported(file, sha256, base_sha256, origin, now_ms);
        self.register(&candidate, |_| {})?;
        Ok(candidate.entry.version)
    }

    fn imported(
        &self,
        file: &Path,
        sha256: String,
        base_sha256: &str,
        origin: Option<Origin>,
        now_ms: u64,
    ) -> AdapterCandidate {
        let (history, report) = match origin {
            None => (None, UpdateReport { job: IMPORTED.into(), ..UpdateReport::default() }),
            Some(Origin { history, report }) => (Some(history), *report),
        };
        let entry = Entry {
            version: self.next_version(),
            parent: 0,
            sha256,
            base_sha256: base_sha256.to_owned(),
            created_at_ms: now_ms,
            labels: (0, 0),
            // It has learned from no offer that is recorded here.
            offers: vec![],
            history,
            forgotten: false,
            verdict: None,
            report,
        };
        AdapterCandidate { entry, adapter: file.to_owned(), optimizer: None }
    }

    /// Gives a candidate's files the names of its number without replacing any file, then writes
    /// the registry with its entry and this change. If one of the two fails, neither takes effect.
    fn register(
        &mut self,
        candidate: &AdapterCandidate,
        change: impl FnOnce(&mut Index),
    ) -> Result<()> {
        self.check_writable()?;
        let version = candidate.entry.version;
        ensure!(self.entry(version).is_none(), "adapter v{version} is registered already");
        let mut index = self.index.clone();
        index.add(candidate.entry.clone());
        change(&mut index);
        let named = self.name_files(candidate)?;
        self.replace(index).inspect_err(|_| remove(&named))?;
        // The files have their new names now, so the temporary names go.
        remove(candidate.optimizer.iter().chain([&candidate.adapter]));
        Ok(())
    }

    /// Links a candidate's files to the names of its number. Returns these names.
    fn name_files(&self, candidate: &AdapterCandidate) -> Result<Vec<PathBuf>> {
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

    /// Checks that a version may serve with this base.
    pub fn check(&self, version: AdapterVersion, base_sha256: &str) -> Result<()> {
        if version == 0 {
            return Ok(());
        }
        let entry = self.entry(version).with_context(|| {
            format!("no adapter v{version} is registered; `hone adapter` shows what is there")
        })?;
        self.usable(entry, base_sha256)
    }

    /// Returns whether its file still exists.
    pub fn is_kept(&self, version: AdapterVersion) -> bool {
        self.adapter_file(version).exists()
    }

    /// Drops the ids of offers that are not in the log any more, which begins at `first_seq`.
    pub fn drop_offers_before(&mut self, first_seq: u64) -> Result<()> {
        let mut index = self.index.clone();
        if self.read_only_reason.is_some() || !index.drop_offers_before(first_seq) {
            return Ok(());
        }
        self.replace(index)
    }

    fn replace(&mut self, mut index: Index) -> Result<()> {
        index.write(&self.folder)?;
        self.index = index;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
