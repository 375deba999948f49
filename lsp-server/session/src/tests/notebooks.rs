//! Notebooks: what the prompt in a cell reads, and what is recorded of it.

use super::*;
use crate::notebooks::Cell;
use completion::prompt::FimPrompt;

const NOTEBOOK: &str = "file:///p/rates.ipynb";
const NAME: &str = "/p/rates.ipynb";

type Prompts = Arc<Mutex<Vec<FimPrompt>>>;

struct Editor {
    session: Arc<Session>,
    prompts: Prompts,
    _folder: tempfile::TempDir,
}

fn uri(cell: &str) -> String {
    format!("vscode-notebook-cell:/p/rates.ipynb#{cell}")
}

fn cells(names: &[&str]) -> Vec<Cell> {
    // The names of cells of prose begin with an `m`.
    names.iter().map(|name| Cell { uri: uri(name), is_code: !name.starts_with('m') }).collect()
}

impl Editor {
    async fn start(context_chars: usize) -> Editor {
        let prompts = Prompts::default();
        let seen = prompts.clone();
        let generate = Box::new(move |scripted: &mut ScriptedEngine, request: &_, abort: &_| {
            let request: &engine::Request = request;
            seen.lock().push(request.prompt.clone());
            scripted.generate(request, abort)
        });
        let scripted = ScriptedEngine { answers: ANSWERS, learned: None, takes: Duration::ZERO };
        let engine = HookedEngine { generate, ..scripted.hooked() };
        let mut config = Config::default();
        config.gate.enabled = false;
        config.completion.context_chars = Some(context_chars);
        let (folder, session) = session_as_set(config, engine).await;
        Editor { session, prompts, _folder: folder }
    }

    /// Opens a notebook of these cells: their names, languages and texts.
    async fn with(context_chars: usize, all: &[(&str, &str, &str)]) -> Editor {
        let editor = Editor::start(context_chars).await;
        let names: Vec<&str> = all.iter().map(|(name, ..)| *name).collect();
        editor.session.open_notebook(NOTEBOOK.into(), cells(&names));
        for (name, language, text) in all {
            editor.open(name, language, text);
        }
        editor
    }

    fn open(&self, name: &str, language: &str, text: &str) {
        let (path, language) = (NAME.to_owned(), language.to_owned());
        let document = Document { path, language, version: 1, text: text.into() };
        self.session.open(uri(name), document);
    }

    /// The prompt at the end of the first line of a cell.
    async fn prompt(&self, cell: &str) -> FimPrompt {
        let column = {
            // An offer that is on screen would be the answer, without a prompt.
            end_offer(&self.session);
            let state = self.session.state.lock();
            state.documents[&uri(cell)].text.line(0).len_utf16_cu() as u32
        };
        let position = Position { line: 0, column };
        self.session.complete(&uri(cell), position, Trigger::Invoked, None).await.unwrap();
        self.prompts.lock().pop().unwrap()
    }

    fn change(&self, cell: &str, (line, column): (u32, u32), text: &str) {
        let at = Position { line, column };
        self.session.change(&uri(cell), 2, vec![(Some((at, at)), text.into())]).unwrap();
    }
}

fn before(prompt: &FimPrompt) -> String {
    let FimPrompt { prefix, typed, line, healing, .. } = prompt;
    [prefix.as_str(), typed, line, healing].concat()
}

const RATES: &str = "rates = {'de': 4.9}";
const BALANCE: &str = "balance = {}\n";

#[tokio::test]
async fn the_cells_above_stand_before_the_cursor_in_their_order() {
    let all = [
        ("a", "python", RATES),
        ("m1", "markdown", "# Balances"),
        ("b", "python", BALANCE),
        ("q", "sql", "select 1"),
        ("c", "python", "print(ra"),
        ("d", "python", "done()"),
    ];
    let editor = Editor::with(0, &all).await;
    let prompt = editor.prompt("c").await;
    assert_eq!(before(&prompt), format!("{RATES}\n\n{BALANCE}\nprint(ra"));
    assert_eq!(prompt.suffix, "\n\ndone()");
    assert_eq!(before(&editor.prompt("q").await), "select 1", "another language");
    assert_eq!(before(&editor.prompt("m1").await), "# Balances", "another kind");
    assert_eq!(before(&editor.prompt("a").await), RATES);
}

#[tokio::test]
async fn an_edit_below_leaves_the_prompt_above_and_an_edit_in_the_cell_leaves_all_before_it() {
    let below = "x = 1\n".repeat(400);
    let all = [("a", "python", RATES), ("b", "python", "print("), ("c", "python", &below)];
    let editor = Editor::with(0, &all).await;
    let first = editor.prompt("b").await;
    editor.change("c", (399, 0), "y");
    assert_eq!(editor.prompt("b").await, first);
    editor.change("b", (0, 6), "ra");
    let typed = editor.prompt("b").await;
    assert_eq!((&typed.prefix, &typed.suffix), (&first.prefix, &first.suffix));
    editor.change("a", (0, 0), "# ");
    assert_eq!(before(&editor.prompt("b").await), format!("# {RATES}\n\nprint(ra"));
}

