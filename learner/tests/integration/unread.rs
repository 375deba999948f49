//! A daemon that is killed closes both pipes of its learner.

use crate::common::{episode, job, write_gguf};
use feedback::event::Outcome;
use feedback::job::LearnerLine;
use learner::job::lines;
use learner::job::trainer::Trainer;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Takes nothing, and tells when nobody writes any more.
struct Closed(Sender<()>);

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// Has the lines once the output is closed.
struct Late(Receiver<()>, io::Cursor<Vec<u8>>);

impl Read for Late {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.1.position() == 0 {
            self.0.recv().unwrap();
        }
        self.1.read(bytes)
    }
}

#[test]
fn a_job_whose_answer_nobody_reads_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let sha256 = write_gguf(&folder.path().join("base.gguf"), "qwen2", 11);
    let accepted = |seq| episode(seq, &sha256, &[0, 1, 2], Outcome::Accepted);
    let job = job(folder.path(), &sha256, "unread", (0..6).map(accepted).collect());
    let mut line = serde_json::to_vec(&job).unwrap();
    line.push(b'\n');
    let (closed, is_closed) = channel();
    let input = Late(is_closed, io::Cursor::new(line));
    lines::serve(input, Closed(closed), Trainer::default()).unwrap();
    assert!(!job.adapter_out.exists(), "it is given up before its end");
    let read = lines::run(&mut Trainer::default(), &job, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(read, LearnerLine::Done(_)), "{read:?}");
    assert!(job.adapter_out.exists());
}
