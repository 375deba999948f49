//! One text that a client works in: its document in a session, which each request brings up to
//! date, and the offer that was made last.

use super::language;
use api::{
    Answer, Around, Asks, Before, Change, Ended, File, KEY_CHARS, Known, Offered, Reading, Request,
    UNREAD_MS, read, shared_bytes,
};
use completion::document::{Document, Encoding, Position};
use completion::languages;
use feedback::event::{OfferId, Outcome};
use host::addresses;
use session::{AheadAnswer, Session};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The files that are remembered, so that they are not read again.
const FILES_MAX: usize = 64;

/// The keys of a text that are followed one by one.
const KEYS_MAX: usize = 256;

pub struct Text {
    pub client: String,
    /// The name of the file, if the client states it.
    name: Option<String>,
    /// When it was used last, in milliseconds of the session's clock.
    pub used_ms: u64,
    session: Arc<Session>,
    uri: String,
    document: Document,
    known: Known,
    /// The offer that the client shows, as far as is known.
    given: Option<Given>,
    /// The answer to the request as if that was accepted.
    ahead: Option<Ahead>,
    /// The number of the newest request.
    asked: u64,
    asks: Asks,
    before: Before,
    /// The files that the client has sent along, by name.
    files: HashMap<String, String>,
    /// Shared with the places of requests that have no answer yet.
    answering: Arc<()>,
}

/// An offer as the client got it.
pub struct Given {
    id: OfferId,
    offered: Offered,
    /// It is all of the session's offer.
    is_whole: bool,
}

/// How the text that a request adds came into the document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comes {
    AtOnce,
    ByKeys,
}

struct Ahead {
    given: Given,
    answer: AheadAnswer,
}

/// The part of an offer that a client can put in, which knows no range.
pub struct Insertable<'t> {
    pub text: &'t str,
    /// With what stands behind the cursor, it is all of the offer.
    pub is_whole: bool,
}

/// Where a request is to be completed.
pub struct Place {
    pub session: Arc<Session>,
    pub uri: String,
    pub position: Position,
    /// The answer, if it is known.
    pub known: Option<String>,
    /// The text that the client asks as if it stood at the position.
    pub taken: Option<String>,
    /// The line behind the cursor.
    rest_of_line: String,
    asked: u64,
    pub asked_ms: u64,
    _answering: Arc<()>,
}

impl Place {
    /// Returns the first characters behind the cursor, as many as an offer replaces.
    pub fn behind(&self, columns: usize) -> String {
        self.rest_of_line.chars().take(columns).collect()
    }
}

impl Given {
    /// `None` if nothing is left to show. `is_whole` if the answer was made of all of the offer.
    pub fn of(offered: Offered, answer: &Answer, is_whole: bool, id: &OfferId) -> Option<Given> {
        (!offered.text.is_empty()).then(|| Given {
            id: id.clone(),
            offered,
            is_whole: is_whole && answer.ended == Ended::ByItself,
        })
    }
}

impl<'t> Insertable<'t> {
    /// `marks` are those behind the cursor that the offer brings again.
    pub fn of(text: &'t str, marks: &str) -> Insertable<'t> {
        let end = marks.chars().rev().try_fold(text.len(), |end, mark| text[..end].rfind(mark));
        let end = end.unwrap_or(text.len());
        Insertable { text: &text[..end], is_whole: text[end..] == *marks }
    }
}

impl Text {
    pub fn new(session: Arc<Session>, request: &Request, number: u64) -> Text {
        session.use_encoding(Encoding::Utf8);
        // An offer that waits is no verdict, because nobody reports whether it is on screen.
        session.client_reports();
        let Request { client, around, name, .. } = request;
        let known = Known::new(around);
        let language = language::of(name.as_deref(), known.text());
        let (uri, path) = address(&client.name, name.as_deref(), number, language);
        let document =
            Document { path, language: language.to_owned(), version: 1, text: known.text().into() };
        session.open(uri.clone(), document.clone());
        Text {
            client: client.name.clone(),
            name: name.clone(),
            used_ms: 0,
            session,
            uri,
            document,
            known,
            given: None,
            ahead: None,
            asked: 0,
            asks: client.asks,
            before: Before::default(),
            files: HashMap::new(),
            answering: Arc::default(),
        }
    }

