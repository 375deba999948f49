//! Edits of a document by ranges of any kind: the recorded edit turns the text before the change
//! into the text after it.
#![no_main]

use arbitrary::Arbitrary;
use completion::document::{Document, Encoding, Position};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Change {
    range: Option<[(u32, u32); 2]>,
    inserted: String,
    cursor: usize,
}

#[derive(Arbitrary, Debug)]
struct Scenario {
    utf8: bool,
    text: String,
    changes: Vec<Change>,
}

fuzz_target!(|scenario: Scenario| {
    let encoding = if scenario.utf8 { Encoding::Utf8 } else { Encoding::Utf16 };
    let (path, language, text) = (String::new(), String::new(), scenario.text.as_str().into());
    let mut document = Document { path, language, version: 0, text };
    for Change { range, inserted, cursor } in scenario.changes {
        let place = |(line, column)| Position { line, column };
        let range = range.map(|[start, end]| (place(start), place(end)));
        if let Some((start, _)) = range
            && let Ok(offset) = document.offset(start, encoding)
        {
            assert!(offset <= document.text.len_chars());
        }
        let mut before = document.text.clone();
        let Ok(edit) = document.apply(range, inserted, encoding) else { continue };
        let edit = document.seen_at(edit, cursor % (before.len_chars() + 1));
        before.remove(edit.start..edit.start + edit.removed);
        before.insert(edit.start, &edit.inserted);
        assert_eq!(before, document.text);
    }
});
