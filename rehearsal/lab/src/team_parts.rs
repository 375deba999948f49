//! Measures what the part of an adapter that a team shares is worth, and the private part next to
//! it.
//!
//!   hone-lab team-parts --model base.gguf --rounds 4 \
//!     --member rich=rich.past.jsonl,rich.later.jsonl --member … --newcomer ann=ann.later.jsonl
//!
//! The episodes are those of `hone-lab texts`. In each round every member learns on the next 16 of
//! their texts with all but the shared part frozen, the change is clipped and rounded as it is
//! before it leaves a machine, and the mean is the next version. Flower and its masks are left out:
//! they add whole numbers exactly. A line is right if greedy decoding gives all of it.
//!
//! `--coarse` and `--noise` may be given several times. For each value all versions are made anew,
//! and the newcomers are scored with the last of them, too. Members are scored with the exact one.
//!
//! `--out` keeps the exact one, and `--start` begins with one that was kept:
//!
//!   hone-lab team-parts --model base.gguf --start core.bin --newcomer ann=ann.later.jsonl

use crate::lines::{Scores, episodes, gain, interval};
use crate::scoring::{Base, prompts, score_texts};
use anyhow::{Context, anyhow, ensure};
use clap::Args;
use feedback::episode::Episode;
use feedback::job::Hyper;
use learner::model::lora::Lora;
use learner::model::prompt_pass::PromptKv;
use learner::ppo;
use learner::ppo::adam::Adam;
use learner::ppo::batch::Batch;
use learner::ppo::square::Square;
use learner::ppo::trained_part::TrainedPart;
use models::gguf::Gguf;
use models::team::compose::compose;
use models::team::contribution::{Limits, contribute, normal};
use models::team::core::{Core, STEP};
use models::team::delta;
use models::team::frame::Frame;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use std::path::PathBuf;
use std::str::FromStr;

/// Texts that a member learns from in a round.
const TEXTS_OF_ROUND: usize = 16;
/// The norm of a contribution, as `lab.team_max_norm` is installed.
const MAX_NORM: f64 = 0.1;

#[derive(Args)]
pub struct Arguments {
    #[arg(long)]
    model: PathBuf,
    /// A member: name, texts to learn from, and later texts to be scored on, if any
    #[arg(long, required_unless_present = "start", value_name = "NAME=PAST[,LATER]")]
    member: Vec<Files>,
    /// Somebody who joins after the last round: name and texts to be scored on
    #[arg(long, value_name = "NAME=LATER")]
    newcomer: Vec<Files>,
    #[arg(long, default_value_t = 4)]
    rounds: usize,
    /// Begin with the version in this file instead of one that changes nothing
    #[arg(long)]
    start: Option<PathBuf>,
    /// Write the last version, which is exact, into this file
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write an adapter of that version into this file, for `hone adapter import`
    #[arg(long)]
    adapter: Option<PathBuf>,
    /// Score newcomers with another form, too: round every version to 2^-(15 - coarse)
    #[arg(long)]
    coarse: Vec<u32>,
    /// Score newcomers with another form, too: add this `team.noise` to the sum of a round
    #[arg(long)]
    noise: Vec<f64>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone)]
struct Files {
    name: String,
    files: Vec<PathBuf>,
}

impl FromStr for Files {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Files> {
        let (name, files) = text.split_once('=').context("NAME=FILE was expected")?;
        let files = files.split(',').map(PathBuf::from).collect();
        Ok(Files { name: name.to_owned(), files })
    }
}

/// What is done to the changes on their way.
#[derive(Clone, Copy)]
struct Form {
    coarse: u32,
    noise: f64,
}

impl Form {
    const EXACT: Form = Form { coarse: 0, noise: 0.0 };

    fn name(self) -> String {
        match self {
            Form { coarse: 0, noise: 0.0 } => "team".to_owned(),
            Form { coarse, noise: 0.0 } => format!("coarse {coarse}"),
            Form { noise, .. } => format!("noise {noise}"),
        }
    }
}

/// Texts with their prompts.
struct Texts {
    batch: Batch,
    kv: PromptKv,
}

struct Member {
    name: String,
    /// A batch for each round.
    past: Vec<Texts>,
    later: Option<Texts>,
}

