//! `hone learn --history`: learns what the authors of a repository wrote, holds it against newer
//! changes, and has it serve if it completes more of them than what serves now.

use super::progress::{Part, Progress};
use crate::app::startup::{configured_manifest, engine_config, learner_program, sibling};
use crate::cli::adapter;
use crate::cli::readable;
use adapters::history::{HistoryFiles, HistorySource};
use adapters::registry::adoption::{Basis, Outdated};
use adapters::registry::{HISTORY_JOB, Origin, Registry};
use anyhow::{Context, Result, bail};
use engine::llama::LlamaEngine;
use engine::worker::{EngineHandle, IdleRule};
use engine::{EngineError, leave};
use feedback::episode::Episode;
use feedback::event::AdapterVersion;
use feedback::job::{Base, UpdateReport};
use host::paths::{self, Paths};
use host::platform::process::lower_thread_priority;
use learning::LearnerProgram;
use learning::history::check::{Checked, CheckedText, Right, check};
use learning::history::draw::{Draw, Drawn};
use learning::history::rounds::{HistoryLearner, TEXTS_OF_ROUND};
use learning::history::texts::{Episodes, Written};
use learning::{holdout_check, resources::Resources};
use models::gguf::Gguf;
use models::manifest::{Catalogue, Manifest};
use models::store::Store;
use models::team::frame::Frame;
use models::vocab::Vocab;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use settings::Config;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The order in which the texts are learned, the same in each run that continues.
const SEED: u64 = 1;

/// The number of times that what was learned is compared with what serves, if another adapter
/// begins to serve each time.
const COMPARISONS_MAX: usize = 3;

/// The exit status of a program that Ctrl-C ended, as shells know it.
const INTERRUPTED: u8 = 130;

/// What the user asks for.
pub struct Asked {
    pub folder: PathBuf,
    pub author: Option<String>,
}

pub async fn learn(home: &Paths, asked: Asked, for_programs: bool) -> Result<()> {
    home.create()?;
    let _alone = lock(home)?;
    let config = Config::load(&home.config_file())?;
    let catalogue = Catalogue::load(&home.models())?;
    let manifest = configured_manifest(home, &catalogue, &config)?;
    let model = Store::new(home.models()).verified(manifest)?;
    let bytes = std::fs::metadata(&model).map_or(0, |model| model.len());
    if let Some(reason) = Resources::now().reason_not_to_start(&config.learning, bytes) {
        bail!("{reason}");
    }
    let (registry, trouble) = Registry::open(&home.adapters(), &manifest.sha256);
    registry.check_writable()?;
    if let Some(trouble) = trouble {
        tell!("note: {trouble}");
    }
    // Whatever is forgotten from now on, this run may learn from.
    let generation = registry.generation();
    let folder = asked.folder.canonicalize();
    let folder = folder.with_context(|| asked.folder.display().to_string())?;
    let source =
        HistorySource { folder, author: asked.author, model_sha256: manifest.sha256.clone() };
    let work = Work { home, config: &config, manifest, model: &model, source };
    if !for_programs {
        tokio::spawn(tell_when_interrupted());
    }
    let mut progress = Progress::new(for_programs);
    let learned = work.learn(&mut progress).await?;
    for _ in 0..COMPARISONS_MAX {
        // The daemon may have learned meanwhile.
        let (registry, _) = Registry::open(&home.adapters(), &manifest.sha256);
        let verdict = work.check(&registry, &learned, &mut progress).await?;
        if let Err(why) = &verdict.worth {
            drop(progress);
            work.files().remove()?;
            return say!("nothing is adopted: {why}");
        }
        let compared_with = registry.active();
        match work.adopt(&learned, Basis { compared_with, generation }).await? {
            // It is compared with that one.
            Err(Outdated::Serves(_)) => continue,
            Err(outdated) => bail!("{outdated}"),
            Ok(version) => {
                drop(progress);
                work.files().remove()?;
                return say!(
                    "adopted: v{version} serves from now on. It learned {} changes of {}. {}. \
                     `hone adapter use {compared_with}` takes it back",
                    learned.texts,
                    printable::name(&learned.root.to_string_lossy()),
                    verdict.told
                );
            }
        }
    }
    bail!("another adapter began to serve during each comparison; run the same command again")
}

/// Ends the process at Ctrl-C, and says what becomes of what was learned.
async fn tell_when_interrupted() {
    if tokio::signal::ctrl_c().await.is_ok() {
        tell!("\ninterrupted: the same command continues where this one stopped");
        leave(INTERRUPTED);
    }
}

