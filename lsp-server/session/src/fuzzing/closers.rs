//! Whether the brackets and quotes of a line are closed once: a scanner that is apart from the
//! server's, and knows plain lines only.

/// What a line is in the middle of.
#[derive(Debug, PartialEq)]
pub struct Scan {
    /// The closing marks that are still to come, the outermost first.
    pub awaited: Vec<char>,
    /// A closing mark came that closes nothing.
    pub has_surplus: bool,
}

/// Scans a line. `None` if it has apostrophes or comments, of which a scanner that knows no
/// language cannot tell what they are.
pub fn scan(line: &str) -> Option<Scan> {
    let is_odd = line.contains("//") || line.contains('#') || line.contains("&'");
    let is_prose = line.contains("n't") || line.contains("<'");
    if is_odd || is_prose {
        return None;
    }
    let mut scan = Scan { awaited: vec![], has_surplus: false };
    let (mut quote, mut is_escaped) = (None, false);
    let mut previous = ' ';
    for c in line.chars() {
        let before = std::mem::replace(&mut previous, c);
        match (quote, c) {
            // It may be an apostrophe of prose.
            (None, '\'') if before.is_alphanumeric() => return None,
            _ if std::mem::take(&mut is_escaped) => {}
            (Some(_), '\\') => is_escaped = true,
            (Some(mark), c) if mark == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(') => scan.awaited.push(')'),
            (None, '[') => scan.awaited.push(']'),
            (None, '{') => scan.awaited.push('}'),
            // What was opened within it and not closed is another fault.
            (None, ')' | ']' | '}') => match scan.awaited.iter().rposition(|mark| *mark == c) {
                Some(opened) => scan.awaited.truncate(opened),
                None => scan.has_surplus = true,
            },
            _ => {}
        }
    }
    scan.awaited.extend(quote);
    Some(scan)
}

/// Whether all that is open before the cursor is closed right behind it, and nothing else is there,
/// as an editor leaves it that closes what is opened.
pub fn is_closed_behind(before: &str, behind: &str) -> bool {
    let Some(open) = scan(before).filter(|open| !open.has_surplus) else { return false };
    !open.awaited.is_empty() && open.awaited.iter().rev().copied().eq(behind.trim_end().chars())
}

/// Whether an offer, accepted where [`is_closed_behind`], has closed a mark twice. `before` is the
/// line up to the cursor, and `after` the whole line with the offer in it.
pub fn closes_twice(before: &str, offer: &str, after: &str) -> bool {
    let (Some(offered), Some(whole)) = (scan(&format!("{before}{offer}")), scan(after)) else {
        return false;
    };
    let ends_in_string = |scan: &Scan| matches!(scan.awaited.last(), Some('"' | '\'' | '`'));
    let quotes_twice = ends_in_string(&whole) && !ends_in_string(&offered);
    // An offer that closes more than is open is wrong by itself.
    !offered.has_surplus && (whole.has_surplus || quotes_twice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_is_closed_twice_is_found() {
        assert!(is_closed_behind("x = f(a, \"", "\")"));
        assert!(!is_closed_behind("x = f(a, \"", "\") + 1"));
        assert!(!is_closed_behind("x = ", ""));
        assert!(closes_twice("f(", "a);", "f(a);)"));
        assert!(closes_twice("f('", "a');", "f('a');')"));
        assert!(!closes_twice("f('", "a');", "f('a');"));
        assert!(!closes_twice("f(", "g(a", "f(g(a)"), "not closed is not closed twice");
        assert!(!closes_twice("f(", "a[b", "f(a[b)"));
        assert!(!closes_twice("f(", "'a", "f('a)"));
    }
}
