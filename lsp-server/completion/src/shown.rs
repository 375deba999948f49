//! The part of a generated answer that is shown.

use crate::defects::without_special_tokens;
use crate::foreign_marks::without_marks;
use crate::postprocess::{NearbyText, shown_lines, without_extra_blank};
use crate::stop_rule::StopRule;
use feedback::event::StopReason;

/// A generated answer, as far as it may be offered.
pub struct AnswerText<'a> {
    /// The pieces of its tokens.
    pub text: &'a [u8],
    /// Bytes at its start that reproduce what the user has typed.
    pub healing: usize,
    pub stop: StopReason,
    pub is_prose: bool,
}

/// What is shown of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub text: String,
    /// The byte of the answer's text at which it begins.
    pub from: usize,
    /// True if nothing is shown because the answer is a mark that is no part of a program.
    pub is_mark: bool,
}

/// Returns the part of an answer that may be shown at this place.
pub fn shown(answer: &AnswerText, rule: &StopRule, around: &NearbyText) -> Shown {
    let AnswerText { text, healing, stop, is_prose } = answer;
    let length = shown_lines(text, *healing, *stop, rule, around);
    let from = (*healing).min(text.len());
    let shown = String::from_utf8_lossy(&text[from..from + length]);
    let plain = without_special_tokens(&shown);
    let shown = without_marks(plain, &around.line_before, around.marks, *is_prose);
    // A mark is no defect of the text that the model continues.
    let is_mark = shown.is_empty() && !plain.is_empty();
    let shown = rule.whole(shown, text.get(from + shown.len()..).unwrap_or_default());
    let length = shown.len();
    let shown = without_extra_blank(shown, around);
    Shown { text: shown.to_owned(), from: from + length - shown.len(), is_mark }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, line_before: &str) -> Shown {
        let (healing, stop) = (0, StopReason::Newline);
        let answer = AnswerText { text: text.as_bytes(), healing, stop, is_prose: false };
        let around = NearbyText { line_before: line_before.into(), ..NearbyText::default() };
        shown(&answer, &StopRule::LINE, &around)
    }

    #[test]
    fn an_extra_blank_is_left_out_and_counts_as_generated() {
        let Shown { text, from, .. } = of(" call(x);\n", "    ");
        assert_eq!((text.as_str(), from), ("call(x);", 1));
    }

    #[test]
    fn special_tokens_are_not_shown() {
        assert_eq!(of("x = 1<|endoftext|>\n", "").text, "x = 1");
    }
}
