//! The forwarder's copy of an editor's state survives any message of the editor or the daemon,
//! and can be replayed.
#![no_main]

use hone::daemon::editor_state::EditorState;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|messages: Vec<(bool, Vec<u8>)>| {
    let mut state = EditorState::default();
    for (from_editor, body) in messages {
        if from_editor {
            state.from_editor(&body);
        } else {
            state.from_daemon(&body);
        }
    }
    for message in state.replay().to_daemon {
        let read: Result<serde_json::Value, _> = serde_json::from_slice(&message);
        assert!(read.is_ok());
    }
});
