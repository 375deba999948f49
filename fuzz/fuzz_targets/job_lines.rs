//! What daemon and learner say to each other, and what the log holds: read or refused,
//! and what was read can be said again.
#![no_main]

use feedback::event::Event;
use feedback::job::{Cancel, Job, LearnerLine};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Ok(line) = serde_json::from_slice::<LearnerLine>(line) {
        serde_json::to_string(&line).expect("it can be said");
    }
    if let Ok(job) = serde_json::from_slice::<Job>(line) {
        serde_json::to_string(&job).expect("it can be said");
    }
    if let Ok(event) = serde_json::from_slice::<Event>(line) {
        serde_json::to_string(&event).expect("it can be said");
    }
    let _ = serde_json::from_slice::<Cancel>(line);
});
