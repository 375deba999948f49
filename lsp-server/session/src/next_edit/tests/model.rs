//! Next edits by a model: when it is asked, what of its answers is offered, and what it gives way
//! to. The model is scripted.

use super::{URI, User, open};
use crate::next_edit::OfferedEdit;
use crate::next_edit::model::below;
use crate::request::{Start, Trigger};
use crate::{Session, asking};
use completion::document::Position;
use engine::EngineError;
use engine::continuation::{Continuation, Continued, Enough};
use engine::scripted::ScriptedEngine;
use engine::worker::{EngineHandle, IdleRule};
use feedback::clock::{Clock, ManualClock};
use feedback::event::{EventKind, NextEditKind, NextEditOutcome};
use feedback::log::MemoryLog;
use fixtures::{HookedEngine, eventually};
use host::paths::Paths;
use next_edit::model::{Decision, LastChange};
use parking_lot::Mutex;
use services::next_edit_model::NextEditModel;
use services::reason::{ModelSilence, Reason};
use settings::{Config, NextEdit as Setting};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

const TEXT: &str = "let cart = load();\nlet sum = total(cart);\n\nshow(sum);\nsave(cart);\n";

/// What the model writes behind the cursor, which is in the first line.
const ANSWER: &str = "_all();\nlet sum = total(cart);\n\nshow(sum, 2);\nsave(cart);\n";
const SAME: &str = "_all();\nlet sum = total(cart);\n\nshow(sum);\nsave(cart);\n";

/// The same in a file that continues below the window ([`long`]), and an answer that cannot be
/// read.
const LONG_ANSWER: &str =
    "_all();\nlet sum = total(cart);\n\nshow(sum, 2);\nsave(cart);\nline_0();\n";
const MALFORMED: &str = "<|x";

/// The answer that ends the model's thread.
const PANIC: &str = "<|panic|>";

/// The one answer that the model is not sure of.
const UNSURE: &str = "_all();\nlet sum = total(cart);\n\nshow(sum, 3);\nsave(cart);\n";

/// A model for next edits that gives one answer after the other, and the last one from then on. An
/// empty answer is computed until somebody interrupts it.
fn writer(
    answers: Arc<Mutex<Vec<&'static str>>>,
    asked: Arc<Mutex<Vec<Continuation>>>,
) -> HookedEngine {
    let continued = move |request: &Continuation, abort: &AtomicBool| {
        asked.lock().push(request.clone());
        let mut answers = answers.lock();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0] };
        drop(answers);
        assert_ne!(answer, PANIC);
        while answer.is_empty() {
            if abort.load(Ordering::Relaxed) {
                return Err(EngineError::Aborted);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let logprob = if answer == UNSURE { -4.0 } else { -0.1 };
        let mut ends = answer.match_indices('\n').map(|(at, _)| &answer[..=at]);
        let enough = ends.find(|written| request.enough.is(written));
        let text = enough.unwrap_or(answer);
        Ok(Continued {
            text: text.into(),
            logprobs: (1..=text.len()).map(|end| (end, logprob)).collect(),
            is_whole: enough.is_none(),
            prompt_reused: 0,
            prompt_evaluated: 1,
            tokens: 1,
            took: Duration::ZERO,
        })
    };
    HookedEngine { continued: Box::new(continued), ..scripted().hooked() }
}

fn long() -> String {
    let lines: String = (0..12).map(|at| format!("line_{at}();\n")).collect();
    format!("{TEXT}{lines}")
}

fn scripted() -> ScriptedEngine {
    ScriptedEngine { answers: &["x"], learned: None, takes: Duration::ZERO }
}

/// A user with a model for next edits.
struct Modelled {
    user: User,
    clock: Arc<ManualClock>,
    answers: Arc<Mutex<Vec<&'static str>>>,
    asked: Arc<Mutex<Vec<Continuation>>>,
    loads: Arc<Mutex<usize>>,
    /// A load that has begun waits for it.
    may_load: Arc<AtomicBool>,
}

