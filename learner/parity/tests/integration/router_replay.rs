//! Router replay on a small mixture of experts (docs/lab/experts.md): the server's router has noise
//! that the learner's has not, as two engines have it. The learner computes the log-probs of what
//! was served, and their gradient, with the experts that it would choose itself and with those that
//! the server has recorded.

use engine::{Answer, Generated};
use feedback::experts::{ExpertLayout, NOT_CHOSEN};
use learner::kernels::values;
use learner::machine::threads::Threads;
use learner::model::load::load;
use learner::model::lora::{Lora, LoraGradient};
use learner::model::prompt_pass::PromptKv;
use learner::model::{Tail, TailBatch, Transformer};
use models::experts::Experts;
use models::fim::template;
use models::gguf::Gguf;
use models::random_model::tiny::{Form, Matrices, Sizes, form};
use parity::{adapter, engine, generate, target};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;

/// As many layers and experts as make a row choose some dozen times, and small in all else.
const SIZES: Sizes =
    Sizes { layers: 6, width: 64, heads: 4, kv_heads: 2, head_width: 32, feed_forward: 64 };
const EXPERTS: Experts = Experts { count: 32, used: 4 };

/// The number of prompts, and of the answers to each. The error of a mean over the tokens
/// depends on the number of prompts, because the tokens of one prompt share its rounding.
const PROMPTS: usize = 32;
const ANSWERS: usize = 4;

/// The spread of the noise of a logit, whose own spread is about 0.9.
const NOISE: f32 = 0.026;

/// The share of the choices that the noise changes, with those that rounding changes.
const FLIPPED: std::ops::Range<f64> = 0.04..0.07;

/// The share of the choices that rounding may change.
const ROUNDED_MAX: f64 = 0.02;

const RANK: usize = 4;

/// A mixture of experts, and the same with noise on its router.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn write(matrices: Matrices) -> Files {
        let folder = tempfile::tempdir().unwrap();
        let moe = Form { experts: Some(EXPERTS), ..*form("qwen3moe").unwrap() };
        let files = Files { folder };
        moe.write(SIZES, matrices, 7, &files.clean()).unwrap();
        let mut bytes = std::fs::read(files.clean()).unwrap();
        let gguf = Gguf::open(&files.clean()).unwrap();
        let mut random = StdRng::seed_from_u64(8);
        for layer in 0..SIZES.layers {
            let name = format!("blk.{layer}.ffn_gate_inp.weight");
            let at = (gguf.data_offset + gguf.tensor(&name).unwrap().offset) as usize;
            for value in bytes[at..].as_chunks_mut().0.iter_mut().take(EXPERTS.count * SIZES.width)
            {
                // A normed row has about √width as its length.
                let noise =
                    NOISE * random.random_range(-1.0..1f32) * (3.0 / SIZES.width as f32).sqrt();
                *value = (f32::from_le_bytes(*value) + noise).to_le_bytes();
            }
        }
        std::fs::write(files.noisy(), bytes).unwrap();
        files
    }

    fn clean(&self) -> std::path::PathBuf {
        self.folder.path().join("clean.gguf")
    }

    fn noisy(&self) -> std::path::PathBuf {
        self.folder.path().join("noisy.gguf")
    }
}

fn model(path: &Path) -> Transformer<f32> {
    load(&Gguf::open(path).unwrap()).unwrap()
}

/// Prefixes of characters that the tokenizer of a tiny model knows.
fn prefixes() -> Vec<String> {
    const CHARACTERS: &[u8] = b"abcdefmnopst12=;() ";
    let mut random = StdRng::seed_from_u64(9);
    let mut prefix = || {
        let length = random.random_range(3..=10);
        let character = |_| char::from(CHARACTERS[random.random_range(0..CHARACTERS.len())]);
        (0..length).map(character).collect()
    };
    (0..PROMPTS).map(|_| prefix()).collect()
}

/// Returns what a server with this model answers to all prompts.
fn served(path: &Path, lora: &Lora, model: &Transformer<f32>) -> Vec<(Generated, Answer)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("adapter.gguf");
    lora.to_adapter(&model.shape, "no checksum", vec![]).unwrap().write(&file).unwrap();
    let mut engine = engine(path, template("qwen2.5-coder").unwrap());
    engine::Engine::load_adapter(&mut engine, 1, &file, &[]).unwrap();
    let mut answered = vec![];
    for prefix in prefixes() {
        for seed in 0..ANSWERS {
            let generated = generate(&mut engine, [&prefix, "ab"], 1, 1.0, seed as u64);
            let answer = generated.answers[0].clone();
            answered.push((generated, answer));
        }
    }
    answered
}

