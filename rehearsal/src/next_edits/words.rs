//! Lines as words, and how two of them differ.

/// Words and single other characters, without blanks.
pub fn words(line: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut from = 0;
    for (at, c) in line.char_indices().filter(|(_, c)| !is_word(*c)) {
        words.push(&line[from..at]);
        words.push(&line[at..at + c.len_utf8()]);
        from = at + c.len_utf8();
    }
    words.push(&line[from..]);
    words.retain(|word| !word.trim().is_empty());
    words
}

/// The words that go from a line, and those that come in their place.
pub type Rewrite = (String, String);

/// Returns what differs between two lines.
pub fn rewrite(old: &str, new: &str) -> Rewrite {
    let (old, new) = (words(old), words(new));
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
    (old[head..old.len() - tail].join(" "), new[head..new.len() - tail].join(" "))
}

/// The bytes that two lines have in common at their beginnings and at their ends.
pub fn common_ends(a: &str, b: &str) -> (usize, usize) {
    let head: usize =
        a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let (a, b) = (&a[head..], &b[head..]);
    let tail: usize = a
        .chars()
        .rev()
        .zip(b.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    (head, tail)
}
