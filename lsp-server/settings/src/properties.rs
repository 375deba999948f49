//! A damaged settings file is accepted, or refused with an error that names it.

use crate::Config;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const FILES: u64 = 2_000;

const WHOLE: &str = "\
[model]
name = \"smollm2-135m\"
threads = 2
[completion]
context_chars = 400
[completion.languages]
\"c++\" = false
[lab.ppo]
learning_rate = 1e-4
[lab]
prefix_chars = 700
temperature = 0.5
[privacy]
ignore = [\"*.sql\", \"~/x/\"]
";

#[test]
fn a_damaged_settings_file_is_accepted_or_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..FILES {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut bytes = WHOLE.as_bytes().to_vec();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(0..bytes.len());
            match rng.random_range(0..5) {
                0 => bytes.truncate(at.max(2)),
                1 => bytes[at] = rng.random(),
                2 => bytes.insert(at, b"[]{}\"'=.,\n9-"[rng.random_range(0..12)]),
                3 if bytes.len() > 2 => drop(bytes.remove(at)),
                _ => bytes.extend(b"a.".repeat(rng.random_range(0..500))),
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        match Config::load(&path) {
            Ok(_) => accepted += 1,
            Err(error) => {
                refused += 1;
                let error = format!("{error:#}");
                assert!(error.contains("config.toml"), "seed {seed}: {error}");
                for words in ["invalid type", "TOML parse error", "usize", "expected", "the file"] {
                    assert!(!error.contains(words), "seed {seed}: {error}");
                }
            }
        }
    }
    assert!(accepted > 0 && refused > FILES / 2, "{accepted} accepted, {refused} refused");
}
