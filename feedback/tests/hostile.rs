//! Damaged lines and records are read or refused. These are the properties of the fuzz
//! targets in fuzz/, for machines that cannot run those.

use feedback::event::Event;
use feedback::job::{Cancel, Job, LearnerLine};

const ROUNDS: u64 = 20_000;

const LINES: &[&str] = &[
    r#"{"line":"ready","format":3,"version":"0.1.0"}"#,
    r#"{"line":"progress","phase":"train","done":1,"total":9}"#,
    r#"{"line":"failed","job":"v1-1","error":"no"}"#,
    r#"{"line":"cancelled","job":"v1-1"}"#,
    r#"{"cancel":"v1-1"}"#,
    r#"{"seq":0,"at_ms":5,"event":"outcome","id":"1-1","outcome":"accepted","evidence":"command"}"#,
];

/// A linear congruential generator (Knuth's MMIX).
fn draw(state: &mut u64, limit: usize) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize % limit.max(1)
}

#[test]
fn damaged_lines_are_read_or_refused() {
    let mut refused = 0;
    for seed in 0..ROUNDS {
        let mut state = seed;
        let mut line = LINES[draw(&mut state, LINES.len())].as_bytes().to_vec();
        for _ in 0..draw(&mut state, 4) {
            let at = draw(&mut state, line.len());
            match draw(&mut state, 4) {
                0 => line.truncate(at),
                1 => line.insert(at, draw(&mut state, 256) as u8),
                2 => line.extend_from_slice(&b"[[[[[[[[{\"a\":".repeat(draw(&mut state, 200))),
                _ if line.is_empty() => {}
                _ => line[at] = draw(&mut state, 256) as u8,
            }
        }
        let report = serde_json::from_slice::<LearnerLine>(&line).is_err();
        let others = serde_json::from_slice::<Job>(&line).is_err()
            && serde_json::from_slice::<Cancel>(&line).is_err()
            && serde_json::from_slice::<Event>(&line).is_err();
        refused += u64::from(report && others);
    }
    assert!(refused > ROUNDS / 4 && refused < ROUNDS, "{refused}");
}
