//! A settings file is taken or refused, and one that was taken can be written.
#![no_main]
#![allow(dead_code)]

#[path = "../../lsp-server/src/config/mod.rs"]
mod config;
#[path = "../../lsp-server/src/ignored.rs"]
mod ignored;

/// The one thing the settings need of the engine.
mod engine {
    pub mod llama {
        pub const MAX_TOKENS: usize = 128;
    }
}

/// And of the daemon.
mod daemon {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

use libfuzzer_sys::fuzz_target;
use std::io::Write;

fuzz_target!(|text: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text).expect("it is written");
    if let Ok(config) = config::Config::load(file.path()) {
        toml::to_string(&config).expect("it can be written");
    }
});