    /// Returns true if a request is about this text.
    pub fn continues(&self, request: &Request, now_ms: u64) -> bool {
        let Request { client, around, name, .. } = request;
        if *name != self.name {
            return false;
        }
        if Arc::strong_count(&self.answering) > 1 {
            // Keys alone come while an answer is computed. Another program of the same name may ask
            // about a similar text.
            return self.known.change(around).is_some_and(|change| self.known.is_by_key(&change));
        }
        let ahead = self.ahead.as_ref().map(|ahead| &ahead.given);
        let mut offers = self.given.iter().chain(ahead);
        let is_read =
            |given: &Given| read(&given.offered, around, now_ms, client.asks) != Reading::Unknown;
        self.known.change(around).is_some() || offers.any(is_read)
    }

    /// Brings the document up to date, and notes what became of the offers.
    pub fn arrive(&mut self, request: &Request, now_ms: u64) -> Place {
        let (next, asks) = (&request.around, request.client.asks);
        self.before.asked_ms = self.used_ms;
        (self.used_ms, self.asked) = (now_ms, self.asked + 1);
        if let Some(ahead) = &self.ahead {
            match read(&ahead.given.offered, next, now_ms, asks) {
                Reading::Unknown => {}
                // It asks again, and need not have shown the answer.
                Reading::Same if asks.is_ahead() => {
                    let known = ahead.given.offered.text.clone();
                    return Place { known: Some(known), ..self.place() };
                }
                _ => self.reach_ahead(now_ms),
            }
        }
        let mut comes = Comes::AtOnce;
        if let Some(given) = &self.given {
            let text = &given.offered.text;
            match read(&given.offered, next, now_ms, asks) {
                Reading::AsIf { taken } if taken < text.len() => {
                    let rest = text[taken..].to_owned();
                    return Place { known: Some(rest), ..self.place() };
                }
                Reading::AsIf { .. } => {
                    let taken = Some(text.clone());
                    return Place { taken, ..self.place() };
                }
                reading => comes = self.judge(reading, now_ms),
            }
        }
        self.move_to(next, comes);
        self.place()
    }

    /// The client has come to the place that was asked about ahead, so the offer before it was
    /// taken.
    fn reach_ahead(&mut self, now_ms: u64) {
        let Some(Ahead { given, answer }) = self.ahead.take() else { return };
        if let Some(before) = self.given.take() {
            self.take(&before, now_ms);
        }
        self.move_to(&given.offered.around, Comes::AtOnce);
        self.session.adopt(answer);
        self.given = Some(given);
    }

    /// Follows what became of the offer that the client shows. The document tells the session what
    /// was taken of it. Returns how the rest of the text came.
    fn judge(&mut self, reading: Reading, now_ms: u64) -> Comes {
        let Some(given) = self.given.take() else { return Comes::AtOnce };
        if !matches!(reading, Reading::Same | Reading::Along { .. }) {
            self.ahead = None;
        }
        let offered = &given.offered;
        let is_read = now_ms.saturating_sub(offered.at_ms) >= UNREAD_MS;
        let is_typed = |bytes| offered.may_be_typed(bytes, self.asks, self.before, now_ms);
        match reading {
            Reading::Accepted => return self.take(&given, now_ms),
            Reading::Along { typed } => {
                self.session.shown(&given.id);
                let (last, _) = offered.text[..typed].char_indices().last().unwrap_or_default();
                let chars = offered.text[..typed].chars().count();
                if chars > KEY_CHARS && self.asks.is_ahead() && !is_typed(typed) {
                    // A word or a line of it was taken, as the change that follows shows.
                    let _ = self.session.taking(&given.id);
                } else if last > 0 {
                    // The last key may have brought a bracket that the editor closed.
                    self.move_to(&behind(offered, last), Comes::AtOnce);
                }
            }
            Reading::Left { after } => {
                if is_read {
                    self.session.shown(&given.id);
                }
                if after > 0 {
                    self.move_to(&behind(offered, after), Comes::AtOnce);
                }
            }
            Reading::Same => self.given = Some(given),
            Reading::Unknown | Reading::AsIf { .. } => {}
        }
        Comes::AtOnce
    }

