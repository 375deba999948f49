//! Work on other threads and tasks, whose panics become errors without their messages.

use anyhow::{Result, anyhow};
use tokio::task::JoinError;

/// Starts work that may wait for the disk, on a thread of its own. Dropping the future does not end
/// the work.
pub fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T>> {
    ended(tokio::task::spawn_blocking(work))
}

/// Waits for a task.
///
/// # Errors
/// The task has panicked. The error is without the message of the panic, which may hold code.
pub async fn ended<T>(task: impl Future<Output = Result<T, JoinError>>) -> Result<T> {
    task.await.map_err(|error| without_message(&error))
}

fn without_message(error: &JoinError) -> anyhow::Error {
    match error.is_panic() {
        true => anyhow!("a fault of Hone's own; the daemon's log has its place"),
        false => anyhow!("it was broken off"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error_without_its_message() {
        let panics = || -> () { panic!("let canary = 1;") };
        for error in [blocking(panics).await, ended(tokio::spawn(async move { panics() })).await] {
            let error = format!("{error:?}");
            assert!(error.contains("fault of Hone's own") && !error.contains("canary"), "{error}");
        }
        assert_eq!(blocking(|| 7).await.unwrap(), 7);
    }
}
