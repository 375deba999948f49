//! Job lines in, learner lines out.
//!
//! Three threads around two bounded channels: a reader that only cuts lines, the
//! trainer (the caller's thread), and a writer that owns stdout. A job that
//! arrives while another trains waits in its channel, and beyond it in the pipe:
//! none is dropped. A [`Cancel`] line overtakes them: the reader notes it, and the
//! trainer looks between two pieces of work. Progress is dropped when the reader
//! of stdout is behind; answers are not.

use crate::train::{Cancelled, Trainer};
use feedback::job::{Cancel, EPISODES_MAX, JOB_FORMAT, Job, LearnerLine, Progress};
use serde::Deserialize;
use std::io::{self, BufRead, Read, Write};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Lines waiting for the trainer.
const JOB_QUEUE: usize = 4;

/// Lines waiting for stdout.
const LINE_QUEUE: usize = 64;

/// Bytes of a job's line, at most.
const LINE_BYTES: usize = 128 * 1024 * 1024;

/// Bytes of a long episode in it: some 1,600 token ids of 7 bytes for the longest prompt that
/// the server makes, and 128 tokens with their log-probabilities.
const EPISODE_BYTES: usize = 24 * 1024;

// The largest job that the settings allow fits a line.
const _: () = assert!(LINE_BYTES > EPISODES_MAX * EPISODE_BYTES);

// A job of one full-length prompt must always fit a line: a token id and its
// comma take at most 8 bytes.
const _: () = assert!(LINE_BYTES > 16 * 8 * crate::batch::PROMPT_TOKENS_LIMIT);

/// Serves jobs until `input` ends or `output` is closed.
///
/// # Errors
/// `input` cannot be read. A bad line is not an error: it is answered `failed`.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    trainer: Trainer,
) -> io::Result<()> {
    let (lines_in, lines) = sync_channel(JOB_QUEUE);
    let (answers, answers_out) = sync_channel(LINE_QUEUE);
    let unwanted = Unwanted::default();
    let noted = unwanted.clone();
    let reader = thread::Builder::new()
        .name("jobs".into())
        .spawn(move || read_lines(io::BufReader::new(input), &lines_in, &noted))?;
    let writer = thread::Builder::new()
        .name("answers".into())
        .spawn(move || write_lines(output, &answers_out))?;

    train(trainer, &lines, &answers, &unwanted);

    drop((lines, answers));
    // Closed stdout ends the learner as closed stdin does; the reader may then
    // still wait for a line and ends with the process.
    let written = writer.join();
    match written {
        Ok(true) => reader.join().unwrap_or_else(|_| Err(io::Error::other("the reader panicked"))),
        _ => Ok(()),
    }
}

/// A line, or why it is none.
type Line = Result<Vec<u8>, String>;

/// The job that was cancelled last. One is enough: jobs are asked for, and
/// cancelled, one at a time.
#[derive(Clone, Default)]
struct Unwanted(Arc<Mutex<Option<String>>>);

impl Unwanted {
    /// Notes a [`Cancel`] line; any other is not taken.
    fn take(&self, line: &[u8]) -> bool {
        /// Longer lines are jobs, and not parsed twice.
        const LONGEST: usize = 256;
        if line.len() > LONGEST {
            return false;
        }
        let Ok(cancel) = serde_json::from_slice::<Cancel>(line) else { return false };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(cancel.cancel);
        true
    }

    fn is(&self, job: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(job)
    }
}

fn read_lines(
    mut input: impl BufRead,
    lines: &SyncSender<Line>,
    unwanted: &Unwanted,
) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        let read = (&mut input).take(LINE_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let ended = line.pop_if(|byte| *byte == b'\n').is_some();
        let line = if line.len() > LINE_BYTES {
            input.skip_until(b'\n')?;
            Err(format!("a job line is longer than {LINE_BYTES} bytes; send fewer episodes"))
        } else if !ended {
            Err("the last job line is truncated".to_owned())
        } else if line.iter().all(u8::is_ascii_whitespace) || unwanted.take(&line) {
            continue;
        } else {
            Ok(line)
        };
        if lines.send(line).is_err() {
            return Ok(());
        }
    }
}

/// True if every line went out.
fn write_lines(mut output: impl Write, lines: &Receiver<LearnerLine>) -> bool {
    for line in lines {
        let sent = serde_json::to_vec(&line).map_err(io::Error::from).and_then(|mut bytes| {
            bytes.push(b'\n');
            output.write_all(&bytes)?;
            output.flush()
        });
        if sent.is_err() {
            return false;
        }
    }
    true
}

/// Answers lines until either end is gone.
fn train(
    mut trainer: Trainer,
    lines: &Receiver<Line>,
    answers: &SyncSender<LearnerLine>,
    unwanted: &Unwanted,
) {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    if answers.send(LearnerLine::Ready { format: JOB_FORMAT, version }).is_err() {
        return;
    }
    for line in lines {
        let mut progress = |progress: Progress| {
            if unwanted.is(&progress.job) {
                return ControlFlow::Break(());
            }
            // A reader that is behind misses a step of the bar, never an answer.
            let _ = answers.try_send(LearnerLine::Progress(progress));
            ControlFlow::Continue(())
        };
        let answer = match line {
            Err(error) => LearnerLine::Failed { job: String::new(), error },
            Ok(line) => match parse(&line) {
                Err(failed) => failed,
                Ok(job) => run(&mut trainer, &job, &mut progress),
            },
        };
        if let LearnerLine::Failed { job, error } = &answer {
            eprintln!("hone-learner: job {job:?} failed: {error}");
        }
        if answers.send(answer).is_err() {
            return;
        }
    }
}