    /// Brings the document to where all of an offer stands in it: at once, as an accept does, or
    /// key by key if it may have been typed. So may what follows it then, which can be the marks
    /// that the client was not given because they stand behind the cursor.
    fn take(&mut self, given: &Given, now_ms: u64) -> Comes {
        self.session.shown(&given.id);
        let (offered, end) = (&given.offered, given.offered.text.len());
        if offered.may_be_typed(end, self.asks, self.before, now_ms) {
            self.move_to(&behind(offered, end), Comes::ByKeys);
            return Comes::ByKeys;
        }
        self.move_to(&behind(offered, end), Comes::AtOnce);
        self.accepted(given);
        Comes::AtOnce
    }

    /// The session may have ended the offer before, as one that nobody has seen.
    fn accepted(&self, given: &Given) {
        if given.is_whole {
            // What was forgotten meanwhile is not recorded.
            let _ = self.session.accepted(&given.id);
        } else {
            let utf16 = given.offered.text.encode_utf16().count();
            self.session.partly_accepted(&given.id, u32::try_from(utf16).unwrap_or(u32::MAX));
            self.session.rejected(&given.id, Outcome::Superseded);
        }
    }

    /// Brings the document to the text that a request shows.
    fn move_to(&mut self, next: &Around, comes: Comes) {
        let Some(change) = self.known.change(next) else {
            // It is another text under the same name, as after an undo of much.
            (self.given, self.ahead) = (None, None);
            self.known = Known::new(next);
            self.document.text = self.known.text().into();
            self.session.open(self.uri.clone(), self.document.clone());
            return;
        };
        let Change { above, below, .. } = &change;
        if !above.is_empty() || !below.is_empty() {
            self.document.text.insert(0, above);
            self.document.text.append(below.as_str().into());
            self.session.reveal(&self.uri, above, below);
        }
        let replaced = change.replaced.clone();
        match comes {
            Comes::ByKeys => self.type_keys(replaced, &change.by),
            Comes::AtOnce if change.is_move() => {}
            Comes::AtOnce => self.edit(replaced, &change.by),
        }
        self.known.apply(&change);
    }

    /// Puts a text in key by key, if it replaces nothing but marks that are typed over.
    fn type_keys(&mut self, replaced: Range<usize>, by: &str) {
        let over = shared_bytes(&self.document.text.byte_slice(replaced.clone()).to_string(), by);
        let (mut at, mut by) = (replaced.start + over, &by[over..]);
        if at < replaced.end {
            return self.edit(at..replaced.end, by);
        }
        for key in by.chars().take(KEYS_MAX) {
            let (key, behind) = by.split_at(key.len_utf8());
            self.edit(at..at, key);
            (at, by) = (at + key.len(), behind);
        }
        if !by.is_empty() {
            self.edit(at..at, by);
        }
    }

    fn edit(&mut self, replaced: Range<usize>, by: &str) {
        let range = (self.at(replaced.start), self.at(replaced.end));
        let changes = vec![(Some(range), by.to_owned())];
        self.document.version = self.document.version.wrapping_add(1);
        // Both documents are changed alike, so neither is out of step.
        let _ = self.document.apply(Some(range), by.to_owned(), Encoding::Utf8);
        let _ = self.session.change(&self.uri, self.document.version, changes);
    }

    /// The position of a byte of the document.
    fn at(&self, byte: usize) -> Position {
        let text = &self.document.text;
        self.document.position(text.byte_to_char(byte.min(text.len_bytes())), Encoding::Utf8)
    }

    fn place(&self) -> Place {
        let cursor = self.known.cursor();
        let rest = self.known.text()[cursor..].lines().next().unwrap_or_default();
        Place {
            session: self.session.clone(),
            uri: self.uri.clone(),
            position: self.at(cursor),
            known: None,
            taken: None,
            rest_of_line: rest.to_owned(),
            asked: self.asked,
            asked_ms: self.used_ms,
            _answering: self.answering.clone(),
        }
    }

    /// Returns true if no newer request has come since the one at this place.
    pub fn is_current(&self, place: &Place) -> bool {
        Arc::ptr_eq(&self.session, &place.session) && self.asked == place.asked
    }

