//! Model and adapter files are read or refused, whatever they hold. libFuzzer's own limit on
//! memory (2 GiB, `-malloc_limit_mb`) finds an allocation by a length that a file claims.
#![no_main]

use libfuzzer_sys::fuzz_target;
use models::adapter::LoraAdapter;
use models::gguf::Gguf;
use models::vocab::Vocab;
use std::io::Write;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("it is written");
    if let Ok(gguf) = Gguf::open(file.path()) {
        let _ = Vocab::from_gguf(&gguf);
    }
    let _ = LoraAdapter::read(file.path());
});