struct Team<'a> {
    base: &'a Base,
    frame: Frame,
    hyper: Hyper,
    seed: u64,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let gguf = Gguf::open(&arguments.model)?;
    let base = Base::open(&gguf)?;
    let frame = Frame::of(&gguf, &base.sha256)?;
    // As an update is installed, but by imitation alone.
    let hyper = Hyper { policy_coefficient: 0.0, kl_coefficient: 0.0, ..Hyper::default() };
    let team = Team { base: &base, frame, hyper, seed: arguments.seed };
    let members = arguments.member.iter().map(|files| team.member(files, arguments.rounds));
    let members: Vec<Member> = members.collect::<anyhow::Result<_>>()?;

    let first = match &arguments.start {
        None => Core::zero(&team.frame),
        Some(path) => Core::read(&team.frame, path)?,
    };
    let rounds = if members.is_empty() { 0 } else { arguments.rounds };
    let coarse = arguments.coarse.iter().map(|coarse| Form { coarse: *coarse, ..Form::EXACT });
    let noisy = arguments.noise.iter().map(|noise| Form { noise: *noise, ..Form::EXACT });
    let forms = std::iter::once(Form::EXACT).chain(coarse).chain(noisy);
    let sharpened = |form: Form| anyhow::Ok((form, team.sharpen(&first, &members, rounds, form)?));
    let cores: Vec<(Form, Core)> = forms.map(sharpened).collect::<anyhow::Result<_>>()?;
    let shared = &cores[0].1;
    if let Some(path) = &arguments.out {
        shared.write(&team.frame, path)?;
    }
    if let Some(path) = &arguments.adapter {
        compose(&team.frame, shared, None)?.write(path)?;
    }
    for member in &members {
        let Some(later) = &member.later else { continue };
        let alone = team.learn_privately(None, &member.past)?;
        let with_shared = team.learn_privately(Some(shared), &member.past)?;
        let arms =
            [("private", alone), ("team", team.lora(shared)?), ("team + private", with_shared)];
        let arms = arms.map(|(arm, lora)| (arm.to_owned(), lora));
        team.report(&member.name, later, &arms)?;
    }
    for files in &arguments.newcomer {
        let [later] = files.files.as_slice() else { return Err(anyhow!("NAME=LATER")) };
        let later = team.texts(&episodes(later)?)?;
        let arms = cores.iter().map(|(form, core)| anyhow::Ok((form.name(), team.lora(core)?)));
        team.report(&files.name, &later, &arms.collect::<anyhow::Result<Vec<_>>>()?)?;
    }
    Ok(())
}

