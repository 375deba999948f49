//! The debounce: how long a request waits for further keys before the engine computes it.
//!
//! A completion that the next key overtakes is computed for nobody, so a request waits until no
//! further key is likely before its answer would be there. The debounce measures how long an answer
//! takes and how far apart the user's keys are. Nobody waits on a fast machine, and nobody who
//! types slowly waits.

use std::collections::VecDeque;
use std::time::Duration;

/// Gaps between keys that are kept for each kind of cursor: the latest ones.
const GAPS: usize = 32;

/// Gaps of one kind that are needed before a request waits.
const ENOUGH: usize = 8;

/// A longer gap is a pause in which the user thinks or reads, not typing.
const PAUSE_MS: u64 = 2_000;

/// The longest wait, in ms. A user does not expect an offer any more that comes later.
const WAIT_MS: u64 = 300;

/// Additional wait for each offer that was rejected on this line, in ms.
const REJECT_MS: u64 = 100;

/// Weight of the old estimate of an answer's duration in the new one.
const ANSWER_MEMORY: f32 = 0.8;

/// The place of the cursor. Within a word keys follow each other fast; behind a word the hand
/// rests more often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorKind {
    InWord,
    Elsewhere,
}

impl CursorKind {
    /// `line_before` is the text before the cursor on its line.
    pub fn behind(line_before: &str) -> CursorKind {
        match line_before.chars().next_back() {
            Some(last) if last.is_alphanumeric() || last == '_' => CursorKind::InWord,
            _ => CursorKind::Elsewhere,
        }
    }
}

/// The typing of one editor, and how long its answers took.
#[derive(Debug, Default)]
pub struct Debounce {
    last_key_ms: Option<u64>,
    /// The kind of cursor of the last request. The next gap is counted for it.
    last_kind: Option<CursorKind>,
    /// The gaps of each kind in ms, the latest last.
    in_word: VecDeque<u64>,
    elsewhere: VecDeque<u64>,
    /// The time that the engine takes for an answer, in ms.
    answer_ms: Option<f32>,
}

impl Debounce {
    /// Notes that the document was edited.
    pub fn key(&mut self, now_ms: u64) {
        let before = self.last_key_ms.replace(now_ms);
        let (Some(before), Some(kind)) = (before, self.last_kind.take()) else { return };
        let gaps = match kind {
            CursorKind::InWord => &mut self.in_word,
            CursorKind::Elsewhere => &mut self.elsewhere,
        };
        gaps.push_back(now_ms.saturating_sub(before));
        if gaps.len() > GAPS {
            gaps.pop_front();
        }
    }

    /// Returns the time since the last edit in ms.
    pub fn idle_ms(&self, now_ms: u64) -> u64 {
        self.last_key_ms.map_or(u64::MAX, |last| now_ms.saturating_sub(last))
    }

    /// Notes how long the engine took. With `whole: false` the answer was overtaken after this
    /// time.
    pub fn answered(&mut self, took: Duration, whole: bool) {
        let took = took.as_secs_f32() * 1000.0;
        let old = self.answer_ms.unwrap_or(took);
        // An answer that was overtaken would have taken longer, and nobody knows by how much.
        if whole || took > old {
            self.answer_ms = Some(ANSWER_MEMORY * old + (1.0 - ANSWER_MEMORY) * took);
        }
    }

    /// Returns how long a request waits before the engine computes it. `rejects` is the number of
    /// offers that were rejected on this line.
    pub fn wait(&mut self, kind: CursorKind, rejects: u32) -> Duration {
        self.last_kind = Some(kind);
        let gaps = match kind {
            CursorKind::InWord => &self.in_word,
            CursorKind::Elsewhere => &self.elsewhere,
        };
        let takes = self.answer_ms.unwrap_or_default() as u64;
        let calm = if gaps.len() < ENOUGH { 0 } else { wait_until_calm(gaps, takes) };
        let unwanted = REJECT_MS.saturating_mul(u64::from(rejects));
        Duration::from_millis(calm.saturating_add(unwanted).min(WAIT_MS))
    }
}

