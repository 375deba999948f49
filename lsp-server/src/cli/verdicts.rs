//! `hone events --verdicts`: the verdicts on the offers, for other programs.

use crate::cli::events::{each_offer, is_broken_pipe};
use anyhow::{Context, Result};
use host::paths::Paths;
use report::export::without_code;
use report::offers::OfferHistory;
use serde_json::{Value, json};
use std::io::Write;

/// Prints every judged offer as a JSON line.
pub async fn print(home: &Paths, with_code: bool) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let exported = each_offer(home, |history| match line(&history, with_code)? {
        Some(line) => Ok(writeln!(output, "{}", printable::text(&line.to_string()))?),
        None => Ok(()),
    });
    match exported.await {
        // A reader that has enough, such as `head`, ends the pipe; that is no error.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        done => done,
    }
}

/// Returns the line of an offer, unless the offer has no verdict.
fn line(history: &OfferHistory, with_code: bool) -> Result<Option<Value>> {
    let Some(episode) = history.episode() else { return Ok(None) };
    let Some(value) = episode.reward() else { return Ok(None) };
    let first = history.first();
    let mut completion =
        if with_code { serde_json::to_value(first)? } else { without_code(first)? };
    let fields = completion.as_object_mut().context("a completion is an object")?;
    for said_outside in ["id", "at_ms", "event", "seq"] {
        fields.remove(said_outside);
    }
    let judged = history.outcome(&episode);
    let mut line = json!({
        "offer": history.completion().id,
        "at_ms": first.at_ms,
        "adapter": history.completion().adapter,
        "outcome": judged.map(|(outcome, ..)| outcome),
        "evidence": judged.map(|(_, evidence, _)| evidence),
        "judged_at_ms": judged.map(|(.., at_ms)| at_ms),
        "seen": episode.shown,
        "kept": episode.kept,
        "reward": value,
        "completion": completion,
    });
    if with_code {
        line["typed_instead"] = json!(episode.replacement);
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::event::{EventKind, Evidence, Outcome};
    use fixtures::completion;
    use report::testing::group;

    fn judged(id: &str, outcome: Outcome) -> Vec<EventKind> {
        let evidence = Evidence::Command;
        vec![completion(id, "/p/a.rs"), EventKind::Outcome { id: id.into(), outcome, evidence }]
    }

    #[test]
    fn a_line_tells_the_verdict_and_no_code() {
        let mut lines = vec![];
        group([judged("a", Outcome::Accepted), judged("b", Outcome::Unseen)].concat(), |history| {
            lines.push((line(&history, false).unwrap(), line(&history, true).unwrap()));
        });
        let (bare, whole) = (lines[0].0.clone().unwrap(), lines[0].1.clone().unwrap());
        assert_eq!((&bare["offer"], &bare["outcome"]["kind"]), (&json!("a"), &json!("accepted")));
        assert_eq!((&bare["evidence"], &bare["judged_at_ms"]), (&json!("command"), &json!(10)));
        assert_eq!(bare["reward"], 1.0);
        assert_eq!(bare["completion"]["path"], "/p/a.rs");
        assert!(!bare.to_string().contains("0123456789"));
        assert_eq!(whole["completion"]["shown"], "0123456789");
        assert_eq!(lines[1].0, None, "nobody judged it");
    }
}
