//! The typist: types what somebody really wrote, asks for completions on the way, and does with
//! each offer what the developer decides.

use crate::client::{Client, Item, RequestError, TriggerKind};
use crate::developer::{Action, OfferOutcome, PlaceDraws, RejectBy, decide};
use crate::document::Document;
use crate::limits;
use crate::run::ledger::{LabelCounts, Ledger};
use std::time::Instant;
use url::Url;

#[derive(Debug, thiserror::Error)]
pub enum TypistError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("{path}: the typed document differs from the real one at line {line}")]
    Diverged { path: String, line: usize },
}

/// One answer of the server to a completion request.
#[derive(Debug, Clone)]
pub struct CompletionAnswer {
    pub latency_ms: f64,
    /// `None` if the server offered nothing.
    pub offer: Option<LineOffer>,
}

#[derive(Debug, Clone)]
pub struct LineOffer {
    item: Item,
    /// The line as it would be with the offer accepted.
    line: String,
    /// What the offer adds after the cursor. It is empty if the offer would rewrite what is typed
    /// already.
    pub text: String,
}

struct OpenFile {
    uri: String,
    path: String,
    document: Document,
    line: usize,
    truth: String,
    /// Bytes of `truth` that are in the document, with the indentation.
    typed: usize,
}

pub struct Typist<'c> {
    client: &'c Client,
    open: Option<OpenFile>,
    ledger: Ledger,
}

impl<'c> Typist<'c> {
    /// `done` is what was done with the offers of an earlier part of the stream.
    pub fn new(client: &'c Client, done: LabelCounts) -> Typist<'c> {
        Typist { client, open: None, ledger: Ledger::after(done) }
    }

    /// What was done with every offer so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn open(&mut self, path: &str, language: &str, text: &str) -> Result<(), TypistError> {
        let uri = uri(path);
        self.client.open(&uri, language, text)?;
        self.open = Some(OpenFile {
            uri,
            path: path.to_owned(),
            document: Document::new(text.to_owned(), self.client.encoding()),
            line: 0,
            truth: String::new(),
            typed: 0,
        });
        Ok(())
    }

    /// Deletes whole lines, as one change.
    pub fn delete_lines(&mut self, first: usize, count: usize) -> Result<(), TypistError> {
        let Some(open) = &self.open else { return Ok(()) };
        if count == 0 {
            return Ok(());
        }
        let start = open.document.line_start(first);
        let end = open.document.line_start(first + count);
        self.leave_offer()?;
        self.edit(start, end, "")
    }

