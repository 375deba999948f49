//! `hone events`. It asks the daemon if one runs, and else reads its files.

use crate::cli::event_log;
use crate::daemon::client;
use crate::daemon::handshake::Command;
use anyhow::{Context, Result, bail};
use feedback::event::Event;
use host::paths::Paths;
use report::export::{ExportEnd, stream_all, without_code};
use report::offers::{OfferHistory, Offers};
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};
use tokio::time::sleep;

/// Bytes between the log's reader and this command's printing.
const PIPE_BYTES: usize = 64 * 1024;

/// The time between two looks for a daemon while none runs.
const NO_DAEMON_POLL: Duration = Duration::from_millis(100);

/// Prints what was recorded.
pub async fn events(home: &Paths, with_code: bool) -> Result<()> {
    let mut printer = Printer { with_code, ..Printer::default() };
    each_event(home, |event| printer.print(event)).await?;
    printer.end()
}

/// Prints what was recorded, and then each event as it is recorded, by whatever daemon runs. It
/// ends once nobody reads it.
pub async fn follow(home: &Paths, with_code: bool) -> Result<()> {
    let mut printer = Printer { with_code, ..Printer::default() };
    if client::connect_settled(home, Command::Status).await?.is_none() {
        each_event(home, |event| printer.print(event)).await?;
    }
    while !printer.is_done() {
        let command = Command::Follow { from: printer.next_seq };
        match client::connect_settled(home, command).await? {
            Some(connection) => {
                // It ends with the daemon, and the next one continues.
                each_line(connection.read, |event| printer.print(event)).await?;
            }
            None => sleep(NO_DAEMON_POLL).await,
        }
    }
    printer.end()
}

/// Prints events to stdout until that fails.
#[derive(Default)]
struct Printer {
    with_code: bool,
    /// The number after that of the last printed event.
    next_seq: u64,
    failed: Option<anyhow::Error>,
}

impl Printer {
    fn print(&mut self, event: Event) -> ControlFlow<()> {
        match self.try_print(&event) {
            Ok(()) => {
                self.next_seq = event.seq + 1;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn try_print(&self, event: &Event) -> Result<()> {
        let value =
            if self.with_code { serde_json::to_value(event)? } else { without_code(event)? };
        let value = value.to_string();
        Ok(writeln!(std::io::stdout().lock(), "{}", printable::text(&value))?)
    }

    fn is_done(&self) -> bool {
        self.failed.is_some()
    }

    fn end(self) -> Result<()> {
        match self.failed {
            // A reader that has enough, such as `head`, ends the pipe; that is no error.
            Some(error) if !is_broken_pipe(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Visits each offer with what became of it, oldest first.
pub async fn each_offer(home: &Paths, each: impl FnMut(OfferHistory) -> Result<()>) -> Result<()> {
    each_event_and_offer(home, |_| (), each).await
}

/// Visits each event, and each offer as [`each_offer`] does.
pub async fn each_event_and_offer(
    home: &Paths,
    mut see: impl FnMut(&Event),
    each: impl FnMut(OfferHistory) -> Result<()>,
) -> Result<()> {
    let mut offers = Offers::new(each);
    let mut failed = None;
    each_event(home, |event| {
        see(&event);
        match offers.event(event) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })
    .await?;
    failed.map_or_else(|| offers.finish(), Err)
}

pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Visits what was recorded, in order. It comes from the daemon if one runs.
async fn each_event(home: &Paths, visit: impl FnMut(Event) -> ControlFlow<()>) -> Result<()> {
    let log = loop {
        if let Some(connection) = client::connect_settled(home, Command::Events).await? {
            return all_lines(connection.read, visit).await;
        }
        if !home.event_log().exists() {
            return Ok(());
        }
        match event_log::open(home).map_err(anyhow::Error::from) {
            Err(error) if client::has_started_since(home, &error) => {}
            log => break Arc::new(log?),
        }
    };
    let (read, mut write) = tokio::io::duplex(PIPE_BYTES);
    // A reader that has enough ends the pipe.
    let writing = async move { drop(stream_all(log, &mut write).await) };
    tokio::join!(writing, all_lines(BufReader::new(read), visit)).1
}

/// Visits the events of a whole export.
///
/// # Errors
/// Some are missing.
async fn all_lines(
    reader: impl AsyncBufRead + Unpin,
    visit: impl FnMut(Event) -> ControlFlow<()>,
) -> Result<()> {
    match each_line(reader, visit).await? {
        Seen::Enough | Seen::All(Some(ExportEnd { failed: None })) => Ok(()),
        Seen::All(Some(ExportEnd { failed: Some(reason) })) => bail!("{reason}"),
        Seen::All(None) => bail!("the daemon ended before it had sent all events; try again"),
    }
}

/// What was seen of the lines of an export.
enum Seen {
    Enough,
    /// All there were, and how they ended if that was said.
    All(Option<ExportEnd>),
}

/// Visits each event until nobody wants more.
async fn each_line(
    reader: impl AsyncBufRead + Unpin,
    mut visit: impl FnMut(Event) -> ControlFlow<()>,
) -> Result<Seen> {
    let mut lines = reader.lines();
    while let Some(line) = lines.next_line().await? {
        if let Ok(end) = serde_json::from_str::<ExportEnd>(&line) {
            return Ok(Seen::All(Some(end)));
        }
        let event: Event = serde_json::from_str(&line).context("the log cannot be read")?;
        if visit(event).is_break() {
            return Ok(Seen::Enough);
        }
    }
    Ok(Seen::All(None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::log::{EventLog, MemoryLog};
    use feedback::testing::accepted;

    /// A daemon that died in the middle of an export made a report of half of the offers.
    #[tokio::test]
    async fn an_export_that_breaks_off_is_no_whole() {
        let log = MemoryLog::default();
        (0..3).for_each(|at_ms| drop(log.append(at_ms, accepted("o")).unwrap()));
        let mut whole = vec![];
        stream_all(Arc::new(log), &mut whole).await.unwrap();
        let mut seen = 0;
        let mut count = |_| {
            seen += 1;
            ControlFlow::Continue(())
        };
        all_lines(&*whole, &mut count).await.unwrap();
        let events = whole.len() - "{\"failed\":null}\n".len();
        let cut = all_lines(&whole[..events], &mut count).await.unwrap_err().to_string();
        assert!(cut.contains("before it had sent all events"), "{cut}");
        let failed = [&whole[..events], b"{\"failed\":\"events.sled: damaged\"}\n"].concat();
        let failed = all_lines(&*failed, &mut count).await.unwrap_err().to_string();
        assert_eq!(failed, "events.sled: damaged");
        assert_eq!(seen, 9);
    }
}
