//! Lines between daemon and learner, and records of the log, are read or refused. Those that
//! were read can be written again.
#![no_main]

use feedback::event::Event;
use feedback::job::{Cancel, Job, LearnerLine};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Ok(line) = serde_json::from_slice::<LearnerLine>(line) {
        serde_json::to_string(&line).expect("it can be written");
    }
    if let Ok(job) = serde_json::from_slice::<Job>(line) {
        serde_json::to_string(&job).expect("it can be written");
    }
    if let Ok(event) = serde_json::from_slice::<Event>(line) {
        serde_json::to_string(&event).expect("it can be written");
    }
    let _ = serde_json::from_slice::<Cancel>(line);
});
