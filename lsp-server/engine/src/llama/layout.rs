//! Turns a prompt into the tokens that the model reads, and decides whether other code has room and
//! time in it.

use super::{Cell, LlamaEngine, SEQUENCES, base_cells, common_prefix};
use crate::Request;
use completion::prompt::{FimPrompt, PromptContext};
use feedback::event::AdapterVersion;
use models::fim_tokens::FileMarkers;

/// Share of the longest prompt that the suffix may take when the prompt is too long.
const SUFFIX_SHARE: usize = 4;

/// The repository and the path of a file, as the model reads them.
pub(super) type FileName = (String, String);

/// A prompt as it is computed.
pub(super) struct Layout {
    pub prompt: Vec<u32>,
    pub adapter_from: usize,
    pub cells: Vec<Cell>,
    /// The prompt's own file, if the prompt shows other code.
    pub shows_code_to: Option<FileName>,
}

/// The same prompt without the excerpts of other code, if it has any.
pub(super) fn without_other_code(prompt: &FimPrompt) -> Option<FimPrompt> {
    prompt.context.as_ref()?.shown().next()?;
    Some(FimPrompt { context: None, ..prompt.clone() })
}

impl LlamaEngine {
    /// Prompt tokens, and the index the adapter acts from.
    pub(super) fn prompt_tokens(&self, prompt: &FimPrompt) -> (Vec<u32>, usize) {
        let mut prefix = self.tokenize(&prompt.prefix);
        let mut suffix = self.tokenize(&prompt.suffix);
        let mut typed = self.tokenize(&prompt.typed);
        let mut line = self.tokenize(&prompt.line);
        let vocab = self.model.vocab();
        let bos = vocab.should_add_bos().then(|| vocab.bos().0 as u32);
        line.drain(..line.len().saturating_sub(self.prompt_tokens / 2));
        typed.drain(..typed.len().saturating_sub(self.prompt_tokens / 4));
        let room = self.prompt_tokens - line.len() - typed.len() - 4;
        if prefix.len() + suffix.len() > room {
            suffix.truncate((room / SUFFIX_SHARE).max(room.saturating_sub(prefix.len())));
            prefix.drain(..prefix.len().saturating_sub(room - suffix.len()));
        }
        let room = room - prefix.len() - suffix.len();
        let mut tokens: Vec<u32> = bos.into_iter().collect();
        if let (Some(code), Some(markers)) = (&prompt.context, self.fim.files) {
            tokens.extend(self.context_tokens(code, markers, room));
        }
        match self.fim.markers {
            Some(markers) => tokens.extend(markers.around(&prefix, &suffix)),
            None => {
                tokens.append(&mut prefix);
                if tokens.is_empty() && typed.is_empty() {
                    tokens.extend(self.tokenize("\n"));
                }
            }
        }
        tokens.append(&mut typed);
        // The last token above the current line, so that the adapter has a say
        // in the line's first token.
        let adapter_from = tokens.len() - 1;
        tokens.append(&mut line);
        (tokens, adapter_from)
    }

    pub(super) fn lay_out(&self, prompt: &FimPrompt, adapter: AdapterVersion) -> Layout {
        let showing = prompt.context.as_ref().filter(|code| code.shown().next().is_some());
        let shows_code_to = showing.map(|code| (code.repository.clone(), code.path.clone()));
        let (prompt, adapter_from) = self.prompt_tokens(prompt);
        let (above, line) = prompt.split_at(adapter_from);
        let mut cells = base_cells(above);
        cells.extend(line.iter().map(|&token| (token, adapter)));
        Layout { prompt, adapter_from, cells, shows_code_to }
    }

    /// The prompt without its other code, if that code would take longer than the request allows.
    pub(super) fn shorter(&self, request: &Request, whole: &Layout) -> Option<Layout> {
        let prompt = without_other_code(&request.prompt)?;
        let missing = self.missing(&whole.cells);
        if self.speed.time_of(missing) <= request.context_wait {
            return None;
        }
        let short = self.lay_out(&prompt, request.adapter);
        let more = missing.saturating_sub(self.missing(&short.cells));
        (self.speed.time_of(more) > request.context_wait).then_some(short)
    }

    /// The tokens of a prompt that no document's KV has.
    pub(super) fn missing(&self, cells: &[Cell]) -> usize {
        let held = self.sequences[..SEQUENCES].iter().map(|s| common_prefix(&s.cells, cells));
        cells.len() - held.max().unwrap_or(0)
    }

    /// The excerpts of other code that find room, each behind its file's name, and the name of
    /// the document's own file. Nothing if there are excerpts and none finds room.
    fn context_tokens(&self, code: &PromptContext, markers: FileMarkers, room: usize) -> Vec<u32> {
        let named = |marker: u32, name: &str, text: &str| {
            let mut tokens = vec![marker];
            tokens.extend(self.tokenize(&format!("{name}\n{text}")));
            tokens
        };
        let head = markers.repo.map_or_else(Vec::new, |repo| named(repo, &code.repository, ""));
        let last = named(markers.file, &code.path, "");
        let Some(mut room) = room.checked_sub(head.len() + last.len()) else { return vec![] };
        if code.shown().next().is_none() {
            return last;
        }
        let mut excerpts = vec![];
        for excerpt in code.shown() {
            let tokens = named(markers.file, &excerpt.path, &excerpt.text);
            if tokens.len() <= room {
                room -= tokens.len();
                excerpts.extend(tokens);
            }
        }
        if excerpts.is_empty() { vec![] } else { [head, excerpts, last].concat() }
    }
}
