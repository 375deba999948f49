//! An engine with caches on disk around it, for rehearsals. Their arms meet the same prompts,
//! and what the base model computes for one arm need not be computed again for another. Daily
//! use has no such cache.

use super::answer_cache::{AnswerCache, Key};
use super::{
    Answer, Engine, EngineError, EngineInfo, Generated, Request, Score, ScorePrompt, ScoreRequest,
    Tokenizer,
};
use completion::prompt::FimPrompt;
use feedback::event::AdapterVersion;
use models::disk_cache::DiskCache;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// For which kind of work an engine holds the KV of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvSlot {
    Document,
    Scoring,
}

/// The part of the engine inside that [`CachingEngine`] needs next to [`Engine`]. A prompt's keys
/// and values (KV) are in a form that only the engine knows, so it gives and takes them as bytes.
/// They are always those that the base computes, without an adapter.
pub trait KvAccess: Engine {
    /// Token ids of a prompt, and the index from which on the adapter acts.
    fn prompt_tokens(&self, prompt: &FimPrompt) -> (Vec<u32>, usize);

    /// Returns how many of these tokens the slot does not hold and would have to compute.
    fn missing_tokens(&mut self, slot: KvSlot, prompt: &[u32]) -> usize;

    /// Makes the slot hold the KV of these tokens, computes what is missing, and returns it.
    ///
    /// # Errors
    /// [`EngineError::OverBudget`] after the deadline, and [`EngineError::Aborted`] soon after
    /// `abort` turns true.
    fn compute_kv(
        &mut self,
        slot: KvSlot,
        prompt: &[u32],
        deadline: Option<Instant>,
        abort: &AtomicBool,
    ) -> Result<Vec<u8>, EngineError>;

    /// Makes the slot hold this KV. Returns false if it is not that of these tokens; the slot
    /// holds nothing then.
    fn restore_kv(&mut self, slot: KvSlot, prompt: &[u32], state: &[u8]) -> bool;
}

pub struct CachingEngine<E> {
    engine: E,
    prompts: DiskCache,
    answers: AnswerCache,
}

impl<E: KvAccess> CachingEngine<E> {
    /// `folder` may be shared with other engines; `model` names the model in it.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn new(engine: E, folder: &Path, model: &str) -> Result<CachingEngine<E>, EngineError> {
        let prompts = DiskCache::new(folder, model).map_err(EngineError::Failed)?;
        let answers = AnswerCache::new(folder, model).map_err(EngineError::Failed)?;
        Ok(CachingEngine { engine, prompts, answers })
    }

    /// Makes the slot hold the KV of a prompt, if that saves time: from the cache, or else
    /// computed and stored in the cache.
    fn share(
        &mut self,
        slot: KvSlot,
        prompt: &[u32],
        deadline: Option<Instant>,
        abort: &AtomicBool,
    ) -> Result<(), EngineError> {
        if !self.prompts.is_worth(self.engine.missing_tokens(slot, prompt)) {
            return Ok(());
        }
        if let Some(state) = self.prompts.get(prompt)
            && self.engine.restore_kv(slot, prompt, &state)
        {
            return Ok(());
        }
        let state = self.engine.compute_kv(slot, prompt, deadline, abort)?;
        if let Err(error) = self.prompts.put(prompt, &state) {
            tracing::warn!("the KV of a prompt could not be cached: {error}");
        }
        Ok(())
    }

    /// Scores under these adapters, none of which the cache knows.
    fn score_anew(
        &mut self,
        request: &ScoreRequest,
        (prompt, adapter_from): (Vec<u32>, usize),
        adapters: Vec<AdapterVersion>,
        abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError> {
        if adapters.is_empty() {
            return Ok(vec![]);
        }
        if let Some(base) = prompt.get(..adapter_from) {
            self.share(KvSlot::Scoring, base, None, abort)?;
        }
        let prompt = ScorePrompt::Tokens { prompt, adapter_from };
        self.engine.score(&ScoreRequest { prompt, adapters, ..request.clone() }, abort)
    }
}

