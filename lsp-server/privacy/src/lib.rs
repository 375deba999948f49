//! What of the user's work may be stored. This is decided before each completion, and before each
//! text next to one, is stored.
//!
//! Completions continue in every file. The id of an offer of which nothing may be stored is marked.
//! So nothing that becomes of it is stored either, in whichever session and however late.

// As in `lsp-server/src/lib.rs`: nothing is printed, and a module that starts a program says so.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::disallowed_types)]
// The disk is asked by the crate `files` alone: clippy.toml.
#![warn(clippy::disallowed_methods)]

pub mod access;
#[allow(clippy::disallowed_methods, reason = "it resolves names that the user gave")]
pub mod forget_scope;
#[allow(clippy::disallowed_methods, reason = "the list is a file of Hone's own")]
pub mod forgotten;
pub mod ignore_files;
#[allow(clippy::disallowed_methods, reason = "it resolves names of documents that are open")]
pub mod names;

use crate::ignore_files::IgnoreFiles;
use crate::names::RealNames;
use completion::document::Source;
use completion::prompt::{self, Window};
use completion::prompt_builder::QuoteRules;
use feedback::event::{EventKind, OfferId};
use feedback::secrets;
use files::ignored::IgnoreRules;
use ropey::Rope;
use settings::patterns::Patterns;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The last character of the id of an offer of which nothing is stored.
const UNSTORED: char = '~';

/// The number of characters beyond the prompt's window that are also searched for secrets. The
/// window may begin in the middle of a key, which is recognised by its first line. The longest key
/// in use (RSA, 4096 bits) has 3,300 characters.
const MARGIN_CHARS: usize = 4096;

/// Languages of documents that hold credentials, whatever their file is called.
const LANGUAGES: &[&str] = &["dotenv", "env", "netrc", "pem"];

#[derive(Default)]
pub struct Privacy {
    ignored: IgnoreFiles,
    real_names: RealNames,
    /// The number of offers of which nothing was stored since this daemon started.
    withheld: AtomicU64,
}

/// The text around the cursor, as far as a prompt could reach.
pub struct Nearby {
    before: String,
    after: String,
}

impl Nearby {
    pub fn of(text: &Rope, cursor: usize, window: Window) -> Nearby {
        let line_start = text.line_to_char(text.char_to_line(cursor));
        let from =
            line_start.saturating_sub(window.prefix_chars + prompt::TYPED_CHARS + MARGIN_CHARS);
        let line_from = cursor.saturating_sub(prompt::LINE_CHARS + MARGIN_CHARS);
        let to = (cursor + window.suffix_chars + MARGIN_CHARS).min(text.len_chars());
        let before = if line_from <= line_start {
            text.slice(from..cursor).to_string()
        } else {
            // The prompt leaves out the middle of such a long line.
            format!("{}\n{}", text.slice(from..line_start), text.slice(line_from..cursor))
        };
        Nearby { before, after: text.slice(cursor..to).to_string() }
    }

    /// Returns whether the text holds a credential, with `text` inserted at the cursor.
    pub fn holds_secret_with(&self, text: &str) -> bool {
        secrets::holds_secret(&[&self.before, text, &self.after].concat())
    }
}

impl Privacy {
    /// Returns true if nothing of a document may be stored. `setting` is `privacy.ignore`. The real
    /// name of the document is noted, which is stored with what is recorded of it.
    pub fn ignores(&self, path: &str, language: &str, setting: &Patterns) -> bool {
        if LANGUAGES.contains(&language) || secrets::holds_secret(path) {
            return true;
        }
        let Some(file) = self.ignored.storable(path, setting) else { return true };
        self.real_names.note(path, file.real_name);
        false
    }

    /// The same, for a thread that may wait for the disk as long as it takes.
    pub fn ignores_on_disk(&self, path: &str, language: &str, setting: &Patterns) -> bool {
        LANGUAGES.contains(&language)
            || secrets::holds_secret(path)
            || self.ignored.is_ignored_on_disk(path, setting)
    }

    /// Returns the rules of ignore files alone, for walks through folders.
    pub fn ignore_rules(&self) -> Arc<IgnoreRules> {
        self.ignored.rules()
    }

