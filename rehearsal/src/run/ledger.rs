//! What was really done with every offer. The daemon's labels are checked against it.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::AddAssign;

/// Offers by their outcome, under the names that `hone status` uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelCounts {
    pub total: u64,
    pub accepted: u64,
    pub partly_accepted: u64,
    pub typed_through: u64,
    pub rejected_esc: u64,
    pub rejected_timeout: u64,
    pub rejected_edit: u64,
    pub superseded: u64,
    pub unseen: u64,
    pub unlabelled: u64,
}

impl LabelCounts {
    fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("total", self.total),
            ("accepted", self.accepted),
            ("partly_accepted", self.partly_accepted),
            ("typed_through", self.typed_through),
            ("rejected_esc", self.rejected_esc),
            ("rejected_timeout", self.rejected_timeout),
            ("rejected_edit", self.rejected_edit),
            ("superseded", self.superseded),
            ("unseen", self.unseen),
            ("unlabelled", self.unlabelled),
        ]
    }

    /// Offers that were accepted or rejected.
    pub fn judged(&self) -> u64 {
        let accepted = self.accepted + self.partly_accepted + self.typed_through;
        accepted + self.rejected_esc + self.rejected_timeout + self.rejected_edit
    }

    /// One line for each count in which `self`, the truth, differs from what the daemon counts.
    /// The daemon stores nothing about `withheld` offers. So each of its counts may be lower by up
    /// to that number, and its total must be lower by exactly that number.
    pub fn disagreements(&self, daemon: &LabelCounts, withheld: u64) -> Vec<String> {
        let agree = |name: &str, real: u64, labelled: u64| match name {
            "total" => real == labelled + withheld,
            _ => labelled <= real && real - labelled <= withheld,
        };
        self.named()
            .into_iter()
            .zip(daemon.named())
            .filter(|((name, real), (_, labelled))| !agree(name, *real, *labelled))
            .map(|((name, real), (_, labelled))| {
                format!("{name}: the typist counts {real}, the daemon {labelled}")
            })
            .collect()
    }
}

/// The way in which the daemon's verdicts differ from what the developer did, offer by offer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelCheck {
    /// Verdicts that the developer did not give. They teach what nobody said.
    pub not_given: u64,
    /// Verdicts that the developer gave and the daemon has not.
    pub missed: u64,
}

impl AddAssign for LabelCheck {
    fn add_assign(&mut self, other: LabelCheck) {
        self.not_given += other.not_given;
        self.missed += other.missed;
    }
}

/// An offer that was typed by hand and then left counts as typed through if at least this share
/// of it, one half, was typed. This is the daemon's rule.
const TYPED_THROUGH_SHARE: (usize, usize) = (1, 2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Accepted,
    /// Some of its lines were accepted.
    PartlyAccepted,
    TypedThrough,
    Escaped,
    TimedOut,
    Edited,
    Superseded,
    /// The editor did not show it.
    Unseen,
}

impl Label {
    /// The daemon's name of a label that is a verdict.
    fn verdict(self) -> Option<&'static str> {
        match self {
            Label::Accepted => Some("accepted"),
            Label::PartlyAccepted => Some("partly_accepted"),
            Label::TypedThrough => Some("typed_through"),
            Label::Escaped => Some("rejected_esc"),
            Label::TimedOut => Some("rejected_timeout"),
            Label::Edited => Some("rejected_edit"),
            Label::Superseded | Label::Unseen => None,
        }
    }
}

/// The offer on the screen. So far it was at most typed along.
#[derive(Debug)]
struct LiveOffer {
    id: String,
    /// The part that is not typed yet.
    rest: String,
    /// The part that is typed.
    typed: String,
    chars: usize,
    /// True if a part of it was accepted.
    taken: bool,
}

#[derive(Debug, Default)]
pub struct Ledger {
    /// The counts of an earlier part of the stream.
    before: LabelCounts,
    labels: HashMap<String, Label>,
    live: Option<LiveOffer>,
}

impl Ledger {
    /// Continues from these counts.
    pub fn after(before: LabelCounts) -> Ledger {
        Ledger { before, ..Ledger::default() }
    }

    /// Returns true if an offer is on the screen.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// An offer appears on the screen. It may be the one that is there already, without the part
    /// that was typed since; then it stays the same offer.
    pub fn shown(&mut self, id: &str, text: &str) {
        if self.live.as_ref().is_some_and(|live| live.id == id) {
            return;
        }
        self.leave(Label::Superseded);
        let chars = text.chars().count();
        let (id, rest, typed) = (id.to_owned(), text.to_owned(), String::new());
        self.live = Some(LiveOffer { id, rest, typed, chars, taken: false });
    }

    /// Returns true if this offer is on the screen.
    pub fn is_shown(&self, id: &str) -> bool {
        self.live.as_ref().is_some_and(|live| live.id == id)
    }

    /// The editor does not show this offer, which takes the place of the one on the screen.
    pub fn kept_off(&mut self, id: &str) {
        self.leave(Label::Superseded);
        self.labels.insert(id.to_owned(), Label::Unseen);
    }

