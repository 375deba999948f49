//! HTTP for editors' plugins that were written for other servers: the dialects of OpenAI,
//! llama.cpp and Ollama, over a [`Backend`] that completes.
//!
//! `dialects` reads requests and writes answers, `fim_prompt` reads the texts back out of a prompt
//! that the client has rendered, and `guard` decides who may ask. `server` has the connections and
//! their limits. `window` and `reading` are for the backend: a client sends only the text around
//! its cursor, and they tell how that text continues the one of the request before, and what became
//! of the offer that was made there. All but `server` is pure.

mod dialects;
mod fim_prompt;
mod guard;
mod limits;
mod reading;
mod server;
mod window;

pub use fim_prompt::{FimPrompt, ForeignPrompt, parse};
pub use guard::{NoToken, Token};
pub use limits::Limits;
pub use reading::{Asks, Before, KEY_CHARS, Offered, Reading, UNREAD_MS, read, shared_bytes};
pub use server::{Listening, listen};
pub use window::{Change, Known};

use models::fim::FimTemplate;

/// The text around a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Around {
    pub before: String,
    pub after: String,
}

/// Another file, or a part of one, that a client sends along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// As the client names it; empty if it does not.
    pub name: String,
    pub text: String,
}

/// A client as far as its requests tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The name that it gives itself: letters, digits and a few marks.
    pub name: String,
    pub asks: Asks,
}

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub client: Client,
    pub around: Around,
    /// The name of the file that the cursor is in, if the client states it.
    pub name: Option<String>,
    pub files: Vec<File>,
    /// Nothing is wanted but that the next answer comes sooner.
    pub is_warming: bool,
    pub limits: TextLimits,
}

/// What a client does not want of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextLimits {
    pub max_tokens: Option<usize>,
    /// Texts before which an answer ends.
    pub stop: Vec<String>,
}

/// Why an answer ends where it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ended {
    #[default]
    ByItself,
    /// By the client's `max_tokens`.
    AtLimit,
    /// By one of the client's texts.
    AtStop,
}

/// An answer, which has no text if nothing is worth showing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub ended: Ended,
    pub tokens: usize,
}

/// The engine cannot answer. The text is for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// The model that serves.
#[derive(Debug, Clone)]
pub struct Model {
    pub name: String,
    pub architecture: String,
    pub sha256: String,
    pub bytes: u64,
    pub template: &'static FimTemplate,
}

/// The part of the daemon that completes. A future that is dropped cancels its request.
pub trait Backend: Send + Sync + 'static {
    fn model(&self) -> Model;

    fn complete(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Answer, Unavailable>> + Send;
}

impl Request {
    pub fn new(client: Client, around: Around) -> Request {
        Request {
            client,
            around,
            name: None,
            files: vec![],
            is_warming: false,
            limits: TextLimits::default(),
        }
    }

    fn limited(self, limits: TextLimits) -> Request {
        Request { limits, ..self }
    }
}

impl TextLimits {
    /// Cuts a text to what the client wants of it. `count` counts tokens.
    pub fn cut(&self, text: &str, count: impl Fn(&str) -> usize) -> Answer {
        let stops = self.stop.iter().filter(|stop| !stop.is_empty());
        let stop = stops.filter_map(|stop| text.find(stop.as_str())).min();
        let mut ended = if stop.is_some() { Ended::AtStop } else { Ended::ByItself };
        let mut text = &text[..stop.unwrap_or(text.len())];
        if stop.is_some() {
            // A line that ends with both ends before both.
            text = text.strip_suffix('\r').unwrap_or(text);
        }
        let mut tokens = count(text);
        if let Some(most) = self.max_tokens.filter(|most| tokens > *most) {
            text = first_tokens(text, most, &count);
            (ended, tokens) = (Ended::AtLimit, count(text));
        }
        Answer { text: text.to_owned(), ended, tokens }
    }
}

/// Returns the longest beginning of a text that has at most so many tokens.
fn first_tokens<'t>(text: &'t str, most: usize, count: &impl Fn(&str) -> usize) -> &'t str {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let fitting = ends.partition_point(|&end| count(&text[..end]) <= most);
    &text[..ends[..fitting].last().copied().unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, max_tokens: Option<usize>, stop: &[&str]) -> (String, Ended, usize) {
        let stop = stop.iter().map(|&stop| stop.to_owned()).collect();
        let limits = TextLimits { max_tokens, stop };
        let Answer { text, ended, tokens } = limits.cut(text, |text| text.chars().count());
        (text, ended, tokens)
    }

    #[test]
    fn an_answer_ends_where_the_client_wants() {
        assert_eq!(cut("añb\nc", None, &[]), ("añb\nc".into(), Ended::ByItself, 5));
        assert_eq!(cut("añb\nc", Some(2), &[]), ("añ".into(), Ended::AtLimit, 2));
        assert_eq!(cut("añb\nc", Some(5), &["\n"]), ("añb".into(), Ended::AtStop, 3));
        assert_eq!(cut("añb\nc", Some(1), &["\n", ""]), ("a".into(), Ended::AtLimit, 1));
        assert_eq!(cut("añb", None, &["b", "ñ"]), ("a".into(), Ended::AtStop, 1));
        assert_eq!(cut("a\r\nb", None, &["\n"]), ("a".into(), Ended::AtStop, 1));
        assert_eq!(cut("añb", Some(0), &[]), ("".into(), Ended::AtLimit, 0));
    }
}
