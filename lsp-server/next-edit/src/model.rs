//! Next edits by a model, where the rules are silent: what it is asked, and what becomes of its
//! answer. No model is run here.
//!
//! The form is that of the models `sweep-next-edit` ([`Form`]): the file, the latest changes, a
//! window as it was and as it is, and the model writes the window as it will be. The answer is cut
//! into hunks ([`hunks`]), of which one is offered unless a filter drops it ([`Dropped`]). When the
//! model is asked at all is decided by [`Moment`].

mod answer;
mod changes;
mod ending;
mod filter;
mod form;
mod moment;
mod place;
mod signs;

pub use answer::{Hunk, hunks};
pub use changes::{Changed, Shown};
pub use ending::is_too_long;
pub use filter::{Dropped, Offered, REJECTED_MAX, Rejected, is_served};
pub use form::{ANSWER_TOKENS_MAX, FILE_BYTES_MAX, Form, PROMPT_TOKENS_MAX, Window};
pub use moment::{Decision, LastChange, Moment, Never};
pub use place::{Place, second};
pub use signs::Signs;

#[cfg(test)]
mod tests;
