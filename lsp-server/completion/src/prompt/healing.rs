//! Token healing: where a prompt may end without cutting through a token.

/// The longest text, without its leading blanks, that a completion is made to reproduce before it
/// generates new text.
pub(super) const HEALING_BYTES: usize = 40;

/// The byte index in `line` at which the prompt may end without cutting through a token that the
/// model would have made. Byte-level BPE never merges across the pieces that its pre-tokenizer
/// cuts, so the prompt ends where the last piece starts: a word with the one mark or the blanks
/// before it, a run of marks with the blank before it, or trailing blanks. (This is Qwen2's
/// pattern; those of GPT-2's family cut at these places too.)
pub(super) fn healing_boundary(line: &str) -> usize {
    let start = last_piece(line);
    // A longer piece stays in the prompt, because the text guides the model better than a long
    // constraint.
    let piece = line[start..].trim_start_matches(is_blank);
    if piece.len() > HEALING_BYTES { line.len() } else { start }
}

fn last_piece(line: &str) -> usize {
    let without_word = line.trim_end_matches(char::is_alphanumeric);
    let has_word = without_word.len() < line.len();
    let without_blanks = without_word.trim_end_matches(is_blank);
    if without_blanks.len() < without_word.len() {
        return without_blanks.len();
    }
    let without_marks = without_word.trim_end_matches(is_mark);
    let marks = without_word[without_marks.len()..].chars().count();
    let joins_a_blank = without_marks.ends_with(is_blank);
    match (has_word, marks) {
        (true, 1) if !joins_a_blank => without_marks.len(),
        (true, _) => without_word.len(),
        (false, _) if joins_a_blank => without_marks.len() - 1,
        (false, _) => without_marks.len(),
    }
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

/// Returns whether pre-tokenizers keep this character together with its kind: neither letter nor
/// number nor space.
fn is_mark(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace()
}