/// The log-probs of what was served, as the learner computes them, their gradient, and the experts
/// of each row by layer.
struct Learned {
    logprobs: Vec<f32>,
    gradient: Vec<f64>,
    chosen: Vec<Vec<u16>>,
}

/// The experts that a learner goes through.
#[derive(Clone, Copy)]
enum Choice<'a> {
    /// Those that its own router chooses.
    Live,
    /// Those that the server has recorded.
    Replay,
    /// Those that another learner went through.
    As(&'a Learned),
}

impl Choice<'_> {
    /// The experts of an answer whose tail has `rows` rows, of which the first is `first` in the
    /// batch.
    fn experts(self, answer: &Answer, layout: ExpertLayout, first: usize, rows: usize) -> Vec<u16> {
        match self {
            Choice::Live => vec![],
            Choice::Replay => {
                let record = answer.experts.as_ref().expect("the server records experts");
                record.ids(layout).unwrap()
            }
            Choice::As(other) => {
                let of_row = |row: usize| {
                    let place = row * EXPERTS.used..(row + 1) * EXPERTS.used;
                    other.chosen.iter().flat_map(move |layer| layer[place.clone()].to_vec())
                };
                (first..first + rows).flat_map(of_row).collect()
            }
        }
    }
}

/// `kv_of` computes the prompts, and `model` what the adapter acts on.
fn learned(
    kv_of: &Transformer<f32>,
    model: &Transformer<f32>,
    lora: &Lora,
    served: &[(Generated, Answer)],
    choice: Choice,
) -> Learned {
    let prompts = served.iter().map(|(generated, _)| &generated.prompt[..generated.adapter_from]);
    let prompts: Vec<&[u32]> = prompts.collect();
    let kv = PromptKv::compute(kv_of, &prompts, None, &Threads::fixed(1), |_| Ok(())).unwrap();
    let layout = model.shape.expert_layout().unwrap();
    let mut first = 0;
    let tails = served.iter().enumerate().map(|(index, (generated, answer))| {
        let ids: Vec<u32> = answer.tokens.iter().map(|token| token.id).collect();
        let own = &generated.prompt[generated.adapter_from..];
        let tokens = [own, &ids[..ids.len() - 1]].concat();
        let experts = choice.experts(answer, layout, first, tokens.len());
        first += tokens.len();
        let targets = ids.iter().map(|id| target(*id)).collect();
        Tail { place: kv.place(index), past: generated.adapter_from, tokens, targets, experts }
    });
    let tails: Vec<Tail> = tails.collect();
    let batch = TailBatch::new(&tails);
    let pass = model.forward(lora, &batch, &kv).unwrap();
    let logprobs = pass.logprobs.clone();
    let chosen = pass.chosen_experts().map(<[u16]>::to_vec).collect();
    // The sign of a verdict, by answer.
    let d_loss: Vec<f32> = served
        .iter()
        .enumerate()
        .flat_map(|(index, (_, answer))| {
            vec![if index % 2 == 0 { 1.0 } else { -1.0 }; answer.tokens.len()]
        })
        .collect();
    let gradient = pass.backward(&d_loss).unwrap();
    let both = gradient.iter().flat_map(|LoraGradient { a, b }| [a, b]);
    let gradient = both.flat_map(|tensor| values::<f32>(tensor).unwrap());
    Learned { logprobs, gradient: gradient.map(f64::from).collect(), chosen }
}

/// The mean over prompts of |learner − server|, each the mean over its tokens, in nats, and its
/// standard error.
#[derive(Clone, Copy)]
struct Mismatch {
    mean: f64,
    error: f64,
}

