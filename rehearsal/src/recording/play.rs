//! Plays a recording to a daemon: with its pauses, its keys and the moves of its caret. The daemon
//! is asked when the recording's editor asked or, where it does not say, when an editor would ask.
//!
//! The person of the recording sees none of the offers. Each is compared with what they wrote next.
//! The pauses pass on the daemon's own clock, so only answers take time. An answer that takes
//! longer than the pause is not waited for, as in an editor, whose next key gives it up. If it is
//! said how long answers count as taking, what is shown does not depend on the machine.

use super::figures::{PlayEnd, PlayFigures};
use super::screen::{Ended, Screen};
use super::written::{compare, next};
use super::{ACCEPTED, Event, Recording, Replacement, What};
use crate::client::{Client, Item, RequestError, TriggerKind, items};
use crate::developer::language;
use crate::document::Document;
use crate::limits;
use crate::run::RunSettings;
use crate::run::arm::{self, Arm, ArmSpec};
use crate::run::interrupt;
use anyhow::{Context, Result};
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};
use url::Url;

/// An editor asks after a move of the caret, if the document was changed within this time.
const CHANGED_LATELY_MS: u64 = 1_000;

/// The part of a recording that is played, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part {
    pub entries: Option<usize>,
    pub seconds: Option<u64>,
    /// How long every answer counts as taking, instead of how long it takes.
    pub latency_ms: Option<u64>,
}

impl Part {
    fn holds(self, event: &Event) -> bool {
        self.entries.is_none_or(|entries| event.entry <= entries)
            && self.seconds.is_none_or(|seconds| event.at_ms <= 1000 * seconds)
    }
}

/// Plays a part of the recording into an arm. `observe` is told the entries so far.
pub fn play(
    recording: &Recording,
    spec: &ArmSpec,
    settings: &RunSettings,
    part: Part,
    mut observe: impl FnMut(usize),
) -> Result<PlayFigures> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let mut arm = Arm::start(spec, settings, arm::temporary_home()?, Some(folder.path()))?;
    let mut player = Player::new(arm.client(), recording, folder.path())?;
    player.latency_ms = part.latency_ms;
    player.figures.arm.clone_from(&spec.name);
    let played = player.play(part, &mut observe);
    let mut figures = player.figures;
    match played {
        Ok(()) => {}
        // Ctrl-C ends the daemon too.
        Err(_) if interrupt::requested() => figures.ended_by = PlayEnd::Interrupted,
        Err(error) => return Err(arm.with_log(error)),
    }
    if figures.ended_by != PlayEnd::Interrupted {
        figures.labels = arm.status()?.episodes;
    }
    if settings.keep_homes
        && let Some(home) = arm.keep_home()
    {
        eprintln!("{} arm: HONE_HOME={}", spec.name, home.display());
    }
    Ok(figures.finished())
}

struct Player<'a> {
    client: &'a Client,
    recording: &'a Recording,
    uris: Vec<String>,
    /// The documents that are open.
    texts: Vec<Option<Document>>,
    /// The document that the person is in.
    current: Option<usize>,
    /// The byte of each document's caret, if there is one and nothing is selected.
    carets: Vec<Option<usize>>,
    screen: Screen,
    /// The offers that turned out right.
    right: HashSet<String>,
    shown: HashSet<String>,
    clock_ms: u64,
    latency_ms: Option<u64>,
    figures: PlayFigures,
}

