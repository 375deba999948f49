//! The typist: types what somebody really wrote, asks for completions on the way, and does with
//! each offer what the developer decides.

mod keys;
mod open_file;
mod tool_edits;
mod tools;

use crate::client::{Client, Item, RequestError, TriggerKind};
use crate::developer::disturbance::Disturbed;
use crate::developer::pairs::closes_of_others;
use crate::developer::{
    Action, Editor, MIN_OFFER_CHARS, Manner, OfferOutcome, PlaceDraws, RejectBy,
};
use crate::document::Document;
use crate::limits;
use crate::run::ledger::{LabelCounts, Ledger};
use open_file::OpenFile;
use std::ops::Range;
use std::path::Path;
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
    /// The reason why the request ended so. `None` if the server does not say.
    pub reason: Option<String>,
}

#[derive(Debug, Clone)]
pub struct LineOffer {
    item: Item,
    /// The bytes of the line that it takes the place of.
    columns: Range<usize>,
    /// What the offer adds after the cursor. It is empty if the offer would rewrite what is typed
    /// already.
    pub text: String,
    /// The marks behind the cursor that it takes the place of. The editor had closed them.
    replaced: String,
    /// The marks that stand behind it then.
    kept: String,
    /// True if this is the first line of an offer of several, and its part of the item's text. The
    /// developer takes such an offer line by line.
    first_of_several: Option<String>,
}

impl LineOffer {
    /// The id that the daemon gave it.
    pub fn id(&self) -> &str {
        &self.item.id
    }

    /// All that the offer adds, of which `text` is the first line.
    fn whole(&self) -> String {
        let below =
            self.first_of_several.as_ref().map_or("", |line| &self.item.insert_text[line.len()..]);
        format!("{}{}", self.text, below.replace("\r\n", "\n"))
    }

    /// Returns how many of the marks behind it the offer closes again.
    fn doubled(&self) -> usize {
        let quote = format!("{}{}", self.replaced, self.kept).chars().next();
        let quote = quote.filter(|mark| matches!(mark, '"' | '\'' | '`'));
        let closed = closes_of_others(&self.text, quote);
        closed.saturating_sub(self.replaced.len()).min(self.kept.len())
    }
}

pub struct Typist<'c> {
    client: &'c Client,
    editor: Editor,
    /// The folder that the paths of files begin at. `None`: its path is not absolute.
    root: Option<Url>,
    /// The file that is typed.
    open: Option<OpenFile>,
    /// URIs of the other files that the editor has open.
    tabs: Vec<String>,
    ledger: Ledger,
}

impl<'c> Typist<'c> {
    /// `done` is what was done with the offers of an earlier part of the stream.
    pub fn new(client: &'c Client, done: LabelCounts) -> Typist<'c> {
        let typist = Typist {
            client,
            editor: Editor::Plain,
            root: None,
            open: None,
            tabs: Vec::new(),
            ledger: Ledger::after(done),
        };
        // An invented root, so that the paths in the daemon's log are the same on every machine.
        typist.in_folder(Path::new("/rehearsal"))
    }

    /// The files that are typed lie in this folder.
    pub fn in_folder(self, folder: &Path) -> Typist<'c> {
        Typist { root: Url::from_file_path(folder).ok(), ..self }
    }

