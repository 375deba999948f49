//! Next edits by a model, where the rules are silent. The model is asked after a rest, gives way to
//! keys and completions. Its answer is filtered, judged by weights of its own, and offered as the
//! edit of a rule is.

use super::candidate::{EditCandidate, by_model};
use super::finder::Finder;
use super::offer::OfferedEdit;
use super::{Asked, Session};
use crate::request::Trigger;
use crate::{State, Turn};
use completion::document::Document;
use engine::EngineError;
use engine::continuation::{Continuation, Enough};
use engine::worker::Work;
use feedback::secrets;
use next_edit::model::{
    ANSWER_TOKENS_MAX, Changed, Decision, Dropped, Form, Hunk, Never, Offered, Place, Rejected,
    Shown, Signs, Window, is_served, is_too_long, second,
};
use next_edit::{File, Language, NextEdit, RuleKind, Unit, affixes};
use policy::next_edit::surroundings::ByModel;
use ropey::Rope;
use services::health::TroubleSource;
use services::next_edit_model::{Asking, NextEditModel};
use services::reason::{ModelSilence, Reason};
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

/// The time for one answer. Nobody waits longer for an edit, and a processor reads a file in it.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);

/// How often a request that gave way to a completion is asked again.
const TRIES_MAX: usize = 3;

/// The time between two looks at whether a completion is still computed, and how many there are.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = if cfg!(test) { 20 } else { 200 };

/// What the model is shown, as it was when the request came.
struct Sight {
    path: String,
    opened: String,
    text: String,
    cursor: usize,
    language: &'static Language,
    changes: Vec<Changed>,
    shown: Shown,
    other: Option<(String, String)>,
    rejected: Rejected,
}

impl Sight {
    fn form(&self) -> Form<'_> {
        let Sight { path, opened, text, changes, other, .. } = self;
        let other = other.as_ref().map(|(path, text)| (path.as_str(), text.as_str()));
        Form { path, opened, text, changes, shown: self.shown, other }
    }

    /// Returns true if nothing that may follow changes what is offered of an answer.
    fn is_enough(&self, uri: &str, window: &Window, written: &str) -> bool {
        let offered = Offered { form: &self.form(), window, answer: written, is_whole: false };
        is_too_long(&self.text, window, written) || offered.hunk(uri, &self.rejected).is_ok()
    }
}

/// Why there is no edit by the model, or that the request may be asked again.
enum Nothing {
    Because(Reason),
    GaveWay,
}

impl From<Reason> for Nothing {
    fn from(reason: Reason) -> Nothing {
        Nothing::Because(reason)
    }
}

impl From<ModelSilence> for Nothing {
    fn from(why: ModelSilence) -> Nothing {
        Nothing::Because(Reason::ModelSilent { why })
    }
}

impl Session {
    /// The edit of the model, if there is a model, and rules are silent for this reason.
    pub(super) async fn ask_model(
        self: &Arc<Session>,
        asked: &Asked,
        silent: Reason,
    ) -> Result<OfferedEdit, Reason> {
        let is_silence = matches!(silent, Reason::NothingAlike | Reason::NoOtherPlace);
        let Some(model) = self.services.next_edit_model.as_ref().filter(|_| is_silence) else {
            return Err(silent);
        };
        if let Some(offered) = self.read(|state| state.standing_edit(asked)) {
            return Ok(offered);
        }
        for _ in 0..TRIES_MAX {
            match self.try_model(model, asked).await {
                Ok(offered) => return Ok(offered),
                Err(Nothing::Because(reason)) => return Err(reason),
                Err(Nothing::GaveWay) => {}
            }
        }
        Err(Reason::ModelSilent { why: ModelSilence::GaveWay })
    }

