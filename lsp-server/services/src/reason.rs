//! Why a request for a completion or a next edit ended as it did. Every request ends with one of
//! these reasons, so that a user who sees nothing can find out why.

use completion::limits::TOKENS_MAX;
use engine::worker::Work;
use serde::{Deserialize, Serialize};

/// The reason, without any text of the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// An offer was made.
    Shown,
    /// The rest of the offer on screen was given, because the user typed along with it.
    TypedThrough,
    /// A newer request, an edit or the editor itself ended the request.
    Superseded,
    /// A newer key or request came before the answer, and the engine was at this work then.
    Unanswered {
        after_ms: u64,
        engine: Work,
    },
    /// The model was not in memory, and it was still being loaded when the request ended.
    Loading,
    /// Completions are switched off or paused.
    SwitchedOff,
    /// The user snoozed completions here.
    Snoozed {
        until: String,
    },
    LanguageOff {
        language: String,
    },
    /// The language is one of prose, which is not completed unless the user wants it.
    ProseOff {
        language: String,
    },
    /// A pattern of `completion.ignore` names the file.
    FileIgnored {
        pattern: String,
    },
    /// The gate held the offer back. `weighed` names what spoke most against it.
    HeldBack {
        probability: f32,
        threshold: f32,
        weighed: Vec<String>,
    },
    /// The tokens of the line became less likely than the setting asks for.
    TooUnlikely {
        min_token_probability: f32,
    },
    /// The model ends the line here.
    NothingToAdd,
    /// The model wrote blanks alone.
    OnlyBlanks,
    /// The text stands around the cursor already.
    RepeatsText,
    /// The offer has fewer characters than the eagerness asks for.
    TooShort,
    /// The user rejected the same text on this line.
    RejectedHere,
    /// The answer ran out of tokens, and no part of it was whole.
    CutOff {
        max_tokens: usize,
    },
    /// The time ran out before anything was there to show.
    TooSlow {
        budget_ms: u64,
    },
    /// The model cannot continue what was typed of a word.
    CannotContinue,
    /// The suggestion list is open, and its entry does not begin with what was typed.
    EntrySpelledOtherwise,
    /// Next edits are switched off.
    NextEditsOff,
    /// Next edits come with their key, and it was not pressed.
    NextEditsByKey,
    /// The user has not made an edit twice, so there is nothing to repeat.
    NothingAlike,
    /// What the user changed twice fits no other place of the open documents.
    NoOtherPlace,
    /// What the user changed twice comes next in a file that is not open. The line counts from 1.
    InAnotherFile {
        path: String,
        line: u32,
    },
    /// The user rejected the next edit.
    TurnedDown,
    /// No rule fits, and the model for next edits was not asked, or its answer is not shown.
    ModelSilent {
        why: ModelSilence,
    },
    /// The user had something forgotten while the completion was computed.
    Forgotten,
    /// The document is not known here, or the position does not lie in it.
    OutOfStep,
    /// The engine could not answer.
    Failed {
        message: String,
    },
}

/// Why there is no next edit by the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelSilence {
    NothingChanged,
    Undone,
    JustRejected,
    OfferStands,
    /// Keys and completions, in whichever editor, left it no time.
    GaveWay,
    /// Nothing is written there, or the lines or the file are too long.
    NoWindow,
    Unchanged,
    CutOff,
    Blank,
    Malformed,
    OnlyAbove,
    Rewrites,
    TakesBack,
    DeletesTyped,
    OnlyBlanks,
    OnlyImports,
    RejectedBefore,
}

impl ModelSilence {
    fn sentence(self) -> &'static str {
        match self {
            ModelSilence::NothingChanged => {
                "Nothing was changed yet that a next edit could follow."
            }
            ModelSilence::Undone => "The model for next edits is not asked after an undo.",
            ModelSilence::JustRejected => {
                "The model for next edits is not asked right after you rejected an edit."
            }
            ModelSilence::OfferStands => {
                "The model for next edits is not asked while a completion is on screen."
            }
            ModelSilence::GaveWay => {
                "The model for next edits gave way to keys and completions, here or in another \
                 editor."
            }
            ModelSilence::NoWindow => {
                "The model for next edits is not asked in empty places, nor where lines or files \
                 are very long."
            }
            ModelSilence::Unchanged => "The model for next edits would change nothing.",
            ModelSilence::CutOff => {
                "The answer of the model for next edits was too long, or took too long."
            }
            ModelSilence::Blank => "The model for next edits wrote nothing.",
            ModelSilence::Malformed => "The answer of the model for next edits cannot be read.",
            ModelSilence::OnlyAbove => {
                "The model for next edits only wrote lines above the cursor."
            }
            ModelSilence::Rewrites => "The model for next edits wrote too many lines anew.",
            ModelSilence::TakesBack => "The model for next edits took your last change back.",
            ModelSilence::DeletesTyped => "The model for next edits deleted what you just typed.",
            ModelSilence::OnlyBlanks => "The model for next edits only changed blanks.",
            ModelSilence::OnlyImports => "The model for next edits only changed imports.",
            ModelSilence::RejectedBefore => {
                "The model for next edits repeated an edit that you rejected."
            }
        }
    }
}

