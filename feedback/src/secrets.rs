//! The things that must never be stored: texts that hold a credential, and files that are made to
//! hold some. This module is pure: it reads no file and remembers nothing.
//!
//! A text is searched for two kinds of signs. Credentials of known services have a form of
//! their own ([`rules`]). All others are known by their place: a value that is assigned to
//! something called `password` or `api_key` ([`names`], [`assignment`]), and looks like nothing
//! that a person would use as a name ([`value`]). The second kind is a guess. In doubt it
//! withholds the text: that costs a label, and storing a password would cost more.
//!
//! One walk through the text finds the keywords of all signs. Only what a keyword calls for is
//! looked at more closely, so that an ordinary text takes a few microseconds.

mod assignment;
mod names;
mod paths;
mod pattern;
mod rules;
mod services;
#[cfg(test)]
mod tests;
mod value;

pub use paths::is_sensitive_path;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use names::{WORDS, Word};
use rules::Rules;
use services::SERVICES;
use std::sync::LazyLock;

/// The rule or name that a keyword calls for.
#[derive(Clone, Copy)]
enum Sign {
    /// The rule at an index may have a match.
    Rule(usize),
    /// A name begins, ends or continues here.
    Name(Word),
}

/// All that is looked for.
struct Search {
    rules: Rules,
    /// The rules without a keyword.
    always: Vec<usize>,
    keywords: AhoCorasick,
    /// The sign that each keyword is. Several rules may share one.
    signs: Vec<Sign>,
}

static SEARCH: LazyLock<Search> = LazyLock::new(Search::new);

impl Search {
    fn new() -> Search {
        let rules = Rules::new();
        let of_rules = rules.iter().enumerate().flat_map(|(index, rule)| {
            rule.keywords.iter().map(move |keyword| (*keyword, Sign::Rule(index)))
        });
        let of_names = WORDS.iter().map(|(word, meaning)| (*word, Sign::Name(*meaning)));
        let of_services = SERVICES
            .iter()
            .enumerate()
            .map(|(index, service)| (service.0, Sign::Name(Word::Service(index))));
        let (keywords, signs): (Vec<&str>, Vec<Sign>) =
            of_rules.chain(of_names).chain(of_services).unzip();
        let without = rules.iter().enumerate().filter(|(_, rule)| rule.keywords.is_empty());
        let always = without.map(|(index, _)| index).collect();
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(keywords)
            .expect("constant keywords");
        Search { rules, always, keywords, signs }
    }

    fn find(&self, text: &[u8]) -> Option<&'static str> {
        let mut looked_at = vec![false; self.rules.len()];
        for found in self.keywords.find_overlapping_iter(text) {
            match self.signs[found.pattern().as_usize()] {
                Sign::Rule(index) => {
                    let is_new = !std::mem::replace(&mut looked_at[index], true);
                    if is_new && self.rules.accepts(index, text) {
                        return Some(self.rules.kind(index));
                    }
                }
                Sign::Name(word) => {
                    if assignment::holds_secret(text, found.range(), word) {
                        return Some("a literal assigned to a secret's name");
                    }
                }
            }
        }
        let holds = |index: &&usize| self.rules.accepts(**index, text);
        self.always.iter().find(holds).map(|index| self.rules.kind(*index))
    }
}

/// The kind of credential that a text holds, if it holds one. The credential itself is never
/// returned.
pub fn find(text: &str) -> Option<&'static str> {
    SEARCH.find(text.as_bytes())
}

pub fn holds_secret(text: &str) -> bool {
    find(text).is_some()
}
