use crate::chunks::cut;
use crate::index::TIMES_MAX;
use crate::search::{idf, weight};
use crate::terms::each_term;
use crate::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

fn index(files: &[(&str, &str)]) -> Index {
    let mut index = Index::default();
    for (name, text) in files {
        index.put(name, (*text).into()).unwrap();
    }
    index
}

fn found<'a>(index: &Index, query: Query<'a>) -> Vec<(String, std::ops::Range<usize>)> {
    let hits = index.search(&query).into_iter();
    hits.map(|hit| (hit.file.to_string(), hit.lines)).collect()
}

const LEDGER: &str = "use std::fs;\n\nfn post_entry(ledger: &mut Ledger, cents: u64) {\n    \
    ledger.entries.push(cents);\n    ledger.total += cents;\n}\n\nfn unrelated(circle: Circle) \
    {\n    draw(circle);\n    fill(circle);\n}\n";

#[test]
fn the_chunk_that_shares_rare_names_is_found() {
    let index = index(&[("ledger.rs", LEDGER), ("b.rs", "fn entry_point() {\n    start();\n}\n")]);
    let hits = index.search(&Query { text: "ledger.postEntry(", count: 2, ..Query::default() });
    assert_eq!((hits[0].file.as_ref(), hits[0].lines.clone()), ("ledger.rs", 0..6));
    assert!(hits[0].text.contains("fn post_entry") && !hits[0].text.contains("unrelated"));
    assert_eq!(hits[1].file.as_ref(), "b.rs", "it shares one part of a name");
    assert!(hits[0].share > hits[1].share && hits[0].share <= 1.0 && hits[0].terms > 1);
}

#[test]
fn what_the_prompt_shows_is_not_found() {
    let index = index(&[("ledger.rs", LEDGER)]);
    let query = Query { text: "circle", count: 5, ..Query::default() };
    assert_eq!(found(&index, query), [("ledger.rs".into(), 7..11)]);
    assert!(found(&index, Query { shown: Some(("ledger.rs", &(10..20))), ..query }).is_empty());
    assert!(found(&index, Query { window: LEDGER, ..query }).is_empty());
    assert!(found(&index, Query { may_quote: &|_| false, ..query }).is_empty());
}

#[test]
fn of_near_copies_only_one_is_found() {
    let copy = LEDGER.replace("use std::fs;", "use std::io;");
    let index = index(&[("a.rs", LEDGER), ("b.rs", &copy)]);
    let query = Query { text: "circle", count: 5, ..Query::default() };
    assert_eq!(found(&index, query).len(), 1);
}

#[test]
fn limits_hold_and_a_file_that_is_not_taken_is_not_there() {
    let mut index = Index::new(Limits { files: 2, file_bytes: 100, ..Limits::default() });
    index.put("a", "alpha".into()).unwrap();
    assert_eq!(index.put("a", "x".repeat(101).into()), Err(NotIndexed::TooLong));
    assert!(!index.contains("a"), "its old text is not there either");
    index.put("b", "beta".into()).unwrap();
    index.put("c", "gamma".into()).unwrap();
    assert_eq!(index.put("d", "delta".into()), Err(NotIndexed::Full));
    assert_eq!(index.stats().files, 2);
}

#[test]
fn nothing_of_a_removed_file_is_found() {
    let mut all = index(&[("canary.rs", "fn canary_xyzzy() {\n    sing();\n}\n"), ("b", LEDGER)]);
    let query = Query { text: "canary_xyzzy", count: 9, ..Query::default() };
    let snapshot = all.clone();
    assert!(all.remove("canary.rs") && !all.remove("canary.rs"));
    assert!(all.search(&query).is_empty() && all.text("canary.rs").is_none());
    assert_eq!(snapshot.search(&query).len(), 1, "a clone does not change");
    all.purge();
    assert!(all.search(&query).is_empty());
    let left = all.stats();
    let alone = index(&[("b", LEDGER)]).stats();
    assert_eq!(left, alone, "nothing of it is left");
}