    async fn try_model(
        self: &Arc<Session>,
        model: &Arc<NextEditModel>,
        asked: &Asked,
    ) -> Result<OfferedEdit, Nothing> {
        let rest = self.turn(|state, turn| state.rest(turn, asked))?;
        tokio::time::sleep(rest).await;
        let asking = self.begin_asking(model, asked).await?;
        // A key that came before has changed the text, and one that comes from now on ends this.
        self.turn(|state, turn| state.rest(turn, asked))?;
        let (session, again) = (self.clone(), asked.clone());
        let seen = host::tasks::blocking(move || session.see(&again)).await;
        let seen = seen.map_err(|error| Reason::Failed { message: error.to_string() })?;
        let (sight, forgets) = seen?;
        let sight = Arc::new(sight);
        let first = Window::around(&sight.text, sight.cursor).ok_or(ModelSilence::NoWindow)?;
        let (mut place, mut window) = (Place::Cursor, first);
        let mut found = self.hunk(&asking, &sight, asked, &window).await?;
        if matches!(found, Err(Dropped::Unchanged))
            && let Some(other) = second_place(&sight, &window).await?
        {
            (place, window) = other;
            found = self.hunk(&asking, &sight, asked, &window).await?;
        }
        let (hunk, signs) = found.map_err(|dropped| Nothing::from(silence(dropped)))?;
        let Sight { text, language, .. } = &*sight;
        let file = File { name: &asked.uri, text, language };
        let edit = (NextEdit::by_model(&file, &hunk, place), by_model(&signs, place));
        let (session, asked) = (self.clone(), asked.clone());
        let offered = host::tasks::blocking(move || session.offer_by_model(&asked, edit, forgets));
        let offered =
            offered.await.map_err(|error| Reason::Failed { message: error.to_string() })?;
        Ok(offered?)
    }

