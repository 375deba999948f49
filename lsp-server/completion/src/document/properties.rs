//! Properties of a document that hold for any changes a client sends: the text is the one that a
//! plain model of the protocol gives, and the recorded edit turns the old text into the new one.

use crate::document::{Document, Encoding, Position};
use crate::postprocess::NearbyText;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SCENARIOS: u64 = 4_000;
const STEPS: usize = 12;
const PIECES: &[&str] =
    &["", "x", "let é = \"😀\";", "\n", "\r\n", "a\nb\n", "😀", "\u{2028}", "\0"];

/// The lines as LSP counts them: `\n`, `\r\n` or `\r` ends a line.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = vec![];
    let mut start = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let length = match bytes[at] {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => 2,
            b'\r' | b'\n' => 1,
            _ => 0,
        };
        at += length.max(1);
        if length > 0 {
            lines.push(&text[start..at]);
            start = at;
        }
    }
    lines.push(&text[start..]);
    lines
}

/// The byte offset of a position as the protocol defines it.
fn offset(text: &str, position: Position, encoding: Encoding) -> usize {
    let lines = lines(text);
    let Some(line) = lines.get(position.line as usize) else { return text.len() };
    let start: usize = lines[..position.line as usize].iter().map(|line| line.len()).sum();
    let content = line.trim_end_matches(['\r', '\n']);
    let (mut units, mut bytes) = (0, 0);
    for c in content.chars() {
        units += match encoding {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
        };
        if units > position.column as usize {
            break;
        }
        bytes += c.len_utf8();
    }
    start + bytes
}

fn place(rng: &mut StdRng) -> Position {
    let mut number = |limit: u32| match rng.random_range(0..12) {
        0 => u32::MAX,
        _ => rng.random_range(0..limit),
    };
    Position { line: number(6), column: number(20) }
}

#[test]
fn any_changes_give_the_text_that_the_protocol_defines() {
    for seed in 0..SCENARIOS {
        let mut rng = StdRng::seed_from_u64(seed);
        let encoding = if seed % 2 == 0 { Encoding::Utf16 } else { Encoding::Utf8 };
        let (path, language) = ("a.rs".to_owned(), "rust".to_owned());
        let mut document = Document { path, language, version: 0, text: "".into() };
        let mut model = String::new();
        for _ in 0..STEPS {
            let inserted = PIECES[rng.random_range(0..PIECES.len())];
            let range = (rng.random_range(0..8) > 0).then(|| (place(&mut rng), place(&mut rng)));
            let (start, end) = match range {
                None => (0, model.len()),
                Some((start, end)) => {
                    (offset(&model, start, encoding), offset(&model, end, encoding))
                }
            };
            let before = model.clone();
            let lines = document.text.len_lines();
            let Ok(edit) = document.apply(range, inserted.to_owned(), encoding) else {
                assert!(range.is_some_and(|(start, _)| start.line as usize > lines), "seed {seed}");
                assert_eq!(document.text.to_string(), before, "seed {seed}");
                continue;
            };
            model.replace_range(start..end.max(start), inserted);
            assert_eq!(document.text.to_string(), model, "seed {seed}");
            // The recorded edit turns the text before into the text after.
            let mut chars: Vec<char> = before.chars().collect();
            let replaced = edit.start..edit.start + edit.removed;
            chars.splice(replaced, edit.inserted.chars());
            assert_eq!(chars.iter().collect::<String>(), model, "seed {seed}");
            let cursor = rng.random_range(0..=before.chars().count());
            let seen = document.seen_at(edit, cursor);
            let mut chars: Vec<char> = before.chars().collect();
            chars.splice(seen.start..seen.start + seen.removed, seen.inserted.chars());
            assert_eq!(chars.iter().collect::<String>(), model, "seed {seed}");
            let at = place(&mut rng);
            if let Ok(found) = document.offset(at, encoding) {
                assert!(found <= document.text.len_chars(), "seed {seed}");
                NearbyText::of(&document.text, found);
            }
        }
    }
}
