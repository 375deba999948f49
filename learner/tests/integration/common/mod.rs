//! Tiny random models: in memory in any precision, and as GGUF files.

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use feedback::episode::Episode;
use feedback::event::{
    Completion, Evidence, Outcome, Sampling, StopReason, Timing, TokenRecord, Typed,
};
use feedback::job::{Base, Hyper, JOB_FORMAT, Job, Train};
use learner::kernels::float::Float;
use learner::kernels::matrix;
use learner::kernels::norm::Norm;
use learner::model::Transformer;
use learner::model::load::load;
use learner::model::lora::{Lora, LoraLayer};
use learner::model::weights::{
    Expert, Experts, Layer, LinearMap, MAPS, Shape, VocabularyMatrix, Weight,
};
use models::gguf::Gguf;
use models::random_model::tiny::{Form, Matrices, Sizes, TOKENS as TINY_TOKENS};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::sync::Arc;

/// The rows of a vocabulary block of the models in memory.
const BLOCK_ROWS: usize = 7;

/// The architectures of [`write_gguf`].
pub const ARCHITECTURES: [&str; 2] = ["qwen2", "llama"];

pub fn random<T: Float>(random: &mut StdRng, count: usize, size: f64) -> Vec<T> {
    (0..count).map(|_| T::from_f64(random.random_range(-size..size))).collect()
}

/// The smallest model of a form (`models::random_model::tiny`), in any precision. Its vocabulary
/// has several blocks.
pub fn model<T: Float>(form: &Form, seed: u64) -> Transformer<T> {
    let file = tempfile::NamedTempFile::new().unwrap();
    form.write(Sizes::SMALLEST, Matrices::F32, seed, file.path()).unwrap();
    let model = load(&Gguf::open(file.path()).unwrap()).unwrap();
    let embedding = Arc::new(vocabulary::<T>(&model.embedding));
    let is_tied = Arc::ptr_eq(&model.embedding, &model.head);
    assert_eq!(is_tied, form.is_tied, "{}", form.name);
    let layers = model.layers.iter().map(|layer| Layer {
        attention_norm: norm(&layer.attention_norm),
        feed_forward_norm: norm(&layer.feed_forward_norm),
        head_norms: layer.head_norms.as_ref().map(|norms| norms.each_ref().map(norm)),
        maps: layer.maps.iter().map(linear_map).collect(),
        experts: layer.experts.as_ref().map(experts::<T>),
    });
    Transformer {
        layers: layers.collect(),
        head: if is_tied { embedding.clone() } else { Arc::new(vocabulary::<T>(&model.head)) },
        embedding,
        output_norm: norm(&model.output_norm),
        shape: model.shape,
        rope: model.rope,
        unit: None,
        #[cfg(feature = "cuda")]
        gpu: None,
    }
}

fn wider<T: Float>(values: &[f32]) -> Vec<T> {
    values.iter().map(|value| T::from_f64(f64::from(*value))).collect()
}

fn norm<T: Float>(norm: &Norm<f32>) -> Norm<T> {
    let bias = norm.bias.as_deref().map(wider);
    Norm { kind: norm.kind, weight: wider(&norm.weight), bias, epsilon: norm.epsilon }
}

fn plain<T: Float>(weight: &Weight) -> Weight {
    let rows = weight.rows().unwrap();
    let values = weight.rows_of::<T>(&(0..rows as u32).collect::<Vec<_>>()).unwrap();
    let width = values.len() / rows;
    Weight::Plain(matrix(values, rows, width).unwrap())
}

fn experts<T: Float>(experts: &Experts) -> Experts {
    let of = experts.experts.iter().map(|Expert { gate, up, down }| Expert {
        gate: plain::<T>(gate),
        up: plain::<T>(up),
        down: plain::<T>(down),
    });
    Experts { router: plain::<T>(&experts.router), experts: of.collect() }
}

fn linear_map<T: Float>(map: &LinearMap<f32>) -> LinearMap<T> {
    LinearMap { weight: plain::<T>(&map.weight), bias: map.bias.as_deref().map(wider) }
}

fn vocabulary<T: Float>(whole: &VocabularyMatrix) -> VocabularyMatrix {
    let rows: Vec<u32> = (0..TINY_TOKENS.len() as u32).collect();
    let blocks = rows.chunks(BLOCK_ROWS).map(|rows| {
        let values = whole.blocks[0].rows_of::<T>(rows).unwrap();
        Weight::Plain(matrix(values, rows.len(), whole.width).unwrap())
    });
    VocabularyMatrix::new(blocks.collect(), BLOCK_ROWS, whole.width)
}

/// An adapter in which neither factor is zero.
pub fn adapter<T: Float>(shape: &Shape, rank: usize, seed: u64) -> Lora {
    let rng = &mut StdRng::seed_from_u64(seed);
    let layers = (0..shape.layers)
        .map(|_| {
            shape
                .maps()
                .iter()
                .map(|map| {
                    let (rows_out, rows_in) = shape.map(*map);
                    LoraLayer {
                        a: matrix(random::<T>(rng, rank * rows_in, 0.4), rank, rows_in).unwrap(),
                        b: matrix(random::<T>(rng, rows_out * rank, 0.4), rows_out, rank).unwrap(),
                    }
                })
                .collect()
        })
        .collect();
    Lora { rank, shared_rank: 0, alpha: 3.0, layers }
}

/// The texts of the tokens in the file's vocabulary: those of the tiny models, with line breaks.
/// The last three are control tokens.
pub const TOKENS: [&str; TINY_TOKENS.len()] = {
    let mut tokens = TINY_TOKENS;
    tokens[NEWLINE as usize] = "Ċ";
    tokens[CLOSED_BEFORE_AN_EMPTY_LINE as usize] = ")ĊĊ";
    tokens[CLOSED as usize] = ")Ċ";
    tokens
};
pub const NEWLINE: u32 = 24;
pub const CLOSED_BEFORE_AN_EMPTY_LINE: u32 = 35;
pub const CLOSED: u32 = 36;
pub const MIDDLE: u32 = 39;

