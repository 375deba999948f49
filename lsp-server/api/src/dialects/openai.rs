//! OpenAI's completions: `/v1/completions` and `/v1/models`.

use super::fields::Fields;
use super::{Reply, Trouble};
use crate::{Answer, Around, Client, Ended, Model, Request, TextLimits, parse};
use jiff::Timestamp;
use serde_json::{Value, json};

#[derive(Debug)]
pub struct Form {
    is_stream: bool,
}

pub fn completions(
    fields: &Fields,
    client: Client,
    model: &Model,
) -> Result<(Request, Form), Trouble> {
    let prompts = fields.texts("prompt")?;
    let [prompt] = prompts.as_slice() else {
        return Err(Trouble::field("prompt", "must be one text"));
    };
    let request = match fields.text("suffix")?.filter(|suffix| !suffix.is_empty()) {
        Some(suffix) => {
            let around = Around { before: prompt.clone(), after: suffix.to_owned() };
            Request::new(client, around)
        }
        None => {
            let read = parse(prompt, model.template)?;
            Request { name: read.name, files: read.files, ..Request::new(client, read.around) }
        }
    };
    let limits =
        TextLimits { max_tokens: fields.count("max_tokens")?, stop: fields.texts("stop")? };
    fields.count("n")?;
    let is_stream = fields.flag("stream")?.unwrap_or(false);
    Ok((request.limited(limits), Form { is_stream }))
}

impl Form {
    pub fn reply(&self, answer: &Answer, model: &Model) -> Reply {
        let created = Timestamp::now();
        let part = |text: &str, finish_reason: Value| {
            json!({
                "id": format!("cmpl-{}", created.as_nanosecond()),
                "object": "text_completion",
                "created": created.as_second(),
                "model": model.name,
                "choices": [
                    {"index": 0, "text": text, "logprobs": null, "finish_reason": finish_reason}
                ],
            })
        };
        let reason = json!(match answer.ended {
            Ended::AtLimit => "length",
            Ended::ByItself | Ended::AtStop => "stop",
        });
        if self.is_stream {
            let parts = [part(&answer.text, Value::Null), part("", reason)];
            let parts = parts.iter().map(Value::to_string);
            return Reply::events(parts.chain(["[DONE]".to_owned()]));
        }
        let mut whole = part(&answer.text, reason);
        // Most of a prompt is known from the request before, so its tokens are not counted.
        let tokens = answer.tokens;
        whole["usage"] =
            json!({"prompt_tokens": 0, "completion_tokens": tokens, "total_tokens": tokens});
        Reply::json(&whole)
    }
}

pub fn models(model: &Model) -> Reply {
    Reply::json(&json!({
        "object": "list",
        "data": [{"id": model.name, "object": "model", "created": 0, "owned_by": "hone"}],
    }))
}

pub fn error(trouble: &Trouble) -> Value {
    let kind = match trouble.status.as_u16() {
        401 | 403 => "authentication_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {
        "message": trouble.message,
        "type": kind,
        "param": trouble.field,
        "code": trouble.status.as_u16(),
    }})
}
