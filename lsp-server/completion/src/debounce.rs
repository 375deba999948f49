//! When a key is worth a completion: the user's own rhythm tells.
//!
//! A completion that the next key overtakes is computed for nobody. So a request
//! waits until no further key is likely before its answer would be there. What
//! an answer takes and how long the user's keys stay apart are both watched: on
//! a fast machine, or for a slow hand, nobody waits.

use std::collections::VecDeque;
use std::time::Duration;

/// Latest gaps between keys that are remembered, of each kind.
const GAPS: usize = 32;

/// Gaps of a kind before anything is concluded from them.
const ENOUGH: usize = 8;

/// A longer gap is not typing: the user thinks, or reads.
const PAUSE_MS: u64 = 2_000;

/// Longest wait, in ms: an offer that comes later than that has been given up.
const WAIT_MS: u64 = 300;

/// Longer wait after each offer that was turned down on this line, in ms.
const REJECT_MS: u64 = 100;

/// Share of the old estimate in the new one of what an answer takes.
const ANSWER_MEMORY: f32 = 0.8;

/// Where the cursor stands: within a word keys follow fast, behind it the hand
/// rests more often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorKind {
    InWord,
    Elsewhere,
}

impl CursorKind {
    /// `line_before`: what stands on the line before the cursor.
    pub fn behind(line_before: &str) -> CursorKind {
        match line_before.chars().next_back() {
            Some(last) if last.is_alphanumeric() || last == '_' => CursorKind::InWord,
            _ => CursorKind::Elsewhere,
        }
    }
}

/// One editor's typing, and what its answers took.
#[derive(Debug, Default)]
pub struct Debounce {
    last_key_ms: Option<u64>,
    /// Where the last request last_kind: the gap that follows it is of that kind.
    last_kind: Option<CursorKind>,
    /// In ms, each kind's latest last.
    in_word: VecDeque<u64>,
    elsewhere: VecDeque<u64>,
    /// What an answer of the engine takes, in ms.
    answer_ms: Option<f32>,
}

impl Debounce {
    /// The document was edited.
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

    /// The engine took this long, or was overtaken after it (`whole`: `false`).
    pub fn answered(&mut self, took: Duration, whole: bool) {
        let took = took.as_secs_f32() * 1000.0;
        let old = self.answer_ms.unwrap_or(took);
        // What was overtaken would have taken longer, nobody knows how much.
        if whole || took > old {
            self.answer_ms = Some(ANSWER_MEMORY * old + (1.0 - ANSWER_MEMORY) * took);
        }
    }

    /// A request came; how long the engine is not asked yet. `rejects`: offers
    /// turned down on this line.
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

/// The first moment after a key, in ms, from which on most of the gaps that
/// lasted as long lasted until the answer too.
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

    /// A debounce after keys with these gaps, each asked about, and an engine that
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
    fn whoever_types_fluently_is_asked_about_once_the_word_is_out() {
        assert_eq!(wait_ms(&mut typed(&FLUENT, 300), CursorKind::InWord, 0), 100);
    }

    #[test]
    fn an_answer_that_comes_before_the_next_key_is_not_waited_for() {
        assert_eq!(wait_ms(&mut typed(&FLUENT, 20), CursorKind::InWord, 0), 0);
        assert_eq!(wait_ms(&mut typed(&[700; 20], 300), CursorKind::InWord, 0), 0, "a slow hand");
    }

    #[test]
    fn a_steady_stream_of_keys_is_waited_out_but_not_for_ever() {
        assert_eq!(wait_ms(&mut typed(&[150; 40], 200), CursorKind::InWord, 0), 150);
        assert_eq!(wait_ms(&mut typed(&[600; 40], 900), CursorKind::InWord, 0), WAIT_MS.into());
    }

    #[test]
    fn nothing_is_concluded_from_a_few_keys_or_from_other_places() {
        assert_eq!(wait_ms(&mut typed(&FLUENT[..ENOUGH - 1], 300), CursorKind::InWord, 0), 0);
        assert_eq!(wait_ms(&mut typed(&FLUENT, 300), CursorKind::Elsewhere, 0), 0);
    }

    #[test]
    fn what_was_turned_down_here_is_offered_more_hesitantly() {
        let mut debounce = Debounce::default();
        let waits: Vec<_> =
            (0..5).map(|n| wait_ms(&mut debounce, CursorKind::Elsewhere, n)).collect();
        assert_eq!(waits, [0, 100, 200, 300, 300]);
        assert_eq!(wait_ms(&mut debounce, CursorKind::Elsewhere, u32::MAX), WAIT_MS.into());
    }

    #[test]
    fn an_answer_that_was_overtaken_took_at_least_as_long() {
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
