//! What may be neither quoted nor stored is in no prompt of another document and in no event,
//! whatever way it could take there: pieces of open and closed documents, imports, changes before
//! and after, a context that is kept, prompts and answers in the document itself, and what is typed
//! instead.

use super::*;
use completion::prompt::FimPrompt;
use privacy::forget_scope::Scope;
use std::path::Path;

/// A name that stands in the private document alone.
const CANARY: &str = "north_sea_harbour";

/// The same after an edit.
const EDITED: &str = "south_sea_harbour";

/// Why a document is private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// It is not, which shows that the walk reaches every prompt.
    Control,
    Language,
    Name,
    Setting,
    HoneIgnore,
    /// The user has removed it with `hone forget`, and does not open it again.
    Forgotten,
    /// The setting is set while an offer is on screen.
    LaterSetting,
    /// A secret stands in it.
    Secret,
    /// An edit has just taken a secret out, or put one in.
    RemovedSecret,
    AddedSecret,
}

impl Why {
    const ALL: [Why; 8] = [
        Why::Language,
        Why::Name,
        Why::Setting,
        Why::HoneIgnore,
        Why::Forgotten,
        Why::Secret,
        Why::RemovedSecret,
        Why::AddedSecret,
    ];

    fn file(self) -> &'static str {
        if self == Why::Name { ".env.local" } else { "settings.py" }
    }

    fn language(self) -> &'static str {
        if self == Why::Language { "dotenv" } else { "python" }
    }
}

fn secret() -> String {
    format!("    password = \"{}\"\n", ["Zk3m", "Pq9x", "Lw2v"].concat())
}

/// The private document as it is on the disk, and when it is opened.
fn private_text(why: Why) -> String {
    let has_secret = matches!(why, Why::Secret | Why::RemovedSecret);
    let secret = if has_secret { secret() } else { String::new() };
    format!("def open_pool(user, password):\n{secret}    connect_pool(user)\n    {CANARY}()\n")
}

const HERE: &str = "from settings import open_pool\n\ndef start(user, password):\n    \
                    open_pool(user, password)\n    connect_pool(user)\n    \n";

/// All of a prompt as text.
fn text_of(prompt: &FimPrompt) -> String {
    let FimPrompt { prefix, typed, line, healing, suffix, context, .. } = prompt;
    let quoted = context.iter().flat_map(|context| context.shown());
    let quoted: String = quoted.map(|excerpt| excerpt.text.as_str()).collect();
    // What is quoted stands behind the document's own text.
    [prefix.as_str(), typed, line, healing, suffix, QUOTED, &quoted].concat()
}

const QUOTED: &str = "\n--- quoted ---\n";

struct Walk {
    session: Arc<Session>,
    prompts: Arc<Mutex<Vec<String>>>,
    here: String,
    private: String,
    folder: tempfile::TempDir,
    _home: tempfile::TempDir,
}

impl Walk {
    async fn begin(why: Why) -> Walk {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
        write(why.file(), &private_text(why));
        write("pool.py", HERE);
        if why == Why::HoneIgnore {
            write(".honeignore", "settings.py\n");
        }
        let mut config = Config::default();
        config.gate.enabled = false;
        config.completion.context_chars = Some(4_000);
        if why == Why::Setting {
            config.privacy.ignore = vec!["settings.py".into()];
        }
        let prompts = Arc::new(Mutex::new(vec![]));
        let seen = prompts.clone();
        let generate = Box::new(move |scripted: &mut ScriptedEngine, request: &_, abort: &_| {
            let request: &engine::Request = request;
            let text = text_of(&request.prompt);
            let mut generated = scripted.generate(request, abort)?;
            generated.prompt = text.bytes().map(u32::from).collect();
            seen.lock().push(text);
            Ok(generated)
        });
        let scripted = ScriptedEngine { answers: ANSWERS, learned: None, takes: Duration::ZERO };
        let engine = HookedEngine { generate, ..scripted.hooked() };
        let (home, session) = session_as_set(config, engine).await;
        // Imports are read below an open folder.
        session.open_folder(&root);
        let path = |name: &str| root.join(name).to_string_lossy().into_owned();
        let (here, private) = (path("pool.py"), path(why.file()));
        if why == Why::Forgotten {
            let scope = Scope::File { names: vec![private.clone()] };
            session.services.access.forgotten.add(&scope).unwrap();
        }
        Walk { session, prompts, here, private, folder, _home: home }
    }

    fn open(&self, path: &str, language: &str, text: &str) {
        let document = Document {
            path: path.into(),
            language: language.into(),
            version: 1,
            text: text.into(),
        };
        self.session.open(path.to_owned(), document);
        self.session.look_at_imports(path);
    }

    fn replace(&self, path: &str, from: &str, to: &str) {
        let range = {
            let state = self.session.state.lock();
            let document = &state.documents[path];
            let text = document.text.to_string();
            let start = text.find(from).expect("it is there");
            let place = |at: usize| document.position(text[..at].chars().count(), Encoding::Utf16);
            (place(start), place(start + from.len()))
        };
        self.session.change(path, 2, vec![(Some(range), to.to_owned())]).unwrap();
    }

    /// Asks at the end of a line, and writes something else than the offer.
    async fn write_at(&self, path: &str, line: u32, instead: &str) {
        let position = {
            end_offer(&self.session);
            let state = self.session.state.lock();
            let length = state.documents[path].text.line(line as usize).len_utf16_cu() as u32;
            Position { line, column: length.saturating_sub(1) }
        };
        self.session.complete(path, position, Trigger::Invoked, None).await.unwrap();
        for text in [instead, "\n"] {
            self.session.change(path, 3, vec![(Some((position, position)), text.into())]).unwrap();
        }
    }