impl Mismatch {
    fn of(learned: &Learned, served: &[(Generated, Answer)]) -> Mismatch {
        let mut logprobs = learned.logprobs.iter();
        let of_prompt = |answers: &[(Generated, Answer)]| {
            let recorded = answers.iter().flat_map(|(_, answer)| &answer.tokens);
            let pairs = recorded.zip(logprobs.by_ref());
            let differences = pairs.map(|(token, ours)| f64::from((token.logprob - ours).abs()));
            let differences: Vec<f64> = differences.collect();
            differences.iter().sum::<f64>() / differences.len() as f64
        };
        let means: Vec<f64> = served.chunks(ANSWERS).map(of_prompt).collect();
        let mean = means.iter().sum::<f64>() / PROMPTS as f64;
        let squares: f64 = means.iter().map(|of_prompt| (of_prompt - mean).powi(2)).sum();
        Mismatch { mean, error: (squares / ((PROMPTS - 1) * PROMPTS) as f64).sqrt() }
    }

    /// It is at most `share` of the other, or more by what chance explains: two standard errors.
    fn is_at_most(self, share: f64, other: Mismatch) -> bool {
        self.mean - share * other.mean <= 2.0 * self.error.hypot(share * other.error)
    }
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(to, "{:.5} ± {:.5}", self.mean, self.error)
    }
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// The share of the recorded choices that a live pass has made otherwise.
fn flipped(live: &Learned, served: &[(Generated, Answer)]) -> f64 {
    let layout = ExpertLayout {
        experts: EXPERTS.count as u16,
        used: EXPERTS.used as u16,
        layers: SIZES.layers as u16,
    };
    let (mut first, mut choices, mut other) = (0, 0, 0);
    for (generated, answer) in served {
        let rows = generated.prompt.len() - generated.adapter_from + answer.tokens.len() - 1;
        let ids = answer.experts.as_ref().unwrap().ids(layout).unwrap();
        for (index, recorded) in ids.chunks(EXPERTS.used).enumerate() {
            let (row, layer) = (first + index / SIZES.layers, index % SIZES.layers);
            let live = &live.chosen[layer][row * EXPERTS.used..][..EXPERTS.used];
            if recorded[0] != NOT_CHOSEN {
                choices += recorded.len();
                other += recorded.iter().filter(|id| !live.contains(id)).count();
            }
        }
        first += rows;
    }
    other as f64 / choices as f64
}

/// The choices that the engine reads of llama.cpp are those of the learner on the same weights, but
/// for the few choices that rounding changes. Rows or layers that were mixed up would agree in an
/// eighth. To go through the experts that a learner has chosen itself changes no bit.
#[test]
fn the_engine_records_what_the_learner_would_choose() {
    let files = Files::write(Matrices::F32);
    let model = model(&files.clean());
    let lora = adapter(&model, RANK);
    let served = served(&files.clean(), &lora, &model);
    let live = learned(&model, &model, &lora, &served, Choice::Live);
    let rounded = flipped(&live, &served);
    assert!(rounded <= ROUNDED_MAX, "{rounded}");
    let again = learned(&model, &model, &lora, &served, Choice::As(&live));
    assert_eq!(live.logprobs, again.logprobs);
    assert_eq!(live.gradient, again.gradient);
}

/// A prompt that shares its beginning with an earlier one, and an answer that is given again, have
/// the record that a new engine gives them.
#[test]
fn what_is_not_computed_again_keeps_its_experts() {
    let files = Files::write(Matrices::F32);
    let template = template("qwen2.5-coder").unwrap();
    let mut engine = engine(&files.clean(), template);
    let layout = model(&files.clean()).shape.expert_layout().unwrap();
    let record = |engine: &mut engine::llama::LlamaEngine, place: [&str; 2]| {
        let generated = generate(engine, place, 0, 0.0, 0);
        let answer = &generated.answers[0];
        let rows = generated.prompt.len() - generated.adapter_from + answer.tokens.len() - 1;
        let ids = answer.experts.as_ref().unwrap().ids(layout).unwrap();
        assert_eq!(ids.len(), rows * SIZES.layers * EXPERTS.used, "{place:?}");
        assert!(ids[..(SIZES.layers - 1) * EXPERTS.used].iter().all(|id| *id != NOT_CHOSEN));
        (generated.prompt_reused, ids)
    };
    let [first, second] = ["abcab fn", "f a(b)"];
    // The same line, more and less of it, another one between, and the first again.
    let places = [
        [first, "ab"],
        [first, "ab cd"],
        [first, "ab c"],
        [first, "ab c"],
        [second, "mn"],
        [first, "ab"],
    ];
    let mut reused = vec![];
    for place in places {
        let (tokens, ids) = record(&mut engine, place);
        reused.push(tokens > 0);
        let mut new = parity::engine(&files.clean(), template);
        let (_, expected) = record(&mut new, place);
        let pairs = ids.chunks(EXPERTS.used).zip(expected.chunks(EXPERTS.used));
        let other = pairs.map(|(ids, new)| ids.iter().filter(|id| !new.contains(id)).count());
        // A batch of another size may round otherwise.
        let other = other.sum::<usize>() as f64 / expected.len() as f64;
        assert!(other <= ROUNDED_MAX, "{place:?}: {other}");
    }
    assert!(reused[1..4].iter().all(|reused| *reused) && reused[5], "{reused:?}");
}

