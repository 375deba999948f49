//! This repository's own sources stand for ordinary work: hardly any place in them is withheld.

use feedback::secrets::find;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The text that the daemon reads before the cursor: the prompt's prefix, what may be typed after
/// it, and the margin in which a key may begin (`lsp-server`, `privacy::Nearby`).
const BEFORE_CHARS: usize = 1_500 + 1_000 + 4_096;

/// The text that it reads after the cursor: the prompt's suffix and the margin.
const AFTER_CHARS: usize = 500 + 4_096;

/// The window that a prompt itself holds.
const PROMPT_CHARS: usize = 2_000;

/// The cursor stands at every so many characters.
const STEP_CHARS: usize = 500;

/// The share of windows that may be withheld.
const LIMIT_PERCENT: usize = 1;

#[test]
fn hardly_any_window_of_this_repository_is_withheld() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = tracked_files(&root);
    let texts: Vec<(String, Vec<char>)> = files
        .into_iter()
        .filter_map(|file| {
            let text = std::fs::read_to_string(root.join(&file)).ok()?;
            Some((file, text.chars().collect()))
        })
        .collect();
    let prompts = withheld(&texts, PROMPT_CHARS * 3 / 4, PROMPT_CHARS / 4);
    let nearby = withheld(&texts, BEFORE_CHARS, AFTER_CHARS);
    println!("prompts: {prompts:#?}\nall that is searched: {nearby:#?}");
    for share in [prompts, nearby] {
        assert!(share.windows > 5_000, "{}", share.windows);
        assert!(share.withheld * 100 <= share.windows * LIMIT_PERCENT, "{share:#?}");
    }
}

#[derive(Debug)]
struct Share {
    windows: usize,
    withheld: usize,
    /// Windows that are withheld, by file and kind.
    places: BTreeMap<(String, &'static str), usize>,
}

fn withheld(texts: &[(String, Vec<char>)], before: usize, after: usize) -> Share {
    let mut share = Share { windows: 0, withheld: 0, places: BTreeMap::new() };
    for (file, text) in texts {
        for cursor in (0..text.len()).step_by(STEP_CHARS) {
            let window = cursor.saturating_sub(before)..text.len().min(cursor + after);
            let window: String = text[window].iter().collect();
            share.windows += 1;
            if let Some(kind) = find(&window) {
                share.withheld += 1;
                *share.places.entry((file.clone(), kind)).or_default() += 1;
            }
        }
    }
    share
}

fn tracked_files(root: &Path) -> Vec<String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let names = String::from_utf8(listed.expect("git").stdout).expect("names in UTF-8");
    names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
