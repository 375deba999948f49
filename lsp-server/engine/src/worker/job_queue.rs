//! What the engine's thread does next: requests in their order, then what is computed in advance,
//! and texts to score only once nobody has typed for a while.
//!
//! A score takes seconds. It gives way within milliseconds, but one that ran between two keys would
//! have taken the caches, the cores and those milliseconds from each of them.

use super::{Job, KvJob, QUEUE_JOBS, ScoreJob};
use crate::{EngineError, Request};
use completion::prompt::FimPrompt;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The jobs that wait for their time.
#[derive(Default)]
pub(super) struct JobQueue {
    /// The prompt of the newest answer. It comes first, because the others change what the engine
    /// holds.
    kv: Option<KvJob>,
    /// Only the newest prompt counts, because the user has left the place of an older one.
    warm: Option<Box<FimPrompt>>,
    /// Requests that are likely to come, for the same reason the newest ones only.
    ahead: Vec<Request>,
    scores: VecDeque<ScoreJob>,
    /// The pause in typing after which texts are scored.
    pause: Duration,
}

/// What comes next while the queue is empty.
pub(super) enum Next {
    Do(Job),
    /// Nothing before this moment, unless a job comes.
    Wait(Instant),
    /// Nothing until a job comes.
    Rest,
}

impl JobQueue {
    pub fn new(pause: Duration) -> JobQueue {
        JobQueue { pause, ..JobQueue::default() }
    }

    /// Takes a job from the queue. Returns it if it is to be done at once.
    pub fn take(&mut self, job: Job) -> Option<Job> {
        match job {
            Job::Score(job) if self.scores.len() < QUEUE_JOBS => self.scores.push_back(job),
            Job::Score(job) => drop(job.reply.send(Err(EngineError::Busy))),
            Job::Warm(prompt) => {
                self.warm = Some(prompt);
                // The user is elsewhere by now.
                self.ahead.clear();
            }
            Job::Ahead(requests) => self.ahead = requests,
            Job::PromptKv(job) => self.kv = Some(job),
            job => {
                self.kv = None;
                self.warm = None;
                self.ahead.clear();
                if matches!(job, Job::Unload) {
                    // Their texts may be what the user wants forgotten.
                    for job in self.scores.drain(..) {
                        let _ = job.reply.send(Err(EngineError::Aborted));
                    }
                }
                return Some(job);
            }
        }
        None
    }

    /// Chooses what comes next, now that the queue is empty and the user typed last at `last_key`.
    pub fn next(&mut self, now: Instant, last_key: Option<Instant>) -> Next {
        if let Some(job) = self.kv.take() {
            return Next::Do(Job::PromptKv(job));
        }
        if !self.ahead.is_empty() {
            return Next::Do(Job::Ahead(std::mem::take(&mut self.ahead)));
        }
        if let Some(prompt) = self.warm.take() {
            return Next::Do(Job::Warm(prompt));
        }
        let quiet_at = last_key.map(|key| key + self.pause);
        match quiet_at.filter(|&quiet_at| now < quiet_at) {
            _ if self.scores.is_empty() => Next::Rest,
            Some(quiet_at) => Next::Wait(quiet_at),
            None => self.scores.pop_front().map_or(Next::Rest, |job| Next::Do(Job::Score(job))),
        }
    }

    /// Computes this prompt in advance later.
    pub fn warm_later(&mut self, prompt: Box<FimPrompt>) {
        self.warm = Some(prompt);
    }