/// Writes a model of width 32 whose matrices are Q8_0. Returns its SHA-256.
pub fn write_gguf(path: &Path, architecture: &str, seed: u64) -> String {
    let rng = &mut StdRng::seed_from_u64(seed);
    let (width, feed_forward, layers, heads, kv_heads) = (32usize, 64usize, 2usize, 4u32, 2u32);
    let kv = width / 2;
    let mut tensors: Vec<(String, QTensor)> = Vec::new();
    let mut add = |name: String, rows: usize, width: usize, dtype: GgmlDType| {
        let (shape, values): (Vec<usize>, Vec<f32>) = if rows == 0 {
            (vec![width], (0..width).map(|_| rng.random_range(0.5..1.5)).collect())
        } else {
            (vec![rows, width], random(rng, rows * width, 1.5 / (width as f64).sqrt()))
        };
        let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
        tensors.push((name, QTensor::quantize(&tensor, dtype).unwrap()));
    };
    add("token_embd.weight".into(), TOKENS.len(), width, GgmlDType::Q8_0);
    add("output_norm.weight".into(), 0, width, GgmlDType::F32);
    for layer in 0..layers {
        add(format!("blk.{layer}.attn_norm.weight"), 0, width, GgmlDType::F32);
        add(format!("blk.{layer}.ffn_norm.weight"), 0, width, GgmlDType::F32);
        let rows = [width, kv, kv, width, feed_forward, feed_forward, width];
        let columns = [width, width, width, width, width, width, feed_forward];
        for (map, name) in MAPS.iter().enumerate() {
            add(format!("blk.{layer}.{name}.weight"), rows[map], columns[map], GgmlDType::Q8_0);
            if map < 3 && architecture == "qwen2" {
                add(format!("blk.{layer}.{name}.bias"), 0, rows[map], GgmlDType::F32);
            }
        }
    }
    let key = |key: &str| format!("{architecture}.{key}");
    let texts = TOKENS.iter().map(|text| Value::String((*text).to_owned())).collect();
    let types = (0..TOKENS.len()).map(|id| Value::I32(if id >= 37 { 3 } else { 1 })).collect();
    let metadata = [
        ("general.architecture".to_owned(), Value::String(architecture.to_owned())),
        (key("block_count"), Value::U32(layers as u32)),
        (key("context_length"), Value::U32(256)),
        (key("embedding_length"), Value::U32(width as u32)),
        (key("feed_forward_length"), Value::U32(feed_forward as u32)),
        (key("attention.head_count"), Value::U32(heads)),
        (key("attention.head_count_kv"), Value::U32(kv_heads)),
        (key("attention.layer_norm_rms_epsilon"), Value::F32(1e-6)),
        (key("rope.freq_base"), Value::F32(10_000.0)),
        ("tokenizer.ggml.model".to_owned(), Value::String("gpt2".into())),
        ("tokenizer.ggml.tokens".to_owned(), Value::Array(texts)),
        ("tokenizer.ggml.token_type".to_owned(), Value::Array(types)),
    ];
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(k, v)| (k.as_str(), v)).collect();
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(n, t)| (n.as_str(), t)).collect();
    let mut file = std::fs::File::create(path).unwrap();
    gguf_file::write(&mut file, &metadata, &tensors).unwrap();
    models::file::sha256(path).unwrap()
}

/// An episode: the completion `tokens` after a short FIM prompt, shown as a whole, and its
/// outcome.
pub fn episode(seq: u64, base_sha256: &str, tokens: &[u32], outcome: Outcome) -> Episode {
    let shown: String = tokens.iter().map(|id| TOKENS[*id as usize]).collect();
    Episode {
        seq,
        completion: Completion {
            id: format!("offer-{seq}"),
            path: "src/lib.rs".into(),
            context: vec![],
            real_names: vec![],
            language: "rust".into(),
            model_sha256: base_sha256.to_owned(),
            adapter: 0,
            sampling: Sampling::GREEDY,
            prompt: vec![37, 34, 0, 28, 38, 29, 30, seq as u32 % 20, MIDDLE],
            adapter_from: 8,
            healing: String::new(),
            tokens: tokens.iter().map(|id| TokenRecord { id: *id, logprob: -3.0 }).collect(),
            stop: StopReason::MaxTokens,
            shown,
            shown_from: 0,
            timing: Timing::default(),
            decision: Default::default(),
            typed: Typed::default(),
            experts: None,
        },
        shown: true,
        outcome: Some((outcome, Evidence::Command)),
        hurried: false,
        replacement: None,
        kept: None,
    }
}

/// A job on the model at `folder/base.gguf` with a small adapter.
pub fn job(folder: &Path, base_sha256: &str, name: &str, episodes: Vec<Episode>) -> Job {
    Job {
        format: JOB_FORMAT,
        id: name.to_owned(),
        base: Base { path: folder.join("base.gguf"), sha256: base_sha256.to_owned() },
        parent: None,
        train: Train::default(),
        candidate: 1,
        adapter_out: folder.join(format!("{name}.gguf")),
        optimizer_out: folder.join(format!("{name}.opt")),
        seed: 7,
        hyper: Hyper {
            lora_rank: 4,
            lora_alpha: 8.0,
            learning_rate: 3e-3,
            demonstration_coefficient: 0.0,
            ..Hyper::default()
        },
        episodes,
        memory_limit_mb: 0,
    }
}