    /// Presses Enter, which opens a line with its indentation. `ending` is what the real line ends
    /// with: "\n", "\r\n", or nothing at the end of a file.
    pub fn begin_line(
        &mut self,
        line: usize,
        truth: &str,
        indent: usize,
        ending: &str,
    ) -> Result<(), TypistError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let is_next = line == open.line + 1 && open.typed == open.truth.len();
        open.line = line;
        open.truth = truth.to_owned();
        open.typed = indent;
        let (start, indent) = (open.document.line_start(line), &truth[..indent]);
        if is_next && self.ledger.is_live() && ending == "\n" {
            // The cursor is at the end of the line above, where Enter rejects the offer.
            let text = format!("\n{indent}");
            self.ledger.typed(&text);
            return self.edit(start - 1, start - 1, &text);
        }
        self.leave_offer()?;
        self.edit(start, start, &format!("{indent}{ending}"))
    }

    /// The cursor moves away from the offer, which an editor then takes off the screen. This is no
    /// verdict.
    fn leave_offer(&mut self) -> Result<(), TypistError> {
        if let Some(id) = self.ledger.left() {
            self.client.did_reject(&id, "hidden")?;
        }
        Ok(())
    }

    /// Types on up to byte `target` of the line, or nothing if the cursor is there already.
    pub fn type_to(&mut self, target: usize) -> Result<(), TypistError> {
        while let Some(open) = &mut self.open
            && open.typed < target
        {
            let rest = &open.truth[open.typed..target];
            // While an offer is shown, the text is typed character by character. Otherwise a chunk
            // that happens to agree with the offer would look like an acceptance.
            let length = if self.ledger.is_live() { first_char_len(rest) } else { chunk_len(rest) };
            let chunk = rest[..length].to_owned();
            let at = open.document.line_start(open.line) + open.typed;
            open.typed += length;
            self.ledger.typed(&chunk);
            self.edit(at, at, &chunk)?;
        }
        Ok(())
    }

    /// Whether the cursor is exactly at this byte of the line. An accepted offer may have moved it
    /// further.
    pub fn is_at(&self, point: usize) -> bool {
        self.open.as_ref().is_some_and(|open| open.typed == point)
    }

    /// The document up to the cursor.
    pub fn before(&self) -> String {
        self.open.as_ref().map_or_else(String::new, |open| {
            let cursor = open.document.line_start(open.line) + open.typed;
            open.document.text()[..cursor].to_owned()
        })
    }

    /// Asks for a completion at the cursor.
    pub fn ask(&mut self) -> Result<CompletionAnswer, TypistError> {
        let Some(open) = &self.open else {
            return Ok(CompletionAnswer { latency_ms: 0.0, offer: None });
        };
        let line_start = open.document.line_start(open.line);
        let cursor = open.document.position(line_start + open.typed);
        let asked = Instant::now();
        let items = self.client.inline_completion(&open.uri, cursor, TriggerKind::Automatic)?;
        let latency_ms = asked.elapsed().as_secs_f64() * 1e3;

        let offer = items.into_iter().next().map(|item| {
            let (start, end) = match item.range {
                None => (open.typed, open.typed),
                Some(range) => {
                    let column =
                        |position| open.document.offset(position).saturating_sub(line_start);
                    (column(range.start), column(range.end))
                }
            };
            let current = open.document.line(open.line);
            let end = end.clamp(0, current.len());
            let start = start.min(end);
            let line = format!("{}{}{}", &current[..start], item.insert_text, &current[end..]);
            let text =
                line.strip_prefix(&open.truth[..open.typed]).map(str::to_owned).unwrap_or_default();
            LineOffer { item, line, text }
        });
        Ok(CompletionAnswer { latency_ms, offer })
    }

    /// Looks at the offer and does what the developer decides.
    pub fn respond(
        &mut self,
        offer: &LineOffer,
        draws: PlaceDraws,
        noise: f64,
    ) -> Result<OfferOutcome, TypistError> {
        let Some(open) = &self.open else { return Ok(OfferOutcome::TypedOn) };
        let id = &offer.item.id;
        let rest = open.truth[open.typed..].to_owned();
        self.client.did_show(&offer.item)?;
        self.ledger.shown(id, &offer.text);
        self.client.advance_clock(limits::LOOK_MS)?;

        let of = offer.text.chars().count();
        match decide(&offer.text, &rest, draws, noise) {
            Action::Accept => {
                self.accept(offer)?;
                self.advance(offer.text.len());
                Ok(OfferOutcome::Accepted { chars: of })
            }
            Action::Mend { head, tail } => {
                let start = self.accept(offer)?;
                let end = start + offer.text.len();
                self.edit(start + head, end - tail, &rest[head..rest.len() - tail])?;
                self.advance(rest.len());
                let stayed = [&rest[..head], &rest[rest.len() - tail..]];
                let chars = stayed.iter().map(|part| part.chars().count()).sum();
                Ok(OfferOutcome::Mended { chars, of })
            }
            Action::Undo => {
                let start = self.accept(offer)?;
                self.edit(start, start + offer.text.len(), "")?;
                Ok(OfferOutcome::Undone { of })
            }
            // The next character that is typed rejects it.
            Action::Reject(RejectBy::TypingOn) => Ok(OfferOutcome::TypedOn),
            Action::Reject(RejectBy::Escape) => {
                self.client.did_reject(id, "esc")?;
                self.ledger.escaped();
                Ok(OfferOutcome::Escaped)
            }
            Action::Reject(RejectBy::Waiting) => {
                self.client.advance_clock(limits::WAIT_MS)?;
                self.ledger.timed_out();
                Ok(OfferOutcome::TimedOut)
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        if let Some(open) = &mut self.open {
            open.typed += bytes;
        }
    }

    /// Types what is left of the line and checks it.
    pub fn finish_line(&mut self) -> Result<(), TypistError> {
        let Some(length) = self.open.as_ref().map(|open| open.truth.len()) else { return Ok(()) };
        self.type_to(length)?;
        let Some(open) = &self.open else { return Ok(()) };
        if open.document.line(open.line) != open.truth {
            return Err(TypistError::Diverged { path: open.path.clone(), line: open.line + 1 });
        }
        Ok(())
    }

    /// Closes the file. If it was typed to its end, `expected` is the text that it must have now.
    pub fn close(&mut self, expected: Option<&str>) -> Result<(), TypistError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if let Some(expected) = expected
            && open.document.text() != expected
        {
            let line = open
                .document
                .text()
                .lines()
                .zip(expected.lines())
                .take_while(|(typed, real)| typed == real)
                .count();
            return Err(TypistError::Diverged { path: open.path, line: line + 1 });
        }
        self.client.close(&open.uri)?;
        self.ledger.closed();
        Ok(())
    }

    fn edit(&mut self, start: usize, end: usize, text: &str) -> Result<(), TypistError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let range = open.document.replace(start, end, text);
        Ok(self.client.change(&open.uri, Some(range), text)?)
    }

    /// Does what an editor does on Tab: first the change, then the command. Returns where in the
    /// document the text of the offer begins.
    fn accept(&mut self, offer: &LineOffer) -> Result<usize, TypistError> {
        let Some(open) = &mut self.open else { return Ok(0) };
        let start = open.document.line_start(open.line);
        let end = start + open.document.line(open.line).len();
        let item = &offer.item;
        let cursor = open.document.position(end);
        let range = item.range.unwrap_or(crate::document::Range { start: cursor, end: cursor });
        self.client.change(&open.uri, Some(range), &item.insert_text)?;
        open.document.replace(start, end, &offer.line);
        self.client.accept(&item.id)?;
        self.ledger.accepted();
        Ok(start + open.typed)
    }
}

/// The root is invented, so that the paths in the daemon's log are the same on every machine.
fn uri(path: &str) -> String {
    let mut uri = "file:///rehearsal".to_owned();
    if let Ok(mut url) = Url::parse("file:///rehearsal") {
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path.split('/'));
        }
        uri = url.into();
    }
    uri
}

fn first_char_len(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Bytes of the next word with the blanks before it, or of one character that is no word.
fn chunk_len(text: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let blanks = text.len() - text.trim_start_matches(' ').len();
    let word = text[blanks..].find(|c| !is_word(c)).unwrap_or(text.len() - blanks);
    if word > 0 { blanks + word } else { blanks.max(first_char_len(text)) }
}