    /// All ways on which a text of the private document could get anywhere.
    async fn walk(&self, why: Why) {
        let text = private_text(why);
        // The document is known from the disk first, unless only its editor knows why it is
        // private.
        if !matches!(why, Why::Language | Why::AddedSecret) {
            self.open(&self.here, "python", HERE);
            self.write_at(&self.here, 5, "x = 1").await;
        }
        if why != Why::Forgotten {
            self.walk_through_private(why, &text).await;
        }
        self.open(&self.here, "python", HERE);
        for line in [3, 4, 5] {
            self.write_at(&self.here, line, "y = 2").await;
        }
        self.session.close(&self.private);
        // A context that is kept, and one that is chosen anew.
        self.write_at(&self.here, 5, "z = 3").await;
        self.session.close(&self.here);
        self.open(&self.here, "python", HERE);
        self.write_at(&self.here, 5, "z = 3").await;
        self.session.end();
    }

    /// Opens the private document, and changes it.
    async fn walk_through_private(&self, why: Why, text: &str) {
        let secret = secret();
        self.open(&self.private, why.language(), text);
        match why {
            Why::RemovedSecret => {
                self.replace(&self.private, &secret, "    password = load()\n");
            }
            Why::AddedSecret => {
                self.replace(
                    &self.private,
                    "    connect_pool",
                    &format!("{secret}    connect_pool"),
                );
            }
            _ => {}
        }
        self.replace(&self.private, CANARY, EDITED);
        self.write_at(&self.private, 1, &format!("{CANARY} = 2")).await;
    }

    /// The prompts of documents that are not private.
    fn prompts_elsewhere(&self) -> Vec<String> {
        let prompts = self.prompts.lock();
        let is_elsewhere = |prompt: &&String| {
            let own = prompt.split(QUOTED).next().unwrap_or_default();
            own.contains("from settings import")
        };
        prompts.iter().filter(is_elsewhere).cloned().collect()
    }

    /// Everything that is in the log, as text.
    fn log(&self) -> String {
        let text = |ids: &[u32]| ids.iter().map(|id| *id as u8 as char).collect::<String>();
        let mut all = String::new();
        let read = &mut |event: Event| {
            all += &serde_json::to_string(&event).unwrap();
            match &event.kind {
                EventKind::Completion(made) => {
                    all += &text(&made.prompt);
                    all += &text(&made.tokens.iter().map(|token| token.id).collect::<Vec<_>>());
                }
                EventKind::Replacement { tokens, .. } => all += &text(tokens),
                _ => {}
            }
            ControlFlow::Continue(())
        };
        self.session.services.recorder.log().scan(0, read).unwrap();
        all
    }
}

fn holds_canary(text: &str) -> bool {
    [CANARY, EDITED].iter().any(|canary| text.contains(canary))
}

#[tokio::test]
async fn nothing_private_is_quoted_or_stored_on_any_way() {
    for why in Why::ALL {
        let walk = Walk::begin(why).await;
        walk.walk(why).await;
        let elsewhere = walk.prompts_elsewhere();
        assert!(elsewhere.len() >= 5, "{why:?}: {}", elsewhere.len());
        for prompt in elsewhere {
            let is_secret = prompt.contains("Lw2v");
            assert!(!is_secret && !holds_canary(&prompt), "{why:?} is quoted:\n{prompt}");
        }
        let log = walk.log();
        assert!(log.contains("pool.py"), "{why:?}: other documents are recorded");
        // Once its secret is gone, the document itself is recorded like any other.
        let is_canary = why != Why::RemovedSecret && holds_canary(&log);
        assert!(!log.contains("Lw2v") && !is_canary, "{why:?} is stored:\n{log}");
        assert!(Path::new(&walk.private).starts_with(walk.folder.path().canonicalize().unwrap()));
    }
}

/// Without a reason, the same walk quotes and stores the document in each of these ways.
#[tokio::test]
async fn the_walk_reaches_prompts_and_the_log() {
    let walk = Walk::begin(Why::Control).await;
    walk.walk(Why::Control).await;
    let elsewhere = walk.prompts_elsewhere();
    assert!(elsewhere.iter().any(|prompt| prompt.contains("def open_pool")), "its pieces");
    assert!(elsewhere.iter().any(|prompt| prompt.contains(&format!("-    {CANARY}"))), "before");
    assert!(elsewhere.iter().any(|prompt| prompt.contains(&format!("+    {EDITED}"))), "after");
    let log = walk.log();
    assert!(log.contains(CANARY) && log.contains(EDITED), "{log}");
}

/// A rule holds for what is written from then on, also where an offer was made before.
#[tokio::test]
async fn what_is_written_instead_of_an_older_offer_is_held_to_a_later_rule() {
    for why in [Why::Control, Why::LaterSetting] {
        let walk = Walk::begin(why).await;
        walk.open(&walk.private, "python", &format!("def {EDITED}():\n    \n"));
        let position = Position { line: 1, column: 4 };
        let (private, session) = (walk.private.as_str(), &walk.session);
        let offered = session.complete(private, position, Trigger::Invoked, None).await.unwrap();
        session.shown(&offered.suggestions[0].id);
        if why == Why::LaterSetting {
            let mut config = (**session.services.settings.current()).clone();
            config.privacy.ignore = vec!["settings.py".into()];
            session.services.settings.replace(config);
            session.follow_rules();
        }
        let written = format!("{CANARY} = 2");
        let end = Position { line: 1, column: position.column + written.len() as u32 };
        for (at, text) in [(position, written), (end, "\n".into())] {
            session.change(private, 3, vec![(Some((at, at)), text)]).unwrap();
        }
        session.end();
        assert_eq!(walk.log().contains(CANARY), why == Why::Control, "{why:?}");
    }
}
