use crate::compare::{is_blank, is_word_byte, solid_bytes};
use crate::find::{OWN_PLACES_MAX, PLACES_MAX};
use crate::index::{TEXT_BYTES_MAX, TYPED_BYTES_MAX, TYPED_MAX};
use crate::tokens::tokens;
use crate::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

fn memory(files: &[(&str, &str)]) -> Memory {
    let mut memory = Memory::default();
    for (name, text) in files {
        memory.put(name, (*text).into()).unwrap();
    }
    memory
}

/// A query at the `|` of a document.
fn at(marked: &str) -> Query<'_> {
    let (before, after) = marked.split_once('|').unwrap();
    Query { file: "/p/src/here.rs", before, after, ..Query::default() }
}

const SAVED: &str = "fn save(&self) {\n    let path = self.folder.join(NAME);\n    \
    std::fs::write(&path, text)?;\n    Ok(())\n}\n";

#[test]
fn a_line_goes_on_as_it_did_in_another_file() {
    let memory = memory(&[("/p/src/save.rs", SAVED)]);
    let matches = memory.find(&at("let path = self.folder.jo|\n"));
    assert_eq!(matches[0].line(), "in(NAME);");
    assert_eq!(matches[0].source, Source::Repository { folders: 0 });
    assert_eq!((matches[0].matched, matches[0].exact), (22, 25));
    assert_eq!((matches[0].agreement, matches[0].places), (1.0, 1));
    assert_eq!(&*matches[0].file, "/p/src/save.rs");
    assert!(SAVED[matches[0].offset..].starts_with("in(NAME)"));
}

#[test]
fn blanks_may_differ_but_words_and_lines_must_not() {
    let memory = memory(&[("a.rs", SAVED)]);
    let first = |marked: &str| memory.find(&at(marked)).first().map(|m| m.text.clone());
    assert_eq!(first("let  path=self . folder.join( |").unwrap(), "NAME);");
    assert!(first("letpath = self.folder.join(|").is_some(), "it matches from `path` on");
    assert_eq!(memory.find(&at("letpath = self.folder.join(|"))[0].matched, 22);
    assert!(first("let path = self.folder.\njoin(|").is_none());
    assert_eq!(first("self.folder.join(NAME);\n\n\t|").unwrap(), "std::fs::write(&path, text)?;");
    assert_eq!(first("path = self.folder.join(NAME);|"), None, "only one line is wanted");
    let query = Query { lines: 2, ..at("path = self.folder.join(NAME);|") };
    assert_eq!(memory.find(&query)[0].text, "\n    std::fs::write(&path, text)?;");
}

#[test]
fn what_stands_behind_the_cursor_is_compared_and_left_out() {
    let memory = memory(&[("a.rs", SAVED)]);
    let found =
        memory.find(&at("let path = self.folder.join(|);\n\n  std::fs::write(&path, text)?;"));
    assert_eq!(found[0].text, "NAME");
    assert!(found[0].rest_agrees && found[0].next_line_agrees);
    let found = memory.find(&at("let path = self.folder.join(|, other)\nnext();"));
    assert_eq!(found[0].text, "NAME);");
    assert!(!found[0].rest_agrees && !found[0].next_line_agrees);
}

#[test]
fn the_document_itself_is_searched_as_it_stands() {
    let memory = memory(&[("/p/src/here.rs", "let a = old.text.of(this);\n")]);
    let found = memory.find(&at("x.post(cents);\ny();\nx.post(|\nz();\nx.post(euros);\n"));
    let seen: Vec<_> = found.iter().map(|found| (found.line(), found.source)).collect();
    assert_eq!(
        seen,
        [("euros);", Source::OwnFile { lines: 2 }), ("cents);", Source::OwnFile { lines: 2 }),]
    );
    assert_eq!(found[0].agreement, 0.5);
    assert!(memory.find(&at("let a = old.text.of(|")).is_empty(), "its old text does not count");
}