impl Team<'_> {
    fn member(&self, files: &Files, rounds: usize) -> anyhow::Result<Member> {
        let (past, later) = match files.files.as_slice() {
            [past] => (past, None),
            [past, later] => (past, Some(later)),
            _ => return Err(anyhow!("NAME=PAST[,LATER] was expected")),
        };
        let past = episodes(past)?;
        let needed = rounds * TEXTS_OF_ROUND;
        ensure!(past.len() >= needed, "{}: {} texts, {needed} needed", files.name, past.len());
        let rounds = past.chunks(TEXTS_OF_ROUND).take(rounds);
        let past = rounds.map(|texts| self.texts(texts)).collect::<anyhow::Result<_>>()?;
        eprintln!("{}: the prompts are computed", files.name);
        let later = later.map(|later| self.texts(&episodes(later)?)).transpose()?;
        Ok(Member { name: files.name.clone(), past, later })
    }

    fn texts(&self, episodes: &[Episode]) -> anyhow::Result<Texts> {
        let batch = Batch::new(episodes, &self.base.inputs(&self.hyper))?;
        let kv = prompts(self.base, &batch, None)?;
        Ok(Texts { batch, kv })
    }

    /// The adapter that has the shared part alone.
    fn lora(&self, core: &Core) -> anyhow::Result<Lora> {
        let adapter = compose(&self.frame, core, None)?;
        Lora::from_adapter(&adapter, &self.base.model.shape)
    }

    fn update(
        &self,
        texts: &Texts,
        lora: Lora,
        (part, optimizer): (TrainedPart, Adam),
        fresh: bool,
    ) -> anyhow::Result<ppo::UpdateResult> {
        let start = ppo::UpdateStart { lora, optimizer, part, fresh, seed: self.seed };
        let inputs = ppo::UpdateInputs {
            model: &self.base.model,
            batch: &texts.batch,
            kv: &texts.kv,
            hyper: &self.hyper,
            threads: &self.base.threads,
        };
        ppo::update(&inputs, start, &mut |_, _, _| Ok(()))
    }

    /// The shared part after so many rounds.
    fn sharpen(
        &self,
        first: &Core,
        members: &[Member],
        rounds: usize,
        form: Form,
    ) -> anyhow::Result<Core> {
        let mut core = first.clone();
        let mut random = StdRng::seed_from_u64(self.seed);
        // Each member adds a share, so that the sum has all of the noise.
        let noise = form.noise * MAX_NORM / (members.len() as f64).sqrt();
        let limits = Limits { max_norm: MAX_NORM, noise };
        let mut left = vec![vec![0.0; core.numbers().len()]; members.len()];
        let mut kept = vec![0.0; core.numbers().len()];
        for round in 0..rounds {
            let mut sum = vec![0.0; core.numbers().len()];
            for (member, left) in members.iter().zip(&mut left) {
                let lora = self.lora(&core)?;
                let shared = Square::shared(&self.frame, &core, &lora)?;
                let before = shared.values();
                let part = TrainedPart::Shared(shared);
                let optimizer = part.optimizer(&lora);
                let part = (part, optimizer);
                let result = self.update(&member.past[round], lora, part, false)?;
                let TrainedPart::Shared(now) = &result.part else {
                    unreachable!("an update keeps the part that it trains")
                };
                let change: Vec<f32> =
                    now.values().iter().zip(&before).map(|(now, before)| now - before).collect();
                let drawn = || normal(|| random.random());
                let made = contribute(&change, left, limits, drawn)?;
                for (sum, number) in sum.iter_mut().zip(&made.numbers) {
                    *sum += f64::from(*number);
                }
                *left = made.left;
            }
            let unit = f64::from(1u32 << form.coarse);
            let numbers = core.numbers().iter().zip(&sum).zip(&mut kept);
            let numbers = numbers.map(|((number, sum), kept)| {
                let exact = f64::from(*number) + sum / members.len() as f64 + *kept;
                let rounded = (exact / unit).round() * unit;
                *kept = exact - rounded;
                rounded as i32
            });
            let next = Core::new(&self.frame, core.version + 1, numbers.collect())?;
            let delta = delta::encode(&self.frame, &core, &next)?;
            let change = next.numbers().iter().zip(core.numbers());
            let norm =
                change.map(|(next, core)| f64::from(next - core).powi(2)).sum::<f64>().sqrt();
            let norm = norm * f64::from(STEP);
            let told = json!({
                "form": form.name(),
                "version": next.version,
                "delta": delta.len(),
                "norm": norm,
            });
            println!("{told}");
            core = next;
        }
        Ok(core)
    }

    /// Returns what somebody learns for themselves, in addition to the shared part if there is one.
    fn learn_privately(&self, shared: Option<&Core>, past: &[Texts]) -> anyhow::Result<Lora> {
        let shape = &self.base.model.shape;
        let Hyper { lora_rank, lora_alpha, .. } = self.hyper;
        let mut lora = Lora::fresh(shape, lora_rank, lora_alpha, self.seed)?;
        if let Some(core) = shared {
            lora = self.lora(core)?.with_private_part(lora)?;
        }
        let mut part = TrainedPart::own(&self.frame, &lora)?;
        let mut optimizer = part.optimizer(&lora);
        let mut fresh = shared.is_none();
        for texts in past {
            let result = self.update(texts, lora, (part, optimizer), fresh)?;
            (lora, part, optimizer, fresh) = (result.lora, result.part, result.optimizer, false);
        }
        Ok(lora)
    }

    /// Prints how many lines of somebody's later texts each arm gives, next to the plain model.
    fn report(&self, name: &str, later: &Texts, arms: &[(String, Lora)]) -> anyhow::Result<()> {
        let (base, of_base) = self.score(later, None)?;
        println!("{}", json!({ "member": name, "arm": "base", "scores": base }));
        for (arm, lora) in arms {
            let (scores, of_texts) = self.score(later, Some(lora))?;
            let change = gain(of_base.iter().sum(), of_texts.iter().sum());
            let interval = interval(&of_base, &of_texts);
            let told = json!({
                "member": name,
                "arm": arm,
                "scores": scores,
                "characters": change,
                "interval": interval,
                "of_texts": of_texts,
                "of_base": of_base,
            });
            println!("{told}");
            eprintln!("{name}, {arm}: {change:+.1} % of the characters of right lines");
        }
        Ok(())
    }

    /// The scores, and the right characters of each text.
    fn score(&self, texts: &Texts, lora: Option<&Lora>) -> anyhow::Result<(Scores, Vec<usize>)> {
        let mut scores = Scores::default();
        let mut of_texts = vec![];
        for text in score_texts(self.base, &texts.batch, &texts.kv, lora)? {
            let sample = &texts.batch.samples[text.sample];
            of_texts.push(scores.add(&text, &sample.targets, &self.base.vocab));
        }
        Ok((scores, of_texts))
    }
}
