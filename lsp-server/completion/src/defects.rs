//! Defects of a generated text that show without asking the user.

use feedback::event::Defect;

/// Beginnings of special tokens as text. Base models produce them when their training text held
/// them.
const SPECIAL: &[&str] =
    &["<|fim_", "<|endoftext", "<|file_sep", "<|repo_name", "<|im_", "<fim_", "<file_sep>", "</s>"];

/// Finds the defect of an answer, if it has one. `generated` is the text behind what healing
/// reproduced; `shown` is what post-processing left of it.
pub fn find_defect(generated: &[u8], shown: &str) -> Option<Defect> {
    let generated = String::from_utf8_lossy(generated);
    // If several lines are shown, only they count.
    let line = if shown.contains('\n') {
        shown
    } else {
        generated.split(['\n', '\r']).next().unwrap_or_default()
    };
    if SPECIAL.iter().any(|special| line.contains(special)) {
        Some(Defect::SpecialToken)
    } else if line.is_empty() {
        // The model chose to generate nothing, which is no defect.
        None
    } else if line.trim().is_empty() {
        Some(Defect::WhitespaceOnly)
    } else if shown.is_empty() {
        Some(Defect::RepeatsSuffix)
    } else if is_unbalanced(shown) {
        Some(Defect::Unbalanced)
    } else {
        None
    }
}

/// The part of a shown text before the written form of a special token. `</s>` is no such form
/// here, because it is also a tag of HTML.
pub fn without_special_tokens(shown: &str) -> &str {
    let forms = SPECIAL.iter().filter(|form| **form != "</s>");
    match forms.filter_map(|form| shown.find(form)).min() {
        Some(at) => shown[..at].trim_end(),
        None => shown,
    }
}

/// Returns whether a bracket closes another kind of bracket than the text itself opened last. A
/// bracket that closes more than the text opened may match one above the cursor.
fn is_unbalanced(text: &str) -> bool {
    let mut open = vec![];
    let mut quote = None;
    let mut escaped = false;
    for c in text.chars() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (quote, c) {
            (Some(_), '\\') => escaped = true,
            (Some(mark), c) if mark == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`') => quote = Some(c),
            (None, '(') => open.push(')'),
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, ')' | ']' | '}') if open.pop().is_some_and(|expected| expected != c) => {
                return true;
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_defect_is_found() {
        let of = |generated: &str, shown: &str| find_defect(generated.as_bytes(), shown);
        assert_eq!(of("call(x);\n", "call(x);"), None);
        assert_eq!(of("", ""), None, "no offer is no defect");
        assert_eq!(of("\n    next", ""), None, "a line that is complete");
        assert_eq!(of("   \n", ""), Some(Defect::WhitespaceOnly));
        assert_eq!(of(")", ""), Some(Defect::RepeatsSuffix));
        assert_eq!(of("call(x];", "call(x];"), Some(Defect::Unbalanced));
        assert_eq!(of("x<|fim_middle|>", "x<|fim_middle|>"), Some(Defect::SpecialToken));
        assert_eq!(of("\n    a(b];\n", "\n    a(b];"), Some(Defect::Unbalanced));
        assert_eq!(of("a();\n</s>\n", "a();\n</s>"), Some(Defect::SpecialToken));
        assert_eq!(of("a();\n</s>\n", "a();"), None, "the user does not see it");
    }

    #[test]
    fn a_text_is_shown_up_to_the_written_form_of_a_special_token() {
        assert_eq!(without_special_tokens("x = 1 <|endoftext|><|fim_pad|>"), "x = 1");
        assert_eq!(without_special_tokens("<file_sep>y"), "");
        assert_eq!(without_special_tokens("<s>old</s>"), "<s>old</s>");
    }

    #[test]
    fn brackets_from_above_and_brackets_in_strings_are_no_defect() {
        for sound in ["x)", "});", "format!(\"a)]{\")", "m[\"(\\\"[\"]", "a[f(x)]", "'}' => {"] {
            assert!(!is_unbalanced(sound), "{sound}");
        }
        for unbalanced in ["f(x}", "[(])", "{\"(\"]"] {
            assert!(is_unbalanced(unbalanced), "{unbalanced}");
        }
    }
}