    pub fn with_editor(self, editor: Editor) -> Typist<'c> {
        Typist { editor, ..self }
    }

    /// Returns what was done with every offer so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn open(&mut self, path: &str, language: &str, text: &str) -> Result<(), TypistError> {
        let uri = self.uri(path);
        self.client.open(&uri, language, text)?;
        let document = Document::new(text.to_owned(), self.client.encoding());
        self.open = Some(OpenFile::new(uri, path, language, document));
        Ok(())
    }

    /// The address of a file.
    fn uri(&self, path: &str) -> String {
        let Some(mut url) = self.root.clone() else { return path.to_owned() };
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path.split('/'));
        }
        url.into()
    }

    /// The cursor moves away from the offer, which an editor then takes off the screen. This is no
    /// verdict.
    fn leave_offer(&mut self) -> Result<(), TypistError> {
        if let Some(id) = self.ledger.left() {
            self.client.did_reject(&id, "hidden")?;
        }
        Ok(())
    }

    /// Returns true if the cursor is exactly at this byte of the line. An accepted offer may have
    /// moved it further.
    pub fn is_at(&self, point: usize) -> bool {
        self.open.as_ref().is_some_and(|open| open.typed == point)
    }

    /// The document up to the cursor.
    pub fn before(&self) -> String {
        self.open
            .as_ref()
            .map_or_else(String::new, |open| open.document.text()[..open.cursor()].to_owned())
    }

    /// Asks for a completion at the cursor.
    pub fn ask(&mut self) -> Result<CompletionAnswer, TypistError> {
        let Some(open) = &self.open else {
            return Ok(CompletionAnswer { latency_ms: 0.0, offer: None, reason: None });
        };
        let cursor = open.document.position(open.cursor());
        let asked = Instant::now();
        let automatic = TriggerKind::Automatic;
        let (items, reason) = self.client.explained_completion(&open.uri, cursor, automatic)?;
        let latency_ms = asked.elapsed().as_secs_f64() * 1e3;
        let offer = items.into_iter().next().map(|item| line_offer(open, item));
        Ok(CompletionAnswer { latency_ms, offer: self.on_screen(offer)?, reason })
    }

    /// The offer, if the editor shows it.
    fn on_screen(&mut self, offer: Option<LineOffer>) -> Result<Option<LineOffer>, TypistError> {
        let Some(offer) = offer else {
            // The one that was there goes.
            self.ledger.left();
            return Ok(None);
        };
        let id = &offer.item.id;
        let is_short = offer.text.chars().count() < MIN_OFFER_CHARS;
        if self.editor == Editor::Plain || !is_short || self.ledger.is_shown(id) {
            return Ok(Some(offer));
        }
        self.client.did_reject(id, "hidden")?;
        self.ledger.kept_off(id);
        Ok(None)
    }

    /// Looks at the offer and does what the developer decides. The second value is whether the
    /// offer was accepted and has closed marks twice.
    pub fn respond(
        &mut self,
        offer: &LineOffer,
        draws: PlaceDraws,
        manner: Manner,
        disturbed: &Disturbed,
    ) -> Result<(OfferOutcome, bool), TypistError> {
        self.client.did_show(&offer.item)?;
        self.ledger.shown(&offer.item.id, &offer.whole());
        let look_ms = manner.look_ms(&offer.text);
        let look_ms = match offer.first_of_several {
            // What is taken line by line is taken before it counts as rejected.
            Some(_) => look_ms.min(limits::OFFER_TIMEOUT_MS - 1),
            None => look_ms,
        };
        self.client.advance_clock(look_ms)?;
        let answer = match self.disturb(disturbed)? {
            true => self.decide(offer, draws, manner)?,
            false => (OfferOutcome::TypedOn, false),
        };
        self.settle(disturbed, answer.0.is_accepted())?;
        Ok(answer)
    }

    /// Does what the developer decides about the offer that they look at.
    fn decide(
        &mut self,
        offer: &LineOffer,
        draws: PlaceDraws,
        manner: Manner,
    ) -> Result<(OfferOutcome, bool), TypistError> {
        let Some(open) = &self.open else { return Ok((OfferOutcome::TypedOn, false)) };
        let id = &offer.item.id;
        let doubled = offer.doubled();
        let rest = wanted(&open.truth[open.typed..], offer, doubled).to_owned();
        let of = offer.text.chars().count();
        let outcome = match manner.decide(&offer.text, &rest, draws) {
            Action::Accept => {
                self.accept(offer)?;
                self.advance(offer.text.len());
                OfferOutcome::Accepted { chars: of }
            }
            Action::Mend { head, tail } => {
                let start = self.accept(offer)?;
                self.ledger.left_what_is_taken();
                let end = start + offer.text.len();
                self.edit(start + head, end - tail, &rest[head..rest.len() - tail])?;
                self.advance(rest.len());
                let stayed = [&rest[..head], &rest[rest.len() - tail..]];
                let chars = stayed.iter().map(|part| part.chars().count()).sum();
                OfferOutcome::Mended { chars, of }
            }
            Action::Undo => {
                let start = self.accept(offer)?;
                self.ledger.left_what_is_taken();
                self.edit(start, start + offer.text.len(), &offer.replaced)?;
                self.set_closers(format!("{}{}", offer.replaced, offer.kept));
                return Ok((OfferOutcome::Undone { of }, doubled > 0));
            }
            // The next character that is typed rejects it.
            Action::Reject(RejectBy::TypingOn) => return Ok((OfferOutcome::TypedOn, false)),
            Action::Reject(RejectBy::Escape) => {
                self.client.did_reject(id, "esc")?;
                self.ledger.escaped();
                return Ok((OfferOutcome::Escaped, false));
            }
            Action::Reject(RejectBy::Waiting) => {
                self.client.advance_clock(limits::WAIT_MS)?;
                self.ledger.timed_out();
                return Ok((OfferOutcome::TimedOut, false));
            }
        };
        self.delete_doubled(doubled)?;
        Ok((outcome, doubled > 0))
    }

    /// Deletes the marks behind the cursor that an accepted offer has closed again.
    fn delete_doubled(&mut self, marks: usize) -> Result<(), TypistError> {
        let Some(open) = self.open.as_mut().filter(|_| marks > 0) else { return Ok(()) };
        open.closers.drain(..marks);
        let at = open.cursor();
        self.edit(at, at + marks, "")
    }

    fn set_closers(&mut self, closers: String) {
        if let Some(open) = &mut self.open {
            open.closers = closers;
        }
    }

    fn advance(&mut self, bytes: usize) {
        if let Some(open) = &mut self.open {
            open.typed += bytes;
        }
    }

    /// Reports that the file was saved.
    pub fn save(&self) -> Result<(), TypistError> {
        match &self.open {
            Some(open) => Ok(self.client.save(&open.uri)?),
            None => Ok(()),
        }
    }

    /// The text of the file that is typed.
    pub fn text(&self) -> &str {
        self.open.as_ref().map_or("", |open| open.document.text())
    }

    /// Turns to another file. This one stays open. If it was typed to its end, `expected` is the
    /// text that it must have now.
    pub fn leave(&mut self, expected: Option<&str>) -> Result<(), TypistError> {
        self.leave_offer()?;
        let Some(open) = self.open.take() else { return Ok(()) };
        check_text(&open, expected)?;
        self.tabs.push(open.uri);
        Ok(())
    }

    /// Closes the files that were left.
    pub fn close_tabs(&mut self) -> Result<(), TypistError> {
        for uri in self.tabs.drain(..) {
            self.client.close(&uri)?;
        }
        Ok(())
    }

    /// Closes the file. If it was typed to its end, `expected` is the text that it must have now.
    pub fn close(&mut self, expected: Option<&str>) -> Result<(), TypistError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        check_text(&open, expected)?;
        self.client.close(&open.uri)?;
        self.ledger.closed();
        Ok(())
    }

    fn edit(&mut self, start: usize, end: usize, text: &str) -> Result<(), TypistError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let range = open.document.replace(start, end, text);
        Ok(self.client.change(&open.uri, Some(range), text)?)
    }

    /// Does what an editor does on Tab: first the change, then the command. Of an offer of several
    /// lines it takes the first, as the key for the next line does. Returns where in the document
    /// the text of the offer begins.
    fn accept(&mut self, offer: &LineOffer) -> Result<usize, TypistError> {
        let Some(open) = &mut self.open else { return Ok(0) };
        let start = open.document.line_start(open.line);
        open.closers.clone_from(&offer.kept);
        let text_at = start + open.typed;
        let (from, to) = (start + offer.columns.start, start + offer.columns.end);
        if let Some(line) = &offer.first_of_several {
            self.edit(from, to, line)?;
            let length = line.encode_utf16().count();
            self.client.did_partially_accept(&offer.item, length as u32)?;
            self.ledger.took(&offer.text);
            return Ok(text_at);
        }
        self.edit(from, to, &offer.item.insert_text)?;
        self.client.accept(&offer.item.id)?;
        self.ledger.accepted();
        Ok(text_at)
    }
}

