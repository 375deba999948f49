//! Reads job lines and writes learner lines.
//!
//! Three threads work around two bounded channels: a reader that only splits the input
//! into lines, the trainer (the caller's thread), and a writer that owns stdout.
//!
//! A job that arrives while another one trains waits in the channel, or in the pipe if
//! the channel is full. No job is dropped. A [`Cancel`] line overtakes the jobs: the reader
//! notes it, and the trainer looks for it between two pieces of work. If nobody reads
//! stdout fast enough, progress is dropped and answers wait. If stdout is closed, nobody waits for
//! an answer, and the trainer gives up in the same way.

use crate::job::trainer::{Cancelled, Trainer};
use crate::limits::{
    ANSWER_QUEUE_LINES, CANCEL_LINE_BYTES_MAX, JOB_LINE_BYTES_MAX, JOB_QUEUE_LINES,
};
use feedback::job::{Cancel, JOB_FORMAT, Job, JobProgress, LearnerLine};
use parking_lot::Mutex;
use serde::Deserialize;
use std::io::{self, BufRead, Read, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

/// Serves jobs until `input` ends or `output` is closed.
///
/// # Errors
/// `input` cannot be read. A bad line is not an error but is answered with `failed`.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    trainer: Trainer,
) -> io::Result<()> {
    let (lines_in, lines) = sync_channel(JOB_QUEUE_LINES);
    let (answers, answers_out) = sync_channel(ANSWER_QUEUE_LINES);
    let cancelled = CancelledJob::default();
    let noted = cancelled.clone();
    let reader = thread::Builder::new()
        .name("jobs".into())
        .spawn(move || read_lines(io::BufReader::new(input), &lines_in, &noted))?;
    let writer = thread::Builder::new()
        .name("answers".into())
        .spawn(move || write_lines(output, answers_out))?;

    answer_lines(trainer, &lines, &answers, &cancelled);

    drop((lines, answers));
    // If stdout was closed, the reader may still wait for a line. It is not joined, and
    // ends with the process.
    match writer.join() {
        Ok(true) => reader.join().unwrap_or_else(|_| Err(io::Error::other("the reader panicked"))),
        _ => Ok(()),
    }
}

/// A line, or the reason why it cannot be read.
type JobLine = Result<Vec<u8>, String>;

/// The job that was cancelled last. One is enough, because the daemon asks for one job at
/// a time.
#[derive(Clone, Default)]
struct CancelledJob(Arc<Mutex<Option<String>>>);

impl CancelledJob {
    /// Notes the job of a [`Cancel`] line. Returns false for any other line.
    fn note(&self, line: &[u8]) -> bool {
        if line.len() > CANCEL_LINE_BYTES_MAX {
            return false;
        }
        let Ok(cancel) = serde_json::from_slice::<Cancel>(line) else { return false };
        *self.0.lock() = Some(cancel.cancel);
        true
    }

    fn is(&self, job: &str) -> bool {
        self.0.lock().as_deref() == Some(job)
    }
}

fn read_lines(
    mut input: impl BufRead,
    lines: &SyncSender<JobLine>,
    cancelled: &CancelledJob,
) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        let read = (&mut input).take(JOB_LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let ended = line.pop_if(|byte| *byte == b'\n').is_some();
        let line = if line.len() > JOB_LINE_BYTES_MAX {
            input.skip_until(b'\n')?;
            Err(format!(
                "a job line is longer than {JOB_LINE_BYTES_MAX} bytes; send fewer episodes"
            ))
        } else if !ended {
            Err("the last job line is truncated".to_owned())
        } else if line.iter().all(u8::is_ascii_whitespace) || cancelled.note(&line) {
            continue;
        } else {
            Ok(line)
        };
        if lines.send(line).is_err() {
            return Ok(());
        }
    }
}

