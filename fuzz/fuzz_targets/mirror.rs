//! What the forwarder keeps of an editor survives whatever either side says.
#![no_main]

use hone::daemon::editor_state::Mirror;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|messages: Vec<(bool, Vec<u8>)>| {
    let mut mirror = Mirror::default();
    for (from_editor, body) in messages {
        if from_editor {
            mirror.editor_says(&body);
        } else {
            mirror.daemon_says(&body);
        }
    }
    for message in mirror.rejoin().to_daemon {
        let read: Result<serde_json::Value, _> = serde_json::from_slice(&message);
        assert!(read.is_ok());
    }
});
