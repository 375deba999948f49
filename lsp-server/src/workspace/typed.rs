//! What the user has typed in a document since it was indexed last.

use crate::workspace::limits::TYPED_LINES_ABOVE;

/// The lines that are new in a document, with some above them. `None` if there are none.
pub fn typed_piece(before: &str, now: &str) -> Option<String> {
    let (before, now): (Vec<&str>, Vec<&str>) = (before.lines().collect(), now.lines().collect());
    let same = |a: &mut dyn Iterator<Item = &&str>, b: &mut dyn Iterator<Item = &&str>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let first = same(&mut before.iter(), &mut now.iter());
    let below = same(&mut before[first..].iter().rev(), &mut now[first..].iter().rev());
    let new = &now[first..now.len() - below];
    let is_blank = new.iter().all(|line| line.trim().is_empty());
    let above = &now[first.saturating_sub(TYPED_LINES_ABOVE)..first];
    (!is_blank).then(|| [above, new].concat().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::typed_piece;

    #[test]
    fn what_was_typed_is_told_with_the_lines_above_it() {
        let typed = |before: &str, now: &str| typed_piece(before, now);
        assert_eq!(typed("a\nb\nc\nd\n", "a\nb\nc\nnew();\nd\n").unwrap(), "b\nc\nnew();");
        assert_eq!(typed("a\n", "x\n").unwrap(), "x");
        assert_eq!(typed("a\nb\n", "a\n"), None, "nothing is new");
        assert_eq!(typed("a\n", "a\n\n"), None, "blank lines are nothing");
        assert_eq!(typed("a\na\n", "a\na\na\n").unwrap(), "a\na\na");
    }
}
