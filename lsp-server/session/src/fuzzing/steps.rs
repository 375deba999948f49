//! What can happen in a story, as data: steps are drawn, left out and repeated.

use super::buffer::{FORMS, Form};
use completion::document::Encoding;
use rand::Rng;
use rand::rngs::StdRng;

/// What somebody does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A key.
    Type,
    /// The next key of the offer.
    Along,
    Enter,
    Backspace,
    Delete,
    Undo,
    /// The cursor goes elsewhere.
    Move,
    /// A key with two cursors.
    SecondCursor,
    /// A formatter rewrites the document or its lines.
    Format,
    /// A tool puts text in or takes it away elsewhere.
    Insert,
    Remove,
    /// A change at positions that are not there.
    Wild,
    Save,
    /// The editor reads the file again.
    Reload,
    Toggle,
    Switch,
    Ask,
    Invoke,
    /// A request at a position that is not there.
    AskWild,
    /// A request whose answer takes a while, the answer, and a client that does not want it.
    Hold,
    Answer,
    Cancel,
    Accept,
    AcceptWord,
    LateCommand,
    Escape,
    /// The user looks at another offer of the same answer.
    Turn,
    Show,
    Wait,
    Focus,
    Forget,
}

/// How often each is drawn.
const ACTS: &[(Act, u32)] = &[
    (Act::Type, 14),
    (Act::Along, 12),
    (Act::Enter, 4),
    (Act::Backspace, 5),
    (Act::Delete, 2),
    (Act::Undo, 2),
    (Act::Move, 6),
    (Act::SecondCursor, 2),
    (Act::Format, 3),
    (Act::Insert, 4),
    (Act::Remove, 3),
    (Act::Wild, 2),
    (Act::Save, 2),
    (Act::Reload, 1),
    (Act::Toggle, 1),
    (Act::Switch, 1),
    (Act::Ask, 22),
    (Act::Invoke, 4),
    (Act::AskWild, 2),
    (Act::Hold, 4),
    (Act::Answer, 4),
    (Act::Cancel, 1),
    (Act::Accept, 8),
    (Act::AcceptWord, 3),
    (Act::LateCommand, 1),
    (Act::Escape, 3),
    (Act::Turn, 2),
    (Act::Show, 5),
    (Act::Wait, 6),
    (Act::Focus, 1),
    (Act::Forget, 1),
];

/// A step. What `a`, `b` and `c` mean depends on the act and on the story, so that a step makes
/// sense wherever it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub act: Act,
    pub a: usize,
    pub b: usize,
    pub c: usize,
}

impl Step {
    pub fn draw(rng: &mut StdRng) -> Step {
        let all: u32 = ACTS.iter().map(|(_, weight)| weight).sum();
        let mut left = rng.random_range(0..all);
        let chosen = ACTS.iter().find(|(_, weight)| match left.checked_sub(*weight) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        let act = chosen.map_or(Act::Ask, |(act, _)| *act);
        let mut number = || usize::from(rng.random::<u16>());
        Step { act, a: number(), b: number(), c: number() }
    }

    pub fn pick<T>(number: usize, items: &[T]) -> &T {
        &items[number % items.len()]
    }
}

/// What an editor and its settings are like. They stay the same in a story.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    pub encoding: Encoding,
    /// The form of what the user changes.
    pub form: Form,
    pub line_break: &'static str,
    pub closes_pairs: bool,
    /// The client reports when the user does not see an offer any more.
    pub tells_hidden: bool,
    /// The gate is on.
    pub gates: bool,
    /// Prompts quote other documents.
    pub quotes: bool,
}

impl Habits {
    pub fn draw(rng: &mut StdRng) -> Habits {
        let mut number = || usize::from(rng.random::<u16>());
        Habits {
            encoding: *Step::pick(number(), &[Encoding::Utf16, Encoding::Utf8]),
            form: *Step::pick(
                number(),
                &[Form::Exact, Form::Exact, Form::Difference, FORMS[2], FORMS[3], FORMS[4]],
            ),
            line_break: ["\n", "\n", "\r\n", "\r"][number() % 4],
            closes_pairs: !number().is_multiple_of(4),
            tells_hidden: number().is_multiple_of(2),
            gates: number().is_multiple_of(4),
            quotes: number().is_multiple_of(4),
        }
    }
}