/// Returns what an item would make of the line.
fn line_offer(open: &OpenFile, item: Item) -> LineOffer {
    let line_start = open.document.line_start(open.line);
    let current = open.document.line(open.line);
    let column = |position| open.document.offset(position).saturating_sub(line_start);
    let (start, end) = match item.range {
        None => (open.typed, open.typed),
        Some(range) => (column(range.start), column(range.end)),
    };
    let end = end.min(current.len());
    let start = start.min(end);
    let behind = open.typed.min(current.len());
    let (replaced, kept) = if end >= behind {
        (&current[behind..end], &current[end..])
    } else {
        ("", &current[behind..])
    };
    let first = item.insert_text.split('\n').next().unwrap_or_default().trim_end_matches('\r');
    let first_of_several = item.insert_text.contains('\n').then(|| first.to_owned());
    let line = format!("{}{first}{}", &current[..start], &current[end..]);
    let text = line.strip_prefix(&open.truth[..open.typed]);
    let text = text.and_then(|text| text.strip_suffix(kept)).unwrap_or_default().to_owned();
    let (replaced, kept) = (replaced.to_owned(), kept.to_owned());
    LineOffer { item, columns: start..end, text, replaced, kept, first_of_several }
}

/// Returns what an offer has to add to be right. `rest` is what is left of the line. The marks that
/// stand behind the offer then need not be in it, if the line ends with them.
fn wanted<'t>(rest: &'t str, offer: &LineOffer, doubled: usize) -> &'t str {
    let before_marks = rest.strip_suffix(&offer.kept[doubled..]).unwrap_or(rest);
    let continues = rest.starts_with(&offer.text) && offer.text != before_marks;
    if continues { rest } else { before_marks }
}

fn check_text(open: &OpenFile, expected: Option<&str>) -> Result<(), TypistError> {
    let text = open.document.text();
    match expected {
        Some(expected) if text != expected => {
            let same = text.lines().zip(expected.lines()).take_while(|(typed, real)| typed == real);
            Err(TypistError::Diverged { path: open.path.clone(), line: same.count() + 1 })
        }
        _ => Ok(()),
    }
}