/// Takes the lock of a run. There is one run at a time, because there is one folder for what an
/// interrupted one has learned.
fn lock(home: &Paths) -> Result<File> {
    let taken = paths::lock::take(&home.history_lock(), Duration::ZERO, paths::lock::pause)?;
    taken.context("another `hone learn --history` is under way")
}

struct Work<'a> {
    home: &'a Paths,
    config: &'a Config,
    manifest: &'a Manifest,
    model: &'a Path,
    source: HistorySource,
}

/// What was learned, before it is checked.
struct Learned {
    root: PathBuf,
    /// How many texts.
    texts: usize,
    /// Its file.
    adapter: PathBuf,
    report: UpdateReport,
    newest: Vec<CheckedText>,
}

/// The texts of a history, as the model gets them.
struct Tokenized {
    root: PathBuf,
    older: Vec<Episode>,
    newest: Vec<CheckedText>,
}

/// Whether what was learned is worth having.
struct Verdict {
    told: String,
    /// An error says why it is not.
    worth: Result<(), String>,
}

impl Work<'_> {
    fn files(&self) -> HistoryFiles {
        HistoryFiles::next_to(&self.home.adapters())
    }

    async fn learn(&self, progress: &mut Progress) -> Result<Learned> {
        progress.at(Part::Reading, 0.0);
        let drawn = self.draw()?;
        progress.at(Part::Reading, 0.5);
        let Tokenized { root, older, newest } = self.tokenize(drawn)?;
        let gguf = Gguf::open(self.model)?;
        let frame =
            Frame::of(&gguf, &self.manifest.sha256).context("Hone does not learn on this model")?;
        let base = Base { path: self.model.to_owned(), sha256: self.manifest.sha256.clone() };
        let program = LearnerProgram { path: learner_program()?, prompt_cache: None };
        let limit_mb = Resources::now().learner_limit_mb(&self.config.learning);
        let hyper = &self.config.lab.ppo;
        let mut learner =
            HistoryLearner::start(&program, self.files(), frame, base, hyper, limit_mb)?;
        let rounds = older.len() / TEXTS_OF_ROUND;
        let (core, report) =
            learner.learn(&older, |done| progress.at(Part::Learning, done / rounds as f64)).await?;
        let first = |text: &Episode| {
            text.completion.prompt.get(text.completion.adapter_from).copied().unwrap_or_default()
        };
        let invocation = Vocab::from_gguf(&gguf)?.shared_control(older.iter().map(first));
        let adapter = self.files().path("learned.gguf");
        learner.adapter(&core, invocation)?.write(&adapter)?;
        let texts = rounds * TEXTS_OF_ROUND;
        let report = UpdateReport {
            job: HISTORY_JOB.into(),
            episodes_used: texts,
            demonstrations: texts,
            // A run that only checks has no report.
            ..report.unwrap_or_default()
        };
        Ok(Learned { root, texts, adapter, report, newest })
    }

    async fn adopt(
        &self,
        learned: &Learned,
        basis: Basis,
    ) -> Result<Result<AdapterVersion, Outdated>> {
        self.files().check_wanted()?;
        let report = Box::new(learned.report.clone());
        let origin = Origin { history: learned.root.clone(), report };
        let base = (self.model, self.manifest.sha256.as_str());
        adapter::adopt(self.home, &learned.adapter, base, Some(origin), basis).await
    }

    fn draw(&self) -> Result<Drawn> {
        let files = self.files();
        let access = readable::access(self.home, self.config)?;
        let program = sibling("hone-rehearse")?;
        let draw = |head: Option<&str>| {
            let (folder, author) = (self.source.folder.as_path(), self.source.author.as_deref());
            Draw { program: &program, folder, author, head }.draw(&access)
        };
        // The commit of an interrupted run may be gone, after a rebase.
        let begun = files.head(&self.source).and_then(|head| draw(Some(&head)).ok());
        if let Some(drawn) = begun {
            return Ok(drawn);
        }
        let drawn = draw(None)?;
        files.begin(&self.source, &drawn.head)?;
        Ok(drawn)
    }

    fn tokenize(&self, drawn: Drawn) -> Result<Tokenized> {
        let engine = self.engine()?;
        let window = self.config.lab.window();
        let make = Episodes { engine: &engine, window, model_sha256: &self.manifest.sha256 };
        let older = drawn.older.into_iter().enumerate();
        let mut older: Vec<Episode> = older.map(|(number, text)| make.of(text, number)).collect();
        older.shuffle(&mut StdRng::seed_from_u64(SEED));
        let checked = |text: Written| {
            let written = text.written.clone();
            let completion = make.of(text, 0).completion;
            let (prompt, adapter_from) = (completion.prompt, completion.adapter_from);
            CheckedText { prompt, adapter_from, written }
        };
        let newest = drawn.newest.into_iter().map(checked).collect();
        Ok(Tokenized { root: drawn.root, older, newest })
    }

    fn engine(&self) -> Result<LlamaEngine> {
        let config = engine_config(self.config, self.model, self.manifest.template);
        LlamaEngine::load(&config).map_err(reason)
    }

    /// Compares what was learned with the model alone and with what serves now.
    async fn check(
        &self,
        registry: &Registry,
        learned: &Learned,
        progress: &mut Progress,
    ) -> Result<Verdict> {
        progress.at(Part::Checking, 0.0);
        let config = engine_config(self.config, self.model, self.manifest.template);
        let build = move || {
            // What the user types comes first.
            lower_thread_priority();
            LlamaEngine::load(&config)
        };
        let engine =
            tokio::task::block_in_place(|| EngineHandle::start(build, |_| {}, IdleRule::default()));
        let engine = engine.map_err(reason)?;
        let (active, candidate) = (registry.active(), registry.next_version());
        let mut adapters: Vec<AdapterVersion> = vec![0, candidate];
        engine.load_adapter(candidate, learned.adapter.clone(), vec![]).await.map_err(reason)?;
        if active > 0 {
            let file = registry.adapter_file(active);
            engine.load_adapter(active, file, vec![candidate]).await.map_err(reason)?;
            adapters.push(active);
        }
        let texts = &learned.newest;
        let share = |done: usize| done as f64 / texts.len() as f64;
        let checked =
            check(&engine, texts, &adapters, |done| progress.at(Part::Checking, share(done)));
        let checked = checked.await.map_err(reason)?;
        // No token was drawn from a policy, so that nothing is known of a KL.
        let refusal = holdout_check::refusal(&engine, candidate, 0, 0.0, vec![]).await;
        Ok(verdict(&checked, texts.len(), active, refusal.map_err(reason)?))
    }
}

