//! What the played user sees and what the user has said so far about each offer. The verdicts that
//! the server records are held against this.

use super::lsp_text::Change;
use feedback::event::{OfferId, Outcome};
use std::collections::HashMap;

/// An offer, of which a part may be in the document by now.
#[derive(Debug, Clone)]
pub struct Item {
    pub id: OfferId,
    pub full: String,
    /// The part in the document, in bytes.
    pub done: usize,
    /// What of it the editor was told last begins here, in bytes.
    pub told: usize,
    /// The marks behind the cursor that it takes the place of, in bytes.
    pub replaces: usize,
}

impl Item {
    pub fn rest(&self) -> &str {
        &self.full[self.done..]
    }
}

/// The offers at one place. The user sees one of them.
#[derive(Debug)]
pub struct Ghost {
    pub document: usize,
    /// Where the rest of the offers would go, in bytes.
    pub at: usize,
    pub items: Vec<Item>,
    pub current: usize,
    /// It is not once the cursor is elsewhere, which not every client reports.
    pub is_visible: bool,
    /// The text around it is the one that the answer was for, but for what was typed along.
    pub is_fresh: bool,
}

/// Where a change is, seen from the offers' place.
#[derive(Debug, PartialEq, Eq)]
pub enum Side {
    Before,
    After,
    Touching,
}

impl Ghost {
    pub fn item(&self) -> &Item {
        &self.items[self.current]
    }

    /// Where the offer begins that the user sees.
    pub fn start(&self) -> usize {
        self.at - self.item().done
    }

    pub fn is_begun(&self) -> bool {
        self.item().done > 0
    }

    pub fn side(&self, change: &Change) -> Side {
        let start = self.start();
        if change.end < start || (change.end == start && self.is_begun()) {
            Side::Before
        } else if change.start > self.at + self.item().replaces {
            Side::After
        } else {
            Side::Touching
        }
    }

    fn shift(&mut self, change: &Change) {
        self.at = self.at - (change.end - change.start) + change.text.len();
    }

    /// Puts a part of the rest into the document, or `typed` as it stands there. The offers that do
    /// not continue like this are out.
    fn go_along(&mut self, typed: &str) {
        let current = self.item().id.clone();
        self.items.retain(|item| item.rest().starts_with(typed));
        self.current = self.items.iter().position(|item| item.id == current).unwrap_or(0);
        for item in &mut self.items {
            item.done += typed.len();
        }
    }
}

/// What an editor writes that closes a mark. It is seen where somebody pastes the two as well.
const PAIRS: [&str; 6] = ["()", "[]", "{}", "\"\"", "''", "``"];

/// What is known of an offer.
#[derive(Debug, Default)]
pub struct Known {
    pub full: String,
    pub document: usize,
    pub since_ms: u64,
    /// Its document is not open any more, or has become another text.
    pub is_gone: bool,
    /// What the user has said so far.
    pub accepted: bool,
    pub accepted_partly: bool,
    pub typed: bool,
    pub rejected: bool,
    pub escaped: bool,
    /// What was recorded last.
    pub outcome: Option<Outcome>,
}

#[derive(Debug, Default)]
pub struct Screen {
    pub ghost: Option<Ghost>,
    pub known: HashMap<OfferId, Known>,
}

impl Screen {
    pub fn known(&mut self, id: &str) -> &mut Known {
        self.known.entry(id.to_owned()).or_default()
    }

    pub fn ghost_in(&self, document: usize) -> Option<&Ghost> {
        self.ghost.as_ref().filter(|ghost| ghost.document == document)
    }

    /// The user does not see the offers any more, though nobody tells the server.
    pub fn hide(&mut self) {
        if let Some(ghost) = &mut self.ghost {
            ghost.is_visible = false;
        }
    }

    pub fn close(&mut self, document: usize) {
        self.ghost.take_if(|ghost| ghost.document == document);
        let offers = self.known.values_mut().filter(|known| known.document == document);
        offers.for_each(|known| known.is_gone = true);
    }

    /// A tool changes the text. Nothing is said by that.
    pub fn by_tool(&mut self, document: usize, change: &Change) {
        if change.is_nothing() {
            return;
        }
        let Some(ghost) = self.ghost.as_mut().filter(|ghost| ghost.document == document) else {
            return;
        };
        match ghost.side(change) {
            Side::Before => ghost.shift(change),
            Side::After => {}
            Side::Touching => self.ghost = None,
        }
    }

    /// The user's hand changes the text `old`.
    pub fn by_hand(&mut self, document: usize, old: &str, change: &Change) {
        if change.is_nothing() {
            return;
        }
        let Some(mut ghost) = self.ghost.take_if(|ghost| ghost.document == document) else {
            return;
        };
        let continues = match ghost.side(change) {
            Side::Before => {
                ghost.shift(change);
                true
            }
            Side::After => true,
            Side::Touching if change.start == change.end && change.start >= ghost.at => {
                self.types(&mut ghost, old, change)
            }
            Side::Touching => self.takes_back(&mut ghost, change),
        };
        self.ghost = Some(ghost).filter(|_| continues);
    }

