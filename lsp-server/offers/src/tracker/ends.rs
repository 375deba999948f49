//! The ways in which an offer ends that is not used, and whose verdict each of them is.
//!
//! | the offer ends because | who gave the verdict | outcome, if it was seen |
//! |---|---|---|
//! | the user wrote other text at its place | the user, by an edit | rejected by an edit |
//! | nothing happened for a while | the user, by waiting | rejected by timeout |
//! | the client says what the user did | the user, through the client | what the client says |
//! | anything else happened: another place or offer, a tool's edit, another text before it, the
//! document or the connection closed | nobody | superseded |
//!
//! Nobody can reject what was not on screen, so an offer that was not seen ends as unseen, whatever
//! ends it.

use feedback::event::{Evidence, Outcome};

/// The time in ms after which an offer counts as seen, if its client never reports what it shows.
pub const MIN_VISIBLE_MS: u64 = 250;

/// A way in which an offer ends that is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The user wrote other text at its place.
    Edited,
    /// The user did nothing with it for a while.
    TimedOut,
    /// The client says what the user did.
    Notice(Outcome),
    /// Nobody judged it, because it gave way to something else.
    Replaced,
}

/// What is known of whether an offer was on screen.
#[derive(Debug, Clone, Copy)]
pub struct Exposure {
    /// The client reported that this offer is on screen.
    pub is_reported: bool,
    /// The client reports what it shows.
    pub client_reports: bool,
    /// The time for which it may have been on screen.
    pub visible_ms: u64,
}

impl Exposure {
    /// Returns true if the user can have read the offer. If a client that reports what it shows
    /// does not report an offer, that offer was not on screen, for as long as it may have been
    /// live.
    fn was_seen(self) -> bool {
        self.is_reported || (!self.client_reports && self.visible_ms >= MIN_VISIBLE_MS)
    }
}

impl End {
    /// Returns the outcome of an offer that ends in this way.
    pub fn outcome(self, exposure: Exposure) -> Outcome {
        if !exposure.was_seen() {
            return Outcome::Unseen;
        }
        match self {
            End::Edited => Outcome::RejectedEdit,
            End::TimedOut => Outcome::RejectedTimeout,
            End::Notice(outcome) => outcome,
            End::Replaced => Outcome::Superseded,
        }
    }

    /// Returns what shows that it ended.
    pub fn evidence(self) -> Evidence {
        match self {
            End::Edited | End::Replaced => Evidence::Document,
            End::TimedOut => Evidence::Clock,
            End::Notice(_) => Evidence::ClientNotice,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: [(End, Outcome); 5] = [
        (End::Edited, Outcome::RejectedEdit),
        (End::TimedOut, Outcome::RejectedTimeout),
        (End::Notice(Outcome::RejectedEsc), Outcome::RejectedEsc),
        (End::Notice(Outcome::Superseded), Outcome::Superseded),
        (End::Replaced, Outcome::Superseded),
    ];

    #[test]
    fn what_was_not_seen_is_unseen_whatever_ends_it() {
        let exposure = |is_reported, client_reports, visible_ms| Exposure {
            is_reported,
            client_reports,
            visible_ms,
        };
        let seen = [
            exposure(true, true, 0),
            exposure(true, true, MIN_VISIBLE_MS),
            exposure(false, false, MIN_VISIBLE_MS),
        ];
        let unseen = [
            exposure(false, false, MIN_VISIBLE_MS - 1),
            exposure(false, true, 0),
            exposure(false, true, 100 * MIN_VISIBLE_MS),
        ];
        for (end, outcome) in ENDS {
            for exposure in seen {
                assert_eq!(end.outcome(exposure), outcome, "{end:?} {exposure:?}");
            }
            for exposure in unseen {
                assert_eq!(end.outcome(exposure), Outcome::Unseen, "{end:?} {exposure:?}");
            }
        }
    }
}
