//! Measures how soon the engine is free after an edit has superseded the request that it computes.
//!
//! The answer to the superseded request (-32800) shows this, because its handler waits for the
//! engine's thread. That thread replies when it has stopped and can take the next request. The edit
//! itself has no answer.

use crate::quantile;
use crate::trace::text_of;
use anyhow::{Context, Result, bail, ensure};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::{Position, Range};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// LSP's code for a request that a newer one replaced.
const CANCELLED: i64 = -32800;

/// Characters above and below the cursor's line. They fill most of the context.
const ABOVE_CHARS: usize = 1400;
const BELOW_CHARS: usize = 450;

/// After this pause the engine has begun to compute.
const ENGINE_START: Duration = Duration::from_millis(20);

/// Requests that are computed to their end, to know how long that takes.
const WHOLE: usize = 3;

/// Requests for one sample at most. Some are answered before their edit comes.
const ATTEMPTS: usize = 20;

const SEED: u64 = 0;

struct Bench<'a> {
    client: &'a Client,
    texts: Vec<String>,
    random: StdRng,
    documents: usize,
}

/// A cursor in a document whose prompt was never computed.
struct CursorPlace {
    uri: String,
    line: u32,
}

pub fn measure(client: &Client, files: &[PathBuf], samples: usize) -> Result<Value> {
    let texts = files.iter().map(|path| text_of(path)).collect::<Result<_>>()?;
    let random = StdRng::seed_from_u64(SEED);
    let mut bench = Bench { client, texts, random, documents: 0 };
    let (mut cold, mut warm) = (vec![], vec![]);
    for _ in 0..WHOLE {
        let place = bench.open()?;
        cold.push(bench.whole(&place, 0)?);
        warm.push(bench.whole(&place, 1)?);
    }
    let median = |times: &mut Vec<f64>| quantile(times, 0.5).unwrap_or_default();
    let (cold, warm) = (median(&mut cold), median(&mut warm));

    let mut reading = bench.samples(samples / 2, |bench, _| {
        let place = bench.open()?;
        bench.supersede(&place, 0, cold - warm)
    })?;
    let place = bench.open()?;
    bench.whole(&place, 0)?;
    let mut decoding = bench.samples(samples.div_ceil(2), |bench, attempt| {
        bench.supersede(&place, attempt + 1, warm)
    })?;
    let mut all = [&reading[..], &decoding[..]].concat();
    Ok(json!({
        "prompt_is_read": row(&mut reading),
        "tokens_are_decoded": row(&mut decoding),
        "all": row(&mut all),
    }))
}

fn row(ms: &mut [f64]) -> Value {
    json!({
        "samples": ms.len(),
        "p50_ms": quantile(ms, 0.5),
        "p95_ms": quantile(ms, 0.95),
        "max_ms": quantile(ms, 1.0),
    })
}

impl Bench<'_> {
    /// Opens a stretch of one of the files under a first line that no other document has.
    fn open(&mut self) -> Result<CursorPlace> {
        self.documents += 1;
        let text = &self.texts[self.documents % self.texts.len()];
        let last = text.len().saturating_sub(ABOVE_CHARS + BELOW_CHARS);
        let at = self.random.random_range(0..=last);
        let at = (at..).find(|&at| text.is_char_boundary(at)).unwrap_or_default();
        let from = at + text[at..].find('\n').context("one line is too few")? + 1;
        let part = |from: usize, chars: usize| text[from..].chars().take(chars).collect::<String>();
        let above = part(from, ABOVE_CHARS);
        let above = &above[..above.rfind('\n').context("lines are too long")? + 1];
        let below = part(from + above.len(), BELOW_CHARS);
        let number = self.documents;
        let head = format!("// {number}: superseded\n{above}");
        let uri = format!("file:///superseded/{number}.rs");
        self.client.open(&uri, "rust", &format!("{head}\n{below}"))?;
        Ok(CursorPlace { uri, line: head.matches('\n').count() as u32 })
    }

    /// Gives the cursor's line a text that no other attempt has. Returns where the line ends.
    fn write_line(&self, place: &CursorPlace, attempt: usize) -> Result<Position> {
        let start = Position { line: place.line, character: 0 };
        let text = format!("let attempt_{attempt} = ");
        let end = Position { line: place.line, character: text.len() as u32 };
        // The range covers what was there, with the key of the last attempt.
        let past = Position { line: place.line + 1, character: 0 };
        let range = Range { start, end: past };
        self.client.change(&place.uri, Some(range), &format!("{text}\n"))?;
        Ok(end)
    }

    /// Returns how many milliseconds a request takes that is not superseded.
    fn whole(&self, place: &CursorPlace, attempt: usize) -> Result<f64> {
        let at = self.write_line(place, attempt)?;
        let began = Instant::now();
        // An invoked request is computed at once and to its end, however unsure the model is.
        self.client.inline_completion(&place.uri, at, TriggerKind::Invoked)?;
        Ok(began.elapsed().as_secs_f64() * 1000.0)
    }

    /// Types a key at a random moment of a request that takes `ms`. Returns how many milliseconds
    /// later the engine is free, unless it was free before the key.
    fn supersede(&mut self, place: &CursorPlace, attempt: usize, ms: f64) -> Result<Option<f64>> {
        let at = self.write_line(place, attempt)?;
        let request = self.client.inline_completion_async(&place.uri, at, TriggerKind::Invoked)?;
        sleep(
            ENGINE_START
                + Duration::from_secs_f64(self.random.random_range(0.0..ms.max(1.0)) / 1000.0),
        );
        let began = Instant::now();
        self.client.change(&place.uri, Some(Range { start: at, end: at }), "x")?;
        match self.client.wait(request) {
            Err(error) if error.code() == Some(CANCELLED) => {
                Ok(Some(began.elapsed().as_secs_f64() * 1000.0))
            }
            Ok(_) => Ok(None),
            Err(error) => bail!(error),
        }
    }

    fn samples(
        &mut self,
        wanted: usize,
        mut attempt: impl FnMut(&mut Self, usize) -> Result<Option<f64>>,
    ) -> Result<Vec<f64>> {
        let mut samples = vec![];
        for number in 0..wanted * ATTEMPTS {
            if samples.len() == wanted {
                break;
            }
            samples.extend(attempt(self, number)?);
        }
        ensure!(samples.len() == wanted, "requests are answered before they can be superseded");
        Ok(samples)
    }
}
