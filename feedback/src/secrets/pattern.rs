//! Compiles the patterns of secrets.

use regex::bytes::{Regex, RegexBuilder};

/// Credentials are ASCII. The character classes of Unicode would make the automata many times
/// as large.
pub fn compiled(form: &str) -> Regex {
    RegexBuilder::new(form).unicode(false).build().expect("a constant pattern")
}