impl<E: KvAccess> Engine for CachingEngine<E> {
    fn info(&self) -> EngineInfo {
        self.engine.info()
    }

    fn tokenizer(&self) -> Tokenizer {
        self.engine.tokenizer()
    }

    fn generate(
        &mut self,
        request: &Request,
        abort: &AtomicBool,
    ) -> Result<Generated, EngineError> {
        let started = Instant::now();
        let (prompt, adapter_from) = self.engine.prompt_tokens(&request.prompt);
        let key = Key::of_answer(request, &prompt, adapter_from);
        if let Some(answer) = key.as_ref().and_then(|key| self.answers.get::<Answer>(key)) {
            return Ok(Generated {
                prompt_reused: prompt.len() as u32,
                prompt_evaluated: 0,
                prompt_time: started.elapsed(),
                prompt,
                adapter_from,
                without_context: false,
                answers: vec![answer],
            });
        }
        let deadline = Some(started + request.budget);
        self.share(KvSlot::Document, &prompt[..adapter_from], deadline, abort)?;
        let shared_time = started.elapsed();
        let budget = request.budget.saturating_sub(shared_time);
        let mut generated = self.engine.generate(&Request { budget, ..request.clone() }, abort)?;
        generated.prompt_time += shared_time;
        if let (Some(key), Some(first)) = (&key, generated.answers.first())
            && first.is_whole()
        {
            self.answers.put(key, first);
        }
        Ok(generated)
    }

    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError> {
        self.engine.warm(prompt, abort)
    }

