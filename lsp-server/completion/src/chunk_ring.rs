//! The other code that llama.vim puts into a prompt, so that Hone can be measured against it: a
//! ring of chunks that were picked where the user was, without any ranking.
//!
//! A chunk is picked around the cursor when a document is entered, left or saved, and from above
//! and below the window when the cursor has moved far (`autoload/llama.vim` of
//! ggml-org/llama.vim, with its default settings). A server is not told what is copied, so the
//! chunks that llama.vim picks of copied text are missing.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ropey::Rope;
use std::collections::VecDeque;
use std::ops::Range;

/// Lines before the cursor and behind it that the model sees.
pub const PREFIX_LINES: usize = 256;
pub const SUFFIX_LINES: usize = 64;
/// Chunks that are kept. The oldest gives way.
const CHUNKS: usize = 16;
/// Lines around the cursor from which a chunk is picked. A chunk has half as many.
const CHUNK_LINES: usize = 64;
/// A shorter chunk is not picked.
const CHUNK_LINES_MIN: usize = 3;
/// Lines above the cursor from which a chunk is picked when the cursor has moved far.
const SCOPE_LINES: usize = 1024;
/// A cursor that moved by more lines has moved far.
const FAR_LINES: usize = 32;
/// A chunk that is as alike to a newer one gives way to it.
const SAME: f64 = 0.9;
/// A chunk that is as alike to the text around the cursor is removed.
const NEAR: f64 = 0.5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub path: String,
    pub lines: Vec<String>,
}

pub struct ChunkRing {
    chunks: VecDeque<Chunk>,
    /// Where chunks were last picked because the cursor had moved far.
    picked_at: Option<(String, usize)>,
    random: StdRng,
}

impl Default for ChunkRing {
    fn default() -> ChunkRing {
        ChunkRing { chunks: VecDeque::new(), picked_at: None, random: StdRng::seed_from_u64(0) }
    }
}

impl ChunkRing {
    /// The chunks, the oldest first.
    pub fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter()
    }

    /// Picks a chunk around a line, because the document is entered, left or saved.
    pub fn pick_around(&mut self, path: &str, text: &Rope, line: usize) {
        self.pick(path, &lines(text, around(line)));
    }

    /// Notes that a completion is asked for at this line.
    pub fn ask_at(&mut self, path: &str, text: &Rope, line: usize) {
        let near = self.cut(&lines(text, around(line)));
        self.chunks.retain(|chunk| likeness(&chunk.lines, &near) <= NEAR);
        let is_far = match &self.picked_at {
            Some((picked, at)) => picked != path || at.abs_diff(line) > FAR_LINES,
            None => true,
        };
        if is_far {
            let above = line.saturating_sub(SCOPE_LINES)..line.saturating_sub(PREFIX_LINES);
            let below = line + SUFFIX_LINES..line + SUFFIX_LINES + CHUNK_LINES;
            self.pick(path, &lines(text, above));
            self.pick(path, &lines(text, below));
            self.picked_at = Some((path.to_owned(), line));
        }
    }

    fn pick(&mut self, path: &str, text: &[String]) {
        if text.len() < CHUNK_LINES_MIN {
            return;
        }
        let chunk = self.cut(text);
        if self.chunks.iter().any(|known| known.lines == chunk) {
            return;
        }
        self.chunks.retain(|known| likeness(&known.lines, &chunk) <= SAME);
        if self.chunks.len() == CHUNKS {
            self.chunks.pop_front();
        }
        self.chunks.push_back(Chunk { path: path.to_owned(), lines: chunk });
    }

    /// Half as many lines as a chunk is picked from, at random.
    fn cut(&mut self, text: &[String]) -> Vec<String> {
        if text.len() + 1 < CHUNK_LINES {
            return text.to_vec();
        }
        let length = CHUNK_LINES / 2;
        let start = self.random.random_range(0..=text.len().saturating_sub(length));
        text[start..(start + length).min(text.len())].to_vec()
    }
}

fn around(line: usize) -> Range<usize> {
    line.saturating_sub(CHUNK_LINES / 2)..line + CHUNK_LINES / 2
}

fn lines(text: &Rope, range: Range<usize>) -> Vec<String> {
    // A line break at the end begins no line.
    let is_open = text.chars_at(text.len_chars()).reversed().next().is_some_and(|c| c != '\n');
    let end = range.end.min(text.len_lines() - usize::from(!is_open));
    let start = range.start.min(end);
    let line =
        |index: usize| text.line(index).to_string().trim_end_matches(['\r', '\n']).to_owned();
    (start..end).map(line).collect()
}

/// The share of the lines that two chunks have in common, from 0 to 1.
fn likeness(one: &[String], other: &[String]) -> f64 {
    let common = one.iter().filter(|line| other.contains(line)).count();
    2.0 * common as f64 / (one.len() + other.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(name: &str, count: usize) -> Rope {
        let line = |index: usize| format!("{name} {index}\n");
        Rope::from_str(&(0..count).map(line).collect::<String>())
    }

    #[test]
    fn a_short_document_is_one_chunk_and_is_kept_once() {
        let mut ring = ChunkRing::default();
        ring.pick_around("a.rs", &numbered("a", 10), 0);
        ring.pick_around("a.rs", &numbered("a", 10), 5);
        assert_eq!(ring.chunks().count(), 1);
        ring.pick_around("b.rs", &Rope::from_str("x\n"), 0);
        assert_eq!(ring.chunks().count(), 1, "two lines are too few");
    }

    #[test]
    fn the_oldest_chunk_gives_way() {
        let mut ring = ChunkRing::default();
        for file in 0..20 {
            ring.pick_around(&format!("{file}.rs"), &numbered(&format!("f{file}"), 10), 0);
        }
        let paths: Vec<&str> = ring.chunks().map(|chunk| chunk.path.as_str()).collect();
        assert_eq!((paths.len(), paths[0], paths[15]), (16, "4.rs", "19.rs"));
    }

    #[test]
    fn what_is_like_the_text_around_the_cursor_is_removed() {
        let mut ring = ChunkRing::default();
        ring.pick_around("a.rs", &numbered("a", 10), 0);
        ring.pick_around("b.rs", &numbered("b", 10), 0);
        ring.ask_at("a.rs", &numbered("a", 10), 3);
        let paths: Vec<&str> = ring.chunks().map(|chunk| chunk.path.as_str()).collect();
        assert_eq!(paths, ["b.rs"]);
    }

    #[test]
    fn a_cursor_that_moved_far_picks_from_outside_the_window() {
        let mut ring = ChunkRing::default();
        let text = numbered("a", 1000);
        ring.ask_at("a.rs", &text, 500);
        assert_eq!(ring.chunks().count(), 2, "above and below the window");
        ring.ask_at("a.rs", &text, 510);
        assert_eq!(ring.chunks().count(), 2, "not far enough");
    }
}