impl<'a> Player<'a> {
    fn new(client: &'a Client, recording: &'a Recording, folder: &Path) -> Result<Player<'a>> {
        let root = Url::from_file_path(folder).ok().context("the folder has no address")?;
        let uri = |path: &str| {
            let mut url = root.clone();
            if let Ok(mut segments) = url.path_segments_mut() {
                segments.pop_if_empty().extend(path.split('/'));
            }
            String::from(url)
        };
        let documents = &recording.documents;
        Ok(Player {
            client,
            recording,
            uris: documents.iter().map(|document| uri(&document.path)).collect(),
            texts: vec![None; documents.len()],
            current: None,
            carets: vec![None; documents.len()],
            screen: Screen::default(),
            right: HashSet::new(),
            shown: HashSet::new(),
            clock_ms: 0,
            latency_ms: None,
            figures: PlayFigures::default(),
        })
    }

    fn play(&mut self, part: Part, observe: &mut impl FnMut(usize)) -> Result<()> {
        let events = &self.recording.events;
        let last = events.last().map_or(0, |event| event.entry);
        self.figures.of_entries = last;
        let asks = asks(events);
        let mut asks = asks.iter().peekable();
        for (index, event) in events.iter().enumerate() {
            if interrupt::requested() {
                self.figures.ended_by = PlayEnd::Interrupted;
                break;
            }
            if !part.holds(event) {
                self.figures.ended_by = PlayEnd::Limit;
                break;
            }
            self.advance_to(event.at_ms)?;
            self.follow(&event.what)?;
            while let Some(ask) = asks.next_if(|ask| ask.after == index) {
                self.ask(ask, &events[index + 1..])?;
            }
            self.figures.entries = event.entry;
            self.figures.seconds = event.at_ms as f64 / 1e3;
            observe(event.entry);
        }
        let ended = self.screen.end(self.clock_ms);
        self.note(ended);
        Ok(())
    }

    /// Moves the daemon's clock. It may be ahead, because an answer took a while.
    fn advance_to(&mut self, at_ms: u64) -> Result<(), RequestError> {
        let pause = at_ms.saturating_sub(self.clock_ms);
        if pause > 0 {
            self.client.advance_clock(pause)?;
            self.clock_ms = at_ms;
        }
        Ok(())
    }

    fn follow(&mut self, what: &What) -> Result<()> {
        let now_ms = self.clock_ms;
        match what {
            What::Text { document, text } => {
                let ended = self.screen.closed(*document, now_ms);
                self.note(ended);
                if self.texts[*document].is_some() {
                    self.client.close(&self.uris[*document])?;
                }
                let language = language::in_editor(&self.recording.documents[*document].path);
                self.client.open(&self.uris[*document], language, text)?;
                let opened = Document::new(text.clone(), self.client.encoding());
                self.texts[*document] = Some(opened);
                self.carets[*document] = None;
            }
            What::Changed { document, replacements, reason } => {
                self.change(*document, replacements)?;
                self.count(replacements, reason.as_deref());
            }
            What::Selected { document, carets } => {
                let caret = match carets.as_slice() {
                    [caret] if caret.is_empty() => Some(caret.start),
                    _ => None,
                };
                self.current = Some(*document);
                self.carets[*document] = caret;
                let ended = self.screen.moved(*document, caret, now_ms);
                self.leave(ended)?;
            }
            What::Focused { document } => {
                if self.current != Some(*document) {
                    let ended = self.screen.moved(*document, None, now_ms);
                    self.leave(ended)?;
                }
                self.current = Some(*document);
            }
            What::Closed { document } => {
                let ended = self.screen.closed(*document, now_ms);
                self.note(ended);
                if self.texts[*document].take().is_some() {
                    self.client.close(&self.uris[*document])?;
                }
                self.carets[*document] = None;
            }
            What::Asked { .. } | What::Answered { .. } => {}
        }
        Ok(())
    }

    fn change(&mut self, document: usize, replacements: &[Replacement]) -> Result<()> {
        let Some(text) = &mut self.texts[document] else { return Ok(()) };
        let changes = replacements.iter().map(|Replacement { range, text: inserted, .. }| {
            (text.replace(range.start, range.end, inserted), inserted.clone())
        });
        let changes: Vec<_> = changes.collect();
        self.client.change_all(&self.uris[document], &changes)?;
        self.current = Some(document);
        self.carets[document] = match replacements {
            [one] => Some(one.range.start + one.text.len()),
            // The editor says where the carets are.
            _ => None,
        };
        let ended = self.screen.changed(document, replacements, self.clock_ms);
        self.note(ended);
        Ok(())
    }

    fn count(&mut self, replacements: &[Replacement], reason: Option<&str>) {
        let characters: usize =
            replacements.iter().map(|one| one.minimal().1.chars().count()).sum();
        self.figures.characters_put_in += characters;
        if reason == Some(ACCEPTED) {
            self.figures.taken_of_other_tool += 1;
            self.figures.characters_of_other_tool += characters;
        }
    }

    /// Asks for a completion at the caret. `later` is what happens next.
    fn ask(&mut self, ask: &Ask, later: &[Event]) -> Result<()> {
        let Some(document) = self.current else { return Ok(()) };
        let (Some(caret), Some(text)) = (self.carets[document], &self.texts[document]) else {
            return Ok(());
        };
        let position = text.position(caret);
        self.advance_to(ask.at_ms)?;
        self.figures.asked += 1;
        if self.latency_ms.is_some_and(|latency| latency > ask.pause_ms) {
            self.figures.late += 1;
            return Ok(());
        }
        let patience = match self.latency_ms {
            Some(_) => limits::REQUEST,
            None => Duration::from_millis(ask.pause_ms),
        };
        let asked = Instant::now();
        let uri = &self.uris[document];
        let pending = self.client.inline_completion_async(uri, position, TriggerKind::Automatic)?;
        let id = pending.id;
        let answer = match self.client.wait_for(pending, patience) {
            Ok(answer) => answer,
            Err(RequestError::Timeout { .. }) => {
                self.client.notify("$/cancelRequest", json!({"id": id}))?;
                self.figures.late += 1;
                return Ok(());
            }
            // The server had something better to do, and says so.
            Err(RequestError::Server { .. }) => {
                *self.figures.reasons.entry("error".into()).or_default() += 1;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let latency = asked.elapsed();
        self.figures.latencies_ms.push(latency.as_secs_f64() * 1e3);
        let reason = answer["_hone"]["reason"].as_str().unwrap_or("unexplained").to_owned();
        *self.figures.reasons.entry(reason).or_default() += 1;
        let latency_ms = self.latency_ms.unwrap_or(latency.as_millis() as u64);
        self.advance_to(self.clock_ms + latency_ms)?;
        let offer = items(answer)?.into_iter().next();
        let Some(item) = offer else {
            let ended = self.screen.end(self.clock_ms);
            self.note(ended);
            return Ok(());
        };
        self.show(&item, document, caret, later)
    }

    fn show(&mut self, item: &Item, document: usize, caret: usize, later: &[Event]) -> Result<()> {
        let now_ms = self.clock_ms;
        let text = self.texts[document].as_ref();
        let Some((rest, replaced)) = text.and_then(|text| rest_of(item, text, caret)) else {
            self.figures.stale += 1;
            let ended = self.screen.end(now_ms);
            self.note(ended);
            return self.client.did_reject(&item.id, "hidden").map_err(Into::into);
        };
        if self.shown.insert(item.id.clone()) {
            self.client.did_show(item)?;
            let lines = 1 + rest.matches('\n').count();
            let written = next(later, document, caret, replaced, lines);
            let agreement = compare(rest, &written.unwrap_or_default());
            self.figures.show(rest, agreement);
            if agreement.is_right {
                self.right.insert(item.id.clone());
            }
        }
        let ended = self.screen.show(&item.id, (document, caret), rest, now_ms);
        self.note(ended);
        Ok(())
    }

    /// An offer is gone because the caret left it, which an editor reports.
    fn leave(&mut self, ended: Option<Ended>) -> Result<()> {
        if let Some(ended) = &ended {
            self.client.did_reject(&ended.id, "hidden")?;
        }
        self.note(ended);
        Ok(())
    }

    fn note(&mut self, ended: Option<Ended>) {
        let Some(Ended { id, ms, flickered }) = ended else { return };
        let seconds = ms as f64 / 1e3;
        self.figures.flicker += usize::from(flickered);
        self.figures.seconds_on_screen += seconds;
        if self.right.contains(&id) {
            self.figures.seconds_right_on_screen += seconds;
        }
    }
}

/// Returns what an item adds behind the caret, and what it replaces there. It is nothing if the
/// item does not fit the text.
fn rest_of<'t>(item: &'t Item, text: &'t Document, caret: usize) -> Option<(&'t str, &'t str)> {
    let (start, end) = match item.range {
        None => (caret, caret),
        Some(range) => (text.offset(range.start), text.offset(range.end)),
    };
    let typed = text.text().get(start..caret)?;
    let replaced = text.text().get(caret..end)?;
    let rest = item.insert_text.strip_prefix(typed)?;
    (!rest.is_empty()).then_some((rest, replaced))
}