    /// Begins a request once no completion is computed. One that is superseded does not, because
    /// it would end the newer one.
    async fn begin_asking(
        self: &Arc<Self>,
        model: &Arc<NextEditModel>,
        asked: &Asked,
    ) -> Result<Asking, Nothing> {
        let asker = Arc::as_ptr(self) as usize;
        for _ in 0..LOOKS_MAX {
            if !self.is_newest(asked) {
                return Err(Reason::Superseded.into());
            }
            if !is_completing(self.services.engine.work())
                && let Some(asking) = model.begin(asker, asked.number)
            {
                return Ok(asking);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(ModelSilence::GaveWay.into())
    }

    /// Asks the model about a window.
    async fn hunk(
        &self,
        model: &Asking,
        sight: &Arc<Sight>,
        asked: &Asked,
        window: &Window,
    ) -> Result<Result<(Hunk, Signs), Dropped>, Nothing> {
        let (uri, place, seen) = (asked.uri.clone(), window.clone(), sight.clone());
        let request = Continuation {
            files: sight.form().blocks(window),
            max_tokens: ANSWER_TOKENS_MAX,
            budget: ANSWER_TIME_MAX,
            enough: Enough::when(move |written| seen.is_enough(&uri, &place, written)),
        };
        let answer = match model.ask(request).await {
            Ok(answer) => answer,
            Err(EngineError::Aborted) if self.is_newest(asked) => return Err(Nothing::GaveWay),
            Err(EngineError::Aborted) => return Err(Reason::Superseded.into()),
            Err(EngineError::OverBudget) => return Err(ModelSilence::CutOff.into()),
            Err(error) => {
                let message = error.to_string();
                let reason = format!("the model for next edits: {message}");
                if self.services.health.report(TroubleSource::NextEditModel, reason.clone()) {
                    tracing::warn!("{reason}");
                }
                return Err(Reason::Failed { message }.into());
            }
        };
        self.services.health.clear(TroubleSource::NextEditModel);
        let (text, is_whole) = (answer.text.as_str(), answer.is_whole);
        let offered = Offered { form: &sight.form(), window, answer: text, is_whole };
        let hunk = offered.hunk(&asked.uri, &sight.rejected);
        Ok(hunk.map(|hunk| {
            let signs = hunk.signs(&answer.logprobs, &sight.changes);
            (hunk, signs)
        }))
    }

    /// Looks at the documents, which takes its time.
    fn see(&self, asked: &Asked) -> Result<(Sight, u64), Reason> {
        let seen = self.search.with_finder(|finder| self.see_with(finder, asked));
        seen.unwrap_or(Err(Reason::Forgotten))
    }

    fn see_with(&self, finder: &mut Finder, asked: &Asked) -> Result<(Sight, u64), Reason> {
        let config = self.services.settings.current();
        let is_private = |path: &str, language: &str| self.is_private(path, language, &config);
        let (forgets, news) = self.turn(|state, _| (state.forgets, state.next_edits.take_news()));
        finder.hear(news, is_private);
        let (documents, cursor) = self.searched(asked, &config);
        let known = |uri: &str| self.read(|state| state.documents.get(uri).cloned());
        let own = known(&asked.uri).ok_or(Reason::OutOfStep)?;
        let opened = self.read(|state| state.next_edits.opened(&asked.uri).cloned());
        let opened = opened.as_ref().unwrap_or(&own.text).to_string();
        let text = own.text.to_string();
        if !is_served(&text) {
            return Err(Reason::ModelSilent { why: ModelSilence::NoWindow });
        }
        let cursor = own.text.char_to_byte(cursor.min(own.text.len_chars()));
        // Another document, if it is not private and never held a secret.
        let quotable = |uri: &str| {
            let document = known(uri)?;
            let text = document.text.to_string();
            let held_secret = self.read(|state| state.prompts.has_held_secret(&document.path));
            let may_quote = !held_secret
                && !is_private(&document.path, &document.language)
                && !secrets::holds_secret(&text);
            may_quote.then(|| (self.path_shown(&document), text))
        };
        let path = self.path_shown(&own);
        let changed = |unit: &Unit| {
            if *unit.file == *asked.uri {
                return Changed::of(unit, &path, Some(&text));
            }
            let held_secret = finder.has_held_secret(&unit.file)
                || [&unit.before, &unit.after].iter().any(|t| secrets::holds_secret(t));
            let (path, text) = quotable(&unit.file).filter(|_| !held_secret)?;
            Changed::of(unit, &path, Some(&text))
        };
        let changes: Vec<Changed> = finder.latest().iter().filter_map(changed).collect();
        let other = documents.iter().skip(1).filter(|other| other.language == own.language);
        let mut quoted = other.filter_map(|other| quotable(&other.uri));
        let sight = Sight {
            path,
            opened,
            text,
            cursor,
            language: Language::named(&own.language),
            shown: finder.shown(&changes),
            changes,
            other: quoted.next(),
            rejected: finder.rejected().clone(),
        };
        Ok((sight, forgets))
    }

    /// The path of a document, as the model reads it.
    fn path_shown(&self, document: &Document) -> String {
        let path = host::addresses::path_in(&document.path);
        let path = Path::new(&*path);
        below(path, self.open_folder_around(path).as_deref(), std::env::home_dir().as_deref())
    }

    /// This may read ignore files.
    fn offer_by_model(
        &self,
        asked: &Asked,
        (edit, by_model): (NextEdit, ByModel),
        forgets: u64,
    ) -> Result<OfferedEdit, Reason> {
        let config = self.services.settings.current();
        let candidate = self.read(|state| EditCandidate::of(state, asked, edit, &[]));
        let mut candidate = candidate.ok_or(Reason::Superseded)?;
        candidate.seen.by_model = Some(by_model);
        candidate.may_store &= !self.is_private(&candidate.path, &candidate.language, &config);
        self.offer_first(asked, vec![candidate], forgets)
    }
}

impl State {
    /// The rest that is left before the model is asked.
    fn rest(&self, turn: &Turn, asked: &Asked) -> Result<Duration, Nothing> {
        if !self.is_current(asked) {
            return Err(Reason::Superseded.into());
        }
        let is_invoked = asked.trigger == Trigger::Invoked;
        if !is_invoked && self.offers.place(&asked.uri).is_some() {
            return Err(ModelSilence::OfferStands.into());
        }
        let document = self.documents.get(&asked.uri).ok_or(Reason::OutOfStep)?;
        let cursor = document.offset(asked.position, self.editor.encoding);
        let cursor = cursor.map_err(|_| Reason::OutOfStep)?;
        let is_line_end = is_line_end(&document.text, cursor);
        match self.next_edits.when_to_ask(is_invoked, is_line_end, turn.now_ms) {
            Decision::After(ms) => Ok(Duration::from_millis(ms)),
            Decision::Never(never) => Err(unasked(never).into()),
        }
    }

    /// The model's edit that is offered in the document, if nothing was typed since, or only what
    /// agrees with it.
    pub(super) fn standing_edit(&self, asked: &Asked) -> Option<OfferedEdit> {
        let live = self.next_edits.live.as_ref().filter(|live| {
            let is_here = *live.edit.file == *asked.uri;
            is_here && live.edit.kind == RuleKind::Model && live.is_all_that_changes()
        })?;
        let document = self.documents.get(&*live.edit.file)?;
        let now = document.text.get_slice(live.place.clone())?.to_string();
        let position = |at| document.position(at, self.editor.encoding);
        agrees(&live.edit, &now).then(|| OfferedEdit {
            id: live.id.clone(),
            uri: live.edit.file.to_string(),
            version: document.version,
            range: (position(live.place.start), position(live.place.end)),
            old: now,
            new: live.edit.new.clone(),
        })
    }
}

/// Returns true if a text that stands where the edit is to be made is what it replaces, or on the
/// way from there to its new text.
fn agrees(edit: &NextEdit, now: &str) -> bool {
    let (head, tail) = affixes(now, &edit.new);
    now == edit.old || now.len() < edit.new.len() && head + tail == now.len()
}

/// The place for a second request. A long file takes its time.
async fn second_place(
    sight: &Arc<Sight>,
    window: &Window,
) -> Result<Option<(Place, Window)>, Reason> {
    let (sight, window) = (sight.clone(), window.clone());
    let find = move || second(&sight.text, &sight.path, &sight.changes, &window);
    host::tasks::blocking(find).await.map_err(|error| Reason::Failed { message: error.to_string() })
}

fn is_line_end(text: &Rope, cursor: usize) -> bool {
    text.get_char(cursor).is_none_or(|next| matches!(next, '\n' | '\r'))
}

fn is_completing(work: Work) -> bool {
    matches!(work, Work::Answering | Work::ReadingPrompt | Work::AnsweringAhead)
}

/// The path of a file below a folder that the editor has opened, or else its own folder and name.
/// Never told are a home, which is called like its user, and what lies above it.
pub(super) fn below(path: &Path, folder: Option<&Path>, home: Option<&Path>) -> String {
    let holds_homes = |folder: &Path| {
        let is_named_so = folder.file_name().is_some_and(|name| name == "home" || name == "Users");
        is_named_so && folder.parent().is_some_and(|parent| parent.file_name().is_none())
    };
    let is_home =
        |folder: &&Path| home == Some(*folder) || folder.parent().is_some_and(holds_homes);
    let its_home = path.ancestors().skip(1).find(is_home);
    let around = folder.or_else(|| path.parent()?.parent());
    let depth = |folder: &&Path| folder.components().count();
    let from = around.into_iter().chain(its_home).max_by_key(depth);
    let rest = from.and_then(|from| path.strip_prefix(from).ok()).unwrap_or(path);
    let names = rest.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    names.collect::<Vec<_>>().join("/")
}

fn silence(dropped: Dropped) -> ModelSilence {
    match dropped {
        Dropped::Unchanged => ModelSilence::Unchanged,
        Dropped::CutOff => ModelSilence::CutOff,
        Dropped::Blank => ModelSilence::Blank,
        Dropped::Malformed => ModelSilence::Malformed,
        Dropped::OnlyAbove => ModelSilence::OnlyAbove,
        Dropped::Rewrites => ModelSilence::Rewrites,
        Dropped::TakesBack => ModelSilence::TakesBack,
        Dropped::DeletesTyped => ModelSilence::DeletesTyped,
        Dropped::OnlyBlanks => ModelSilence::OnlyBlanks,
        Dropped::OnlyImports => ModelSilence::OnlyImports,
        Dropped::RejectedBefore => ModelSilence::RejectedBefore,
    }
}

fn unasked(never: Never) -> ModelSilence {
    match never {
        Never::NothingChanged => ModelSilence::NothingChanged,
        Never::Undone => ModelSilence::Undone,
        Never::JustRejected => ModelSilence::JustRejected,
    }
}
