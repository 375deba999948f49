//! Position mapping and edits: what is recorded of a change turns the one text into
//! the other.
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
struct Story {
    utf8: bool,
    text: String,
    changes: Vec<Change>,
}

fuzz_target!(|story: Story| {
    let encoding = if story.utf8 { Encoding::Utf8 } else { Encoding::Utf16 };
    let (path, language, text) = (String::new(), String::new(), story.text.as_str().into());
    let mut document = Document { path, language, version: 0, text };
    for Change { range, inserted, cursor } in story.changes {
        let place = |(line, column)| Position { line, column };
        let range = range.map(|[start, end]| (place(start), place(end)));
        if let Some((start, _)) = range
            && let Ok(offset) = document.offset(start, encoding)
        {
            assert!(offset <= document.text.len_chars());
        }
        let mut before = document.text.clone();
        let edit = document.apply(range, inserted, encoding);
        let edit = document.seen_at(edit, cursor % (before.len_chars() + 1));
        before.remove(edit.start..edit.start + edit.removed);
        before.insert(edit.start, &edit.inserted);
        assert_eq!(before, document.text);
    }
});
