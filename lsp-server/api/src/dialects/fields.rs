//! The fields of a request's body. An error names the field; those that Hone does not know are
//! ignored, because every dialect has many that only its own server understands.

use super::Trouble;
use hyper::StatusCode;
use serde_json::{Map, Value};

pub struct Fields(Map<String, Value>);

impl Fields {
    pub fn read(body: &[u8]) -> Result<Fields, Trouble> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            // The error of the parser may repeat a part of the text.
            _ => Err(Trouble::new(StatusCode::BAD_REQUEST, "the body must be one JSON object")),
        }
    }

    /// The fields of an object within.
    pub fn within(&self, name: &'static str) -> Result<Fields, Trouble> {
        match self.get(name) {
            None => Ok(Fields(Map::new())),
            Some(Value::Object(fields)) => Ok(Fields(fields.clone())),
            Some(_) => Err(Trouble::field(name, "must be an object")),
        }
    }

    /// A field that is there and not null.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &'static str) -> Result<Option<&str>, Trouble> {
        let text = |value: &'_ Value| match value {
            Value::String(_) => Ok(()),
            _ => Err(Trouble::field(name, "must be a text")),
        };
        self.get(name).map(text).transpose()?;
        Ok(self.get(name).and_then(Value::as_str))
    }

    /// A text that must be there.
    pub fn needed_text(&self, name: &'static str) -> Result<&str, Trouble> {
        self.text(name)?.ok_or_else(|| Trouble::field(name, "is missing; it must be a text"))
    }

    pub fn flag(&self, name: &'static str) -> Result<Option<bool>, Trouble> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(Trouble::field(name, "must be true or false")),
        }
    }

    /// A number of tokens or answers. A negative one means that there is no limit.
    pub fn count(&self, name: &'static str) -> Result<Option<usize>, Trouble> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.as_f64().filter(|number| number.fract() == 0.0);
        let number = number.ok_or_else(|| Trouble::field(name, "must be a whole number"))?;
        Ok((number >= 0.0).then_some(number as usize))
    }

    /// A text or a list of texts.
    pub fn texts(&self, name: &'static str) -> Result<Vec<String>, Trouble> {
        let wrong = || Trouble::field(name, "must be a text or a list of texts");
        match self.get(name) {
            None => Ok(vec![]),
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(Value::Array(texts)) => texts
                .iter()
                .map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }
}