impl Reason {
    /// Returns whether something was offered.
    pub fn is_offer(&self) -> bool {
        matches!(self, Reason::Shown | Reason::TypedThrough)
    }

    /// The reason in a person's words.
    pub fn sentence(&self) -> String {
        let percent = |share: &f32| format!("{:.0} %", share * 100.0);
        match self {
            Reason::Shown => "An offer was shown.".into(),
            Reason::TypedThrough => "The offer on screen continues.".into(),
            Reason::Superseded => "Another key or request came first.".into(),
            Reason::Unanswered { after_ms, engine } => format!(
                "There was no answer within {:.1} s, and you continued; the engine {}.",
                *after_ms as f64 / 1000.0,
                at_work(*engine)
            ),
            Reason::Loading => "The model is being loaded; the next key may find it ready.".into(),
            Reason::SwitchedOff => "Completions are switched off.".into(),
            Reason::Snoozed { until } => format!("Completions are paused {until}."),
            Reason::LanguageOff { language } => {
                format!("Completions are switched off for the language {language}.")
            }
            Reason::ProseOff { language } => {
                format!("Prose is not completed as you type, and {language} counts as prose.")
            }
            Reason::FileIgnored { pattern } => {
                format!("The pattern {pattern} of completion.ignore names this file.")
            }
            Reason::HeldBack { probability, threshold, weighed } => format!(
                "The gate held the offer back: you would accept it with a chance of {}, and \
                 offers need {}.{}",
                percent(probability),
                percent(threshold),
                against(weighed),
            ),
            Reason::TooUnlikely { min_token_probability } => format!(
                "The model was not sure: the tokens of its lines were less likely than {} on \
                 average.",
                percent(min_token_probability)
            ),
            Reason::NothingToAdd => "The model has nothing to add to this line.".into(),
            Reason::OnlyBlanks => "The model wrote nothing but blanks.".into(),
            Reason::RepeatsText => "The offer repeats text that stands here already.".into(),
            Reason::TooShort => "The offer had too few characters to be worth a look.".into(),
            Reason::RejectedHere => "You rejected the same text on this line.".into(),
            Reason::CutOff { max_tokens } => {
                format!("The offer was not whole after {max_tokens} tokens.")
            }
            Reason::TooSlow { budget_ms } => {
                format!("The offer was not ready after {budget_ms} ms.")
            }
            Reason::CannotContinue => "The model cannot continue this word.".into(),
            Reason::EntrySpelledOtherwise => {
                "The chosen suggestion does not begin with what you typed.".into()
            }
            Reason::NextEditsOff => "Next edits are switched off.".into(),
            Reason::NextEditsByKey => "Next edits come when you press their key.".into(),
            Reason::NothingAlike => "You have not just made the same edit twice.".into(),
            Reason::NoOtherPlace => {
                "What you changed twice fits no other place of the open files.".into()
            }
            Reason::InAnotherFile { path, line } => {
                format!("What you changed twice comes next in {path}:{line}, which is not open.")
            }
            Reason::TurnedDown => "You rejected this edit.".into(),
            Reason::ModelSilent { why } => why.sentence().into(),
            Reason::Forgotten => "Something was forgotten while the offer was computed.".into(),
            Reason::OutOfStep => "Hone does not know this text of the document.".into(),
            Reason::Failed { message } => format!("The model could not answer: {message}."),
        }
    }

    /// Returns what the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        let command = match self {
            Reason::SwitchedOff | Reason::Snoozed { .. } => "hone resume completions".into(),
            Reason::LanguageOff { language } if is_plain(language) => {
                format!("hone config set completion.languages.{language} true")
            }
            Reason::ProseOff { .. } => "hone config set completion.prose true".into(),
            Reason::FileIgnored { .. } => "hone config get completion.ignore".into(),
            Reason::HeldBack { .. } | Reason::TooShort => {
                "hone config set completion.eagerness eager".into()
            }
            Reason::NextEditsOff => "hone config set completion.next_edit subtle".into(),
            Reason::NextEditsByKey => "hone config set completion.next_edit on".into(),
            Reason::TooUnlikely { .. } => "hone config set lab.min_token_probability 0".into(),
            Reason::CutOff { max_tokens } if *max_tokens < TOKENS_MAX => {
                let more = (2 * max_tokens).min(TOKENS_MAX);
                format!("hone config set lab.max_tokens {more}")
            }
            Reason::TooSlow { budget_ms } => {
                format!("hone config set lab.budget_ms {}", 2 * budget_ms)
            }
            Reason::RejectedHere => "ask for it by hand".into(),
            Reason::InAnotherFile { .. } => "open that file, and ask for the next edit".into(),
            Reason::OutOfStep => "open the file again".into(),
            // A message that names a command says itself what to do.
            Reason::Failed { message } if !message.contains("`hone ") => {
                "hone restart, and look into logs/daemon.log".into()
            }
            _ => return None,
        };
        Some(command)
    }
}