    pub fn accepted(&mut self) {
        if let Some(live) = self.live.take() {
            self.labels.insert(live.id, Label::Accepted);
        }
    }

    /// A part of the offer was accepted, and the rest stays on the screen.
    pub fn took(&mut self, text: &str) {
        if let Some(live) = &mut self.live {
            live.taken = true;
        }
        self.typed(text);
    }

    /// The developer changes what they have taken of the offer, which removes the rest.
    pub fn left_what_is_taken(&mut self) {
        if self.live.as_ref().is_some_and(|live| live.taken) {
            self.leave(Label::PartlyAccepted);
        }
    }

    pub fn escaped(&mut self) {
        self.leave(Label::Escaped);
    }

    pub fn timed_out(&mut self) {
        self.leave(Label::TimedOut);
    }

    /// Text was typed at the cursor.
    pub fn typed(&mut self, text: &str) {
        let Some(live) = &mut self.live else { return };
        match live.rest.strip_prefix(text) {
            Some(rest) => {
                live.rest = rest.to_owned();
                live.typed.push_str(text);
                if live.rest.is_empty() {
                    self.leave(Label::TypedThrough);
                }
            }
            None => self.leave(Label::Edited),
        }
    }

    /// Text that was typed at the cursor was taken back.
    pub fn took_back(&mut self, text: &str) {
        let Some(live) = &mut self.live else { return };
        match live.typed.strip_suffix(text) {
            Some(typed) => {
                live.typed = typed.to_owned();
                live.rest.insert_str(0, text);
            }
            None => self.leave(Label::Edited),
        }
    }

    /// The cursor moves away from the offer. Returns the offer that was on the screen.
    pub fn left(&mut self) -> Option<String> {
        let id = self.live.as_ref().map(|live| live.id.clone());
        self.leave(Label::Superseded);
        id
    }

    /// The document was closed, which removes the offer.
    pub fn closed(&mut self) {
        self.leave(Label::Superseded);
    }

    pub fn counts(&self) -> LabelCounts {
        let mut counts = self.before;
        counts.total += self.labels.len() as u64;
        for label in self.labels.values() {
            *match label {
                Label::Accepted => &mut counts.accepted,
                Label::PartlyAccepted => &mut counts.partly_accepted,
                Label::TypedThrough => &mut counts.typed_through,
                Label::Escaped => &mut counts.rejected_esc,
                Label::TimedOut => &mut counts.rejected_timeout,
                Label::Edited => &mut counts.rejected_edit,
                Label::Superseded => &mut counts.superseded,
                Label::Unseen => &mut counts.unseen,
            } += 1;
        }
        counts
    }

    /// Compares the verdicts of the daemon, by offer, with these. It stores nothing about
    /// `withheld` offers.
    pub fn check(&self, daemon: &HashMap<String, String>, withheld: u64) -> LabelCheck {
        let given = |offer: &String| self.labels.get(offer).and_then(|label| label.verdict());
        let not_given =
            daemon.iter().filter(|(offer, outcome)| given(offer) != Some(outcome.as_str()));
        let verdicts = self.labels.iter().filter(|(_, label)| label.verdict().is_some());
        let missed = verdicts.filter(|(offer, _)| !daemon.contains_key(*offer)).count() as u64;
        LabelCheck { not_given: not_given.count() as u64, missed: missed.saturating_sub(withheld) }
    }