    /// Notes that the client has the answer to its newest request, and can ask again.
    pub fn is_free(&mut self, now_ms: u64) {
        self.before.waited_ms = now_ms.saturating_sub(self.used_ms);
    }

    /// Notes what the client was given of an offer.
    pub fn answered(&mut self, given: Option<Given>, offer: &OfferId) {
        if given.is_none() {
            // What the user writes from here on is their own.
            self.session.rejected(offer, Outcome::Superseded);
        }
        (self.given, self.ahead) = (given, None);
    }

    /// Notes that the client asks about another text. Who comes back may still accept the offer.
    pub fn leave(&self) {
        if let Some(given) = &self.given {
            self.session.rejected(&given.id, Outcome::Superseded);
        }
    }

    /// Notes that there was nothing to give.
    pub fn answered_nothing(&mut self) {
        (self.given, self.ahead) = (None, None);
    }

    /// Notes what the client was given for a request as if an offer was taken.
    pub fn answered_ahead(&mut self, given: Option<Given>, answer: AheadAnswer) {
        self.ahead = given.map(|given| Ahead { given, answer });
    }

    /// The text as the session has it, and as it was followed here.
    #[cfg(test)]
    pub fn held(&self) -> (String, String) {
        (self.session.held()[&self.uri].2.clone(), self.known.text().to_owned())
    }

    /// Lets prompts quote the files that a client sends along. Parts of one file go together.
    pub fn note_files(&mut self, files: &[File]) {
        let mut texts: HashMap<&str, String> = HashMap::new();
        for File { name, text } in files {
            let whole = texts.entry(name).or_default();
            if !whole.is_empty() && !whole.ends_with('\n') {
                whole.push('\n');
            }
            whole.push_str(text);
        }
        for (name, text) in texts {
            if self.files.get(name) == Some(&text) {
                continue;
            }
            let language = language::of(Some(name), &text);
            let (uri, path) = file_address(name);
            if uri == self.uri {
                continue;
            }
            let (language, rope) = (language.to_owned(), text.as_str().into());
            // One that is closed is quoted as one that the user was in.
            self.session.open(uri.clone(), Document { path, language, version: 1, text: rope });
            self.session.close(&uri);
            if self.files.len() >= FILES_MAX {
                self.files.clear();
            }
            self.files.insert(name.to_owned(), text);
        }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        self.session.end();
    }
}

/// The text in which so many bytes of an offer were taken.
fn behind(offered: &Offered, bytes: usize) -> Around {
    let Around { before, after } = &offered.around;
    Around { before: [before, &offered.text[..bytes]].concat(), after: after.clone() }
}

/// The address of a text, and the name under which it is recorded. Most clients do not state the
/// file, so the name states the client.
fn address(client: &str, file: Option<&str>, number: u64, language: &str) -> (String, String) {
    if let Some(file) = file.filter(|file| is_whole(file)) {
        return file_address(file);
    }
    let ending = languages::ending(language).unwrap_or("code");
    let base = file.and_then(|file| Path::new(file).file_name()?.to_str());
    let program = client.rsplit('/').next().unwrap_or_default();
    let base = base.map_or_else(|| format!("{program}-{number}.{ending}"), str::to_owned);
    let uri = addresses::normal(&format!("untitled:{client}/{number}/{base}"));
    let path = addresses::name(&uri);
    (uri, path)
}

/// Returns true if a name says which file it is.
fn is_whole(name: &str) -> bool {
    Path::new(name).is_absolute() || name.starts_with("file://")
}

fn file_address(name: &str) -> (String, String) {
    let uri = match is_whole(name) {
        true => addresses::normal(name),
        false => addresses::normal(&format!("untitled:{name}")),
    };
    let path = addresses::name(&uri);
    (uri, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_knows_no_range_gets_what_it_can_put_in() {
        let of = |text: &'static str, marks: &str| {
            let Insertable { text, is_whole } = Insertable::of(text, marks);
            (text, is_whole)
        };
        assert_eq!(of("a, b", ""), ("a, b", true));
        assert_eq!(of("a, b)", ")"), ("a, b", true));
        assert_eq!(of("f(a));", ");"), ("f(a)", true));
        assert_eq!(of("x > 0) {", ")"), ("x > 0", false));
        assert_eq!(of("a", ")"), ("a", false));
    }
}
