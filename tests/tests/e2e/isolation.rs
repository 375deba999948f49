//! Nobody else's business: other users, other folders, the network.

use rehearsal::client::Client;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tests::buffer::Buffer;
use tests::{Home, Model, QUICK, learn};

const WEEK: &str = "// Monday, Tuesday, Wednesday, |\n";

/// A user who owns nothing (`nobody`).
const STRANGER: &str = "65534";

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

/// Says on the terminal, whatever the test harness catches, what was not tested.
fn skipped(what: &str, because: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {what}: because {because}");
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}

fn as_stranger(script: &str) -> bool {
    let user = ["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups", "sh", "-c", script];
    succeeds("setpriv", &user)
}

/// A home in a folder that another user can enter; none if there is no such user.
fn home_for_strangers(what: &str) -> Option<Home> {
    let folders = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
    let open = |folder: &PathBuf| as_stranger(&format!("test -x {}", folder.display()));
    match folders.iter().find(|folder| open(folder)) {
        Some(folder) => Some(Home::with_below(folder, Model::Smol, QUICK)),
        None => {
            skipped(what, "only root can become another user");
            None
        }
    }
}

#[test]
fn another_user_reads_nothing_and_reaches_nothing() {
    let Some(home) = home_for_strangers("a second user") else { return };
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    // As a careless owner would leave it; what is in it must not depend on that.
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o777)).unwrap();
    assert!(as_stranger(&format!("test -x {}", home.path().display())), "or this tells nothing");
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

/// Even where a folder's mode was loosened by hand, the daemon asks who knocks.
#[test]
fn another_users_connection_is_refused() {
    let connect = "perl -MIO::Socket::UNIX -e '
        my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or exit 3;
        print $s qq({\"protocol\":0,\"version\":\"0\",\"purpose\":\"status\"}\\n); $s->flush;
        exit(defined(<$s>) ? 0 : 4)' ";
    if !succeeds("perl", &["-MIO::Socket::UNIX", "-e", "1"]) {
        return skipped("a second user's connection", "there is no perl to make it");
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
    assert!(home.daemon_log().contains("another user knocked"), "{}", home.daemon_log());
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some());
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let home = home();
    let run = home.path().join("run");
    let theirs = folder(&home, "theirs");
    if !succeeds("chown", &[STRANGER, &theirs.display().to_string()]) {
        return skipped("another user's folder", "only root can make one");
    }
    let refused = |what: &str| {
        let error = home.error(&["serve"]);
        assert!(error.starts_with(&run.display().to_string()), "{what}: {error}");
        assert!(error.contains("belongs to another user"), "{what}: {error}");
        let mode = std::fs::metadata(&theirs).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "{what}: nothing of theirs was changed");
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

/// A link where a file of ours belongs would have us write into another one.
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
    // What lies in the socket's place is replaced, not written through.
    let home = home();
    let victim = victim(&home);
    let socket = home.path().join("run/hone.sock");
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    symlink(&victim, &socket).unwrap();
    let editor = home.editor();
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some());
    untouched(&victim);
}

/// Completions, feedback and an update, in a network namespace that has no network.
#[test]
fn nothing_needs_a_network() {
    if !succeeds("unshare", &["--net", "true"]) {
        return skipped("a namespace without a network", "`unshare --net` is not permitted");
    }
    assert!(
        !succeeds("unshare", &["--net", "sh", "-c", "grep -v -e lo: -e '|' /proc/net/dev"]),
        "there is an interface in it, so this would tell nothing"
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
    assert_eq!(status["adapter"]["active"], 1, "learned, and served");
    assert!(week.complete().is_some() || Buffer::open(&editor, "b.rs", WEEK).complete().is_some());
}