#[test]
fn what_was_typed_comes_before_the_repository() {
    let mut memory = memory(&[("/p/lib/a.rs", "let total = ledger.sum(all);\n")]);
    memory.put_typed("/p/src/b.rs", "let total = ledger.sum(new);\n", 1_000);
    let found = memory.find(&Query { now_ms: 1_500, ..at("let total = ledger.sum(|") });
    let seen: Vec<_> = found.iter().map(|found| (found.line(), found.source)).collect();
    assert_eq!(
        seen,
        [("new);", Source::Typed { age_ms: 500 }), ("all);", Source::Repository { folders: 2 }),]
    );
    assert!(memory.remove_typed_since(1_000) && !memory.remove_typed_since(0));
    assert_eq!(memory.find(&at("let total = ledger.sum(|")).len(), 1);
    let only = |name: &str| name.ends_with("none");
    assert!(memory.find(&Query { may_quote: &only, ..at("let total = ledger.sum(|") }).is_empty());
}

#[test]
fn no_byte_of_a_removed_file_is_found() {
    let canary = "let canary = cage.open(xyzzy, plugh);\n";
    let mut all = memory(&[("canary.rs", canary), ("other.rs", SAVED)]);
    all.put_typed("canary.rs", canary, 1);
    let query = at("let canary = cage.open(|");
    assert_eq!(all.find(&query).len(), 2);
    assert!(all.remove("canary.rs") && !all.remove("canary.rs"));
    for cut in 1..canary.len() {
        let found = all.find(&Query { before: &canary[..cut], ..query });
        assert!(found.is_empty(), "{found:?}");
    }
    all.purge();
    assert_eq!(all.stats(), memory(&[("other.rs", SAVED)]).stats(), "nothing of it is left");
    assert!(!format!("{all:?}").contains("xyzzy"));
}

#[test]
fn limits_hold() {
    let mut memory = Memory::new(Limits { files: 1, ..Limits::default() });
    memory.put("a", "alpha".into()).unwrap();
    assert_eq!(memory.put("b", "beta".into()), Err(NotIndexed::Full));
    assert_eq!(memory.put("a", "x".repeat(TEXT_BYTES_MAX + 1).into()), Err(NotIndexed::TooLong));
    assert!(!memory.contains("a"), "its old text is not there either");
    for number in 0..2 * TYPED_MAX {
        memory.put_typed("a", &format!("é{}", "é".repeat(TYPED_BYTES_MAX)), number as u64);
    }
    let stats = memory.stats();
    assert_eq!(stats.typed, TYPED_MAX);
    assert!(stats.text_bytes <= TYPED_MAX * TYPED_BYTES_MAX);
}

/// A text as it counts: blanks only between words, and one line break for any.
fn normal(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut normal: Vec<u8> = vec![];
    let mut at = 0;
    while at < bytes.len() {
        let end = at + bytes[at..].iter().take_while(|byte| is_blank(**byte)).count();
        let blanks = &bytes[at..end];
        if blanks.contains(&b'\n') {
            normal.push(b'\n');
        } else if !blanks.is_empty()
            && normal.last().is_some_and(|byte| is_word_byte(*byte))
            && bytes.get(end).is_some_and(|byte| is_word_byte(*byte))
        {
            normal.push(b' ');
        }
        normal.extend(bytes.get(end));
        at = end + 1;
    }
    normal
}

/// How much is the same before both ends, by its definition.
fn naive_match(before: &str, there: &str) -> usize {
    let (a, b) = (normal(before), normal(there));
    let same = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    solid_bytes(&a[a.len() - same..])
}

/// Every place of a text that the cursor may correspond to, with the length of its match.
fn naive(before: &str, text: &str) -> BTreeMap<usize, usize> {
    let is_behind_blank = before.ends_with(|c: char| is_blank(c as u8));
    let trimmed = before.trim_end_matches([' ', '\t']);
    let mut places = BTreeMap::new();
    for end in (1..=text.len()).filter(|end| text.is_char_boundary(*end)) {
        let there = &text[..end];
        let next = text[end..].chars().next();
        let is_at_blank = next.is_some_and(|c| c.is_ascii() && is_blank(c as u8));
        let is_after_blank = there.ends_with(|c: char| c.is_ascii() && is_blank(c as u8));
        if is_behind_blank && is_at_blank || !is_behind_blank && is_after_blank {
            continue;
        }
        let joins = is_behind_blank
            && trimmed.as_bytes().last().is_some_and(|byte| is_word_byte(*byte))
            && text.as_bytes().get(end).is_some_and(|byte| is_word_byte(*byte));
        let blanks_there = there.len() > there.trim_end_matches([' ', '\t']).len();
        if joins && !blanks_there {
            continue;
        }
        let matched = naive_match(trimmed, there.trim_end_matches([' ', '\t']));
        if matched > 0 {
            places.insert(end, matched);
        }
    }
    places
}

