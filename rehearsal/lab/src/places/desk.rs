//! The editor in which the places of one commit are typed, as a server would see it: its documents,
//! and the prompts that the server would lay out.

use anyhow::{Context, Result};
use completion::document::{Document, Edit, Source};
use completion::prompt::{FimPrompt, Window};
use completion::prompt_builder::{PromptBuilder, PromptLimits, QuoteRules};
use feedback::secrets;
use rehearsal::developer::history::FileChange;
use rehearsal::run::tree::WorkingTree;
use ropey::Rope;
use std::collections::HashMap;

/// Everything may be quoted but secrets: the repositories are public.
struct Rules;

impl QuoteRules for Rules {
    fn knows(&self, _source: &Source) -> bool {
        true
    }

    fn may_quote(&self, _source: &Source) -> bool {
        true
    }

    fn may_quote_text(&self, text: &str) -> bool {
        !secrets::holds_secret(text)
    }
}

pub struct Desk<'a> {
    tree: &'a WorkingTree,
    window: Window,
    context_chars: usize,
    prompts: PromptBuilder,
    /// By their paths, which stand for their addresses too.
    documents: HashMap<String, Document>,
    /// The path of the document that is typed in.
    current: String,
}

impl<'a> Desk<'a> {
    /// An editor that was just started in a folder.
    pub fn new(tree: &'a WorkingTree, window: Window, context_chars: usize) -> Desk<'a> {
        Desk {
            tree,
            window,
            context_chars,
            prompts: PromptBuilder::default(),
            documents: HashMap::new(),
            current: String::new(),
        }
    }

    fn limits(&self) -> PromptLimits<'static> {
        PromptLimits { window: self.window, context_chars: self.context_chars, rules: &Rules }
    }

    /// Opens a file as it was before a commit changed it.
    pub fn open(&mut self, change: &FileChange) {
        let path = self.tree.root().join(&change.path);
        let text = Rope::from_str(&change.before);
        let read = |_: &str| true;
        let root = Some(self.tree.root().to_owned());
        let imported = session::imports::read(root, &path, &text, read);
        self.current = path.display().to_string();
        let language = change.language.to_owned();
        let document = Document { path: self.current.clone(), language, version: 1, text };
        self.prompts.visit(&document);
        self.documents.insert(self.current.clone(), document);
        let limits = self.limits();
        for file in imported {
            self.prompts.add(&file, &limits);
        }
    }

    pub fn document(&self) -> &Document {
        &self.documents[&self.current]
    }

    /// The first character of a line.
    pub fn line_start(&self, line: usize) -> usize {
        let text = &self.document().text;
        text.line_to_char(line.min(text.len_lines()))
    }

    /// Replaces a part of the document, in characters.
    pub fn edit(&mut self, start: usize, removed: usize, inserted: &str) -> Result<()> {
        let document = self.documents.get_mut(&self.current).context("no document is open")?;
        let was = document.text.clone();
        if removed == 0 && inserted.is_empty() {
            return Ok(());
        }
        document.text.remove(start..start + removed);
        document.text.insert(start, inserted);
        self.prompts.visit(document);
        let edit = Edit { start, removed, inserted: inserted.to_owned() };
        self.prompts.edit(document, was, &edit);
        Ok(())
    }

    pub fn prompt(&mut self, cursor: usize) -> Result<FimPrompt> {
        let limits = self.limits();
        let prompt = self.prompts.at(&self.documents, &self.current, cursor, &limits);
        prompt.context("no document is open")
    }
}
