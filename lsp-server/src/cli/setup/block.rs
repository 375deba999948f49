//! A recipe in a file of code, between two comments by which it is found again.

use super::Unsafe;
use super::recipe::{Editor, Form};

fn begin(editor: Editor) -> String {
    format!("hone setup {editor}: begin")
}

fn end(editor: Editor) -> String {
    format!("hone setup {editor}: end")
}

/// Returns true if a text has a recipe of this editor's.
pub fn is_in(text: &str, editor: Editor) -> bool {
    text.lines().any(|line| line.ends_with(&begin(editor)))
}

/// Returns the text with the recipe in it: instead of the one that is there, or at the beginning
/// or the end.
pub fn with_block(text: &str, editor: Editor, form: Form, recipe: &str) -> Result<String, Unsafe> {
    let comment = form.comment().unwrap_or_default();
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let [begin, end] = [begin(editor), end(editor)].map(|mark| format!("{comment} {mark}"));
    let lines = [begin.as_str(), recipe, &end];
    let block = lines.join("\n").replace('\n', newline) + newline;
    let (before, behind) = match around_block(text, editor)? {
        Some(around) => around,
        None if editor.comes_first() => ("", text),
        None => (text, ""),
    };
    if let Some(own) = editor.own_setup().filter(|own| [before, behind].concat().contains(own)) {
        return Err(Unsafe(format!("it sets {} up already (`{own}`)", editor.name())));
    }
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { newline };
    Ok([before, gap, &block, behind].concat())
}

/// Returns what stands before and behind the recipe that is there, if there is one.
fn around_block(text: &str, editor: Editor) -> Result<Option<(&str, &str)>, Unsafe> {
    let (begin, end) = (begin(editor), end(editor));
    let mut place = 0;
    let mut begins = vec![];
    let mut ends = vec![];
    for line in text.split_inclusive('\n') {
        if line.trim_end().ends_with(&begin) {
            begins.push(place);
        }
        place += line.len();
        if line.trim_end().ends_with(&end) {
            ends.push(place);
        }
    }
    match (&*begins, &*ends) {
        ([], []) => Ok(None),
        ([begin], [end]) if begin < end => Ok(Some((&text[..*begin], &text[*end..]))),
        _ => Err(Unsafe(format!("its lines `{begin}` and `{end}` do not belong together"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str, editor: Editor) -> String {
        with_block(text, editor, editor.form(), "(a)\n(b)").unwrap()
    }

    #[test]
    fn a_block_is_added_once_and_replaced_in_its_place() {
        let block = ";; hone setup emacs: begin\n(a)\n(b)\n;; hone setup emacs: end\n";
        assert_eq!(with("", Editor::Emacs), block);
        assert_eq!(with("(c)", Editor::Emacs), format!("(c)\n{block}"));
        let old = format!("(c)\n{}(d)\n", block.replace("(a)\n(b)", "(old)"));
        assert_eq!(with(&old, Editor::Emacs), format!("(c)\n{block}(d)\n"));
        let again = with(&old, Editor::Emacs);
        assert_eq!(with(&again, Editor::Emacs), again);
        assert!(is_in(&again, Editor::Emacs) && !is_in(&again, Editor::Minuet));
    }

    /// The plugin reads its settings as it is loaded.
    #[test]
    fn the_settings_of_a_plugin_that_reads_them_at_once_come_first() {
        let text = with("set number\r\n", Editor::LlamaVim);
        assert!(text.starts_with("\" hone setup llama.vim: begin\r\n(a)\r\n(b)\r\n"), "{text}");
        assert!(text.ends_with("end\r\nset number\r\n"), "{text}");
    }

    #[test]
    fn what_the_user_has_set_up_by_hand_is_left_alone() {
        let with = |text, editor: Editor| with_block(text, editor, editor.form(), "(a)");
        let own = "let g:llama_config = { 'show_info': 0 }\n";
        let why = with(own, Editor::LlamaVim).unwrap_err().to_string();
        assert!(why.contains("llama_config"), "{why}");
        let half = ";; hone setup emacs: begin\n(a)\n";
        assert!(with(half, Editor::Emacs).is_err(), "where it ends is not known");
        let twice = format!("{half};; hone setup emacs: end\n").repeat(2);
        assert!(with(&twice, Editor::Emacs).is_err());
    }
}
