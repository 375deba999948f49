//! The daemon, its socket, the GPU, and what failed last.

use super::{Check, Patient};
use host::platform::files;
use models::size::Size;
use report::status::DaemonStatus;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Why there is no status although a daemon runs.
pub const NO_ANSWER: &str = "a daemon runs and does not answer";

/// The end of the daemon's log that is read, in bytes, and the lines of it that are shown.
const LOG_END: u64 = 64 * 1024;
const LOG_LINES: usize = 3;

/// Signs of a GPU, by the files that its driver makes.
const GPU_FILES: [(&str, &str); 2] =
    [("/dev/nvidia0", "an NVIDIA GPU is here"), ("/dev/kfd", "an AMD GPU is here")];

pub fn daemon(patient: &Patient) -> Vec<Check> {
    const NAME: &str = "daemon";
    match &patient.status {
        Err(error) if error == NO_ANSWER => vec![Check::wrong(
            NAME,
            format!("{error} within {} s: it starts, or it hangs", super::ANSWER_LIMIT.as_secs()),
            "try again in a minute; if it still does not, end it with `hone stop`",
        )],
        // The check of the files has the reason.
        Err(_) if patient.home.create().is_err() => vec![],
        Err(error) => vec![Check::wrong(
            NAME,
            error,
            "do what the message says; `hone stop` ends a daemon that runs",
        )],
        Ok(status) => match &status.daemon {
            None => vec![Check::good(NAME, "not running; an editor starts it")],
            Some(daemon) => {
                let trouble = status.restart_trouble.as_ref();
                let trouble = trouble.or(status.settings_problems.first()).map(String::as_str);
                vec![running(daemon, &status.version, trouble), socket(patient)]
            }
        },
    }
}

/// How many editors are connected.
pub fn sessions(patient: &Patient) -> usize {
    let daemon = patient.status.as_ref().ok().and_then(|status| status.daemon.as_ref());
    daemon.map_or(0, |daemon| daemon.sessions)
}

/// `trouble`: what is to be done before a restart.
fn running(daemon: &DaemonStatus, version: &str, trouble: Option<&str>) -> Check {
    const NAME: &str = "daemon";
    let own = env!("CARGO_PKG_VERSION");
    let found = daemon.at_work();
    let restart = trouble.unwrap_or("`hone restart` starts the new one");
    if version != own {
        Check::note(NAME, format!("{found}; it is of version {version}, this is {own}"), restart)
    } else if daemon.needs_restart {
        let found = format!("{found}; it has not taken the changed settings yet");
        Check::note(NAME, found, restart)
    } else {
        Check::good(NAME, found)
    }
}

fn socket(patient: &Patient) -> Check {
    const NAME: &str = "socket";
    let restart = "`hone restart` makes it anew";
    let path = match patient.home.socket() {
        Ok(path) => path,
        Err(error) => return Check::wrong(NAME, error.to_string(), "set HONE_HOME"),
    };
    let access = files::is_own(&path).and_then(|is_own| Ok((is_own, files::is_private(&path)?)));
    match access {
        Err(error) => Check::wrong(NAME, format!("{}: {error}", path.display()), restart),
        Ok((false, _)) => Check::wrong(
            NAME,
            format!("{} belongs to another user", path.display()),
            "set HONE_HOME to a folder of your own",
        ),
        Ok((true, (false, how))) => {
            Check::wrong(NAME, format!("others can open it ({how})"), restart)
        }
        Ok((true, (true, how))) => Check::good(NAME, format!("private to you ({how})")),
    }
}

pub fn gpu(patient: &Patient) -> Check {
    const NAME: &str = "GPU";
    match engine::free_gpu() {
        Err(error) => Check::wrong(NAME, error, "install the whole archive of Hone again"),
        Ok(Some(gpu)) => {
            let found = format!("{}, {} of its memory are free", gpu.name, Size(gpu.free));
            if patient.configured.config.model.gpu_layers == Some(0) {
                let found = format!("{found}; model.gpu_layers keeps the model off it");
                return Check::note(NAME, found, "`hone config set model.gpu_layers` lets it on");
            }
            Check::good(NAME, found)
        }
        Ok(None) => {
            let here = GPU_FILES.iter().find(|(file, _)| Path::new(file).exists());
            match here {
                Some((_, here)) if !has_gpu_support() => Check::note(
                    NAME,
                    format!("{here}, and this program was built for the CPU"),
                    "a build for the GPU answers faster: see the page `Install`",
                ),
                Some((_, here)) => Check::note(
                    NAME,
                    format!("{here}, and its driver does not offer it to programs"),
                    "update the driver; `hone status` says what computes",
                ),
                None => Check::good(NAME, "none is used"),
            }
        }
    }
}

fn has_gpu_support() -> bool {
    cfg!(any(feature = "cuda", feature = "vulkan", feature = "metal"))
}