/// The first moment after a key, in ms, from which on most of the gaps that lasted as long also
/// lasted until the answer.
fn wait_until_calm(gaps: &VecDeque<u64>, takes: u64) -> u64 {
    let is_calm = |&after: &u64| {
        let lasting = gaps.iter().filter(|&&gap| gap > after);
        let overtaken = lasting.clone().filter(|&&gap| gap <= after + takes && gap < PAUSE_MS);
        overtaken.count() * 2 <= lasting.count()
    };
    let mut moments: Vec<u64> = gaps.iter().copied().filter(|&gap| gap < WAIT_MS).collect();
    moments.push(0);
    moments.sort_unstable();
    moments.into_iter().find(is_calm).unwrap_or(WAIT_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A debounce after keys with these gaps, with a request after each key and an engine that
    /// takes `takes` ms.
    fn typed(gaps: &[u64], takes: u64) -> Debounce {
        let mut debounce = Debounce::default();
        let mut now = 1_000;
        debounce.key(now);
        for gap in gaps {
            debounce.wait(CursorKind::InWord, 0);
            now += gap;
            debounce.key(now);
        }
        debounce.answered(Duration::from_millis(takes), true);
        debounce
    }

    fn wait_ms(debounce: &mut Debounce, kind: CursorKind, rejects: u32) -> u128 {
        debounce.wait(kind, rejects).as_millis()
    }

    /// Seven keys of ten follow within 120 ms, the others after a second or more.
    const FLUENT: [u64; 20] = [
        90, 110, 100, 1_500, 120, 95, 105, 1_200, 100, 90, 3_000, 110, 115, 100, 1_800, 95, 100,
        1_000, 120, 4_000,
    ];

    #[test]
    fn fluent_typing_waits_until_the_word_is_typed() {
        assert_eq!(wait_ms(&mut typed(&FLUENT, 300), CursorKind::InWord, 0), 100);
    }

    #[test]
    fn a_request_does_not_wait_if_its_answer_comes_before_the_next_key() {
        assert_eq!(wait_ms(&mut typed(&FLUENT, 20), CursorKind::InWord, 0), 0);
        assert_eq!(wait_ms(&mut typed(&[700; 20], 300), CursorKind::InWord, 0), 0, "a slow hand");
    }

    #[test]
    fn a_steady_stream_of_keys_delays_a_request_up_to_the_limit() {
        assert_eq!(wait_ms(&mut typed(&[150; 40], 200), CursorKind::InWord, 0), 150);
        assert_eq!(wait_ms(&mut typed(&[600; 40], 900), CursorKind::InWord, 0), WAIT_MS.into());
    }

    #[test]
    fn few_keys_or_keys_of_another_kind_do_not_delay_a_request() {
        assert_eq!(wait_ms(&mut typed(&FLUENT[..ENOUGH - 1], 300), CursorKind::InWord, 0), 0);
        assert_eq!(wait_ms(&mut typed(&FLUENT, 300), CursorKind::Elsewhere, 0), 0);
    }

    #[test]
    fn each_reject_on_the_line_makes_a_request_wait_longer() {
        let mut debounce = Debounce::default();
        let waits: Vec<_> =
            (0..5).map(|n| wait_ms(&mut debounce, CursorKind::Elsewhere, n)).collect();
        assert_eq!(waits, [0, 100, 200, 300, 300]);
        assert_eq!(wait_ms(&mut debounce, CursorKind::Elsewhere, u32::MAX), WAIT_MS.into());
    }

    #[test]
    fn an_answer_that_was_overtaken_only_raises_the_estimate() {
        let mut debounce = typed(&[150; 40], 20);
        debounce.answered(Duration::from_millis(1), false);
        assert_eq!(wait_ms(&mut debounce, CursorKind::InWord, 0), 0);
        for _ in 0..20 {
            debounce.answered(Duration::from_millis(200), false);
        }
        assert_eq!(wait_ms(&mut debounce, CursorKind::InWord, 0), 150);
    }

    #[test]
    fn the_wait_adapts_to_the_hand() {
        let mut debounce = typed(&FLUENT, 300);
        for gap in 0..GAPS as u64 {
            debounce.wait(CursorKind::InWord, 0);
            debounce.key(1_000_000 + gap * 900);
        }
        assert_eq!(wait_ms(&mut debounce, CursorKind::InWord, 0), 0);
    }

    #[test]
    fn a_word_is_letters_digits_and_underscores() {
        for (line, kind) in [
            ("let fo", CursorKind::InWord),
            ("x_", CursorKind::InWord),
            ("foo.", CursorKind::Elsewhere),
            ("", CursorKind::Elsewhere),
            ("größ", CursorKind::InWord),
        ] {
            assert_eq!(CursorKind::behind(line), kind, "{line}");
        }
    }
}
