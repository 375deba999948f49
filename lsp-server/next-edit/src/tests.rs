mod firmness;
mod fold;
mod renames;
mod rules;

use crate::*;

/// A document that is edited as a person would do it.
struct Editor {
    file: &'static str,
    text: Rope,
    next: NextEdits,
}

impl Editor {
    fn of(file: &'static str, text: &str) -> Editor {
        Editor { file, text: text.into(), next: NextEdits::default() }
    }

    fn language(&self) -> &'static Language {
        Language::named(self.file.rsplit('.').next().unwrap_or_default())
    }

    /// One message with these changes.
    fn message(&mut self, edits: &[Edit], by: By) {
        self.next.change(self.file, self.language(), &self.text, edits, by);
        for edit in edits {
            self.text.remove(edit.start..edit.start + edit.removed);
            self.text.insert(edit.start, &edit.inserted);
        }
    }

    fn edit(&mut self, start: usize, removed: usize, inserted: &str) {
        self.message(&[Edit { start, removed, inserted: inserted.into() }], By::Person);
    }

    /// Replaces the first of these texts, key by key.
    fn replace(&mut self, old: &str, new: &str) {
        let text = self.text.to_string();
        let start = text[..text.find(old).expect(old)].chars().count();
        let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
        let (old, new) = (old.chars().skip(same), new.chars().skip(same));
        let start = start + same;
        let (removed, typed): (usize, Vec<char>) = (old.count(), new.collect());
        (0..removed).rev().for_each(|at| self.edit(start + at, 1, ""));
        let keys = typed.iter().enumerate();
        keys.for_each(|(at, key)| self.edit(start + at, 0, &key.to_string()));
    }

    /// Returns what is found with the cursor behind this text, in the document and in other ones.
    fn find(&self, cursor: &str, others: &[(&str, &str)]) -> Vec<NextEdit> {
        let text = self.text.to_string();
        let language = self.language();
        let mut files = vec![File { name: self.file, text: &text, language }];
        files.extend(others.iter().map(|(name, text)| File { name, text, language }));
        let cursor = text.find(cursor).expect(cursor) + cursor.len();
        self.next.find(&Query { files: &files, cursor, count: 8 }).unwrap_or_default()
    }

    /// The same, as `line: old → new`.
    fn found(&self, cursor: &str) -> Vec<String> {
        let shown = |edit: &NextEdit| format!("{}: {} → {}", edit.line, edit.old, edit.new);
        self.find(cursor, &[]).iter().map(shown).collect()
    }
}