    fn score(
        &mut self,
        request: &ScoreRequest,
        abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError> {
        let (prompt, from) = match &request.prompt {
            ScorePrompt::Fim(prompt) => self.engine.prompt_tokens(prompt),
            ScorePrompt::Tokens { prompt, adapter_from } => (prompt.clone(), *adapter_from),
        };
        let key = Key::of_score(request, &prompt, from);
        let known: Option<Score> = self.answers.get(&key);
        let mut adapters = request.adapters.clone();
        adapters.retain(|&adapter| adapter != 0 || known.is_none());
        let mut anew = self.score_anew(request, (prompt, from), adapters, abort)?.into_iter();
        let mut scores = Vec::with_capacity(request.adapters.len());
        for &adapter in &request.adapters {
            let score = known.filter(|_| adapter == 0).or_else(|| anew.next());
            let missing = || EngineError::Failed(format!("v{adapter} has no score"));
            let score = score.ok_or_else(missing)?;
            if adapter == 0 && known.is_none() {
                self.answers.put(&key, &score);
            }
            scores.push(score);
        }
        Ok(scores)
    }

    fn load_adapter(
        &mut self,
        version: AdapterVersion,
        path: &Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError> {
        self.engine.load_adapter(version, path, keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::PromptSpeed;
    use feedback::event::{StopReason, TokenRecord};
    use std::sync::Arc;
    use std::time::Duration;
    use tempfile::TempDir;

    /// Long enough that its KV is worth a look on the disk.
    const PROMPT: usize = 400;

    /// Counts what it is asked to do. The KV of a prompt is its tokens, as bytes.
    #[derive(Default)]
    struct Counting {
        held: [Vec<u32>; 2],
        computed: usize,
        restored: usize,
        generated: usize,
        scored: Vec<AdapterVersion>,
        stop: Option<StopReason>,
    }

    fn bytes(prompt: &[u32]) -> Vec<u8> {
        prompt.iter().flat_map(|token| token.to_le_bytes()).collect()
    }

    impl Engine for Counting {
        fn info(&self) -> EngineInfo {
            EngineInfo {
                backend: "counting".into(),
                reads_files: false,
                speed: PromptSpeed::default(),
            }
        }

        fn tokenizer(&self) -> Tokenizer {
            Arc::new(|text| text.bytes().map(u32::from).collect())
        }

        fn generate(
            &mut self,
            request: &Request,
            _: &AtomicBool,
        ) -> Result<Generated, EngineError> {
            self.generated += 1;
            let (prompt, adapter_from) = self.prompt_tokens(&request.prompt);
            let answer = Answer {
                tokens: vec![TokenRecord { id: 7, logprob: -0.1 }],
                visible_logprobs: vec![-0.1],
                healed: 0,
                text: format!("answer {}\n", self.generated).into_bytes(),
                ends: vec![9],
                given_up: None,
                stop: self.stop.unwrap_or(StopReason::Newline),
                decode_time: Duration::ZERO,
                experts: None,
            };
            Ok(Generated {
                prompt,
                adapter_from,
                prompt_reused: 0,
                prompt_evaluated: 0,
                prompt_time: Duration::ZERO,
                without_context: false,
                answers: vec![answer],
            })
        }

        fn warm(&mut self, _: &FimPrompt, _: &AtomicBool) -> Result<(), EngineError> {
            Ok(())
        }

        fn score(
            &mut self,
            request: &ScoreRequest,
            _: &AtomicBool,
        ) -> Result<Vec<Score>, EngineError> {
            self.scored.extend(&request.adapters);
            let score =
                |&version: &u32| Score { logprob: -(version as f32) - 1.0, is_greedy: false };
            Ok(request.adapters.iter().map(score).collect())
        }

        fn load_adapter(
            &mut self,
            _: AdapterVersion,
            _: &Path,
            _: &[AdapterVersion],
        ) -> Result<(), EngineError> {
            Ok(())
        }
    }

    impl KvAccess for Counting {
        fn prompt_tokens(&self, prompt: &FimPrompt) -> (Vec<u32>, usize) {
            let tokens: Vec<u32> = prompt.prefix.bytes().map(u32::from).collect();
            let from = tokens.len() - 1;
            (tokens, from)
        }

        fn missing_tokens(&mut self, slot: KvSlot, prompt: &[u32]) -> usize {
            let held = &self.held[slot as usize];
            prompt.len() - held.iter().zip(prompt).take_while(|(a, b)| a == b).count()
        }

        fn compute_kv(
            &mut self,
            slot: KvSlot,
            prompt: &[u32],
            deadline: Option<Instant>,
            _: &AtomicBool,
        ) -> Result<Vec<u8>, EngineError> {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(EngineError::OverBudget);
            }
            self.computed += 1;
            self.held[slot as usize] = prompt.to_vec();
            Ok(bytes(prompt))
        }

        fn restore_kv(&mut self, slot: KvSlot, prompt: &[u32], state: &[u8]) -> bool {
            if state != bytes(prompt) {
                self.held[slot as usize].clear();
                return false;
            }
            self.restored += 1;
            self.held[slot as usize] = prompt.to_vec();
            true
        }
    }

    fn engine(folder: &TempDir) -> CachingEngine<Counting> {
        CachingEngine::new(Counting::default(), folder.path(), "m").unwrap()
    }

    fn request(letter: &str) -> Request {
        let prompt = FimPrompt { prefix: letter.repeat(PROMPT), ..FimPrompt::default() };
        Request::line(prompt, 32)
    }

    fn text(engine: &mut CachingEngine<Counting>, request: &Request) -> String {
        let generated = engine.generate(request, &AtomicBool::new(false)).unwrap();
        String::from_utf8(generated.answers[0].text.clone()).unwrap()
    }

    #[test]
    fn an_answer_of_the_base_is_computed_once_for_all() {
        let folder = TempDir::new().unwrap();
        let mut first = engine(&folder);
        assert_eq!(text(&mut first, &request("a")), "answer 1\n");
        assert_eq!(text(&mut first, &request("a")), "answer 1\n");
        assert_eq!(text(&mut first, &request("b")), "answer 2\n");
        assert_eq!(first.engine.generated, 2);
        let mut second = engine(&folder);
        let generated = second.generate(&request("a"), &AtomicBool::new(false)).unwrap();
        assert_eq!(generated.answers[0].text, b"answer 1\n");
        assert_eq!((generated.prompt.len(), generated.adapter_from), (PROMPT, PROMPT - 1));
        assert_eq!((second.engine.generated, second.engine.computed), (0, 0));
    }

    #[test]
    fn an_adapter_answers_anew_on_the_prompt_that_the_base_computed() {
        let folder = TempDir::new().unwrap();
        let adapted = Request { adapter: 1, ..request("a") };
        let mut first = engine(&folder);
        text(&mut first, &adapted);
        assert_eq!(text(&mut first, &adapted), "answer 2\n", "an adapter's answer is not cached");
        assert_eq!((first.engine.computed, first.engine.restored), (1, 0));
        let mut second = engine(&folder);
        text(&mut second, &adapted);
        assert_eq!((second.engine.computed, second.engine.restored), (0, 1));
    }

    #[test]
    fn a_damaged_prompt_is_computed_and_stored_again() {
        let folder = TempDir::new().unwrap();
        let adapted = Request { adapter: 1, ..request("a") };
        let mut first = engine(&folder);
        text(&mut first, &adapted);
        let (tokens, from) = first.engine.prompt_tokens(&adapted.prompt);
        first.prompts.put(&tokens[..from], b"damaged").unwrap();
        let mut second = engine(&folder);
        text(&mut second, &adapted);
        assert_eq!((second.engine.computed, second.engine.restored), (1, 0));
        let mut third = engine(&folder);
        text(&mut third, &adapted);
        assert_eq!((third.engine.computed, third.engine.restored), (0, 1));
    }

    #[test]
    fn an_answer_that_time_cut_short_is_not_kept() {
        let folder = TempDir::new().unwrap();
        let mut first = engine(&folder);
        first.engine.stop = Some(StopReason::Budget);
        text(&mut first, &request("a"));
        assert_eq!(text(&mut first, &request("a")), "answer 2\n");
    }

    #[test]
    fn the_prompt_counts_towards_the_time_budget() {
        let folder = TempDir::new().unwrap();
        let request = Request { budget: Duration::ZERO, ..request("a") };
        let error = engine(&folder).generate(&request, &AtomicBool::new(false)).unwrap_err();
        assert!(matches!(error, EngineError::OverBudget), "{error}");
    }

    #[test]
    fn the_base_scores_a_text_once_and_adapters_each_time() {
        let folder = TempDir::new().unwrap();
        let asked = |adapters: &[AdapterVersion]| ScoreRequest {
            prompt: ScorePrompt::Fim(request("a").prompt),
            healing: String::new(),
            tokens: vec![1, 2],
            adapters: adapters.to_vec(),
        };
        let logprobs = |engine: &mut CachingEngine<Counting>, adapters: &[AdapterVersion]| {
            let scores = engine.score(&asked(adapters), &AtomicBool::new(false)).unwrap();
            scores.iter().map(|score| score.logprob).collect::<Vec<_>>()
        };
        let mut first = engine(&folder);
        assert_eq!(logprobs(&mut first, &[2, 0, 1]), [-3.0, -1.0, -2.0]);
        assert_eq!((&*first.engine.scored, first.engine.computed), ([2, 0, 1].as_slice(), 1));
        let mut second = engine(&folder);
        assert_eq!(logprobs(&mut second, &[0]), [-1.0]);
        assert_eq!((second.engine.scored.len(), second.engine.restored), (0, 0));
        assert_eq!(logprobs(&mut second, &[3, 0, 4]), [-4.0, -1.0, -5.0]);
        assert_eq!((&*second.engine.scored, second.engine.restored), ([3, 4].as_slice(), 1));
    }
}