    /// The developer leaves the live offer for this reason.
    fn leave(&mut self, reason: Label) {
        let Some(live) = self.live.take() else { return };
        let (part, whole) = TYPED_THROUGH_SHARE;
        let typed_chars = live.typed.chars().count();
        let mostly_typed = typed_chars > 0 && typed_chars * whole >= live.chars * part;
        let label = if live.taken && live.rest.is_empty() {
            Label::Accepted
        } else if live.taken {
            Label::PartlyAccepted
        } else if mostly_typed {
            Label::TypedThrough
        } else {
            reason
        };
        self.labels.insert(live.id, label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(story: impl Fn(&mut Ledger)) -> LabelCounts {
        let mut ledger = Ledger::default();
        ledger.shown("a", "abcdef");
        story(&mut ledger);
        assert!(!ledger.is_live());
        ledger.counts()
    }

    fn one(set: impl Fn(&mut LabelCounts)) -> LabelCounts {
        let mut counts = LabelCounts { total: 1, ..Default::default() };
        set(&mut counts);
        counts
    }

    #[test]
    fn each_action_has_its_label() {
        assert_eq!(counts(|l| l.accepted()), one(|c| c.accepted = 1));
        assert_eq!(counts(|l| l.escaped()), one(|c| c.rejected_esc = 1));
        assert_eq!(counts(|l| l.timed_out()), one(|c| c.rejected_timeout = 1));
        assert_eq!(counts(|l| l.typed("x")), one(|c| c.rejected_edit = 1));
        assert_eq!(counts(|l| drop(l.left())), one(|c| c.superseded = 1));
        assert_eq!(counts(|l| l.closed()), one(|c| c.superseded = 1));
    }

    #[test]
    fn an_offer_that_the_editor_does_not_show_has_no_label() {
        let unseen = counts(|l| {
            l.kept_off("b");
            assert!(!l.is_shown("a") && !l.is_shown("b"));
        });
        let expected = LabelCounts { total: 2, superseded: 1, unseen: 1, ..Default::default() };
        assert_eq!(unseen, expected);
    }

    #[test]
    fn half_of_an_offer_typed_by_hand_is_typed_through_whatever_follows() {
        let typed = |part: &'static str, then: fn(&mut Ledger)| {
            counts(move |ledger| {
                part.chars().for_each(|c| ledger.typed(&c.to_string()));
                then(ledger);
            })
        };
        let typed_through = one(|c| c.typed_through = 1);
        assert_eq!(typed("abcdef", |_| ()), typed_through);
        assert_eq!(typed("abc", |l| l.typed("x")), typed_through);
        assert_eq!(typed("abc", Ledger::escaped), typed_through);
        assert_eq!(typed("abc", Ledger::closed), typed_through);
        assert_eq!(typed("ab", |l| l.typed("x")), one(|c| c.rejected_edit = 1));
        assert_eq!(typed("ab", Ledger::timed_out), one(|c| c.rejected_timeout = 1));
    }

    #[test]
    fn what_is_typed_along_and_taken_back_is_not_typed() {
        let back = counts(|ledger| {
            ledger.typed("a");
            ledger.typed("b");
            ledger.typed("c");
            ledger.took_back("c");
            ledger.typed("c");
            ledger.took_back("bc");
            ledger.timed_out();
        });
        assert_eq!(back, one(|c| c.rejected_timeout = 1));
        assert_eq!(counts(|l| l.took_back("x")), one(|c| c.rejected_edit = 1));
    }

    #[test]
    fn an_offer_that_is_taken_line_by_line_is_partly_accepted_until_its_end() {
        let lines = |then: fn(&mut Ledger)| {
            let mut ledger = Ledger::default();
            ledger.shown("a", "one\n  two");
            ledger.took("one");
            ledger.typed("\n  ");
            then(&mut ledger);
            ledger.counts()
        };
        assert_eq!(lines(|l| l.took("two")), one(|c| c.accepted = 1));
        assert_eq!(lines(|l| l.typed("x")), one(|c| c.partly_accepted = 1));
        assert_eq!(lines(|l| l.left_what_is_taken()), one(|c| c.partly_accepted = 1));
    }

    #[test]
    fn verdicts_are_compared_offer_by_offer() {
        let mut ledger = Ledger::default();
        ledger.shown("a", "abc");
        ledger.accepted();
        ledger.shown("b", "abc");
        ledger.left();
        ledger.shown("c", "abc");
        ledger.escaped();
        let check = |verdicts: &[(&str, &str)], withheld| {
            let own = |(offer, outcome): &(&str, &str)| (String::from(*offer), (*outcome).into());
            let check = ledger.check(&verdicts.iter().map(own).collect(), withheld);
            (check.not_given, check.missed)
        };
        let right = [("a", "accepted"), ("c", "rejected_esc")];
        assert_eq!(check(&right, 0), (0, 0));
        assert_eq!(check(&right[..1], 0), (0, 1));
        assert_eq!(check(&right[..1], 1), (0, 0), "nothing is stored of it");
        let wrong = [right[0], ("b", "rejected_edit"), ("c", "rejected_edit"), ("d", "accepted")];
        assert_eq!(check(&wrong, 0), (3, 0), "no verdict, another verdict, an unknown offer");
    }

    #[test]
    fn an_offer_shown_again_further_on_is_the_same_offer() {
        let again = counts(|ledger| {
            ledger.typed("abc");
            ledger.shown("a", "def");
            ledger.typed("x");
        });
        assert_eq!(again, one(|c| c.typed_through = 1));
        let replaced = counts(|ledger| {
            ledger.shown("b", "xyz");
            ledger.accepted();
        });
        assert_eq!((replaced.total, replaced.superseded, replaced.accepted), (2, 1, 1));
    }

    #[test]
    fn every_difference_has_its_line() {
        let real = LabelCounts { total: 2, accepted: 2, ..Default::default() };
        let daemon = LabelCounts { total: 2, accepted: 1, unlabelled: 1, ..Default::default() };
        assert_eq!(real.disagreements(&real, 0), Vec::<String>::new());
        assert_eq!(
            real.disagreements(&daemon, 0),
            [
                "accepted: the typist counts 2, the daemon 1",
                "unlabelled: the typist counts 0, the daemon 1"
            ]
        );
        let missing = LabelCounts { total: 1, accepted: 1, ..Default::default() };
        assert_eq!(real.disagreements(&missing, 1), Vec::<String>::new());
        assert_eq!(
            real.disagreements(&missing, 2),
            ["total: the typist counts 2, the daemon 1"],
            "the withheld offers explain no more than their own number"
        );
    }
}
