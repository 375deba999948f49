//! What the user does with the keyboard.

use super::buffer::Form;
use super::lsp_text::{self, Change};
use super::steps::Step;
use super::story::{Found, Story};
use feedback::event::Outcome;

const KEYS: &[char] = &[
    'a', 'x', 'i', ' ', '.', ';', ',', '=', '(', ')', '[', ']', '{', '}', '"', '\'', '`', 'ö', '😀',
];

/// The mark that closes a mark.
fn closing(mark: char) -> Option<char> {
    Some(match mark {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '"' | '\'' | '`' => mark,
        _ => return None,
    })
}

impl Story {
    pub fn type_key(&mut self, step: Step) -> Found {
        let key = *Step::pick(step.a, KEYS);
        self.press(key)
    }

    pub fn type_along(&mut self) -> Found {
        let caret = self.buffer().caret;
        let ghost = self.screen.ghost_in(self.active).filter(|ghost| ghost.at == caret);
        match ghost.and_then(|ghost| ghost.item().rest().chars().next()) {
            Some('\n' | '\r') => self.enter(),
            Some(key) => self.press(key),
            None => Ok(()),
        }
    }

    fn press(&mut self, key: char) -> Found {
        let (active, closes) = (self.active, self.habits.closes_pairs);
        let buffer = &mut self.buffers[active];
        let caret = buffer.caret;
        if closes && buffer.closed.contains(&caret) && buffer.next() == Some(key) {
            buffer.closed.retain(|at| *at != caret);
            buffer.caret += key.len_utf8();
            self.screen.overtype(active, caret, key);
            return Ok(());
        }
        let is_quote = matches!(key, '"' | '\'' | '`');
        let is_in_word = is_quote && buffer.previous().is_some_and(char::is_alphanumeric);
        let has_room = buffer.next().is_none_or(|c| c.is_whitespace() || ")]};,".contains(c));
        match closing(key).filter(|_| closes && has_room && !is_in_word) {
            Some(mark) => {
                let version = buffer.version;
                self.by_hand(Change::insertion(caret, &format!("{key}{mark}")))?;
                let buffer = &mut self.buffers[active];
                if buffer.version > version {
                    buffer.caret -= mark.len_utf8();
                    buffer.closed.push(buffer.caret);
                }
                Ok(())
            }
            None => self.by_hand(Change::insertion(caret, &key.to_string())),
        }
    }

    pub fn enter(&mut self) -> Found {
        let (buffer, (before, _)) = (self.buffer(), self.buffer().around_caret());
        let blanks = before.chars().take_while(|c| *c == ' ' || *c == '\t');
        let text = format!("{}{}", buffer.line_break, blanks.collect::<String>());
        let entered = self.by_hand(Change::insertion(buffer.caret, &text));
        // A mark on another line than the one that it closes is none of a pair any more.
        self.buffers[self.active].closed.clear();
        entered
    }

    pub fn backspace(&mut self) -> Found {
        let buffer = self.buffer();
        let mut range = buffer.before_caret();
        let is_pair = buffer.previous().and_then(closing) == buffer.next();
        if is_pair && buffer.closed.contains(&buffer.caret) {
            range.end += buffer.next().map_or(0, char::len_utf8);
        }
        if range.is_empty() {
            return Ok(());
        }
        let (start, end) = (range.start, range.end);
        self.by_hand(Change { start, end, text: String::new() })
    }

    pub fn delete(&mut self) -> Found {
        let range = self.buffer().behind_caret();
        if range.is_empty() {
            return Ok(());
        }
        let (start, end) = (range.start, range.end);
        self.by_hand(Change { start, end, text: String::new() })
    }

    pub fn undo(&mut self) -> Found {
        let buffer = &mut self.buffers[self.active];
        let Some(before) = buffer.undo.pop() else { return Ok(()) };
        let change = Change::between(&buffer.text, &before).expressible(&buffer.text);
        let caret = change.start + change.text.len();
        let undone = self.by_hand(change);
        self.buffers[self.active].put_caret(caret);
        self.caret_moved();
        undone
    }

    pub fn move_caret(&mut self, step: Step) {
        let buffer = &mut self.buffers[self.active];
        match step.b % 4 {
            // Code is mostly written at the end of a line.
            0 | 1 => {
                let lines = lsp_text::lines(&buffer.text);
                buffer.put_caret(lines[step.a % lines.len()].end);
            }
            2 => buffer.put_caret(step.a % (buffer.text.len() + 1)),
            _ => {
                let at = self.screen.ghost_in(self.active).map(|ghost| ghost.at);
                let at = at.unwrap_or(step.a % (self.buffers[self.active].text.len() + 1));
                self.buffers[self.active].put_caret(at);
            }
        }
        self.caret_moved();
    }

    /// Offers are shown at the cursor alone.
    pub fn caret_moved(&mut self) {
        let (active, caret) = (self.active, self.buffer().caret);
        let Some(ghost) = &self.screen.ghost else { return };
        if ghost.document == active && ghost.at == caret {
            return;
        }
        let (id, was_visible) = (ghost.item().id.clone(), ghost.is_visible);
        self.screen.hide();
        if was_visible && self.habits.tells_hidden {
            self.session.rejected(&id, Outcome::Superseded);
            self.screen.ghost = None;
        }
    }

    pub fn second_cursor(&mut self, step: Step) -> Found {
        let key = Step::pick(step.a, KEYS).to_string();
        let caret = self.buffer().caret;
        let other = {
            let buffer = self.buffer();
            let at = lsp_text::position(
                &buffer.text,
                (0..=step.b % (buffer.text.len() + 1))
                    .rev()
                    .find(|at| buffer.text.is_char_boundary(*at))
                    .unwrap_or(0),
                self.habits.encoding,
            );
            lsp_text::offset(&buffer.text, at, self.habits.encoding).unwrap_or(0)
        };
        if other == caret {
            return Ok(());
        }
        // The lower one comes first, so that the other one's place is still right.
        let mut reports = vec![];
        if other > caret {
            reports.extend(self.tool_change(
                self.active,
                Change::insertion(other, &key),
                Form::Exact,
            ));
        }
        reports.extend(self.hand_change(Change::insertion(caret, &key), Form::Exact));
        if other < caret {
            reports.extend(self.tool_change(
                self.active,
                Change::insertion(other, &key),
                Form::Exact,
            ));
        }
        self.send(self.active, reports)
    }
}
