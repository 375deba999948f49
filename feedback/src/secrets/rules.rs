//! The forms of credentials that are known by how they look, wherever they stand.
//!
//! The prefixes, alphabets, lengths and entropies are facts about the services that issue the
//! credentials; public scanners such as gitleaks list the same. The lengths are a little below
//! the real ones, so that a credential is found while it is still being typed.

mod business;
mod clouds;
mod commands;
mod common;
mod declared;
mod developers;
mod language_models;

use super::pattern::compiled;
use super::value::{entropy, is_made_up};
use regex::bytes::Regex;
use std::sync::OnceLock;

/// The bits a byte that a whole match must have, unless its rule says otherwise. Sixteen
/// hexadecimal digits that a machine drew lie above it, a row of `x` and most words below it.
const USUAL_ENTROPY: f64 = 2.5;

/// One form of a credential.
pub struct Rule {
    /// The name by which a person calls it.
    pub kind: &'static str,
    /// Every match holds one of these, in upper or lower case. A text without any of them is
    /// not searched for the form. Every text is searched for a form without keywords.
    pub keywords: &'static [&'static str],
    /// The form, as a regular expression over bytes.
    form: &'static str,
    /// The least entropy of a match, in bits a byte.
    min_entropy: f64,
    /// The check that the form's first group must pass, too.
    check: Option<fn(&[u8]) -> bool>,
}

/// A form whose matches look drawn by a machine.
const fn rule(kind: &'static str, keywords: &'static [&'static str], form: &'static str) -> Rule {
    Rule { kind, keywords, form, min_entropy: USUAL_ENTROPY, check: None }
}

impl Rule {
    const fn min_entropy(mut self, bits: f64) -> Rule {
        self.min_entropy = bits;
        self
    }

    /// The form's first group decides, and the entropy does not matter.
    const fn check(mut self, check: fn(&[u8]) -> bool) -> Rule {
        self.check = Some(check);
        self.min_entropy = 0.0;
        self
    }

    fn accepts(&self, form: &Regex, text: &[u8]) -> bool {
        match self.check {
            Some(check) => form
                .captures_iter(text)
                .any(|found| check(found.get(1).expect("a checked form has a group").as_bytes())),
            None => form.find_iter(text).any(|found| {
                let found = found.as_bytes();
                entropy(found) >= self.min_entropy && !is_made_up(found)
            }),
        }
    }
}

/// All rules with their compiled forms. A form is compiled when a text first holds one of its
/// keywords.
pub struct Rules(Vec<(&'static Rule, OnceLock<Regex>)>);

impl Rules {
    pub fn new() -> Rules {
        let groups = [
            common::RULES,
            commands::RULES,
            declared::RULES,
            clouds::RULES,
            developers::RULES,
            language_models::RULES,
            business::RULES,
        ];
        Rules(groups.into_iter().flatten().map(|rule| (rule, OnceLock::new())).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn kind(&self, index: usize) -> &'static str {
        self.0[index].0.kind
    }

    pub fn iter(&self) -> impl Iterator<Item = &'static Rule> {
        self.0.iter().map(|(rule, _)| *rule)
    }

    /// Returns true if a text holds a credential of the rule at an index.
    pub fn accepts(&self, index: usize, text: &[u8]) -> bool {
        let (rule, form) = &self.0[index];
        rule.accepts(form.get_or_init(|| compiled(rule.form)), text)
    }
}
