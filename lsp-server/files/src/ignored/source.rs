//! One ignore file, compiled, with the stamp by which a change of it is seen.

use super::rules::{Rules, TooCostly};
use crate::limits::{PATTERN_BYTES_MAX, RULES_BYTES_MAX};
use crate::plain::{self, Links, Stamp, Unread};
use std::path::Path;
use std::sync::Arc;

/// What a file that is no plain file stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Otherwise {
    /// It has no rules, as git has it.
    NoRules,
    /// There are rules that cannot be read, so everything is ignored.
    Everything,
}

/// An ignore file, as it was when it was read.
#[derive(Debug)]
pub struct Source {
    look: Look,
    pub rules: Content,
}

/// How a file looks from the outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Missing,
    NoFile,
    Unreadable,
    File(Stamp),
}

#[derive(Debug)]
pub enum Content {
    Rules(Rules),
    /// There are rules that cannot be read, so everything is ignored.
    Everything,
}

impl Source {
    /// Reads a file again if it has changed. `note` is called if it was compiled.
    pub fn refresh(
        known: Option<&Arc<Source>>,
        path: &Path,
        links: Links,
        otherwise: Otherwise,
        note: impl FnOnce(),
    ) -> Arc<Source> {
        let look = look(path, links);
        match known {
            Some(known) if known.look == look => known.clone(),
            _ => {
                note();
                Arc::new(Source::read(path, links, otherwise, look))
            }
        }
    }

    fn read(path: &Path, links: Links, otherwise: Otherwise, look: Look) -> Source {
        let unreadable = |why: &dyn std::fmt::Display| {
            tracing::warn!(
                "{}: {why}; until it can be read, nothing below it is stored",
                path.display()
            );
            Content::Everything
        };
        let rules = match plain::read(path, links, RULES_BYTES_MAX) {
            Ok((content, _)) => match Rules::parse(&content) {
                Ok(rules) => Content::Rules(rules),
                Err(TooCostly) => unreadable(&format_args!(
                    "a pattern has more than {PATTERN_BYTES_MAX} bytes or too many *"
                )),
            },
            Err(Unread::Missing) => Content::Rules(Rules::default()),
            Err(Unread::NoFile) if otherwise == Otherwise::NoRules => {
                Content::Rules(Rules::default())
            }
            Err(error) => unreadable(&error),
        };
        Source { look, rules }
    }
}

fn look(path: &Path, links: Links) -> Look {
    match plain::stamp(path, links) {
        Ok(stamp) => Look::File(stamp),
        Err(Unread::Missing) => Look::Missing,
        Err(Unread::NoFile) => Look::NoFile,
        Err(_) => Look::Unreadable,
    }
}