/// Returns true if every line was written. The trainer learns from the dropped `lines` that no
/// more can be.
fn write_lines(mut output: impl Write, lines: Receiver<LearnerLine>) -> bool {
    for line in &lines {
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

/// Answers lines until the reader ends or the writer is gone.
fn answer_lines(
    mut trainer: Trainer,
    lines: &Receiver<JobLine>,
    answers: &SyncSender<LearnerLine>,
    cancelled: &CancelledJob,
) {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    if answers.send(LearnerLine::Ready { format: JOB_FORMAT, version }).is_err() {
        return;
    }
    for line in lines {
        let mut progress = |progress: JobProgress| {
            if cancelled.is(&progress.job) {
                return ControlFlow::Break(());
            }
            match answers.try_send(LearnerLine::Progress(progress)) {
                Err(TrySendError::Disconnected(_)) => ControlFlow::Break(()),
                // If the queue is full, only this step of a progress bar is lost.
                Ok(()) | Err(TrySendError::Full(_)) => ControlFlow::Continue(()),
            }
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
    progress: &mut dyn FnMut(JobProgress) -> ControlFlow<()>,
) -> LearnerLine {
    match trainer.run(job, progress) {
        Ok(report) => LearnerLine::Done(Box::new(report)),
        Err(error) if error.is::<Cancelled>() => LearnerLine::Cancelled { job: job.id.clone() },
        Err(error) => LearnerLine::Failed { job: job.id.clone(), error: format!("{error:#}") },
    }
}

/// Returns the job of a line, or the answer that refuses it.
///
/// The messages of serde quote the text that they cannot parse, which may be the user's
/// code. Only the position is passed on.
pub fn parse(line: &[u8]) -> Result<Job, LearnerLine> {
    /// The fields of a job of every format. It is read first, because the rest depends on it.
    #[derive(Deserialize)]
    struct Header {
        format: u32,
        #[serde(default)]
        id: String,
    }
    let failed = |job: String, error: String| LearnerLine::Failed { job, error };
    let position =
        |error: &serde_json::Error| format!("at line {} column {}", error.line(), error.column());
    let header: Header = serde_json::from_slice(line).map_err(|error| {
        let what = if error.is_eof() { "is truncated" } else { "is not a job" };
        failed(String::new(), format!("the job line {what} ({})", position(&error)))
    })?;
    if header.format != JOB_FORMAT {
        let error = format!(
            "job format {} is not {JOB_FORMAT}, the one this learner speaks; \
             use daemon and learner of one version",
            header.format
        );
        return Err(failed(header.id, error));
    }
    serde_json::from_slice(line).map_err(|error| {
        failed(
            header.id,
            format!("the job has a field this learner cannot read ({})", position(&error)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answers(input: &'static str) -> Vec<LearnerLine> {
        let output = Output::default();
        serve(input.as_bytes(), output.clone(), Trainer::default()).unwrap();
        let bytes = output.0.lock().clone();
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
    fn it_says_ready_and_ends_when_its_input_ends() {
        assert!(errors("").is_empty());
        assert!(errors("\n  \n").is_empty(), "blank lines are ignored");
    }

    #[test]
    fn every_bad_line_is_answered_and_the_next_one_is_read() {
        let ours = format!("{{\"format\":{JOB_FORMAT}");
        let input = format!(
            "nonsense\n{ours},\"id\":\"a\"\n{{\"format\":700,\"id\":\"b\"}}\n\
             {ours},\"id\":\"c\"}}\n{ours}"
        );
        // The reader thread needs input that lives as long as the program.
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
    fn text_that_cannot_be_parsed_is_not_repeated() {
        for (_, error) in
            errors("{\"format\":3,\"id\":\"a\",\"base\":\"let secret = 1;\"}\n\"let secret\"\n")
        {
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_cancel_line_is_noted_and_is_no_job() {
        let (sender, lines) = sync_channel(4);
        let cancelled = CancelledJob::default();
        let input = &b"{\"cancel\":\"a\"}\n{\"cancel\":\"b\",\"x\":1}\n"[..];
        read_lines(input, &sender, &cancelled).unwrap();
        drop(sender);
        assert!(cancelled.is("a") && !cancelled.is("b"));
        assert_eq!(lines.iter().count(), 1, "a line with another field is answered as a job");
    }

    #[test]
    fn a_line_past_the_limit_is_skipped_whole() {
        let (sender, lines) = sync_channel(4);
        let long = io::repeat(b'x').take(JOB_LINE_BYTES_MAX as u64 + 5).chain(&b"\nnext\n"[..]);
        read_lines(io::BufReader::new(long), &sender, &CancelledJob::default()).unwrap();
        drop(sender);
        let lines: Vec<JobLine> = lines.iter().collect();
        assert!(lines[0].is_err());
        assert_eq!(lines[1], Ok(b"next".to_vec()));
        assert_eq!(lines.len(), 2);
    }
}