/// When the daemon is asked.
#[derive(Debug, PartialEq, Eq)]
struct Ask {
    /// The index of the event after which it is.
    after: usize,
    at_ms: u64,
    /// The time until the person does something else.
    pause_ms: u64,
}

/// The requests of the recording's own editor or, if it has none, those that an editor would make:
/// a little after a change, or after a move of the caret soon after one.
fn asks(events: &[Event]) -> Vec<Ask> {
    let is_told = events.iter().any(|event| matches!(event.what, What::Asked { .. }));
    let mut asks = Vec::new();
    let mut changed: Option<(usize, u64)> = None;
    for (after, event) in events.iter().enumerate() {
        let is_asked = match &event.what {
            What::Changed { document, .. } => {
                changed = Some((*document, event.at_ms));
                !is_told
            }
            What::Selected { document, .. } => {
                let is_lately = changed.is_some_and(|(last, at_ms)| {
                    last == *document && event.at_ms - at_ms < CHANGED_LATELY_MS
                });
                !is_told && is_lately
            }
            What::Asked { .. } => true,
            _ => false,
        };
        if !is_asked {
            continue;
        }
        let next = events[after + 1..].iter().find(|event| event.acts_in().is_some());
        let pause_ms = next.map_or(limits::REQUEST.as_millis() as u64, |next| {
            next.at_ms.saturating_sub(event.at_ms)
        });
        let wait_ms = if is_told { 0 } else { limits::ASK_AFTER_MS };
        if is_told || pause_ms > wait_ms {
            let at_ms = event.at_ms + wait_ms;
            asks.push(Ask { after, at_ms, pause_ms: pause_ms - wait_ms });
        }
    }
    asks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Encoding, Position, Range};
    use serde_json::Value;

    fn event(at_ms: u64, what: What) -> Event {
        Event { entry: 1, at_ms, what }
    }

    fn changed() -> What {
        What::Changed { document: 0, replacements: vec![], reason: None }
    }

    fn moved() -> What {
        What::Selected { document: 0, carets: vec![] }
    }

    #[test]
    fn an_editor_asks_once_the_keys_rest() {
        let events = [
            event(0, moved()),
            event(2_000, changed()),
            event(2_001, moved()),
            event(2_040, changed()),
            event(2_041, moved()),
            event(2_400, moved()),
            event(9_000, moved()),
        ];
        let expected = [
            Ask { after: 4, at_ms: 2_091, pause_ms: 309 },
            Ask { after: 5, at_ms: 2_450, pause_ms: 6_550 },
        ];
        assert_eq!(asks(&events), expected, "a move long after a change asks for nothing");
    }

    #[test]
    fn where_the_recording_tells_of_requests_they_are_asked() {
        let asked = What::Asked { document: 0, request: 7 };
        let events = [event(0, changed()), event(500, asked), event(530, changed())];
        assert_eq!(asks(&events), [Ask { after: 1, at_ms: 500, pause_ms: 30 }]);
    }

    #[test]
    fn a_part_is_so_many_entries_or_seconds() {
        let event = |entry, at_ms| Event { entry, at_ms, what: moved() };
        let part = |entries, seconds| Part { entries, seconds, latency_ms: None };
        assert!(part(None, None).holds(&event(9, 9_000)));
        assert!(part(Some(9), Some(9)).holds(&event(9, 9_000)));
        assert!(!part(Some(8), None).holds(&event(9, 9_000)));
        assert!(!part(None, Some(8)).holds(&event(9, 9_000)));
    }

    #[test]
    fn an_item_that_does_not_continue_the_text_is_stale() {
        let text = Document::new("let x = f()\n".into(), Encoding::Utf16);
        let item = |insert_text: &str, from, to| Item {
            insert_text: insert_text.into(),
            range: Some(Range {
                start: Position { line: 0, character: from },
                end: Position { line: 0, character: to },
            }),
            id: "1".into(),
            raw: Value::Null,
        };
        assert_eq!(rest_of(&item("f(a);", 8, 11), &text, 10), Some(("a);", ")")));
        assert_eq!(rest_of(&item("a", 10, 10), &text, 10), Some(("a", "")));
        assert_eq!(rest_of(&item("g(a)", 8, 11), &text, 10), None, "another text before it");
        assert_eq!(rest_of(&item("a", 11, 11), &text, 10), None, "another place");
        assert_eq!(rest_of(&item("f(", 8, 10), &text, 10), None, "nothing to add");
    }
}