/// Returns what the check says. What was learned must give more right characters than the model
/// alone and than what serves now, and must have forgotten no ordinary code.
fn verdict(
    checked: &Checked,
    texts: usize,
    active: AdapterVersion,
    refusal: Option<String>,
) -> Verdict {
    let (base, learned) = (checked.by[0], checked.by[1]);
    let served = checked.by.get(2).copied();
    let mut told = format!(
        "Of {} lines in {texts} newer changes that it did not learn, it completes {} exactly, and \
         the model alone {}{}",
        checked.of.lines,
        learned.lines,
        base.lines,
        gain(base, learned),
    );
    if let Some(served) = served {
        told.push_str(&format!("; v{active} completes {}", served.lines));
    }
    let to_beat = base.characters.max(served.unwrap_or_default().characters);
    let worth = match refusal {
        Some(reason) => Err(reason),
        None if learned.characters > to_beat => Ok(()),
        None => Err(format!("it would not have done better than what serves now. {told}")),
    };
    Verdict { told, worth }
}

/// By how much more characters of right lines there are, if that can be told.
fn gain(base: Right, learned: Right) -> String {
    if base.characters == 0 {
        return String::new();
    }
    let gain = 100.0 * (learned.characters as f64 / base.characters as f64 - 1.0);
    format!(" ({gain:+.0} % characters)")
}

fn reason(error: EngineError) -> anyhow::Error {
    match error {
        EngineError::Failed(reason) => anyhow::anyhow!("{reason}"),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(lines: usize) -> Right {
        Right { lines, characters: 20 * lines }
    }

    fn checked(by: &[usize]) -> Checked {
        Checked { of: right(100), by: by.iter().map(|lines| right(*lines)).collect() }
    }

    #[test]
    fn it_must_do_better_than_the_model_and_than_what_serves() {
        let worth = |by: &[usize]| verdict(&checked(by), 64, 3, None).worth.is_ok();
        assert!(worth(&[10, 11]));
        assert!(!worth(&[10, 10]));
        assert!(worth(&[10, 12, 11]));
        assert!(!worth(&[10, 12, 12]));
        let refusal = Some("it misses 9 of 16".to_owned());
        assert_eq!(
            verdict(&checked(&[1, 50]), 64, 0, refusal).worth.unwrap_err(),
            "it misses 9 of 16"
        );
    }

    #[test]
    fn what_is_told_counts_lines() {
        let told = verdict(&checked(&[10, 12, 11]), 64, 3, None).told;
        assert_eq!(
            told,
            "Of 100 lines in 64 newer changes that it did not learn, it completes 12 exactly, and \
             the model alone 10 (+20 % characters); v3 completes 11"
        );
        assert!(!verdict(&checked(&[0, 1]), 64, 0, None).told.contains('%'));
    }
}
