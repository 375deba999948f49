//! The text behind the cursor on its line that is more than closing marks. A model that does not
//! see that the line continues says the rest again in other words: `append(3)` before `append(2)`.

use super::closing::Quotes;

/// The least length of a name by which a repetition is recognised, in bytes. A shorter one, such as
/// `a`, occurs in too many texts by chance.
const NAME_MIN: usize = 2;

/// Cuts an offer before the name with which the rest of the line begins. What is left then leads up
/// to the rest, as the model itself continues it with this name. It is nothing if it would leave a
/// string or a bracket open that the offer itself opened.
pub(super) fn before_rest<'a>(shown: &'a str, line_before: &str, rest: &str) -> &'a str {
    let Some((marks, name)) = first_name(rest) else { return shown };
    let repeats =
        |at: &usize| is_whole_word(shown, *at, name.len()) && ends_with_marks(&shown[..*at], marks);
    let Some(at) = shown.match_indices(name).map(|(at, _)| at).find(repeats) else {
        return shown;
    };
    let lead = shown[..at].trim_end();
    let lead = lead.strip_suffix(marks.trim()).unwrap_or(lead).trim_end();
    // A blank before the name stays where no mark stands between.
    let lead = if marks.trim().is_empty() { &shown[..at] } else { lead };
    if opens_only(lead, line_before) { "" } else { lead }
}

/// Returns whether an offer would run into a name that stands right behind it, as `f(x)` before
/// `name` does. Within a word, more of the word may be put in: `get|Name` becomes `getUserName`.
pub(super) fn runs_into_a_name(shown: &str, line_before: &str, rest: &str) -> bool {
    let Some(last) = shown.chars().next_back().filter(|_| rest.starts_with(is_word)) else {
        return false;
    };
    let is_in_word = line_before.ends_with(is_word) && shown.chars().all(is_word);
    let ends_something = is_word(last) || matches!(last, ')' | ']' | '}' | '"' | '\'' | '`');
    ends_something && !is_in_word
}

/// The offer with the blank behind it that the answer has there, if a name stands right behind the
/// cursor. Elsewhere a blank at the end is not shown.
pub(super) fn with_blank_before_name<'a>(shown: &'a str, answer: &'a [u8], rest: &str) -> &'a str {
    let behind = answer.get(shown.len()..).unwrap_or_default();
    if shown.is_empty() || !rest.starts_with(is_word) || !behind.starts_with(b" ") {
        return shown;
    }
    answer.get(..shown.len() + 1).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or(shown)
}

/// The marks and blanks at the beginning of a text, and the name behind them.
fn first_name(rest: &str) -> Option<(&str, &str)> {
    let start = rest.find(is_word)?;
    let (marks, behind) = rest.split_at(start);
    let end = behind.find(|c| !is_word(c)).unwrap_or(behind.len());
    let name = &behind[..end];
    (name.len() >= NAME_MIN && !name.starts_with(|c: char| c.is_ascii_digit()))
        .then_some((marks, name))
}

/// Returns true if a name that begins at `at` is no part of a longer one.
fn is_whole_word(text: &str, at: usize, length: usize) -> bool {
    !text[..at].ends_with(is_word) && !text[at + length..].starts_with(is_word)
}

/// Returns true if a text ends with these marks; blanks do not count.
fn ends_with_marks(text: &str, marks: &str) -> bool {
    let mut left = text.chars().rev().filter(|c| !c.is_whitespace());
    marks.chars().rev().filter(|c| !c.is_whitespace()).all(|mark| left.next() == Some(mark))
}

/// Returns true if a text leaves a bracket or a string open that it has opened itself.
fn opens_only(text: &str, line_before: &str) -> bool {
    let mut quotes = Quotes::open_at_end_of(line_before);
    let began_in = quotes.current();
    let mut open = 0_usize;
    let mut previous = line_before.chars().next_back();
    for c in text.chars() {
        let was_open = quotes.current().is_some();
        quotes.read(previous.replace(c), c);
        if was_open || quotes.current().is_some() {
            continue;
        }
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    open > 0 || quotes.current() != began_in
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_line_is_not_said_again_in_other_words() {
        assert_eq!(before_rest("append(3)", "items.", "append(2)"), "");
        assert_eq!(before_rest("f\"{name} is {age}\")", "print(", "name, age)"), "");
        assert_eq!(before_rest("ulate_total([1])", "print(calc", "ulate_total([1, 2]))"), "");
        assert_eq!(before_rest("5, height=4)", "area(width=", ", height=3))"), "5");
        assert_eq!(before_rest("not items.append(3)", "if ", "items.append(2)"), "not ");
    }

    #[test]
    fn an_offer_does_not_run_into_the_name_behind_it() {
        assert!(runs_into_a_name("push(3)", "items.", "append(2)"));
        assert!(runs_into_a_name("\"Hello\")", "print(", "name, age)"));
        assert!(runs_into_a_name("first", "f(", "second)"));
        assert!(!runs_into_a_name("User", "get", "Name()"), "within a word");
        assert!(!runs_into_a_name("self.", "return ", "value"));
        assert!(!runs_into_a_name("x)", "f(", ");"));
    }

    #[test]
    fn a_blank_before_a_name_is_kept() {
        assert_eq!(with_blank_before_name("x =", b"x = ", "name"), "x = ");
        assert_eq!(with_blank_before_name("x =", b"x = ", ");"), "x =");
        assert_eq!(with_blank_before_name("x =", b"x =", "name"), "x =");
    }

    #[test]
    fn what_only_looks_alike_stays() {
        let same = |shown, rest| assert_eq!(before_rest(shown, "f(", rest), shown, "{rest}");
        same("a + b", ")");
        same("names, ", "name)");
        same("total, 2", ") + total");
        same("a, ", "a)");
        same("x2", "22)");
    }
}