/// BM25 as it is defined, over all chunks of all files: the score of each chunk by file and line.
fn naive(files: &BTreeMap<String, String>, query: &str) -> BTreeMap<(String, usize), f32> {
    let mut chunks = vec![];
    for (name, text) in files {
        for chunk in cut(text) {
            let mut times: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
            each_term(&text[chunk.bytes], |term| *times.entry(term.to_vec()).or_default() += 1);
            let length: u32 = times.values().sum();
            chunks.push((name.clone(), chunk.lines.start, times, length));
        }
    }
    let mut terms = BTreeSet::new();
    each_term(query, |term| {
        terms.insert(term.to_vec());
    });
    let mean = chunks.iter().map(|chunk| chunk.3 as f32).sum::<f32>() / chunks.len() as f32;
    let mut scores = BTreeMap::new();
    for term in terms {
        let with_it = chunks.iter().filter(|chunk| chunk.2.contains_key(&term)).count();
        for (name, line, times, length) in &chunks {
            if let Some(times) = times.get(&term) {
                let worth = weight(*times.min(&TIMES_MAX), *length, mean);
                let score = scores.entry((name.clone(), *line)).or_insert(0.0);
                *score += idf(chunks.len(), with_it) * worth;
            }
        }
    }
    scores
}

/// Files of random functions over a few names.
fn random_file(draws: &mut StdRng) -> String {
    let functions = draws.random_range(0..5);
    let name = |draws: &mut StdRng| format!("name_{}", draws.random_range(0..30));
    let mut text = String::new();
    for _ in 0..functions {
        text += &format!("fn {}() {{\n", name(draws));
        for _ in 0..draws.random_range(3..8) {
            text += &format!(
                "    {}({}, camelCase{});\n",
                name(draws),
                name(draws),
                draws.random_range(0..9)
            );
        }
        text += "}\n\n";
    }
    text
}

/// Whatever is added, replaced and removed, each chunk has the score that BM25's definition gives.
#[test]
fn scores_are_those_of_a_naive_bm25() {
    for seed in 0..60 {
        let mut draws = StdRng::seed_from_u64(seed);
        let (mut index, mut files) = (Index::default(), BTreeMap::new());
        for _ in 0..60 {
            let name = format!("file{}", draws.random_range(0..12));
            if draws.random_bool(0.3) {
                assert_eq!(index.remove(&name), files.remove(&name).is_some());
            } else {
                let text = random_file(&mut draws);
                index.put(&name, text.as_str().into()).unwrap();
                files.insert(name, text);
            }
        }
        let query = "name_1 name_2 camelCase3 NAME_4 nameless";
        let expected = naive(&files, query);
        // Near copies are left out, so some chunks are not among the hits. The best one always is.
        let hits = index.search(&Query { text: query, count: 10_000, ..Query::default() });
        assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
        assert!(!hits.is_empty() || expected.is_empty());
        for hit in &hits {
            let expected = expected[&(hit.file.to_string(), hit.lines.start)];
            assert!((hit.score - expected).abs() < 1e-3, "seed {seed}: {hit:?} {expected}");
        }
        let best = expected.values().fold(0.0f32, |best, score| best.max(*score));
        assert!(hits.first().is_none_or(|hit| (hit.score - best).abs() < 1e-3));
    }
}

#[test]
fn input_that_no_person_wrote_is_bounded() {
    let mut index = Index::default();
    for (name, text) in [
        ("line", "let entry = ledger.post(cents);\n".repeat(30_000)),
        ("digits", "1234567890".repeat(100_000)),
        ("minified", "a.b(c);d.e(f);".repeat(70_000)),
        ("deep", (0..1400).map(|depth| format!("{}x\n", " ".repeat(depth))).collect()),
    ] {
        index.put(name, text.into()).unwrap();
    }
    let stats = index.stats();
    assert!(stats.index_bytes < 4 << 20, "{stats:?}");
    let query = Query { text: "entry ledger post cents", count: 5, ..Query::default() };
    assert_eq!(index.search(&query).len(), 1, "the copies of one line are one");
}
