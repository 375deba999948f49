//! llama.cpp's own paths: `/infill` and `/completion`.

use super::fields::Fields;
use super::{Reply, Trouble};
use crate::limits::FILES;
use crate::{Answer, Around, Client, Ended, File, Model, Request, TextLimits, parse};
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub struct Form {
    is_stream: bool,
    /// The client asked for several answers, and reads a list.
    is_list: bool,
    /// The fields that the client reads, if it does not want all of them: paths with `/`.
    fields: Option<Vec<String>>,
}

pub fn infill(fields: &Fields, client: Client) -> Result<(Request, Form), Trouble> {
    let (before, after) =
        (fields.needed_text("input_prefix")?, fields.needed_text("input_suffix")?);
    // llama.vim ends the lines above the cursor with a line break also where there are none.
    let before = if before == "\n" { "" } else { before };
    let typed = fields.text("prompt")?.unwrap_or_default();
    let around = Around { before: [before, typed].concat(), after: after.to_owned() };
    let request = Request { files: files(fields)?, ..Request::new(client, around) };
    form(fields, request)
}

pub fn completion(
    fields: &Fields,
    client: Client,
    model: &Model,
) -> Result<(Request, Form), Trouble> {
    let read = parse(fields.needed_text("prompt")?, model.template)?;
    let request =
        Request { name: read.name, files: read.files, ..Request::new(client, read.around) };
    form(fields, request)
}

fn form(fields: &Fields, request: Request) -> Result<(Request, Form), Trouble> {
    let max_tokens = fields.count("n_predict")?;
    let limits = TextLimits { max_tokens, stop: fields.texts("stop")? };
    let form = Form {
        is_stream: fields.flag("stream")?.unwrap_or(false),
        is_list: fields.count("n_cmpl")?.is_some_and(|answers| answers > 1),
        fields: fields
            .get("response_fields")
            .map(|_| fields.texts("response_fields"))
            .transpose()?
            .filter(|named| !named.is_empty()),
    };
    Ok((Request { is_warming: max_tokens == Some(0), ..request.limited(limits) }, form))
}

fn files(fields: &Fields) -> Result<Vec<File>, Trouble> {
    const NAME: &str = "input_extra";
    let wrong = || Trouble::field(NAME, "must be a list of objects with `filename` and `text`");
    let Some(extra) = fields.get(NAME) else { return Ok(vec![]) };
    let file = |file: &Value| {
        let text = |name: &str| file[name].as_str().map(str::to_owned);
        let name = text("filename").unwrap_or_default();
        text("text").map(|text| File { name, text }).ok_or_else(wrong)
    };
    extra.as_array().ok_or_else(wrong)?.iter().take(FILES).map(file).collect()
}

impl Form {
    pub fn reply(&self, answer: &Answer, model: &Model) -> Reply {
        if self.is_stream {
            let part = json!({"index": 0, "content": answer.text, "tokens": [], "stop": false});
            let last = whole(&Answer { text: String::new(), ..answer.clone() }, model);
            return Reply::events([part, last].iter().map(Value::to_string));
        }
        let whole = whole(answer, model);
        let chosen = self.fields.as_ref().map_or(whole.clone(), |fields| chosen(&whole, fields));
        Reply::json(&if self.is_list { json!([chosen]) } else { chosen })
    }
}

fn whole(answer: &Answer, model: &Model) -> Value {
    let stop_type = match answer.ended {
        Ended::ByItself => "eos",
        Ended::AtLimit => "limit",
        Ended::AtStop => "word",
    };
    json!({
        "index": 0,
        "content": answer.text,
        "tokens": [],
        "id_slot": 0,
        "stop": true,
        "model": model.name,
        "tokens_predicted": answer.tokens,
        "tokens_evaluated": 0,
        "has_new_line": answer.text.contains('\n'),
        "truncated": false,
        "stop_type": stop_type,
        "stopping_word": "",
        "tokens_cached": 0,
        "timings": {
            "cache_n": 0,
            "prompt_n": 0,
            "prompt_ms": 0.0,
            "prompt_per_token_ms": 0.0,
            "prompt_per_second": 0.0,
            "predicted_n": answer.tokens,
            "predicted_ms": 0.0,
            "predicted_per_token_ms": 0.0,
            "predicted_per_second": 0.0,
        },
    })
}

/// The fields at these paths, each under its path.
fn chosen(whole: &Value, fields: &[String]) -> Value {
    let at = |path: &String| {
        let value = path.split('/').try_fold(whole, |value, name| value.get(name))?;
        Some((path.clone(), value.clone()))
    };
    Value::Object(fields.iter().filter_map(at).collect::<Map<_, _>>())
}

pub fn error(trouble: &Trouble) -> Value {
    let kind = match trouble.status.as_u16() {
        401 | 403 => "authentication_error",
        404 => "not_found_error",
        500.. => "unavailable_error",
        _ => "invalid_request_error",
    };
    let code = trouble.status.as_u16();
    json!({"error": {"code": code, "message": trouble.message, "type": kind}})
}
