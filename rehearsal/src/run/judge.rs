//! A judge: a model behind an OpenAI-compatible endpoint rates each offer from 0 to 10. RLinf's
//! online coding example does the same (github.com/RLinf/RLinf, examples/agent/coding_online_rl).
//!
//! No judge is asked unless the user names one, because it sends the code around each offer to
//! whoever runs that endpoint. What the daemon may not store is not sent.

use crate::limits;
use anyhow::{Context, Result, ensure};
use feedback::secrets;
use serde_json::{Value, json};
use ureq::Agent;

/// The worst and the best rating.
const SCALE: std::ops::RangeInclusive<f64> = 0.0..=10.0;

/// The last character of the id of an offer of which the daemon stores nothing: its rule.
const UNSTORED: char = '~';

const TASK: &str = "You rate code completions. You see the code before the cursor, the completion \
                    that was offered, and what the developer wrote there in the end. Answer with \
                    one number from 0 (useless) to 10 (exactly what is needed), and nothing else.";

pub struct Judge {
    agent: Agent,
    url: String,
    model: String,
    key: Option<String>,
}

/// The offer that the judge rates.
#[derive(Debug, Clone, Copy)]
pub struct JudgedOffer<'a> {
    pub id: &'a str,
    pub before: &'a str,
    pub offered: &'a str,
    pub written: &'a str,
}

impl JudgedOffer<'_> {
    /// Returns true if the daemon may store the offer, and no secret stands near it.
    fn may_be_sent(&self) -> bool {
        let before = last(self.before, limits::JUDGE_BEFORE_CHARS + limits::JUDGE_MARGIN_CHARS);
        let holds_secret = |behind| secrets::holds_secret(&[before, behind].concat());
        !self.id.ends_with(UNSTORED) && ![self.offered, self.written].into_iter().any(holds_secret)
    }
}

impl Judge {
    /// `base` is what comes before `/chat/completions`, such as `http://localhost:8000/v1`.
    pub fn new(base: &str, model: &str, key: Option<String>) -> Judge {
        let config = Agent::config_builder().timeout_global(Some(limits::JUDGE_ANSWER)).build();
        Judge {
            agent: config.into(),
            url: format!("{}/chat/completions", base.trim_end_matches('/')),
            model: model.to_owned(),
            key,
        }
    }

    /// Returns the rating of an offer. `None` if it may not be sent.
    ///
    /// # Errors
    /// The endpoint cannot be reached, refuses, or answers no number from 0 to 10, and asking again
    /// did not help.
    pub fn rate(&self, case: JudgedOffer) -> Result<Option<f64>> {
        if !case.may_be_sent() {
            return Ok(None);
        }
        for _ in 1..limits::JUDGE_ATTEMPTS {
            if let Ok(rating) = self.ask(case) {
                return Ok(Some(rating));
            }
            std::thread::sleep(limits::JUDGE_PAUSE);
        }
        self.ask(case).map(Some)
    }

    fn ask(&self, case: JudgedOffer) -> Result<f64> {
        let before = last(case.before, limits::JUDGE_BEFORE_CHARS);
        let question = format!(
            "Code before the cursor:\n```\n{before}\n```\n\
             Offered:\n```\n{}\n```\nWritten:\n```\n{}\n```",
            case.offered, case.written
        );
        let body = json!({
            "model": self.model,
            "temperature": 0,
            "max_tokens": limits::JUDGE_ANSWER_TOKENS,
            "messages": [
                {"role": "system", "content": TASK},
                {"role": "user", "content": question},
            ],
        });
        let mut request = self.agent.post(&self.url);
        if let Some(key) = &self.key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let asked = || format!("the judge at {}", self.url);
        let mut answer = request.send_json(&body).with_context(asked)?;
        let answer: Value = answer.body_mut().read_json().with_context(asked)?;
        let said = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
        let rating = number(said).with_context(|| format!("{} gave no number", asked()))?;
        ensure!(SCALE.contains(&rating), "{} gave {rating}, which is not from 0 to 10", asked());
        Ok(rating)
    }
}

/// The last characters of a text.
fn last(text: &str, chars: usize) -> &str {
    let start = text.char_indices().rev().take(chars).last().map_or(text.len(), |(at, _)| at);
    &text[start..]
}

/// The first number in a text.
fn number(text: &str) -> Option<f64> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    text.split(|c: char| !is_part(c))
        .map(|part| part.trim_matches('.'))
        .find_map(|part| part.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    /// Answers one request with this status and content. Returns what it was sent.
    fn endpoint(
        status: &'static str,
        content: &'static str,
    ) -> (String, JoinHandle<(String, Value)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/v1/", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).unwrap();
            }
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
            });
            let mut body = vec![0; length.unwrap()];
            reader.read_exact(&mut body).unwrap();
            let answer = json!({"choices": [{"message": {"content": content}}]}).to_string();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{answer}",
                answer.len()
            )
            .unwrap();
            (head, serde_json::from_slice(&body).unwrap())
        });
        (base, served)
    }

    const CASE: JudgedOffer =
        JudgedOffer { id: "a-1", before: "let x = ", offered: "1;", written: "2;" };

    #[test]
    fn a_rating_is_the_number_in_the_answer() {
        let (base, served) = endpoint("200 OK", " Rating: 7.5/10.");
        let judge = Judge::new(&base, "some-model", Some("secret".to_owned()));
        assert_eq!(judge.rate(CASE).unwrap(), Some(7.5));
        let (head, body) = served.join().unwrap();
        assert!(head.starts_with("POST /v1/chat/completions "), "{head}");
        assert!(head.to_lowercase().contains("authorization: bearer secret"), "{head}");
        assert_eq!((&body["model"], &body["temperature"]), (&json!("some-model"), &json!(0)));
        let question = body["messages"][1]["content"].as_str().unwrap();
        assert!(["let x = ", "1;", "2;"].iter().all(|part| question.contains(part)), "{question}");
    }

    /// An offer that is sent is an error here: nobody listens.
    #[test]
    fn what_the_daemon_may_not_store_is_not_sent() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let judge = Judge::new(&format!("http://{closed}/v1"), "m", None);
        let secret = ["DB_PASSWORD = \"Tr0ub4dor", "-zz9Kq\"\n"].concat();
        let (name, value) = secret.split_at(secret.find('"').unwrap());
        let far = format!("{secret}{}", "é\n".repeat(limits::JUDGE_BEFORE_CHARS / 2));
        for case in [
            JudgedOffer { id: "a-1~", ..CASE },
            JudgedOffer { before: &secret, ..CASE },
            JudgedOffer { before: &far, ..CASE },
            JudgedOffer { before: "", offered: &secret, ..CASE },
            JudgedOffer { before: name, written: value, ..CASE },
        ] {
            assert_eq!(judge.rate(case).unwrap(), None, "{case:?}");
        }
        assert!(CASE.may_be_sent());
        assert_eq!((last("aéb", 2), last("a", 2), last("a", 0)), ("éb", "a", ""));
    }

    #[test]
    fn an_answer_without_a_rating_is_an_error_that_names_the_judge() {
        for (status, content, says) in [
            ("200 OK", "I cannot rate this", "no number"),
            ("200 OK", "11", "not from 0 to 10"),
            ("401 Unauthorized", "", "401"),
        ] {
            let (base, served) = endpoint(status, content);
            let error = Judge::new(&base, "m", None).ask(CASE).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(says) && error.contains("127.0.0.1"), "{error}");
            served.join().unwrap();
        }
    }
}