#[tokio::test]
async fn cells_are_moved_added_and_removed() {
    let all = [("a", "python", "a"), ("b", "python", "b"), ("c", "python", "c")];
    let editor = Editor::with(0, &all).await;
    let session = &editor.session;
    session.splice_cells(NOTEBOOK, 0, 1, vec![]);
    session.splice_cells(NOTEBOOK, 1, 0, cells(&["a", "d"]));
    editor.open("d", "python", "d");
    assert_eq!(before(&editor.prompt("c").await), "b\n\na\n\nd\n\nc");
    session.close(&uri("b"));
    session.splice_cells(NOTEBOOK, 0, 1, vec![]);
    assert_eq!(before(&editor.prompt("c").await), "a\n\nd\n\nc");
    session.change_cells(NOTEBOOK, vec![Cell { uri: uri("a"), is_code: false }]);
    assert_eq!(before(&editor.prompt("c").await), "d\n\nc");
    session.splice_cells(NOTEBOOK, 90, usize::MAX, vec![]);

    session.close_notebook(NOTEBOOK);
    let error = session.complete(&uri("c"), Position { line: 0, column: 0 }, AUTOMATIC, None).await;
    assert!(matches!(error, Err(SessionError::NotOpen { .. })));
}

#[tokio::test]
async fn other_documents_quote_the_notebook_and_its_latest_changes_as_one_file() {
    let ledger = "def post_entry(ledger, entry):\n    ledger.append(entry)\n";
    let all = [("a", "python", ledger), ("b", "python", "total = 1\n")];
    let editor = Editor::with(2_000, &all).await;
    editor.change("b", (0, 9), "00");
    let text = "def close(ledger, entry):\n    post_entry(ledger, entry)";
    let (path, language) = ("/p/close.py".into(), "python".into());
    let document = Document { path, language, version: 1, text: text.into() };
    editor.session.open("file:///p/close.py".into(), document);
    let end = Position { line: 1, column: 29 };
    editor.session.complete("file:///p/close.py", end, Trigger::Invoked, None).await.unwrap();
    let context = editor.prompts.lock().pop().unwrap().context.unwrap();
    assert_eq!(context.excerpts.len(), 1, "{context:?}");
    assert_eq!(context.excerpts[0].source.path, NAME);
    assert!(context.excerpts[0].text.starts_with("def post_entry"), "{context:?}");
    assert_eq!(context.changes[0].text, "-total = 1\n+total = 100\n");

    editor.change("a", (0, 0), "\n");
    let context = editor.prompt("b").await.context.unwrap();
    assert_eq!(context.path, "rates.py", "the model knows no code under the notebook's ending");
}

/// Every cell was joined with all others for each of them, while all editors waited.
#[tokio::test]
async fn cells_are_joined_once_for_all_of_them() {
    let names: Vec<String> = (0..60).map(|number| format!("{number}")).collect();
    let all: Vec<(&str, &str, &str)> =
        names.iter().map(|name| (name.as_str(), "python", "x = 1\n")).collect();
    let all = [&all[..], &[("q", "sql", ""), ("m", "markdown", "")]].concat();
    let editor = Editor::with(2_000, &all).await;
    let joins = || editor.session.state.lock().notebooks.joins.take();
    assert_eq!(joins(), 0, "none is joined for opening");
    let at = |line| Some((Position { line, column: 0 }, Position { line, column: 0 }));
    let changes = (0..9).map(|_| (at(0), "y".to_owned())).collect();
    editor.session.change(&uri("7"), 2, changes).unwrap();
    assert_eq!(joins(), 1, "for all changes of a message");
    editor.session.close_notebook(NOTEBOOK);
    assert_eq!(joins(), 3, "for each language and kind");
    assert!(editor.session.state.lock().documents.keys().all(|name| !name.contains("ipynb")));
}

/// The paths and ids of what is recorded.
fn recorded(session: &Session) -> Vec<(String, bool)> {
    let mut recorded = vec![];
    let read = &mut |event: Event| {
        if let EventKind::Completion(made) = event.kind {
            recorded.push((made.path, privacy::is_unstored(&made.id)));
        }
        ControlFlow::Continue(())
    };
    session.services.recorder.log().scan(0, read).unwrap();
    recorded
}

#[tokio::test]
async fn a_cell_is_recorded_under_its_notebook_unless_a_cell_above_holds_a_secret() {
    let editor = Editor::with(0, &[("a", "python", RATES), ("b", "python", "print(")]).await;
    editor.prompt("b").await;
    let expected: Vec<_> = ANSWERS.iter().map(|_| (NAME.to_owned(), false)).collect();
    assert_eq!(recorded(&editor.session), expected);

    let secret = format!("password = '{}'", ["hun", "ter2!", "Xy9"].concat());
    let editor = Editor::with(0, &[("a", "python", &secret), ("b", "python", "print(")]).await;
    assert!(before(&editor.prompt("b").await).contains("password"));
    assert_eq!(recorded(&editor.session), []);
}
