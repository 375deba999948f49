//! No stream makes the reader hold more than has arrived, or end in a panic.
#![no_main]

use hone::protocol::framing::{Frame, Frames};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|wire: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut held = 0;
        let mut frames = Frames::new(wire);
        while let Some(frame) = frames.next().await.expect("memory can be read") {
            if let Frame::Body(body) = frame {
                held += body.len();
            }
        }
        assert!(held <= wire.len());
    });
});
