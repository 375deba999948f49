//! A cache of what the base model answers, shared by the daemons of one rehearsal.
//!
//! The arms of a rehearsal meet the same places. When the base decodes greedily, it answers
//! the same at each place and gives each text the same score. [`super::caching_engine`] uses this
//! cache; daily use has none.

use super::{Request, ScoreRequest};
use models::disk_cache::DiskCache;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The name of the stored form. Another form needs another name.
const FORMAT: &str = "base 1";

/// The folder of the answers within that of the prompts.
const FOLDER: &str = "answers";

/// The first word of a key says what is asked.
const ANSWER: u32 = 0;
const SCORE: u32 = 1;

pub struct AnswerCache {
    cache: DiskCache,
}

/// Names a question. Two questions with the same key have the same answer.
pub struct Key(Vec<u32>);

impl Key {
    /// The key of an answer. None if the answer depends on more than a key holds: on an
    /// adapter, on random draws, or on the code around, which says where several lines end.
    pub fn of_answer(request: &Request, prompt: &[u32], adapter_from: usize) -> Option<Key> {
        let is_greedy = request.sampling.temperature == 0.0;
        let is_plain = request.alternatives == 0 && request.stop_rule.lines() == 1;
        let limits = [request.max_tokens as u32, request.min_token_probability.to_bits()];
        (request.adapter == 0 && is_greedy && is_plain)
            .then(|| Key::new(ANSWER, prompt, adapter_from, &request.prompt.healing, &limits))
    }

    /// The key of a text's score under the base.
    pub fn of_score(request: &ScoreRequest, prompt: &[u32], adapter_from: usize) -> Key {
        Key::new(SCORE, prompt, adapter_from, &request.healing, &request.tokens)
    }

    /// The request, then each part behind its length, so that no part runs into another.
    fn new(asked: u32, prompt: &[u32], adapter_from: usize, healing: &str, rest: &[u32]) -> Key {
        let mut words = vec![asked, adapter_from as u32, prompt.len() as u32];
        words.extend(prompt);
        words.push(healing.len() as u32);
        words.extend(healing.bytes().map(u32::from));
        words.extend(rest);
        Key(words)
    }
}

impl AnswerCache {
    /// # Errors
    /// The folder cannot be made or read.
    pub fn new(prompts: &Path, whose: &str) -> Result<AnswerCache, String> {
        Ok(AnswerCache {
            cache: DiskCache::new(&prompts.join(FOLDER), &format!("{FORMAT} {whose}"))?,
        })
    }

    /// The answer that is kept under this key, if there is one in today's form.
    pub fn get<T: DeserializeOwned>(&self, key: &Key) -> Option<T> {
        serde_json::from_slice(&self.cache.get(&key.0)?).ok()
    }

    pub fn put<T: Serialize>(&mut self, key: &Key, answer: &T) {
        let stored = serde_json::to_vec(answer)
            .map_err(std::io::Error::from)
            .and_then(|bytes| self.cache.put(&key.0, &bytes));
        if let Err(error) = stored {
            tracing::warn!("an answer of the base could not be cached: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Answer;
    use completion::prompt::FimPrompt;
    use feedback::event::{Sampling, StopReason, TokenRecord};
    use std::time::Duration;

    fn request(healing: &str) -> Request {
        let prompt = FimPrompt { healing: healing.to_owned(), ..FimPrompt::default() };
        Request { min_token_probability: 0.02, ..Request::line(prompt, 32) }
    }

    fn answer(stop: StopReason) -> Answer {
        Answer {
            tokens: vec![TokenRecord { id: 7, logprob: -0.123_456_79 }],
            visible_logprobs: vec![-0.1],
            healed: 0,
            text: b"x\n".to_vec(),
            ends: vec![2],
            given_up: None,
            stop,
            decode_time: Duration::from_micros(1_234),
            experts: None,
        }
    }

    #[test]
    fn another_arm_finds_what_the_base_said_to_the_bit() {
        let folder = tempfile::TempDir::new().unwrap();
        let key = Key::of_answer(&request("a"), &[1, 2], 1).unwrap();
        let said = answer(StopReason::Newline);
        AnswerCache::new(folder.path(), "m").unwrap().put(&key, &said);
        let other = AnswerCache::new(folder.path(), "m").unwrap();
        let found: Answer = other.get(&key).unwrap();
        assert_eq!(format!("{found:?}"), format!("{said:?}"));
        let of_another_model = AnswerCache::new(folder.path(), "n").unwrap();
        assert!(of_another_model.get::<Answer>(&key).is_none());
        for unlike in [
            Key::of_answer(&request("b"), &[1, 2], 1),
            Key::of_answer(&request("a"), &[1], 1),
            Key::of_answer(&request("a"), &[1, 2], 0),
            Key::of_answer(&Request { max_tokens: 33, ..request("a") }, &[1, 2], 1),
            Key::of_answer(&Request { min_token_probability: 0.0, ..request("a") }, &[1, 2], 1),
        ] {
            assert!(other.get::<Answer>(&unlike.unwrap()).is_none());
        }
    }

    #[test]
    fn what_depends_on_more_than_the_prompt_is_no_ones() {
        let warm = Sampling { temperature: 0.5, ..request("").sampling };
        for request in [
            Request { adapter: 1, ..request("") },
            Request { sampling: warm, ..request("") },
            Request { alternatives: 1, ..request("") },
        ] {
            assert!(Key::of_answer(&request, &[1], 0).is_none());
        }
    }

    #[test]
    fn what_time_cut_short_is_not_whole() {
        assert!(!answer(StopReason::Budget).is_whole());
        assert!(answer(StopReason::Newline).is_whole());
    }
}