/// The results of a learner on the same answers, with its own choices and with the recorded ones.
struct Compared {
    mismatch: [Mismatch; 2],
    cosine: [f64; 2],
}

impl Compared {
    fn print(&self, name: &str) {
        let Compared { mismatch: [live, replay], cosine: [live_cosine, replay_cosine] } = self;
        println!(
            "  {name}: mismatch live {live}, replay {replay}; cosine live {live_cosine:.4}, \
             replay {replay_cosine:.4}"
        );
    }
}

/// The rule of docs/lab/experts.md. Where the noise changes the choice alone, replay leaves no more
/// than there is without noise. Where it reaches the weights of the experts and the prompts too,
/// replay does not know of it; the direction of the gradient is right all the same.
#[test]
fn replay_removes_what_other_choices_of_the_server_add() {
    for matrices in [Matrices::F16, Matrices::Q8_0] {
        let files = Files::write(matrices);
        let (clean, noisy) = (model(&files.clean()), model(&files.noisy()));
        let lora = adapter(&clean, RANK);
        let quiet = served(&files.clean(), &lora, &clean);
        let loud = served(&files.noisy(), &lora, &clean);
        let of_quiet =
            |choice| Mismatch::of(&learned(&clean, &clean, &lora, &quiet, choice), &quiet);
        let without_noise = [of_quiet(Choice::Live), of_quiet(Choice::Replay)];

        let whole = learned(&clean, &clean, &lora, &loud, Choice::Live);
        let tail = learned(&noisy, &clean, &lora, &loud, Choice::Live);
        let choice_alone = learned(&noisy, &noisy, &lora, &loud, Choice::As(&tail));
        let exact = learned(&noisy, &noisy, &lora, &loud, Choice::Replay);
        let compared = |live: &Learned, replay: &Learned| Compared {
            mismatch: [Mismatch::of(live, &loud), Mismatch::of(replay, &loud)],
            cosine: [
                cosine(&live.gradient, &exact.gradient),
                cosine(&replay.gradient, &exact.gradient),
            ],
        };
        let of_whole = compared(&whole, &learned(&clean, &clean, &lora, &loud, Choice::Replay));
        let of_tail = compared(&tail, &learned(&noisy, &clean, &lora, &loud, Choice::Replay));
        let of_choice = compared(&choice_alone, &exact);

        println!(
            "{matrices:?}: {} tokens, {:.1} % of the choices are others, mismatch without noise: \
             live {}, replay {}",
            exact.logprobs.len(),
            100.0 * flipped(&tail, &loud),
            without_noise[0],
            without_noise[1]
        );
        of_choice.print("noise of the choice alone");
        of_tail.print("noise of the router behind adapter_from");
        of_whole.print("noise of the router everywhere");
        assert!(FLIPPED.contains(&flipped(&tail, &loud)), "{}", flipped(&tail, &loud));
        assert!(of_choice.mismatch[1].is_at_most(1.1, without_noise[1]), "replay leaves more");
        assert!(!of_choice.mismatch[0].is_at_most(1.5, without_noise[0]), "noise does nothing");
        for Compared { mismatch: [live, replay], cosine: [_, cosine] } in
            [&of_choice, &of_tail, &of_whole]
        {
            let is_less = replay.mean < live.mean;
            assert!(is_less && *cosine >= 0.99, "{replay} for {live}, cosine {cosine}");
        }
        let [live, replay] = of_choice.cosine.map(|cosine| 1.0 - cosine);
        assert!(live > 10.0 * replay, "without replay the gradient is another: {live}, {replay}");
    }
}