    /// Decides which of these documents prompts may quote. This resolves links and reads ignore
    /// files, so a session must not hold its lock meanwhile.
    pub fn quotable(&self, sources: HashSet<Source>, setting: &Patterns) -> QuotableFiles {
        self.ignored.prepare(sources.iter().map(|source| &source.path));
        let is_ignored = |source: &&Source| self.ignores(&source.path, &source.language, setting);
        let ignored = sources.iter().filter(is_ignored).map(|source| source.path.clone());
        let ignored = ignored.collect();
        let asked = sources.into_iter().map(|source| source.path).collect();
        QuotableFiles { asked, ignored }
    }

    /// Returns the events that may be stored, with the real names of their documents. The others
    /// are counted and dropped.
    pub fn storable(&self, events: Vec<EventKind>) -> Vec<EventKind> {
        let is_stored = |event: &EventKind| {
            let stored = !is_unstored(event.offer_id());
            if let EventKind::Completion(completion) = event
                && !stored
                && !completion.shown.is_empty()
            {
                self.withheld.fetch_add(1, Ordering::Relaxed);
            }
            stored
        };
        let mut stored: Vec<EventKind> = events.into_iter().filter(is_stored).collect();
        stored.iter_mut().for_each(|event| self.add_real_names(event));
        stored
    }

    /// Adds the names behind the links by which the documents of an event were opened.
    fn add_real_names(&self, event: &mut EventKind) {
        match event {
            EventKind::Completion(made) => {
                let names = std::iter::once(&made.path).chain(&made.context);
                made.real_names = names.filter_map(|name| self.real_names.of(name)).collect();
            }
            EventKind::NextEdit(edit) => edit.real_name = self.real_names.of(&edit.path),
            _ => {}
        }
    }

    pub fn withheld(&self) -> u64 {
        self.withheld.load(Ordering::Relaxed)
    }
}

/// The files that prompts in other documents may quote, as [`Privacy::quotable`] decided a
/// moment ago. A file that it was not asked about is not among them.
#[derive(Debug, Default)]
pub struct QuotableFiles {
    asked: HashSet<String>,
    /// Those of them that may not be quoted.
    ignored: HashSet<String>,
}

impl QuoteRules for QuotableFiles {
    fn knows(&self, source: &Source) -> bool {
        self.asked.contains(&source.path)
    }

    fn may_quote(&self, source: &Source) -> bool {
        self.knows(source)
            && !self.ignored.contains(&source.path)
            && !LANGUAGES.contains(&&*source.language)
    }

    /// A text that holds a secret is shown to the model only in its own place.
    fn may_quote_text(&self, text: &str) -> bool {
        !secrets::holds_secret(text)
    }
}

/// Returns whether the text that the user wrote at a place may be stored. This depends on what is
/// around it now.
pub fn may_tell(text: &Rope, at: usize) -> bool {
    let window = Window { prefix_chars: 0, suffix_chars: 0 };
    !Nearby::of(text, at.min(text.len_chars()), window).holds_secret_with("")
}

/// Returns whether a credential stands at a place or near it, once this text has replaced what is
/// there.
pub fn is_near_secret(text: &Rope, place: &Range<usize>, new: &str) -> bool {
    let window = Window { prefix_chars: 0, suffix_chars: 0 };
    let mut rest = text.clone();
    rest.remove(place.clone());
    Nearby::of(&rest, place.start, window).holds_secret_with(new)
}

/// Marks the id of an offer of which nothing may be stored.
pub fn unstored(mut id: OfferId) -> OfferId {
    id.push(UNSTORED);
    id
}

