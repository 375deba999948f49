//! Hone as a side: a daemon in a home of its own, and an editor that is connected to it.

use crate::infill::Infill;
use crate::trace::Trace;
use crate::{Answer, quantile};
use anyhow::{Context, Result, ensure};
use rehearsal::client::{Client, OwnHome, TriggerKind};
use rehearsal::document::{Document, Encoding, Position, Range};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

pub struct Hone {
    /// It leaves before the daemon ends, because it would start another one.
    pub client: Client,
    home: OwnHome,
    document: Document,
    uri: String,
    /// Asks over HTTP instead of by the editor's connection.
    infill: Option<Infill>,
}

impl Hone {
    /// Starts a daemon with these lines in its config.toml. Its editor has `folder` open.
    pub fn start(
        program: &Path,
        models: &Path,
        settings: &[String],
        folder: &Path,
    ) -> Result<Hone> {
        // The next key follows each answer, so the pause in typing means nothing. The setting has
        // the name that every version reads.
        let mut config = "learning.enabled = false\nlab.adaptive_debounce = false\n".to_owned();
        for line in settings {
            config += line;
            config.push('\n');
        }
        let home = OwnHome::new(program, models, &config)?;
        let client = Client::spawn(home.hone(&["lsp"]).stderr(Stdio::inherit()))?;
        client.initialize_in(&[], Some(folder))?;
        let document = Document::new(String::new(), Encoding::Utf16);
        Ok(Hone { client, home, document, uri: String::new(), infill: None })
    }

    /// From now on, asks over HTTP by `/infill`.
    pub fn ask_over_http(&mut self) -> Result<()> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
        let output = self.home.hone(&["api", "on", "--port", &port]).output()?;
        ensure!(output.status.success(), "`hone api on` failed");
        let output = self.home.hone(&["api", "--json"]).output()?;
        let status: Value = serde_json::from_slice(&output.stdout)?;
        let text = |key: &str| status[key].as_str().with_context(|| format!("no {key}: {status}"));
        self.infill = Some(Infill::new(format!("{}/t/{}", text("url")?, text("token")?)));
        Ok(())
    }

    pub fn open(&mut self, trace: &Trace) -> Result<()> {
        if let Some(infill) = &mut self.infill {
            infill.open(trace);
            return Ok(());
        }
        self.uri = format!("file://{}", trace.path.display());
        let text = format!("{}{}", trace.before(0), trace.after());
        self.document = Document::new(text.clone(), Encoding::Utf16);
        self.client.open(&self.uri, trace.language, &text)?;
        // The plugins for VS Code and Neovim report in this way where the cursor is.
        let at = Self::cursor(trace, 0);
        self.client.notify(
            "textDocument/didFocus",
            json!({"textDocument": {"uri": self.uri}, "position": at}),
        )?;
        Ok(())
    }

    pub fn close(&self) -> Result<()> {
        if self.infill.is_some() {
            return Ok(());
        }
        let document = json!({"textDocument": {"uri": self.uri}});
        Ok(self.client.notify("textDocument/didClose", document)?)
    }

    fn cursor(trace: &Trace, key: usize) -> Position {
        let before = trace.before(key);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Position {
            line: before.matches('\n').count() as u32,
            character: line.encode_utf16().count() as u32,
        }
    }

    pub fn key(&mut self, trace: &Trace, key: usize) -> Result<Answer> {
        if let Some(infill) = &mut self.infill {
            return infill.key(trace, key);
        }
        let started = Instant::now();
        if key > 0 {
            let at = Self::cursor(trace, key - 1);
            let typed = &trace.text[trace.cursors[key - 1]..trace.cursors[key]];
            self.client.change(&self.uri, Some(Range { start: at, end: at }), typed)?;
        }
        let items = self.client.inline_completion(
            &self.uri,
            Self::cursor(trace, key),
            TriggerKind::Automatic,
        )?;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        let text = items.into_iter().next().map(|item| item.insert_text).unwrap_or_default();
        Ok(Answer { ms, text })
    }

    /// Returns what the server recorded about the requests that went to the model: the time to the
    /// first token with a warm prompt, and the time of a decode step.
    pub fn timing(&self) -> Result<Value> {
        let output = self.home.hone(&["events", "--json"]).output()?;
        ensure!(output.status.success(), "`hone events` failed");
        timing(&String::from_utf8(output.stdout)?)
    }
}

fn timing(events: &str) -> Result<Value> {
    let (mut first, mut steps, mut computed) = (vec![], vec![], 0);
    let (mut prompts, mut tokens_read, mut tokens_made) = (0.0, 0.0, 0.0);
    for line in events.lines() {
        let event: Value = serde_json::from_str(line)?;
        let number = |key: &str| event["timing"][key].as_f64();
        let (Some(reused), Some(evaluated)) = (number("prompt_reused"), number("prompt_evaluated"))
        else {
            continue;
        };
        computed += 1;
        prompts += number("prompt_ms").unwrap_or_default();
        tokens_read += evaluated;
        let tokens = event["logprobs"].as_array().map_or(0, Vec::len);
        if reused > 0.0 && evaluated <= 8.0 {
            first.extend(number("prompt_ms"));
        }
        tokens_made += tokens as f64;
        if let (true, Some(ms)) = (tokens > 1, number("decode_ms")) {
            steps.push(ms / (tokens - 1) as f64);
        }
    }
    Ok(json!({
        "computed": computed,
        "per_computed": {
            "prompt_ms": prompts / f64::from(computed),
            "prompt_tokens_evaluated": tokens_read / f64::from(computed),
            "tokens_generated": tokens_made / f64::from(computed),
        },
        "first_token_ms": quantile(&mut first, 0.5),
        // Tokens that were generated before cost nothing. The slower steps were computed.
        "decode_step_ms": quantile(&mut steps, 0.75),
    }))
}