/// Returns true if every shell reads a language's name as the client gave it.
fn is_plain(language: &str) -> bool {
    language.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+'))
}

fn at_work(engine: Work) -> &'static str {
    match engine {
        Work::Nothing => "waited for a pause in your typing",
        Work::Answering => "was computing it",
        Work::ReadingPrompt => "was reading your code",
        Work::AnsweringAhead => "was computing what you may ask next",
        Work::Scoring => "was comparing adapters",
        Work::LoadingAdapter => "was loading an adapter",
    }
}

fn against(weighed: &[String]) -> String {
    if weighed.is_empty() {
        return String::new();
    }
    format!(" Most against it: {}.", weighed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_what_a_person_can_change() {
        let off = Reason::LanguageOff { language: "python".into() };
        assert!(off.sentence().contains("python"));
        let command = "hone config set completion.languages.python true";
        assert_eq!(off.remedy().as_deref(), Some(command));
        let named_oddly = Reason::LanguageOff { language: "c'; id; '".into() };
        assert_eq!(named_oddly.remedy(), None, "a command is copied into a shell");
        assert_eq!(Reason::NothingToAdd.remedy(), None);
        assert!(Reason::Shown.is_offer() && !Reason::NothingToAdd.is_offer());
    }

    /// `hone why` recommended a restart where only a pull helps.
    #[test]
    fn a_failure_that_says_what_to_do_has_no_other_remedy() {
        let failed = |message: &str| Reason::Failed { message: message.into() };
        let missing = failed("/m/a.gguf is missing; run `hone model pull a`");
        assert!(missing.sentence().ends_with("is missing; run `hone model pull a`."));
        assert_eq!(missing.remedy(), None);
        let other = failed("a number is not finite").remedy();
        assert_eq!(other.as_deref(), Some("hone restart, and look into logs/daemon.log"));
    }

    #[test]
    fn every_setting_that_is_named_as_a_remedy_can_be_set_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let language = "yaml.ansible".to_owned();
        let cut_off = (1..TOKENS_MAX).map(|max_tokens| Reason::CutOff { max_tokens });
        let others = [
            Reason::LanguageOff { language },
            Reason::ProseOff { language: "markdown".into() },
            Reason::TooShort,
            Reason::NextEditsOff,
            Reason::NextEditsByKey,
            Reason::TooSlow { budget_ms: 10_000 },
        ];
        for reason in cut_off.chain(others) {
            let remedy = reason.remedy().unwrap();
            let setting = remedy.strip_prefix("hone config set ").unwrap();
            let (key, value) = setting.split_once(' ').unwrap();
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            settings::set(&file, key, Some(&value)).expect(&remedy);
        }
        assert_eq!(Reason::CutOff { max_tokens: TOKENS_MAX }.remedy(), None);
    }

    #[test]
    fn the_gate_says_what_it_decided_by() {
        let weighed = vec!["rejects in a row".to_owned()];
        let held = Reason::HeldBack { probability: 0.081, threshold: 0.25, weighed };
        let sentence = held.sentence();
        assert!(sentence.contains("8 %") && sentence.contains("25 %"), "{sentence}");
        assert!(sentence.contains("rejects in a row"), "{sentence}");
    }

    #[test]
    fn a_request_without_an_answer_says_what_the_engine_did() {
        let sentence = Reason::Unanswered { after_ms: 1_420, engine: Work::Scoring }.sentence();
        assert!(sentence.contains("1.4 s") && sentence.contains("adapters"), "{sentence}");
    }

    #[test]
    fn a_reason_reads_back_as_it_was_written() {
        let reason = Reason::TooSlow { budget_ms: 10_000 };
        let written = serde_json::to_string(&reason).unwrap();
        assert_eq!(written, r#"{"reason":"too_slow","budget_ms":10000}"#);
        assert_eq!(serde_json::from_str::<Reason>(&written).unwrap(), reason);
    }
}
