//! Hone keeps to its user: other users reach nothing, links are not followed, and no network is
//! needed.

use rehearsal::client::Client;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tests::buffer::{Buffer, WEEK};
use tests::processes::{STRANGER, succeeds};
use tests::skip::{Missing, skipped};
use tests::{Home, Model, QUICK, learn};

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

fn as_stranger(script: &str) -> bool {
    let user = ["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups", "sh", "-c", script];
    succeeds("setpriv", &user)
}

/// A home in a folder that another user can enter; none if this user cannot become another.
fn home_for_strangers(what: &str) -> Option<Home> {
    let folders = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
    let open = |folder: &PathBuf| as_stranger(&format!("test -x {}", folder.display()));
    let Some(folder) = folders.iter().find(|folder| open(folder)) else {
        skipped(what, Missing::Root);
        return None;
    };
    Some(Home::with_below(folder, Model::Smol, QUICK))
}

#[test]
fn another_user_reads_nothing_and_reaches_nothing() {
    let Some(home) = home_for_strangers("a second user") else { return };
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    // A careless owner may leave the home open. What is in it must be closed all the same.
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let enters = as_stranger(&format!("test -x {}", home.path().display()));
    assert!(enters, "the stranger must be able to enter the home, or the test shows nothing");
    for path in [
        "run",
        "run/hone.sock",
        "run/daemon.lock",
        "data",
        "data/events.sled/db",
        "logs",
        "logs/daemon.log",
        "adapters",
    ] {
        let path = home.path().join(path);
        assert!(path.exists(), "{}", path.display());
        let script = |test: &str| format!("test {test} {}", path.display());
        for access in ["-r", "-w", "-x"] {
            assert!(!as_stranger(&script(access)), "{access} {}", path.display());
        }
    }
}

/// Where the owner has opened the folders' modes, the daemon still checks who connects.
#[test]
fn another_users_connection_is_refused() {
    let connect = "perl -MIO::Socket::UNIX -e '
        my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 3;
        print $s qq({\"protocol\":0,\"version\":\"0\",\"purpose\":\"status\"}\\n); $s->flush;
        exit(defined(<$s>) ? 0 : 4)' ";
    if !succeeds("perl", &["-MIO::Socket::UNIX", "-e", "1"]) {
        return skipped("a second user's connection", Missing::Program("perl"));
    }
    let Some(home) = home_for_strangers("a second user's connection") else { return };
    let editor = home.editor();
    for path in ["", "run", "run/hone.sock"] {
        let open = PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(home.path().join(path), open).unwrap();
    }
    let connect = format!("{connect}{}", home.path().join("run/hone.sock").display());
    assert!(succeeds("sh", &["-c", &connect]), "its own user is answered");
    assert!(!as_stranger(&connect));
    assert!(home.daemon_log().contains("connection of another user"), "{}", home.daemon_log());
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some());
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let home = home();
    let run = home.path().join("run");
    let theirs = folder(&home, "theirs");
    if !succeeds("chown", &[STRANGER, &theirs.display().to_string()]) {
        return skipped("another user's folder", Missing::Root);
    }
    let refused = |what: &str| {
        let error = home.error(&["serve"]);
        assert!(error.starts_with(&run.display().to_string()), "{what}: {error}");
        assert!(error.contains("belongs to another user"), "{what}: {error}");
        let mode = std::fs::metadata(&theirs).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "{what}: the other user's folder is unchanged");
    };
    symlink(&theirs, &run).unwrap();
    refused("behind our link");
    std::fs::remove_file(&run).unwrap();
    std::fs::rename(&theirs, &run).unwrap();
    let theirs = run.clone();
    let error = home.error(&["serve"]);
    assert!(error.contains("belongs to another user") && theirs.exists(), "{error}");
}

fn folder(home: &Home, name: &str) -> PathBuf {
    let path = home.path().join(name);
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// If the daemon followed a link in the place of its own file, it would write into another.
#[test]
fn links_in_the_place_of_our_files_are_not_followed() {
    let victim = |home: &Home| {
        let path = home.path().join("victim");
        std::fs::write(&path, "theirs").unwrap();
        path
    };
    let untouched = |path: &Path| assert_eq!(std::fs::read_to_string(path).unwrap(), "theirs");
    for (link, named) in [("run/daemon.lock", "daemon.lock"), ("logs/daemon.log", "daemon.log")] {
        let home = home();
        let victim = victim(&home);
        let link = home.path().join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&victim, &link).unwrap();
        let error = home.error(&["lsp"]);
        assert!(error.contains(named), "{error}");
        untouched(&victim);
    }
    // A file in the socket's place is replaced and not written to.
    let home = home();
    let victim = victim(&home);
    let socket = home.path().join("run/hone.sock");
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    symlink(&victim, &socket).unwrap();
    let editor = home.editor();
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some());
    untouched(&victim);
}

/// Completions, labels and an update, in a namespace that has no network.
#[test]
fn nothing_needs_a_network() {
    if !succeeds("unshare", &["--net", "true"]) {
        return skipped("Hone without a network", Missing::NetworkNamespace);
    }
    assert!(
        !succeeds("unshare", &["--net", "sh", "-c", "grep -v -e lo: -e '|' /proc/net/dev"]),
        "the namespace has an interface, so the test would show nothing"
    );
    let home = home();
    let mut command = Command::new("unshare");
    command.args(["--net"]).arg(tests::hone()).args(["lsp", "--manual-clock"]);
    command.env("HONE_HOME", home.path());
    let editor = Client::spawn(&mut command).unwrap();
    editor.initialize(&[]).unwrap();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    let status = learn(&editor);
    assert_eq!(status["adapter"]["active"], 1, "the new adapter serves");
    assert!(week.complete().is_some() || Buffer::open(&editor, "b.rs", WEEK).complete().is_some());
}