    /// Continues a score that was interrupted before any other begins.
    pub fn continue_later(&mut self, job: ScoreJob) {
        self.scores.push_front(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ScorePrompt, ScoreRequest, Scored};
    use tokio::sync::oneshot;

    const PAUSE: Duration = Duration::from_secs(3);

    type Answer = oneshot::Receiver<Result<Scored, EngineError>>;

    fn score(text: u32) -> (ScoreJob, Answer) {
        let (reply, answer) = oneshot::channel();
        let request = Box::new(ScoreRequest {
            prompt: ScorePrompt::Fim(FimPrompt::default()),
            healing: String::new(),
            tokens: vec![text],
            adapters: vec![0],
        });
        (ScoreJob { request, reply, took: Duration::ZERO }, answer)
    }

    /// The text that is scored next, if it is time for one.
    fn scored(jobs: &mut JobQueue, now: Instant, last_key: Option<Instant>) -> Option<ScoreJob> {
        match jobs.next(now, last_key) {
            Next::Do(Job::Score(job)) => Some(job),
            Next::Do(_) => panic!("another job than a score"),
            Next::Wait(_) | Next::Rest => None,
        }
    }

    #[test]
    fn no_text_is_scored_between_two_keys() {
        let start = Instant::now();
        let mut jobs = JobQueue::new(PAUSE);
        assert!(jobs.take(Job::Score(score(1).0)).is_none());
        let key = |number: u32| start + Duration::from_millis(1400) * number;
        for now in (0..100).map(key) {
            let Next::Wait(until) = jobs.next(now + PAUSE / 2, Some(now)) else {
                panic!("a score before the pause")
            };
            assert_eq!(until, now + PAUSE);
        }
        let last = key(99);
        assert!(scored(&mut jobs, last + PAUSE, Some(last)).is_some());
        assert!(matches!(jobs.next(last + PAUSE, Some(last)), Next::Rest));
    }

    #[test]
    fn a_text_is_scored_at_once_where_nobody_types() {
        let mut jobs = JobQueue::new(PAUSE);
        jobs.take(Job::Score(score(1).0));
        assert!(scored(&mut jobs, Instant::now(), None).is_some());
    }

    #[test]
    fn a_score_that_a_key_interrupts_comes_before_the_others() {
        let start = Instant::now();
        let mut jobs = JobQueue::new(PAUSE);
        jobs.take(Job::Score(score(1).0));
        jobs.take(Job::Score(score(2).0));
        let first = scored(&mut jobs, start, None).unwrap();
        jobs.continue_later(first);
        let key = Some(start);
        assert!(scored(&mut jobs, start, key).is_none());
        let mut next = || scored(&mut jobs, start + PAUSE, key).unwrap().request.tokens;
        assert_eq!([next(), next()], [[1], [2]]);
    }

    #[test]
    fn what_is_computed_in_advance_comes_before_a_score() {
        let now = Instant::now();
        let mut jobs = JobQueue::new(PAUSE);
        jobs.take(Job::Score(score(1).0));
        jobs.take(Job::Warm(Box::default()));
        assert!(matches!(jobs.next(now, None), Next::Do(Job::Warm(_))));
        assert!(matches!(jobs.next(now, None), Next::Do(Job::Score(_))));
    }

    /// A text was scored, and the score was recorded, after the user had it forgotten.
    #[test]
    fn no_text_waits_to_be_scored_once_the_model_is_unloaded() {
        let mut jobs = JobQueue::new(PAUSE);
        let (interrupted, mut first) = score(1);
        jobs.continue_later(interrupted);
        let (job, mut second) = score(2);
        jobs.take(Job::Score(job));
        assert!(matches!(jobs.take(Job::Unload), Some(Job::Unload)));
        assert!(matches!(jobs.next(Instant::now(), None), Next::Rest));
        for answer in [&mut first, &mut second] {
            assert!(matches!(answer.try_recv(), Ok(Err(EngineError::Aborted))));
        }
    }

    #[test]
    fn more_scores_than_the_queue_holds_are_refused() {
        let mut jobs = JobQueue::new(PAUSE);
        for _ in 0..QUEUE_JOBS {
            jobs.take(Job::Score(score(1).0));
        }
        let (job, mut answer) = score(2);
        jobs.take(Job::Score(job));
        assert!(matches!(answer.try_recv(), Ok(Err(EngineError::Busy))));
    }
}
