//! Ollama's paths: `/api/generate`, and what its clients ask of the models.

use super::fields::Fields;
use super::{Reply, Trouble};
use crate::{Answer, Around, Client, Ended, Model, Request, TextLimits, parse};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The version whose answers these are. Clients ask for it to know what they may send.
const VERSION: &str = "0.12.0";

/// Clients send a suffix only to a model whose template holds it.
const TEMPLATE: &str = "{{ .Prompt }}{{ .Suffix }}";

#[derive(Debug)]
pub struct Form {
    is_stream: bool,
}

pub fn generate(
    fields: &Fields,
    client: Client,
    model: &Model,
) -> Result<(Request, Form), Trouble> {
    let prompt = fields.text("prompt")?.unwrap_or_default();
    let suffix = fields.text("suffix")?.filter(|suffix| !suffix.is_empty());
    let request = match suffix {
        Some(suffix) => {
            let around = Around { before: prompt.to_owned(), after: suffix.to_owned() };
            Request::new(client, around)
        }
        None => {
            let read = parse(prompt, model.template)?;
            Request { name: read.name, files: read.files, ..Request::new(client, read.around) }
        }
    };
    let options = fields.within("options")?;
    let max_tokens = options.count("num_predict")?;
    let limits = TextLimits { max_tokens, stop: options.texts("stop")? };
    // Without a prompt the client wants the model to be loaded.
    let is_warming = (prompt.is_empty() && suffix.is_none()) || max_tokens == Some(0);
    let is_stream = fields.flag("stream")?.unwrap_or(true);
    Ok((Request { is_warming, ..request.limited(limits) }, Form { is_stream }))
}

impl Form {
    pub fn reply(&self, answer: &Answer, model: &Model) -> Reply {
        let now = Timestamp::now().to_string();
        let part = |text: &str, done: bool| {
            let name = &model.name;
            json!({"model": name, "created_at": now, "response": text, "done": done})
        };
        let ended = |mut last: Value| {
            last["done_reason"] = json!(match answer.ended {
                Ended::AtLimit => "length",
                Ended::ByItself | Ended::AtStop => "stop",
            });
            last["context"] = json!([]);
            for time in ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"]
            {
                last[time] = json!(0);
            }
            last["prompt_eval_count"] = json!(0);
            last["eval_count"] = json!(answer.tokens);
            last
        };
        if self.is_stream {
            Reply::lines([part(&answer.text, false), ended(part("", true))])
        } else {
            Reply::json(&ended(part(&answer.text, true)))
        }
    }
}

pub fn tags(model: &Model) -> Reply {
    Reply::json(&json!({"models": [{
        "name": model.name,
        "model": model.name,
        "modified_at": Timestamp::UNIX_EPOCH.to_string(),
        "size": model.bytes,
        "digest": model.sha256,
        "details": details(model),
    }]}))
}

pub fn show(model: &Model) -> Reply {
    Reply::json(&json!({
        "modelfile": "",
        "parameters": "",
        "template": TEMPLATE,
        "details": details(model),
        "model_info": {"general.architecture": model.architecture},
        "capabilities": ["completion", "insert"],
    }))
}

fn details(model: &Model) -> Value {
    json!({
        "parent_model": "",
        "format": "gguf",
        "family": model.architecture,
        "families": [model.architecture],
        "parameter_size": "",
        "quantization_level": "",
    })
}

pub fn version() -> Reply {
    Reply::json(&json!({"version": VERSION}))
}

pub fn error(trouble: &Trouble) -> Value {
    json!({"error": trouble.message})
}