    /// Text is inserted at the place. Returns whether the offers still fit.
    fn types(&mut self, ghost: &mut Ghost, old: &str, change: &Change) -> bool {
        let pair = PAIRS.contains(&change.text.as_str());
        let over = &old[ghost.at..change.start];
        let behind = &old[change.start..ghost.at + ghost.item().replaces];
        let (whole, key) = (format!("{over}{}", change.text), change.text.chars().next());
        let typed = if pair { format!("{over}{}", key.unwrap_or_default()) } else { whole.clone() };
        let is_all = |item: &Item| {
            whole.starts_with(item.rest()) || format!("{whole}{behind}") == item.rest()
        };
        let goes_along = ghost.item().rest().starts_with(&typed);
        let is_another = !goes_along && whole.chars().count() > 1 && ghost.items.iter().any(is_all);
        if is_all(ghost.item()) || is_another {
            for item in ghost.items.iter().filter(|item| is_all(item)) {
                // The last key is no more than a key.
                let at_once = change.text.chars().count() > 1 && item.rest().chars().count() > 1;
                let known = self.known.entry(item.id.clone()).or_default();
                known.accepted |= (at_once && !pair) || known.accepted_partly;
                known.typed = true;
            }
            let id = ghost.item().id.clone();
            self.known(&id).rejected |= is_another;
            return false;
        }
        if !goes_along {
            let id = ghost.item().id.clone();
            self.known(&id).rejected = true;
            return false;
        }
        ghost.go_along(&typed);
        ghost.is_fresh &= !pair && over.is_empty();
        ghost.at = change.start + typed.len() - over.len();
        for item in &mut ghost.items {
            item.replaces = if pair { 0 } else { item.replaces.saturating_sub(over.len()) };
        }
        self.credit_typing(ghost)
    }

    /// Text is removed at the place. Returns whether the offers still fit.
    fn takes_back(&mut self, ghost: &mut Ghost, change: &Change) -> bool {
        let replaces = ghost.item().replaces;
        let is_back = change.text.is_empty()
            && (ghost.start()..=ghost.at).contains(&change.start)
            && (ghost.at..=ghost.at + replaces).contains(&change.end);
        if !is_back {
            let id = ghost.item().id.clone();
            self.known(&id).rejected = true;
            return false;
        }
        let (back, marks) = (ghost.at - change.start, change.end - ghost.at);
        let current = ghost.item().id.clone();
        ghost.items.retain(|item| item.done >= back);
        ghost.current = ghost.items.iter().position(|item| item.id == current).unwrap_or(0);
        for item in &mut ghost.items {
            item.done -= back;
            item.replaces = item.replaces.saturating_sub(marks);
        }
        // Editors ask again.
        ghost.is_fresh = false;
        ghost.at = change.start;
        true
    }

    /// The cursor moves over a mark that the editor had closed. Nothing is told to the server.
    pub fn overtype(&mut self, document: usize, caret: usize, mark: char) {
        let Some(mut ghost) = self.ghost.take_if(|ghost| ghost.document == document) else {
            return;
        };
        let mark = mark.to_string();
        let continues = ghost.at == caret
            && ghost.item().replaces > 0
            && ghost.item().rest().starts_with(&mark);
        ghost.is_fresh = false;
        let mut stays = true;
        if continues {
            ghost.go_along(&mark);
            ghost.at += mark.len();
            for item in &mut ghost.items {
                item.replaces = item.replaces.saturating_sub(mark.len());
            }
            stays = self.credit_typing(&ghost);
        } else {
            ghost.is_visible = false;
        }
        self.ghost = Some(ghost).filter(|_| stays);
    }

    /// Half of an offer is enough to be typed through. Returns whether there is a rest.
    pub fn credit_typing(&mut self, ghost: &Ghost) -> bool {
        for item in &ghost.items {
            let (done, all) = (item.full[..item.done].chars().count(), item.full.chars().count());
            let known = self.known.entry(item.id.clone()).or_default();
            known.typed |= 2 * done >= all;
            known.accepted |= known.accepted_partly && done == all;
        }
        !ghost.item().rest().is_empty()
    }

    /// Whether the user has said this about an offer.
    pub fn has_said(&self, id: &str, outcome: Outcome, now_ms: u64, timeout_ms: u64) -> bool {
        if matches!(outcome, Outcome::Superseded | Outcome::Unseen) {
            return true;
        }
        let Some(known) = self.known.get(id) else { return false };
        match outcome {
            Outcome::Accepted => known.accepted,
            Outcome::PartlyAccepted { .. } => known.accepted_partly,
            Outcome::TypedThrough { .. } => known.typed,
            Outcome::RejectedEdit => known.rejected,
            Outcome::RejectedEsc => known.escaped,
            Outcome::RejectedTimeout => !known.is_gone && now_ms - known.since_ms >= timeout_ms,
            Outcome::Superseded | Outcome::Unseen => true,
        }
    }
}