pub fn is_unstored(id: &str) -> bool {
    id.ends_with(UNSTORED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::event::{Evidence, Outcome};

    const WINDOW: Window = Window { prefix_chars: 1_500, suffix_chars: 500 };

    fn allows(marked: &str, generated: &str) -> bool {
        let cursor = marked.find('|').unwrap();
        let around = Nearby::of(&Rope::from_str(&marked.replace('|', "")), cursor, WINDOW);
        !around.holds_secret_with(generated)
    }

    fn password() -> String {
        ["hunter", "2", "!"].concat()
    }

    /// A session asks this once for each prompt before it takes its lock.
    #[test]
    fn files_that_are_ignored_or_made_for_credentials_are_not_quoted() {
        let setting = Patterns::compile(&["/p/private/".to_owned()]).unwrap();
        let source = |path: &str, language: &str| Source {
            path: path.to_owned(),
            language: language.to_owned(),
        };
        let sources = [
            source("/p/model.rs", "rust"),
            source("/p/private/model.rs", "rust"),
            source("/p/.env", "ini"),
            source("/p/staging.local", "dotenv"),
            source("/p/staging.local", ""),
        ];
        let rules = Privacy::default().quotable(sources.into(), &setting);
        assert!(rules.may_quote(&source("/p/model.rs", "rust")));
        assert!(!rules.may_quote(&source("/p/model.rs", "dotenv")));
        assert!(!rules.may_quote(&source("/p/private/model.rs", "rust")));
        assert!(!rules.may_quote(&source("/p/.env", "ini")));
        assert!(!rules.may_quote(&source("/p/staging.local", "")), "it has been another language");
        assert!(!rules.may_quote(&source("/p/other.rs", "rust")), "it was not asked about");
        assert!(!rules.may_quote_text(&format!("password = \"{}\"\n", password())));
    }

    #[test]
    fn a_secret_is_found_above_below_and_in_the_offer() {
        let secret = format!("password = \"{}\"\n", password());
        assert!(!allows(&format!("{secret}|\n"), "x"));
        assert!(!allows(&format!("|\n{secret}"), "x"));
        assert!(!allows("password = |\n", &format!("\"{}\"", password())));
        assert!(!allows("password = \"hun|\"\n", "ter2!"), "neither part is one alone");
        assert!(allows("password = |\n", "read_line();"));
    }

    #[test]
    fn a_key_that_begins_above_the_window_is_found() {
        let lines = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n".repeat(60);
        let key = format!("-----BEGIN {}-----\n{lines}|", "PRIVATE KEY");
        assert!(!allows(&key, "x"));
        assert!(allows(&format!("{lines}|\n"), "x"));
    }

    #[test]
    fn a_line_of_any_length_is_searched_where_the_prompt_reads_it() {
        let secret = format!("password = \"{}\";", password());
        let minified = "a();".repeat(20_000);
        assert!(!allows(&format!("{minified}{secret}|"), "x"));
        assert!(!allows(&format!("{secret}\n{minified}|"), "x"));
        assert!(allows(&format!("{secret}{minified}|"), "x"), "no prompt reaches that far");
    }

    #[test]
    fn typed_text_is_checked_together_with_its_line() {
        let may_store = |line: &str| may_tell(&Rope::from_str(line), "password = ".len());
        assert!(may_store("password = read_line();\n"));
        assert!(!may_store(&format!("password = \"{}\"\n", password())));
    }

    #[test]
    fn a_place_is_searched_with_the_text_that_comes_there() {
        let text = Rope::from_str("password = \"x\"\n");
        let is_near = |new: &str| is_near_secret(&text, &(12..13), new);
        assert!(is_near(&password()) && !is_near("y"));
    }

    #[test]
    fn events_about_an_unstored_offer_are_not_stored() {
        let outcome = |id: OfferId| EventKind::Outcome {
            id,
            outcome: Outcome::Accepted,
            evidence: Evidence::Command,
        };
        let events = vec![outcome("a-1".into()), outcome(unstored("a-2".into()))];
        assert_eq!(Privacy::default().storable(events), [outcome("a-1".into())]);
    }

    #[test]
    fn the_path_and_the_language_of_a_document_both_count() {
        let privacy = Privacy::default();
        assert!(privacy.ignores("untitled:Untitled-1", "dotenv", &Patterns::none()));
        let url = format!("https://me:{}@example.org/a.rs", password());
        assert!(privacy.ignores(&url, "rust", &Patterns::none()));
        assert!(!privacy.ignores("untitled:Untitled-1", "rust", &Patterns::none()));
    }
}