/// What is wrong at the moment, and the last lines of the daemon's log that report a failure.
pub fn failures(patient: &Patient) -> Vec<Check> {
    const NAME: &str = "failures";
    let error = patient.status.as_ref().ok().and_then(|status| status.learner.last_error.as_ref());
    let now = error.map(|error| {
        Check::wrong("trouble", error, "do what the message says; completions continue meanwhile")
    });
    let lines = last_failures(&log_end(&patient.home.daemon_log()));
    let log = match lines.is_empty() {
        true => Check::good(NAME, "none in the daemon's log"),
        false => Check::note(
            NAME,
            lines.join("\n"),
            format!("{} has the lines around them", patient.home.daemon_log().display()),
        ),
    };
    now.into_iter().chain([log]).collect()
}

fn log_end(log: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_END)))?;
        let mut bytes = vec![];
        file.take(LOG_END).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// The last different lines that report a failure, oldest first. One that kept a daemon from
/// serving is over once a later one serves, or the file is there that it missed.
fn last_failures(log: &str) -> Vec<String> {
    let served = log.rfind(" INFO serving ").unwrap_or(0);
    let (before, since) = log.split_at(served);
    let is_over = |line: &&str, is_before: bool| {
        let missed = line.strip_prefix("Error: ").and_then(|said| said.split_once(" is missing"));
        let is_there = missed.is_some_and(|(file, _)| Path::new(file).exists());
        is_there || is_before && line.starts_with("Error: ")
    };
    let is_failure = |line: &&str| {
        [" WARN ", " ERROR "].iter().any(|level| line.contains(level))
            || line.starts_with("Error: ")
            || line.starts_with("panic at ")
    };
    // A line begins with its time, by which lines of the same failure differ.
    let said = |line: &str| line.split_once("Z ").map_or(line, |(_, said)| said).to_owned();
    let mut last: Vec<&str> = vec![];
    let since = since.lines().rev().filter(|line| !is_over(line, false));
    let before = before.lines().rev().filter(|line| !is_over(line, true));
    for line in since.chain(before).filter(is_failure) {
        if !last.iter().any(|other| said(other) == said(line)) {
            last.push(line);
        }
        if last.len() == LOG_LINES {
            break;
        }
    }
    last.iter().rev().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_failures_are_told_once_each() {
        let log = "\
2026-01-01T00:00:00.1Z  INFO serving a
2026-01-01T00:00:01.1Z  WARN the learner crashed
2026-01-01T00:00:02.1Z  WARN the learner crashed
2026-01-01T00:00:03.1Z ERROR disk full
Error: /a/b.gguf is missing; run `hone model pull`
";
        let [crash, full] = [
            "2026-01-01T00:00:02.1Z WARN the learner crashed",
            "2026-01-01T00:00:03.1Z ERROR disk full",
        ];
        let missing = "Error: /a/b.gguf is missing; run `hone model pull`";
        assert_eq!(last_failures(log), [crash, full, missing]);
        // The doctor named it for hours after the pull.
        let served = format!("{log}2026-01-01T00:00:04.1Z  INFO serving b\n");
        assert_eq!(last_failures(&served), [crash, full]);
        let file = tempfile::NamedTempFile::new().unwrap();
        let pulled = log.replace("/a/b.gguf", &file.path().display().to_string());
        assert_eq!(last_failures(&pulled), [crash, full]);
        assert!(last_failures("2026-01-01T00:00:04.1Z  INFO serving b\n").is_empty());
    }

    #[test]
    fn a_daemon_of_another_version_is_told() {
        let daemon = DaemonStatus {
            pid: 7,
            uptime_s: 130,
            sessions: 1,
            http_texts: 0,
            memory_bytes: Some(600 << 20),
            needs_restart: false,
        };
        let check = running(&daemon, env!("CARGO_PKG_VERSION"), None);
        let found = "pid 7, up 2 min, 1 editor session, 600 MiB";
        assert_eq!(check, Check::good("daemon", found));
        let with_texts = DaemonStatus { http_texts: 2, ..daemon.clone() }.at_work();
        let found = "pid 7, up 2 min, 1 editor session, 2 texts of HTTP clients, 600 MiB";
        assert_eq!(with_texts, found);
        let check = running(&daemon, "0.0.1", None);
        assert!(check.found.contains("of version 0.0.1") && check.fix.is_some(), "{check:?}");
        let changed = DaemonStatus { needs_restart: true, ..daemon };
        let check = running(&changed, "0.1.0", None);
        assert!(check.fix.is_some_and(|fix| fix.contains("`hone restart`")));
        let check = running(&changed, "0.1.0", Some("run `hone model pull`"));
        assert_eq!(check.fix.as_deref(), Some("run `hone model pull`"));
    }
}
