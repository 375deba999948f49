//! Learns texts by imitation, in rounds of a few, with the program `hone-learner`. What is learned
//! has the form that a team shares (`models: team/`), which is the better start for the texts of
//! strangers: docs/lab/refuted.md and docs/lab/history.md. Each round is saved.

use crate::contribution::read_values;
use crate::job::Rounds;
use crate::preemption::LearnerPreemption;
use crate::process::{Ended, Learner, LearnerProgram};
use adapters::history::HistoryFiles;
use anyhow::{Result, bail};
use feedback::episode::Episode;
use feedback::job::{Base, Hyper, JobProgress, Phase, UpdateReport};
use models::adapter::LoraAdapter;
use models::team::compose::compose;
use models::team::contribution::{Limits, contribute};
use models::team::core::Core;
use models::team::frame::Frame;
use std::future::pending;
use std::sync::Arc;

/// The texts that a round learns from.
pub const TEXTS_OF_ROUND: usize = 16;
/// The L2 norm of what a round may change, as `lab.team_max_norm` is installed.
const MAX_NORM: f64 = 0.1;
/// The share of a round that the prompts take.
const PROMPTS_SHARE: f64 = 0.5;

/// A learner process and what each of its jobs needs.
pub struct HistoryLearner {
    learner: Learner,
    frame: Frame,
    rounds: Rounds,
}

impl HistoryLearner {
    /// `hyper` are the settings of an update; its texts are learned by imitation alone.
    pub fn start(
        program: &LearnerProgram,
        files: HistoryFiles,
        frame: Frame,
        base: Base,
        hyper: &Hyper,
        memory_limit_mb: u64,
    ) -> Result<HistoryLearner> {
        let learner = Learner::start(program, None, Arc::new(LearnerPreemption::default()))?;
        let hyper = Hyper { policy_coefficient: 0.0, kl_coefficient: 0.0, ..hyper.clone() };
        let rounds = Rounds { files, base, hyper, memory_limit_mb };
        Ok(HistoryLearner { learner, frame, rounds })
    }

    /// Learns from the texts, whole rounds of them, and returns what was learned with the report of
    /// the last round. Rounds that an earlier run has done are not done again. `progress` gets the
    /// rounds that are done.
    pub async fn learn(
        &mut self,
        texts: &[Episode],
        mut progress: impl FnMut(f64),
    ) -> Result<(Core, Option<UpdateReport>)> {
        let learned = self.rounds.files.learned();
        let mut core = learned.core(&self.frame);
        let mut last = None;
        let rounds = texts.chunks_exact(TEXTS_OF_ROUND).skip(core.version as usize);
        for texts in rounds {
            self.rounds.files.check_wanted()?;
            let done = core.version as f64;
            let (next, report) =
                self.round(&core, texts, &mut |share| progress(done + share)).await?;
            learned.write_core(&self.frame, &next)?;
            (core, last) = (next, Some(report));
            progress(core.version as f64);
        }
        Ok((core, last))
    }

    /// The adapter that has what was learned, for whoever serves it.
    pub fn adapter(&self, core: &Core, invocation: Option<u32>) -> Result<LoraAdapter> {
        let adapter = compose(&self.frame, core, None)?;
        // It is one person's own: none of its ranks is a team's.
        Ok(LoraAdapter { shared_rank: 0, invocation: Vec::from_iter(invocation), ..adapter })
    }

    async fn round(
        &mut self,
        core: &Core,
        texts: &[Episode],
        progress: &mut dyn FnMut(f64),
    ) -> Result<(Core, UpdateReport)> {
        let files = &self.rounds.files;
        let learned = files.learned();
        learned.write_core(&self.frame, core)?;
        let sha256 = compose(&self.frame, core, None)?.write(&files.path("round.gguf"))?;
        let round = core.version + 1;
        let job = self.rounds.job(round, sha256, texts);
        let share = |at: &JobProgress| progress(share_of_round(at));
        let report = match self.learner.run(&job, share, pending::<()>()).await? {
            Ended::Done(report) => *report,
            Ended::Cancelled(_) => bail!("the learner was cancelled"),
        };
        files.check_wanted()?;
        let change = read_values(&job.adapter_out, &report, core)?;
        let limits = Limits { max_norm: MAX_NORM, noise: 0.0 };
        let made = contribute(&change, &learned.left(&self.frame), limits, || 0.0)?;
        learned.write_left(&made.left)?;
        let numbers = core.numbers().iter().zip(&made.numbers);
        let numbers = numbers.map(|(number, change)| number + i32::from(*change)).collect();
        Ok((Core::new(&self.frame, round, numbers)?, report))
    }
}

fn share_of_round(at: &JobProgress) -> f64 {
    let done = at.done as f64 / at.total.max(1) as f64;
    match at.phase {
        Phase::Load => 0.0,
        Phase::Prompt => PROMPTS_SHARE * done,
        Phase::Train => PROMPTS_SHARE + (1.0 - PROMPTS_SHARE) * done,
        Phase::Evaluate => 1.0,
    }
}
