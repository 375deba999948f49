//! Texts that somebody wrote, as the episodes that the daemon would have recorded if nothing had
//! been offered there.

use completion::prompt::{FimPrompt, PromptLayout, Window};
use engine::Engine;
use engine::caching_engine::KvAccess;
use engine::llama::LlamaEngine;
use feedback::episode::Episode;
use feedback::event::{Completion, Decision, Sampling, StopReason, Timing, Typed};
use ropey::Rope;
use serde::Deserialize;

/// A text that somebody wrote, and the document in which they did.
#[derive(Debug, Clone, Deserialize)]
pub struct Written {
    /// It stands before the path, if there is one.
    #[serde(default)]
    pub repository: Option<String>,
    pub path: String,
    pub language: String,
    pub text: String,
    /// In characters of `text`.
    pub cursor: usize,
    pub written: String,
}

impl Written {
    /// The same text after so many of its characters have been typed.
    pub fn after(mut self, typed: usize) -> Written {
        let beginning: String = self.written.chars().take(typed).collect();
        let end = |text: &str, characters: usize| {
            text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
        };
        self.text.insert_str(end(&self.text, self.cursor), &beginning);
        self.cursor += typed;
        self.written.drain(..beginning.len());
        self
    }

    /// The prompt at the cursor. It shows no other code than that of the document.
    fn prompt(&self, window: Window) -> FimPrompt {
        let document = Rope::from_str(&self.text);
        let cursor = self.cursor.min(document.len_chars());
        PromptLayout::new(&document, cursor, window).prompt(&document, cursor, window)
    }
}

/// Makes episodes for one model.
pub struct Episodes<'a> {
    pub engine: &'a LlamaEngine,
    pub window: Window,
    pub model_sha256: &'a str,
}

impl Episodes<'_> {
    /// The episode of a text.
    pub fn of(&self, written: Written, number: usize) -> Episode {
        let prompt = written.prompt(self.window);
        let (ids, adapter_from) = self.engine.prompt_tokens(&prompt);
        let healing = prompt.healing;
        let replacement = self.engine.tokenizer()(&format!("{healing}{}", written.written));
        let path = match written.repository {
            Some(repository) => format!("{repository}/{}", written.path),
            None => written.path,
        };
        let completion = Completion {
            id: format!("text-{number}"),
            path,
            context: vec![],
            real_names: vec![],
            language: written.language,
            model_sha256: self.model_sha256.to_owned(),
            adapter: 0,
            sampling: Sampling::GREEDY,
            prompt: ids,
            adapter_from,
            shown_from: healing.len(),
            healing,
            tokens: vec![],
            stop: StopReason::Newline,
            shown: String::new(),
            timing: Timing::default(),
            decision: Decision::default(),
            typed: Typed::default(),
            experts: None,
        };
        Episode {
            seq: number as u64 + 1,
            completion,
            shown: false,
            outcome: None,
            hurried: false,
            replacement: Some(replacement),
            kept: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_of_a_text_stands_before_the_cursor() {
        let written = Written {
            repository: None,
            path: "a.rs".into(),
            language: "rust".into(),
            text: "é(\n)".into(),
            cursor: 2,
            written: "ä, b\nc".into(),
        };
        let after = written.after(3);
        assert_eq!((after.text.as_str(), after.cursor), ("é(ä, \n)", 5));
        assert_eq!(after.written, "b\nc");
    }
}