impl Modelled {
    async fn of(text: &str, answers: &[&'static str]) -> Modelled {
        Modelled::with_gate(text, answers, false).await
    }

    async fn with_gate(text: &str, answers: &[&'static str], is_gated: bool) -> Modelled {
        let folder = tempfile::tempdir().unwrap();
        let home = Paths::at(folder.path().into());
        home.create().unwrap();
        let mut config = Config::default();
        config.completion.next_edit = Setting::On;
        config.gate.enabled = is_gated;
        let answers = Arc::new(Mutex::new(answers.to_vec()));
        let asked: Arc<Mutex<Vec<Continuation>>> = Arc::default();
        let loads: Arc<Mutex<usize>> = Arc::default();
        let may_load = Arc::new(AtomicBool::new(true));
        let (says, notes, counts) = (answers.clone(), asked.clone(), loads.clone());
        let may = may_load.clone();
        let load = move || {
            *counts.lock() += 1;
            while !may.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let (answers, asked) = (says.clone(), notes.clone());
            EngineHandle::start(move || Ok(writer(answers, asked)), |_| (), IdleRule::default())
        };
        let model = Some(Arc::new(NextEditModel::new(Box::new(load))));
        let clock = Arc::new(ManualClock::starting_at(1_000_000));
        let log = Arc::new(MemoryLog::default());
        let (engine, time) = (scripted(), clock.clone());
        let services =
            fixtures::scripted::start_with(&home, config, engine, time, log, model).await;
        let session = Arc::new(Session::new(services));
        let document = open(&session, URI, text);
        let user = User { session, uri: URI.into(), document, _home: folder };
        Modelled { user, clock, answers, asked, loads, may_load }
    }

    /// The user of a text who has just changed its first line.
    async fn after_a_change(answers: &[&'static str]) -> Modelled {
        let mut modelled = Modelled::of(TEXT, answers).await;
        modelled.user.replace(0, "load", "load_all");
        modelled
    }

    /// Returns what is offered at the first line, or why nothing is.
    async fn ask(&self) -> Result<OfferedEdit, Reason> {
        let at = Position { line: 0, column: 15 };
        let (uri, version) = (&self.user.uri, Some(self.user.document.version));
        self.user.session.next_edit(uri, version, at, Trigger::Automatic).await
    }

    /// Asks the same in a task of its own.
    fn asking(&self) -> JoinHandle<Result<OfferedEdit, Reason>> {
        self.asking_by(Trigger::Automatic)
    }

    fn asking_by(&self, trigger: Trigger) -> JoinHandle<Result<OfferedEdit, Reason>> {
        let (session, version) = (self.user.session.clone(), self.user.document.version);
        let at = Position { line: 0, column: 15 };
        tokio::spawn(async move { session.next_edit(URI, Some(version), at, trigger).await })
    }

    /// When the model is to be asked, were the cursor at the end of a line.
    fn rest_at_line_end(&self) -> Decision {
        self.user.session.turn(|state, turn| state.next_edits.when_to_ask(false, true, turn.now_ms))
    }

    fn model(&self) -> &Arc<NextEditModel> {
        self.user.session.services.next_edit_model.as_ref().unwrap()
    }

    async fn silence(&self) -> ModelSilence {
        match self.ask().await {
            Err(Reason::ModelSilent { why }) => why,
            other => panic!("{other:?}"),
        }
    }

    fn times_asked(&self) -> usize {
        self.asked.lock().len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_rule_fits_the_edit_of_the_model_is_offered_and_recorded() {
    let mut modelled = Modelled::of(TEXT, &[ANSWER]).await;
    assert_eq!(modelled.silence().await, ModelSilence::NothingChanged);
    assert_eq!(*modelled.loads.lock(), 0, "the model is loaded when it is asked");
    modelled.user.replace(0, "load", "load_all");
    let edit = modelled.ask().await.unwrap();
    assert_eq!((edit.range.0.line, &*edit.old, &*edit.new), (3, "", ", 2"));
    let asked = modelled.asked.lock()[0].clone();
    assert!(asked.files[0].starts_with("src/a.rs\nlet cart = load();\n"), "as it was opened");
    assert!(asked.files[1].contains("updated:\nlet cart = load_all();"), "{}", asked.files[1]);
    modelled.user.make(&edit);
    let kind = modelled.user.events().into_iter().find_map(|event| match event {
        EventKind::NextEdit(edit) => Some((edit.kind, edit.line)),
        _ => None,
    });
    assert_eq!(kind, Some((NextEditKind::Model, 4)));
    assert_eq!(modelled.user.outcomes(), [NextEditOutcome::Accepted]);
    assert_eq!(*modelled.loads.lock(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_ends_where_it_only_copies_or_is_too_long() {
    let written = "_all(1);\nlet sum = total(cart);\n\nshow(sum);\n";
    let mut modelled = Modelled::after_a_change(&[written]).await;
    assert_eq!(modelled.ask().await.unwrap().new, "1");
    let enough = modelled.asked.lock()[0].enough.clone();
    assert!(enough.is(written) && !enough.is("_all(1);\nlet sum = total(cart);\n\n"));
    let endless: &'static str = "x();\n".repeat(40).leak();
    modelled = Modelled::after_a_change(&[endless]).await;
    assert_eq!(modelled.silence().await, ModelSilence::CutOff);
    let enough = modelled.asked.lock()[0].enough.clone();
    assert!(enough.is(endless) && !enough.is(&endless[..endless.len() / 2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_is_not_sure_of_is_held_back() {
    for (answer, is_sure) in [(ANSWER, true), (UNSURE, false)] {
        let mut modelled = Modelled::with_gate(TEXT, &[answer], true).await;
        modelled.user.replace(0, "load", "load_all");
        match modelled.ask().await {
            Ok(_) => assert!(is_sure),
            Err(Reason::HeldBack { weighed, .. }) => {
                assert!(!is_sure);
                assert_eq!(weighed[0], "mean log-prob of the changed tokens");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_fits_comes_first() {
    let lines = "file.load(1);\nfile.load(2);\nfile.load(3);\n";
    let mut modelled = Modelled::of(lines, &["file.other(9);\n"]).await;
    modelled.user.replace(0, "load", "fetch");
    modelled.user.replace(1, "load", "fetch");
    assert_eq!(modelled.ask().await.unwrap().new, "fetch");
    assert_eq!(modelled.times_asked(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_changes_nothing_is_asked_once_more_elsewhere() {
    let modelled = Modelled::after_a_change(&[SAME]).await;
    assert_eq!(modelled.silence().await, ModelSilence::Unchanged, "the file is short");
    assert_eq!(modelled.times_asked(), 1);
    let mut modelled = Modelled::of(&long(), &[]).await;
    let first = "_all();\nlet sum = total(cart);\n\nshow(sum);\nsave(cart);\nline_0();\n";
    let second = "line_0();\nline_1(1);\nline_2();\nline_3();\nline_4();\nline_5();\nline_6();\n";
    *modelled.answers.lock() = vec![first, second];
    modelled.user.replace(0, "load", "load_all");
    let edit = modelled.ask().await.unwrap();
    assert_eq!(modelled.times_asked(), 2);
    assert_eq!((edit.range.0.line, &*edit.new), (6, "1"));
    let asked = modelled.asked.lock();
    assert_eq!(asked[0].files[..2], asked[1].files[..2], "what was computed of them stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_writes_nothing_is_not_asked_elsewhere() {
    let lines: String = (0..12).map(|at| format!("line_{at}();\n")).collect();
    let mut modelled = Modelled::of(&format!("{TEXT}{lines}"), &["\n"]).await;
    modelled.user.replace(0, "load", "load_all");
    assert_eq!(modelled.silence().await, ModelSilence::Blank);
    assert_eq!(modelled.times_asked(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_undo_and_after_a_reject_the_model_is_not_asked() {
    let mut modelled = Modelled::after_a_change(&[ANSWER]).await;
    let edit = modelled.ask().await.unwrap();
    modelled.user.session.next_edit_shown(&edit.id);
    modelled.user.session.rejected(&edit.id, feedback::event::Outcome::RejectedEsc);
    assert_eq!(modelled.silence().await, ModelSilence::JustRejected);
    modelled.clock.advance(5_000);
    assert_eq!(modelled.silence().await, ModelSilence::RejectedBefore);
    modelled.user.replace(0, "load_all", "load");
    assert_eq!(modelled.silence().await, ModelSilence::Undone);
    let asked = modelled.times_asked();
    modelled.user.replace(0, "load", "load_all");
    assert_eq!(modelled.silence().await, ModelSilence::Undone, "it was done again");
    assert_eq!(modelled.times_asked(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typo_that_is_taken_back_is_no_undo() {
    let mut modelled = Modelled::after_a_change(&[ANSWER]).await;
    let at = |column| Position { line: 0, column };
    modelled.user.change((at(19), at(19)), "x");
    modelled.user.change((at(19), at(20)), "");
    assert_eq!(modelled.ask().await.unwrap().new, ", 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_is_known_after_much_typing_elsewhere_and_the_client_knows_it_better() {
    const OTHER: &str = "file:///src/b.rs";
    let mut modelled = Modelled::after_a_change(&[ANSWER]).await;
    open(&modelled.user.session, OTHER, "");
    for version in 2..50 {
        let end = Position { line: 0, column: version as u32 - 2 };
        let key = (Some((end, end)), "x".to_owned());
        modelled.user.session.change(OTHER, version, vec![key]).unwrap();
    }
    modelled.user.replace(0, "load_all", "load");
    assert_eq!(modelled.silence().await, ModelSilence::Undone);
    let version = modelled.user.document.version;
    let tell = |version, change| modelled.user.session.tell_last_change(URI, version, change);
    tell(Some(version - 1), LastChange::Paste);
    assert_eq!(modelled.silence().await, ModelSilence::Undone, "that was another text");
    tell(Some(version), LastChange::Paste);
    assert_eq!(modelled.rest_at_line_end(), Decision::After(0));
    tell(None, LastChange::Undo);
    assert_eq!(modelled.silence().await, ModelSilence::Undone);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_stays_while_what_is_typed_agrees_with_it() {
    let mut modelled = Modelled::after_a_change(&[ANSWER]).await;
    let edit = modelled.ask().await.unwrap();
    assert_eq!(modelled.ask().await.as_ref(), Ok(&edit), "nothing was typed");
    let at = |column| Position { line: 3, column };
    modelled.user.change((at(8), at(8)), ",");
    let rest = modelled.ask().await.unwrap();
    assert_eq!((&rest.id, &*rest.old, &*rest.new), (&edit.id, ",", ", 2"));
    assert_eq!(modelled.times_asked(), 1);
    modelled.user.change((at(9), at(9)), "x");
    let _ = modelled.ask().await;
    assert_eq!(modelled.times_asked(), 2, "that was something else");
    let mut modelled = Modelled::after_a_change(&[ANSWER]).await;
    modelled.ask().await.unwrap();
    modelled.user.replace(4, "save", "keep");
    let _ = modelled.ask().await;
    assert_eq!(modelled.times_asked(), 2, "another change says more");
}

/// It was offered anew at each pause, and whoever never looked at it was never understood.
#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_is_left_alone_stays_the_same_until_it_is_passed_by() {
    let mut modelled = Modelled::of(&long(), &[LONG_ANSWER]).await;
    modelled.user.replace(0, "load", "load_all");
    let edit = modelled.ask().await.unwrap();
    modelled.user.session.next_edit_shown(&edit.id);
    modelled.user.replace(12, "line_7", "alpha");
    let again = modelled.ask().await.unwrap();
    assert_eq!((&again.id, again.range, &*again.new), (&edit.id, edit.range, ", 2"));
    assert_eq!(modelled.ask().await.unwrap().id, edit.id);
    assert_eq!(modelled.times_asked(), 2, "nothing was typed since");
    assert_eq!(modelled.user.outcomes(), []);
    modelled.user.replace(14, "line_9()", "if done { stop() }");
    assert_eq!(modelled.user.outcomes(), [NextEditOutcome::PassedBy]);
    assert_eq!(modelled.silence().await, ModelSilence::RejectedBefore);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reject_counts_although_the_edit_was_withdrawn_meanwhile() {
    use NextEditOutcome::{Rejected, Superseded};
    let mut modelled = Modelled::of(&long(), &[LONG_ANSWER, MALFORMED, LONG_ANSWER]).await;
    modelled.user.replace(0, "load", "load_all");
    let edit = modelled.ask().await.unwrap();
    modelled.user.session.next_edit_shown(&edit.id);
    modelled.user.replace(12, "line_7", "alpha");
    assert_eq!(modelled.silence().await, ModelSilence::Malformed);
    assert_eq!(modelled.user.outcomes(), [Superseded], "nothing is offered in its place");
    for _ in 0..2 {
        modelled.user.session.rejected(&edit.id, feedback::event::Outcome::RejectedEsc);
        assert_eq!(modelled.user.outcomes(), [Superseded, Rejected]);
    }
    assert_eq!(modelled.silence().await, ModelSilence::JustRejected);
    modelled.clock.advance(5_000);
    assert_eq!(modelled.silence().await, ModelSilence::RejectedBefore);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_whose_rest_is_made_by_the_client_was_accepted() {
    let mut modelled = Modelled::after_a_change(&[ANSWER]).await;
    let edit = modelled.ask().await.unwrap();
    let at = |column| Position { line: 3, column };
    modelled.user.change((at(8), at(8)), ",");
    let rest = modelled.ask().await.unwrap();
    modelled.user.make(&rest);
    assert_eq!(modelled.user.outcomes(), [NextEditOutcome::MadeByHand]);
    assert_eq!(modelled.rest_at_line_end(), Decision::After(2_000));
    modelled.user.session.accepted(&edit.id).unwrap();
    assert_eq!(modelled.user.outcomes(), [NextEditOutcome::MadeByHand]);
    assert_eq!(modelled.rest_at_line_end(), Decision::After(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_ends_what_the_model_computes() {
    let mut modelled = Modelled::after_a_change(&["", ANSWER]).await;
    let asking = modelled.asking();
    eventually("the model is asked", || modelled.times_asked() == 1).await;
    modelled.user.replace(0, "cart", "carts");
    assert_eq!(asking.await.unwrap(), Err(Reason::Superseded));
    assert_eq!(modelled.times_asked(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_goes_first_and_the_model_is_asked_again() {
    let modelled = Modelled::after_a_change(&["", ANSWER]).await;
    let asking = modelled.asking();
    eventually("the model is asked", || modelled.times_asked() == 1).await;
    modelled.user.session.services.touch();
    assert_eq!(asking.await.unwrap().unwrap().new, ", 2");
    assert_eq!(modelled.times_asked(), 2);
}

/// An editor does not cancel what it asked before.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_superseded_while_it_rests_leaves_the_newer_one_alone() {
    let mut modelled = Modelled::after_a_change(&["", ANSWER]).await;
    let number = || modelled.user.session.read(|state| state.next_edits.asked);
    let before = number();
    let resting = modelled.asking();
    eventually("the first request has come", || number() > before).await;
    let newer = modelled.asking_by(Trigger::Invoked);
    eventually("the model is asked", || modelled.times_asked() == 1).await;
    assert_eq!(resting.await.unwrap(), Err(Reason::Superseded));
    modelled.user.replace(0, "cart", "carts");
    assert_eq!(newer.await.unwrap(), Err(Reason::Superseded));
    assert_eq!(modelled.times_asked(), 1);
}

#[test]
fn a_path_tells_files_apart_and_not_who_the_user_is() {
    let told = |path: &str, folder: Option<&str>| {
        below(Path::new(path), folder.map(Path::new), Some(Path::new("/data/users/ada")))
    };
    assert_eq!(told("/home/ada/shop/src/cart/mod.rs", Some("/home/ada/shop")), "src/cart/mod.rs");
    assert_eq!(told("/home/ada/shop/src/cart/mod.rs", None), "cart/mod.rs");
    assert_eq!(told("/data/users/ada/a.rs", None), "a.rs", "the home of this user");
    assert_eq!(told("/data/users/ada/shop/a.rs", Some("/")), "shop/a.rs");
    assert_eq!(told("/home/eva/shop/a.rs", Some("/home")), "shop/a.rs", "of another machine");
    assert_eq!(told("/Users/eva/a.rs", None), "a.rs");
    assert_eq!(told("/srv/home/list/a.rs", Some("/srv")), "home/list/a.rs", "no one's home");
    assert_eq!(told("/a.rs", None), "a.rs");
    assert_eq!(told("Untitled-1", None), "Untitled-1");
}

/// Its request came before the model began, and it waited for a key.
#[tokio::test(flavor = "multi_thread")]
async fn a_completion_that_was_asked_for_earlier_goes_first_too() {
    let modelled = Modelled::after_a_change(&["", ANSWER]).await;
    let session = modelled.user.session.clone();
    let at = Position { line: 0, column: 15 };
    let Start::Pending(mut pending) = session.begin(URI, at, Trigger::Invoked, None).unwrap()
    else {
        panic!("the engine is not asked")
    };
    let asking = modelled.asking();
    eventually("the model is asked", || modelled.times_asked() == 1).await;
    asking::ask(&session.services, &mut pending).await.unwrap();
    assert_eq!(asking.await.unwrap().unwrap().new, ", 2");
    assert_eq!(modelled.times_asked(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_never_has_its_turn_is_not_asked() {
    let modelled = Modelled::after_a_change(&[ANSWER]).await;
    let completing = modelled.model().give_way();
    assert_eq!(modelled.silence().await, ModelSilence::GaveWay);
    assert_eq!(modelled.times_asked(), 0);
    drop(completing);
    assert!(modelled.ask().await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_interrupted_asks_for_nothing_more() {
    let modelled = Modelled::of(TEXT, &[ANSWER]).await;
    let budget = Duration::from_secs(60);
    let files = || Continuation {
        files: vec!["a".into()],
        max_tokens: 1,
        budget,
        enough: Enough::default(),
    };
    let is_aborted =
        |answer: Result<Continued, EngineError>| matches!(answer, Err(EngineError::Aborted));
    let model = modelled.model();
    let one = model.begin(1, 1).unwrap();
    one.ask(files()).await.unwrap();
    modelled.user.session.services.touch();
    assert!(is_aborted(one.ask(files()).await));
    let (one, other) = (model.begin(1, 2).unwrap(), model.begin(2, 1).unwrap());
    one.ask(files()).await.unwrap();
    other.ask(files()).await.unwrap();
    let newer = model.begin(1, 3).unwrap();
    assert!(model.begin(1, 2).is_none(), "one that comes late ends no newer one");
    assert!(is_aborted(one.ask(files()).await), "the same editor asks for something else");
    other.ask(files()).await.unwrap();
    let completing = model.give_way();
    assert!(model.begin(2, 2).is_none());
    drop(completing);
    assert!(is_aborted(newer.ask(files()).await));
    assert!(is_aborted(other.ask(files()).await));
    assert_eq!(modelled.times_asked(), 4);
}

/// Neither waits for the other: the model may take long, and what is to be forgotten must go.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_while_the_model_is_loaded_is_not_computed() {
    let modelled = Modelled::after_a_change(&[ANSWER]).await;
    modelled.may_load.store(false, Ordering::Relaxed);
    let asking = modelled.asking();
    eventually("the model is being loaded", || *modelled.loads.lock() == 1).await;
    modelled.user.session.forget();
    modelled.model().unload().unwrap();
    modelled.may_load.store(true, Ordering::Relaxed);
    assert_eq!(asking.await.unwrap(), Err(Reason::Superseded));
    assert_eq!(modelled.times_asked(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_thread_has_ended_is_loaded_again() {
    let modelled = Modelled::after_a_change(&[PANIC, ANSWER]).await;
    let failed = modelled.ask().await;
    assert!(matches!(failed, Err(Reason::Failed { .. })), "{failed:?}");
    assert_eq!(modelled.ask().await.unwrap().new, ", 2");
    assert_eq!(*modelled.loads.lock(), 2);
}

/// The change in it is far from the secret, and has none itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_holds_a_secret_is_not_quoted() {
    const OTHER: &str = "file:///src/b.rs";
    for (key, is_quoted) in [("AKIAIOSFODNN7EXAMPLQ", false), ("of the door", true)] {
        let mut modelled = Modelled::of(TEXT, &[ANSWER]).await;
        let text = format!("let key = \"{key}\";\nlet canary = start();\n");
        let session = &modelled.user.session;
        open(session, OTHER, &text);
        let at = |column| Position { line: 1, column };
        session.change(OTHER, 2, vec![(Some((at(13), at(18))), "begin".into())]).unwrap();
        modelled.user.replace(0, "load", "load_all");
        modelled.ask().await.unwrap();
        let shown = modelled.asked.lock()[0].files.concat();
        assert_eq!(shown.contains("canary"), is_quoted, "{shown}");
    }
}

/// What is left of the key afterwards looks like any other text, and so does each changed line.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_taken_out_line_by_line_is_not_shown_elsewhere() {
    const OTHER: &str = "file:///src/b.rs";
    for (kind, is_shown) in [("PRIVATE KEY", false), ("CERTIFICATE", true)] {
        let mut modelled = Modelled::of(TEXT, &[ANSWER]).await;
        let session = &modelled.user.session;
        let key = format!("-----BEGIN {kind}-----\ncanary\n-----END {kind}-----\n");
        open(session, OTHER, &key);
        for (version, line) in [(2, 1), (3, 0), (4, 2)] {
            let at = |column| Position { line, column };
            let all = Some((at(0), at(99)));
            session.change(OTHER, version, vec![(all, format!("gone_{line}"))]).unwrap();
        }
        modelled.user.replace(0, "load", "load_all");
        modelled.ask().await.unwrap();
        let shown = modelled.asked.lock()[0].files.concat();
        assert_eq!(shown.contains("canary"), is_shown, "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_be_loaded_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let home = Paths::at(folder.path().into());
    home.create().unwrap();
    let mut config = Config::default();
    config.completion.next_edit = Setting::On;
    let load = || Err(EngineError::Failed("the file is gone".into()));
    let model = Some(Arc::new(NextEditModel::new(Box::new(load))));
    let clock = Arc::new(ManualClock::starting_at(0));
    let log = Arc::new(MemoryLog::default());
    let services =
        fixtures::scripted::start_with(&home, config, scripted(), clock, log, model).await;
    let session = Arc::new(Session::new(services));
    let document = open(&session, URI, TEXT);
    let mut user = User { session, uri: URI.into(), document, _home: folder };
    user.replace(0, "load", "load_all");
    assert_eq!(user.ask(0).await, None);
    assert_eq!(user.why(), Reason::Failed { message: "the file is gone".into() });
    let told = user.session.services.health.latest();
    assert_eq!(told.as_deref(), Some("the model for next edits: the file is gone"));
}