/// A random text of few tokens, so that much of it stands more than once.
fn random_text(draws: &mut StdRng, tokens: usize) -> String {
    const PIECES: &[&str] =
        &["a", "bc", " ", "  ", "\n", "\n  ", "(", ")", ".", ";", "é", "let", " = ", "x1", "\t"];
    (0..tokens).map(|_| PIECES[draws.random_range(0..PIECES.len())]).collect()
}

/// Every place that a naive search finds is found if it is long enough, every place found is one of
/// the naive ones, and both tell the same length.
#[test]
fn places_are_those_of_a_naive_search() {
    let mut compared = 0;
    for seed in 0..400 {
        let mut draws = StdRng::seed_from_u64(seed);
        let mut memory = Memory::default();
        let mut files = BTreeMap::new();
        let stock = random_text(&mut draws, 60);
        for _ in 0..12 {
            let name = format!("file{}", draws.random_range(0..5));
            if draws.random_bool(0.2) {
                memory.remove(&name);
                files.remove(&name);
                continue;
            }
            let cut = |draws: &mut StdRng| {
                let mut at = draws.random_range(0..=stock.len());
                while !stock.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let (from, to) = (cut(&mut draws), cut(&mut draws));
            let text = format!(
                "{}{}{}",
                random_text(&mut draws, 9),
                &stock[from.min(to)..from.max(to)],
                random_text(&mut draws, 9)
            );
            memory.put(&name, text.as_str().into()).unwrap();
            files.insert(name, text);
        }
        let mut end = draws.random_range(0..=stock.len());
        while !stock.is_char_boundary(end) {
            end -= 1;
        }
        let before = &stock[..end];
        let found: BTreeMap<(String, usize), usize> = memory
            .find(&Query { before, file: "here", lines: 9, count: 10_000, ..Query::default() })
            .into_iter()
            .filter(|found| &*found.file != "here")
            .map(|found| ((found.file.to_string(), found.offset), found.matched))
            .collect();
        let whole = tokens(before.as_bytes());
        let sure = whole.len().checked_sub(TOKENS_FOUND + 2);
        let sure = sure.map(|first| solid_bytes(&before.as_bytes()[whole[first].start as usize..]));
        for (name, text) in &files {
            for (offset, matched) in naive(before, text) {
                let place = (name.clone(), offset);
                let goes_on = !text[offset..].trim().is_empty();
                if sure.is_some_and(|sure| matched >= sure) && goes_on {
                    assert_eq!(found.get(&place), Some(&matched), "{seed}: {before:?} {text:?}");
                    compared += 1;
                } else if let Some(found) = found.get(&place) {
                    assert_eq!(*found, matched, "{seed}: {before:?} {text:?} {offset}");
                }
            }
        }
        for (name, offset) in found.keys() {
            assert!(naive(before, &files[name]).contains_key(offset), "{seed}: {name} {offset}");
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn input_that_no_person_wrote_is_bounded() {
    let mut memory = Memory::default();
    let line = "let entry = ledger.post(cents);\n";
    let files = [
        ("line", line.repeat(30_000)),
        ("digits", "1234567890".repeat(100_000)),
        ("minified", "a.b(c);d.e(f);".repeat(70_000)),
        ("lock", (0..20_000).map(|n| format!("\"pkg{n}\" = \"{n}.0.{n}\",\n")).collect()),
        ("brackets", "[".repeat(1_000_000)),
    ];
    for (name, text) in &files {
        memory.put(name, text.as_str().into()).unwrap();
    }
    assert!(memory.put("huge", "1234567890".repeat(500_000).into()).is_err());
    assert!(memory.stats().index_bytes < 4 << 20, "{:?}", memory.stats());
    for (_, text) in &files {
        let before = &text[..text.len() / 2 + 7];
        let after = &text[before.len()..];
        let matches = memory.find(&Query { file: "here", before, after, ..Query::default() });
        for found in matches {
            assert!(found.places <= PLACES_MAX + OWN_PLACES_MAX, "{} {}", found.file, found.places);
        }
    }
}
