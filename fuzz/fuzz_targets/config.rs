//! A settings file is read or refused. One that was read can be written.
#![no_main]

use settings::Config;
use libfuzzer_sys::fuzz_target;
use std::io::Write;

fuzz_target!(|text: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text).expect("it is written");
    if let Ok(config) = Config::load(file.path()) {
        toml::to_string(&config).expect("it can be written");
    }
});
