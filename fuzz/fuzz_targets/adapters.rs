//! An adapter that was trained elsewhere is imported or refused, whatever its files hold. The input
//! is the configuration, a zero byte, and the weights.
#![no_main]

use libfuzzer_sys::fuzz_target;
use models::gguf::Gguf;
use models::peft::{self, CONFIG_FILE, WEIGHTS_FILE};
use std::fs;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/gguf/adapter");
    let base = Gguf::open(&base).expect("the seed is a GGUF file");
    let folder = tempfile::tempdir().expect("a folder");
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    for name in [CONFIG_FILE, WEIGHTS_FILE] {
        let content = parts.next().unwrap_or_default();
        fs::write(folder.path().join(name), content).expect("it is written");
    }
    let _ = peft::import(folder.path(), &base, "base");
});
