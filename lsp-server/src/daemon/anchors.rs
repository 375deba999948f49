//! What a daemon has on disk so that others find it and none starts next to it: its home, its lock
//! and its socket. A cleaner of temporary files, `rm -rf` or a restored backup may remove them
//! while it runs. Without its socket nobody would reach it, and with its lock no other could start.

use anyhow::{Context, Result};
use host::paths::{Paths, lock};
use host::platform::connection::LIES_ON_DISK;
use host::platform::files::{FileId, identity, identity_of};
use host::tasks;
use std::fs::File;
use std::time::Duration;
use tokio::sync::mpsc;

/// The time between two looks. An editor that starts waits for as long.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What is missing, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The home was moved or removed. Whoever uses its old path starts anew.
    Home,
    Lock,
    Socket,
}

/// What the daemon has on disk, by the identity of the files.
#[derive(Debug, Clone)]
pub struct Anchors {
    home: Paths,
    root: Option<FileId>,
    lock: Option<FileId>,
    socket: Option<FileId>,
}

impl Anchors {
    /// The files as they are now. The socket listens, and the lock is held.
    pub fn new(home: &Paths, elected: &File) -> Result<Anchors> {
        Ok(Anchors {
            home: home.clone(),
            root: identity(home.root()),
            lock: identity_of(elected),
            socket: identity(&home.socket()?),
        })
    }

    /// Returns what is missing or was replaced, if anything is.
    pub fn missing(&self) -> Option<Missing> {
        if identity(self.home.root()) != self.root {
            return Some(Missing::Home);
        }
        if identity(&self.home.daemon_lock()) != self.lock {
            return Some(Missing::Lock);
        }
        let is_found = !LIES_ON_DISK || self.has_its_socket();
        (!is_found).then_some(Missing::Socket)
    }

    /// Returns true if the socket is the one that this daemon listens on, and not another's.
    pub fn has_its_socket(&self) -> bool {
        self.home.socket().is_ok_and(|socket| identity(&socket) == self.socket)
    }

    /// Looks now and then, until something is missing. Only the receiver keeps it looking.
    pub fn follow(&self) -> mpsc::Receiver<Missing> {
        let (found, changes) = mpsc::channel(1);
        let anchors = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    () = found.closed() => return,
                }
                let looking = anchors.clone();
                // The disk may not answer, and nobody waits for it here.
                if let Ok(Some(missing)) = tasks::blocking(move || looking.missing()).await {
                    let _ = found.send(missing).await;
                    return;
                }
            }
        });
        changes
    }
}

/// Takes the lock again after its file was removed or replaced, and makes the folder again.
///
/// # Errors
/// The folder cannot be made, or another daemon has the lock.
pub fn elect_again(home: &Paths) -> Result<File> {
    home.create()?;
    let path = home.daemon_lock();
    let elected = lock::take(&path, Duration::ZERO, lock::pause)?;
    elected.with_context(|| format!("{}: another daemon has it by now", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::platform::connection::Listener;

    struct Daemon {
        _folder: tempfile::TempDir,
        home: Paths,
        _listener: Listener,
        _elected: File,
        anchors: Anchors,
    }

    fn daemon() -> Daemon {
        let (_folder, home) = fixtures::home();
        let elected = elect_again(&home).unwrap();
        let listener = Listener::open(&home.socket().unwrap()).unwrap();
        let anchors = Anchors::new(&home, &elected).unwrap();
        assert_eq!(anchors.missing(), None);
        Daemon { _folder, home, _listener: listener, _elected: elected, anchors }
    }

    #[tokio::test]
    async fn whatever_is_removed_or_replaced_is_noticed() {
        type Break = fn(&Paths);
        let table: [(Break, Missing); 7] = [
            (|home| std::fs::remove_file(home.socket().unwrap()).unwrap(), Missing::Socket),
            (
                |home| {
                    let socket = home.socket().unwrap();
                    std::fs::rename(&socket, socket.with_extension("old")).unwrap();
                    std::fs::write(&socket, "").unwrap();
                },
                Missing::Socket,
            ),
            (|home| std::fs::remove_file(home.daemon_lock()).unwrap(), Missing::Lock),
            (
                |home| {
                    let lock = home.daemon_lock();
                    std::fs::rename(&lock, lock.with_extension("old")).unwrap();
                    std::fs::write(&lock, "").unwrap();
                },
                Missing::Lock,
            ),
            (
                |home| std::fs::remove_dir_all(home.daemon_lock().parent().unwrap()).unwrap(),
                Missing::Lock,
            ),
            (|home| std::fs::remove_dir_all(home.root()).unwrap(), Missing::Home),
            (
                |home| std::fs::rename(home.root(), home.root().with_extension("moved")).unwrap(),
                Missing::Home,
            ),
        ];
        for (number, (damage, missing)) in table.into_iter().enumerate() {
            let daemon = daemon();
            damage(&daemon.home);
            assert_eq!(daemon.anchors.missing(), Some(missing), "{number}");
            let _ = std::fs::remove_dir_all(daemon.home.root().with_extension("moved"));
        }
    }

    #[tokio::test]
    async fn a_daemon_without_its_lock_takes_it_again_unless_another_has_it() {
        let daemon = daemon();
        std::fs::remove_dir_all(daemon.home.daemon_lock().parent().unwrap()).unwrap();
        let again = elect_again(&daemon.home).unwrap();
        let listener = Listener::open(&daemon.home.socket().unwrap()).unwrap();
        let anchors = Anchors::new(&daemon.home, &again).unwrap();
        assert_eq!(anchors.missing(), None);
        assert!(anchors.has_its_socket());
        let error = format!("{:#}", elect_again(&daemon.home).unwrap_err());
        assert!(error.contains("another daemon has it"), "{error}");
        drop(listener);
    }
}
