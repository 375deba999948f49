//! The texts that may be offered for a request: the model's own, and the line that was written
//! before, if there is one ([`super::copies`]).
//!
//! The gate weighs the two. To it both are lines of which it predicts whether they are accepted,
//! from how likely the model finds them and from what was written before at places like this, and
//! it learns from every verdict whom to trust. The line that is worth more is offered ([`worth`]).

use super::copies::{Candidate, solid};
use super::gate::ask_gate;
use super::request::PendingRequest;
use crate::services::Services;
use engine::{Answer, Generated, Request};
use feedback::event::{Copied, StopReason};
use policy::gate::features::{Recalled, Writer};
use std::time::Duration;

/// A text that may be offered.
pub struct Proposal {
    pub answer: Answer,
    /// Set if the model did not write it.
    pub copied: Option<CopiedText>,
    /// What was written before at places like this.
    pub recalled: Option<Recalled>,
}

/// Where a text was copied from.
pub struct CopiedText {
    pub record: Copied,
    pub file: String,
}

impl Proposal {
    /// What may be offered, the best first. If no alternatives are wanted, that is one text.
    pub fn all(
        services: &Services,
        asked: &PendingRequest,
        generated: &Generated,
    ) -> Vec<Proposal> {
        let (request, copy) = (&asked.request, asked.copy.as_ref());
        let is_line = request.stop_rule.lines() == 1;
        let of_model = |answer: &Answer| {
            let said = said(answer, &request.prompt.healing);
            let recalled = copy.filter(|_| is_line);
            let recalled = recalled.map(|copy| copy.recalled(&said, Writer::Model));
            Proposal { answer: answer.clone(), copied: None, recalled }
        };
        let mut all: Vec<Proposal> = generated.answers.iter().map(of_model).collect();
        if let Some(copied) = copy.and_then(|copy| copied(copy, request, generated)) {
            let worth = |proposal: &Proposal| worth(services, asked, proposal);
            let is_worth_more = all.first().is_none_or(|own| worth(&copied) > worth(own));
            let is_alone = request.alternatives == 0;
            if is_worth_more && is_alone {
                all.clear();
            }
            if is_worth_more {
                all.insert(0, copied);
            } else if !is_alone {
                all.insert(1, copied);
            }
        }
        all
    }
}

/// What the offer of a line is worth: the characters that are completed by it, weighed by how
/// likely it is accepted.
fn worth(services: &Services, asked: &PendingRequest, proposal: &Proposal) -> f64 {
    let line = said(&proposal.answer, &asked.request.prompt.healing);
    let chars = line.trim().chars().count();
    if chars == 0 {
        return 0.0;
    }
    if proposal.copied.is_some() && services.settings.current().lab.always_copy {
        return f64::INFINITY;
    }
    let Proposal { answer, recalled, .. } = proposal;
    let logprobs = answer.visible_logprobs.get(answer.healed..).unwrap_or_default();
    let context = &asked.context;
    let seen = |recent| context.surroundings(&line, logprobs, answer.stop, *recalled, recent);
    f64::from(ask_gate(services, &context.language, seen).probability) * chars as f64
}

/// The copy, unless the model says the same or could not say it.
fn copied(copy: &Candidate, request: &Request, generated: &Generated) -> Option<Proposal> {
    let line = copy.line().filter(|_| request.stop_rule.lines() == 1)?;
    let scored = generated.draft.as_ref();
    if let Some(own) = generated.answers.first() {
        let is_same = solid(&said(own, &request.prompt.healing)) == solid(line);
        if is_same || scored.is_none() {
            return None;
        }
    }
    let healing = &request.prompt.healing;
    let answer = scored.cloned().unwrap_or_else(|| unscored(&format!("{healing}{line}\n")));
    let writer = if scored.is_some() { Writer::Copy } else { Writer::UnseenCopy };
    let (record, file) = (copy.record, copy.file.clone());
    let recalled = Some(copy.recalled(line, writer));
    Some(Proposal { answer, copied: Some(CopiedText { record, file }), recalled })
}

/// The first line of an answer, without what healing reproduces.
fn said(answer: &Answer, healing: &str) -> String {
    let text = answer.offered().get(healing.len()..).unwrap_or_default();
    String::from_utf8_lossy(text).split('\n').next().unwrap_or_default().to_owned()
}

/// A text that the model has not seen.
fn unscored(text: &str) -> Answer {
    Answer {
        tokens: vec![],
        visible_logprobs: vec![],
        healed: 0,
        text: text.as_bytes().to_vec(),
        ends: vec![],
        given_up: None,
        stop: StopReason::Newline,
        decode_time: Duration::ZERO,
        experts: None,
    }
}
