//! A case: a moment of a commit, with what was done before it and what is still to come.

use next_edit::{By, Edit, File, Language, NextEdit, NextEdits, Query};
use ropey::Rope;
use serde::Deserialize;

#[derive(Deserialize)]
pub struct Case {
    pub repository: String,
    pub commit: String,
    /// `edit` if an edit is expected; `hard` or `easy` if silence is: in a hard one a kind of edit
    /// has just been repeated for the last time. `single` if no step that was done is of the next
    /// one's kind.
    pub sort: String,
    /// The files that the commit changes, as they were before it.
    files: Vec<FileText>,
    done: Vec<Step>,
    left: Vec<Step>,
}

#[derive(Deserialize)]
struct FileText {
    name: String,
    text: String,
}

/// Lines of a file that become others: the number of the file, the line in the text before the
/// commit, the old lines and the new ones.
#[derive(Deserialize)]
pub struct Step(pub usize, pub usize, pub Vec<String>, pub Vec<String>);

/// A case after all that was done in it.
pub struct Moment<'a> {
    pub case: &'a Case,
    pub texts: Vec<String>,
    /// What is still to come, with its line as it is now.
    pub left: Vec<(usize, &'a Step)>,
    pub shown: Option<NextEdit>,
}

fn language(file: &str) -> &'static Language {
    Language::named(file.rsplit('.').next().unwrap_or_default())
}

impl Case {
    pub fn file(&self, name: &str) -> Option<usize> {
        self.files.iter().position(|file| file.name == name)
    }

    /// Types what was done, and asks for the next edit. None if the lines of the case do not fit
    /// its texts, as happens where a file has a line break that git does not know.
    pub fn play(&self) -> Option<Moment<'_>> {
        let mut texts: Vec<Rope> =
            self.files.iter().map(|file| Rope::from_str(&file.text)).collect();
        let mut moved = vec![0isize; texts.len()];
        let mut next = NextEdits::default();
        let mut cursor = (0, 0);
        for step in &self.done {
            let Step(file, line, old, new) = step;
            let text = &mut texts[*file];
            let at = line.checked_add_signed(moved[*file])?;
            let edit = edit(text, at, old, new)?;
            let name = &self.files[*file].name;
            next.change(name, language(name), text, std::slice::from_ref(&edit), By::Person);
            text.remove(edit.start..edit.start + edit.removed);
            text.insert(edit.start, &edit.inserted);
            moved[*file] += new.len() as isize - old.len() as isize;
            cursor = (*file, text.char_to_byte(edit.start + edit.inserted.chars().count()));
        }
        let texts: Vec<String> = texts.iter().map(Rope::to_string).collect();
        let of = |step: &Step| step.1.saturating_add_signed(moved[step.0]);
        let left = self.left.iter().map(|step| (of(step), step)).collect();
        // The file with the cursor, then those behind it, then those before it.
        let count = self.files.len();
        let order = (0..count).map(|at| (cursor.0 + at) % count);
        let files: Vec<File> = order
            .map(|at| (&self.files[at].name, &texts[at]))
            .map(|(name, text)| File { name, text, language: language(name) })
            .collect();
        let query = Query { files: &files, cursor: cursor.1, count: 1 };
        let shown = next.find(&query).unwrap_or_default().into_iter().next();
        Some(Moment { case: self, texts: texts.clone(), left, shown })
    }
}

/// The smallest edit that turns the old lines into the new ones.
fn edit(text: &Rope, line: usize, old: &[String], new: &[String]) -> Option<Edit> {
    if line + old.len() > text.len_lines() {
        return None;
    }
    let start = text.line_to_char(line);
    let was = text.slice(start..text.line_to_char(line + old.len())).to_string();
    if was
        .lines()
        .map(|line| line.trim_end_matches('\r'))
        .ne(old.iter().map(|l| l.trim_end_matches('\r')))
    {
        return None;
    }
    let mut is: String = new.iter().map(|line| format!("{line}\n")).collect();
    if !was.is_empty() && !was.ends_with('\n') {
        is.pop();
    }
    let (was, is): (Vec<char>, Vec<char>) = (was.chars().collect(), is.chars().collect());
    let same = |(a, b): &(&char, &char)| a == b;
    let prefix = was.iter().zip(&is).take_while(same).count();
    let most = was.len().min(is.len()) - prefix;
    let suffix = was.iter().rev().zip(is.iter().rev()).take(most).take_while(same).count();
    Some(Edit {
        start: start + prefix,
        removed: was.len() - prefix - suffix,
        inserted: is[prefix..is.len() - suffix].iter().collect(),
    })
}

impl Case {
    /// The latest steps as a diff has them, for people to read.
    pub fn last_steps(&self) -> Vec<(char, &str)> {
        let from = self.done.len().saturating_sub(4);
        let lines = |step: &'_ Step| step.2.len() + step.3.len();
        self.done[from..]
            .iter()
            .filter(|step| lines(step) < 20)
            .flat_map(|step| {
                let old = step.2.iter().map(|line| ('-', line.as_str()));
                old.chain(step.3.iter().map(|line| ('+', line.as_str())))
            })
            .collect()
    }
}