/// Runs one job to its answer.
pub fn run(
    trainer: &mut Trainer,
    job: &Job,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> LearnerLine {
    match trainer.run(job, progress) {
        Ok(report) => LearnerLine::Done(Box::new(report)),
        Err(error) if error.is::<Cancelled>() => LearnerLine::Cancelled { job: job.id.clone() },
        Err(error) => LearnerLine::Failed { job: job.id.clone(), error: format!("{error:#}") },
    }
}

/// The job of a line, or its refusal.
///
/// Serde's own messages quote the text they trip over, which may be the user's
/// code: only the place is passed on.
pub fn parse(line: &[u8]) -> Result<Job, LearnerLine> {
    /// What every version of a job has, and must be known before the rest is read.
    #[derive(Deserialize)]
    struct Header {
        format: u32,
        #[serde(default)]
        id: String,
    }
    let failed = |job: String, error: String| LearnerLine::Failed { job, error };
    let place =
        |error: &serde_json::Error| format!("at line {} column {}", error.line(), error.column());
    let header: Header = serde_json::from_slice(line).map_err(|error| {
        let what = if error.is_eof() { "is truncated" } else { "is not a job" };
        failed(String::new(), format!("the job line {what} ({})", place(&error)))
    })?;
    if header.format != JOB_FORMAT {
        let error = format!(
            "job format {} is not {JOB_FORMAT}, the one this learner speaks; use daemon and learner of one version",
            header.format
        );
        return Err(failed(header.id, error));
    }
    serde_json::from_slice(line).map_err(|error| {
        failed(
            header.id,
            format!("the job has a field this learner cannot read ({})", place(&error)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().map_err(|_| io::Error::other("poisoned"))?.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answers(input: &'static str) -> Vec<LearnerLine> {
        let output = Output::default();
        serve(input.as_bytes(), output.clone(), Trainer::default()).unwrap();
        let bytes = output.0.lock().unwrap().clone();
        let lines = std::str::from_utf8(&bytes).unwrap().lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn errors(input: &'static str) -> Vec<(String, String)> {
        let mut lines = answers(input).into_iter();
        assert!(matches!(lines.next(), Some(LearnerLine::Ready { format: JOB_FORMAT, .. })));
        lines
            .map(|line| match line {
                LearnerLine::Failed { job, error } => (job, error),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn it_says_ready_and_ends_with_its_input() {
        assert!(errors("").is_empty());
        assert!(errors("\n  \n").is_empty(), "blank lines are nothing");
    }

    #[test]
    fn every_bad_line_is_answered_and_the_next_one_is_read() {
        let ours = format!("{{\"format\":{JOB_FORMAT}");
        let input = format!(
            "nonsense\n{ours},\"id\":\"a\"\n{{\"format\":700,\"id\":\"b\"}}\n\
             {ours},\"id\":\"c\"}}\n{ours}"
        );
        // The stream's reader wants its input for good; a test may leak a line.
        let errors = errors(input.leak());
        let other = format!("job format 700 is not {JOB_FORMAT}");
        let expected = [
            ("", "the job line is not a job"),
            ("", "the job line is truncated"),
            ("b", other.as_str()),
            ("c", "the job has a field this learner cannot read"),
            ("", "the last job line is truncated"),
        ];
        assert_eq!(errors.len(), expected.len(), "{errors:?}");
        for ((job, error), (expected_job, expected)) in errors.iter().zip(expected) {
            assert_eq!(job, expected_job);
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn the_text_a_parser_trips_over_is_not_repeated() {
        for (_, error) in
            errors("{\"format\":3,\"id\":\"a\",\"base\":\"let secret = 1;\"}\n\"let secret\"\n")
        {
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_cancel_line_is_noted_and_is_no_job() {
        let (sender, lines) = sync_channel(4);
        let unwanted = Unwanted::default();
        let input = &b"{\"cancel\":\"a\"}\n{\"cancel\":\"b\",\"x\":1}\n"[..];
        read_lines(input, &sender, &unwanted).unwrap();
        drop(sender);
        assert!(unwanted.is("a") && !unwanted.is("b"));
        assert_eq!(lines.iter().count(), 1, "what is no cancel line is answered as a job");
    }

    #[test]
    fn a_line_past_the_limit_is_skipped_whole() {
        let (sender, lines) = sync_channel(4);
        let long = io::repeat(b'x').take(LINE_BYTES as u64 + 5).chain(&b"\nnext\n"[..]);
        read_lines(io::BufReader::new(long), &sender, &Unwanted::default()).unwrap();
        drop(sender);
        let lines: Vec<Line> = lines.iter().collect();
        assert!(lines[0].is_err());
        assert_eq!(lines[1], Ok(b"next".to_vec()));
        assert_eq!(lines.len(), 2);
    }
}
