//! Tiny models with random weights, at least one of each architecture that Hone learns on. Tests
//! compare the learner with llama.cpp and with central differences on them.

use super::blocks::Random;
use crate::experts::Experts;
use crate::gguf::Value;
use crate::gguf_write::Builder;
use half::f16;
use std::io;
use std::path::Path;

/// ggml's number for 16-bit floats.
const GGML_F16: u32 = 1;

/// ggml's number for blocks of 32 integers of 8 bits.
const GGML_Q8_0: u32 = 8;
const Q8_0_VALUES: usize = 32;

/// The texts of the vocabulary. The last four are special: the end of a text, and the markers of
/// FIM.
pub const TOKENS: [&str; 40] = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "g",
    "h",
    "i",
    "j",
    "k",
    "l",
    "m",
    "n",
    "o",
    "p",
    "q",
    "r",
    "s",
    "t",
    "ab",
    "abc",
    "ba",
    "cd",
    "u",
    "Ġ",
    "ĠĠ",
    "Ġa",
    "(",
    ")",
    ";",
    "=",
    "1",
    "2",
    "fn",
    "ef",
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
];

/// The number of special tokens at the end.
const SPECIAL_TOKENS: usize = 4;

#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_width: usize,
    pub feed_forward: usize,
}

impl Sizes {
    /// As small as central differences of every weight need. The heads are wider together than
    /// the model where the architecture allows it.
    pub const SMALLEST: Sizes =
        Sizes { layers: 2, width: 12, heads: 4, kv_heads: 2, head_width: 6, feed_forward: 20 };
    /// All rows are whole blocks of every format with blocks of 32.
    pub const SMALL: Sizes =
        Sizes { layers: 3, width: 64, heads: 4, kv_heads: 2, head_width: 32, feed_forward: 96 };
}

/// The number format of the matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matrices {
    F32,
    F16,
    Q8_0,
}

/// A form of an architecture: what its files have that others lack.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub name: &'static str,
    pub architecture: &'static str,
    /// True if the heads of q are as wide together as the model.
    pub heads_fill_width: bool,
    pub is_gated: bool,
    /// True if norms have a mean and a bias (LayerNorm).
    pub norms_have_biases: bool,
    pub has_head_norms: bool,
    /// The maps that have a bias.
    pub biases: &'static [&'static str],
    /// True if the head is the embedding.
    pub is_tied: bool,
    pub has_rope_factors: bool,
    /// The experts of a layer and how many of them a token uses, if there are any.
    pub experts: Option<Experts>,
    /// Metadata next to the sizes, without the architecture's name.
    pub integers: &'static [(&'static str, u32)],
    pub floats: &'static [(&'static str, f32)],
    pub texts: &'static [(&'static str, &'static str)],
}

const MAPS: [&str; 7] =
    ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];

const LLAMA: Form = Form {
    name: "llama",
    architecture: "llama",
    heads_fill_width: false,
    is_gated: true,
    norms_have_biases: false,
    has_head_norms: false,
    biases: &[],
    is_tied: false,
    has_rope_factors: false,
    experts: None,
    integers: &[],
    floats: &[],
    texts: &[],
};

/// Every form. The names are unique.
pub const FORMS: &[Form] = &[
    Form {
        name: "qwen2",
        architecture: "qwen2",
        heads_fill_width: true,
        biases: &["attn_q", "attn_k", "attn_v"],
        is_tied: true,
        ..LLAMA
    },
    LLAMA,
    Form { name: "llama with a tied head and all biases", biases: &MAPS, is_tied: true, ..LLAMA },
    // DeepSeek-Coder.
    Form {
        name: "llama with linear RoPE scaling",
        floats: &[("rope.scaling.factor", 4.0)],
        texts: &[("rope.scaling.type", "linear")],
        ..LLAMA
    },
    // The tests have longer sequences than the context before it was stretched.
    Form {
        name: "llama with YaRN",
        integers: &[("rope.scaling.original_context_length", 12)],
        floats: &[("rope.scaling.factor", 4.0)],
        texts: &[("rope.scaling.type", "yarn")],
        ..LLAMA
    },
    // Llama 3.
    Form { name: "llama with RoPE factors", has_rope_factors: true, ..LLAMA },
    // The files of Granite 4 say that they have no experts.
    Form {
        name: "granite",
        architecture: "granite",
        integers: &[("expert_count", 0), ("expert_used_count", 0)],
        floats: &[
            ("embedding_scale", 3.0),
            ("residual_scale", 0.6),
            ("attention.scale", 0.4),
            ("logit_scale", 1.7),
        ],
        is_tied: true,
        ..LLAMA
    },
    Form { name: "qwen3", architecture: "qwen3", has_head_norms: true, is_tied: true, ..LLAMA },
    // Qwen's models for long contexts.
    Form {
        name: "qwen3 with YaRN and a factor of attention",
        architecture: "qwen3",
        has_head_norms: true,
        integers: &[("rope.scaling.original_context_length", 14)],
        floats: &[("rope.scaling.factor", 2.0), ("rope.scaling.attn_factor", 1.3)],
        texts: &[("rope.scaling.type", "yarn")],
        ..LLAMA
    },
    Form {
        name: "starcoder2",
        architecture: "starcoder2",
        heads_fill_width: true,
        is_gated: false,
        norms_have_biases: true,
        biases: &MAPS,
        ..LLAMA
    },
    Form { name: "gemma", architecture: "gemma", is_tied: true, ..LLAMA },
    Form {
        name: "qwen3moe",
        architecture: "qwen3moe",
        has_head_norms: true,
        experts: Some(Experts { count: 8, used: 3 }),
        ..LLAMA
    },
];

/// The form with this name.
pub fn form(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| form.name == name)
}

impl Form {
    /// The sizes of this form: `sizes`, with fewer heads if they must fill the width.
    fn sizes(&self, sizes: Sizes) -> Sizes {
        if !self.heads_fill_width {
            return sizes;
        }
        let heads = sizes.width / sizes.head_width;
        Sizes { heads, kv_heads: (heads * sizes.kv_heads / sizes.heads).max(1), ..sizes }
    }

    /// Writes a model. The same seed gives the same bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(
        &self,
        sizes: Sizes,
        matrices: Matrices,
        seed: u64,
        path: &Path,
    ) -> io::Result<()> {
        let sizes = self.sizes(sizes);
        let builder = self.metadata(&sizes);
        let random = Random::new(seed, 0);
        let mut tensors = Tensors { builder, random, matrices };
        tensors.matrix("token_embd.weight", TOKENS.len(), sizes.width);
        if !self.is_tied {
            tensors.matrix("output.weight", TOKENS.len(), sizes.width);
        }
        if self.has_rope_factors {
            tensors.vector("rope_freqs.weight", sizes.head_width / 2, 2.0, 1.0);
        }
        self.norm(&mut tensors, "output_norm", sizes.width);
        let (q, kv) = (sizes.heads * sizes.head_width, sizes.kv_heads * sizes.head_width);
        let (width, feed_forward) = (sizes.width, sizes.feed_forward);
        let shapes = [
            (q, width),
            (kv, width),
            (kv, width),
            (width, q),
            (feed_forward, width),
            (feed_forward, width),
            (width, feed_forward),
        ];
        for layer in 0..sizes.layers {
            let name = |part: &str| format!("blk.{layer}.{part}");
            self.norm(&mut tensors, &name("attn_norm"), width);
            self.norm(&mut tensors, &name("ffn_norm"), width);
            if self.has_head_norms {
                tensors.vector(&name("attn_q_norm.weight"), sizes.head_width, 1.0, 0.5);
                tensors.vector(&name("attn_k_norm.weight"), sizes.head_width, 1.0, 0.5);
            }
            for (map, (rows, columns)) in MAPS.iter().zip(shapes) {
                if (*map == "ffn_gate" && !self.is_gated)
                    || (map.starts_with("ffn_") && self.experts.is_some())
                {
                    continue;
                }
                tensors.matrix(&name(&format!("{map}.weight")), rows, columns);
                if self.biases.contains(map) {
                    tensors.vector(&name(&format!("{map}.bias")), rows, 0.0, 0.3);
                }
            }
            if let Some(Experts { count, .. }) = self.experts {
                tensors.router(&name("ffn_gate_inp.weight"), count, width);
                tensors.stack(&name("ffn_gate_exps.weight"), count, feed_forward, width);
                tensors.stack(&name("ffn_up_exps.weight"), count, feed_forward, width);
                tensors.stack(&name("ffn_down_exps.weight"), count, width, feed_forward);
            }
        }
        std::fs::write(path, tensors.builder.finish())
    }

    fn norm(&self, tensors: &mut Tensors, name: &str, width: usize) {
        tensors.vector(&format!("{name}.weight"), width, 1.0, 0.5);
        if self.norms_have_biases {
            tensors.vector(&format!("{name}.bias"), width, 0.0, 0.3);
        }
    }

    fn metadata(&self, sizes: &Sizes) -> Builder {
        let mut builder = Builder::default();
        let key = |name: &str| format!("{}.{name}", self.architecture);
        builder.string("general.architecture", self.architecture);
        for (name, size) in [
            ("block_count", sizes.layers),
            ("context_length", 256),
            ("embedding_length", sizes.width),
            ("feed_forward_length", sizes.feed_forward),
            ("attention.head_count", sizes.heads),
            ("attention.head_count_kv", sizes.kv_heads),
            ("attention.key_length", sizes.head_width),
            ("attention.value_length", sizes.head_width),
            ("rope.dimension_count", sizes.head_width),
        ] {
            builder.u32(&key(name), size as u32);
        }
        if let Some(Experts { count, used }) = self.experts {
            builder.u32(&key("expert_count"), count as u32);
            builder.u32(&key("expert_used_count"), used as u32);
            builder.u32(&key("expert_feed_forward_length"), sizes.feed_forward as u32);
        }
        let epsilon = if self.norms_have_biases {
            "attention.layer_norm_epsilon"
        } else {
            "attention.layer_norm_rms_epsilon"
        };
        builder.f32(&key(epsilon), 1e-5);
        builder.f32(&key("rope.freq_base"), 100.0);
        self.integers.iter().for_each(|(name, number)| builder.u32(&key(name), *number));
        self.floats.iter().for_each(|(name, number)| builder.f32(&key(name), *number));
        self.texts.iter().for_each(|(name, text)| builder.string(&key(name), text));

        let texts = |texts: &[&str]| {
            Value::Array(texts.iter().map(|text| Value::String((*text).to_owned())).collect())
        };
        let types = (0..TOKENS.len()).map(|token| {
            // ggml's numbers for normal and for control tokens.
            Value::I32(if token + SPECIAL_TOKENS < TOKENS.len() { 1 } else { 3 })
        });
        builder.string("tokenizer.ggml.model", "gpt2");
        builder.value("tokenizer.ggml.tokens", &texts(&TOKENS));
        builder.value("tokenizer.ggml.token_type", &Value::Array(types.collect()));
        builder.value("tokenizer.ggml.merges", &texts(&["a b"]));
        builder.u32("tokenizer.ggml.eos_token_id", (TOKENS.len() - SPECIAL_TOKENS) as u32);
        builder.value("tokenizer.ggml.add_bos_token", &Value::Bool(false));
        builder
    }
}

struct Tensors {
    builder: Builder,
    random: Random,
    matrices: Matrices,
}

impl Tensors {
    /// Values are uniform, and rows are about as long as those of a real model.
    fn matrix(&mut self, name: &str, rows: usize, columns: usize) {
        let values = self.values(rows, columns);
        self.add(name, &[columns as u64, rows as u64], &values);
    }

    /// The matrices of all experts, one after the other.
    fn stack(&mut self, name: &str, count: usize, rows: usize, columns: usize) {
        let values = self.values(count * rows, columns);
        self.add(name, &[columns as u64, rows as u64, count as u64], &values);
    }

    /// The matrix that gives each expert its logit. Real files have it in 32 bits.
    fn router(&mut self, name: &str, experts: usize, columns: usize) {
        let values = self.values(experts, columns);
        self.builder.tensor(name, &[columns as u64, experts as u64], &values);
    }

    fn values(&mut self, rows: usize, columns: usize) -> Vec<f32> {
        let spread = 1.5 / (columns as f32).sqrt();
        (0..rows * columns).map(|_| spread * self.random.number()).collect()
    }

    fn add(&mut self, name: &str, dims: &[u64], values: &[f32]) {
        match self.matrices {
            Matrices::F32 => self.builder.tensor(name, dims, values),
            Matrices::F16 => {
                let halves = values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes());
                self.builder.tensor_of(name, dims, GGML_F16, halves);
            }
            Matrices::Q8_0 => self.builder.tensor_of(name, dims, GGML_Q8_0, q8_0(values)),
        }
    }

    fn vector(&mut self, name: &str, length: usize, middle: f32, spread: f32) {
        let values: Vec<f32> =
            (0..length).map(|_| middle + spread * self.random.number()).collect();
        self.builder.tensor(name, &[length as u64], &values);
    }
}

/// Blocks of a scale and 32 integers.
fn q8_0(values: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() / Q8_0_VALUES * (2 + Q8_0_VALUES));
    for block in values.as_chunks::<Q8_0_VALUES>().0 {
        let largest = block.iter().fold(0f32, |largest, value| largest.max(value.abs()));
        let scale = f16::from_f32(largest / 127.0);
        bytes.extend(scale.to_le_bytes());
        bytes.extend(block.iter().map(|value| (value / scale.to_f32()).round() as i8 as u8));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::{GGML_F32, Gguf};

    #[test]
    fn each_form_is_a_whole_file_and_its_name_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.gguf");
        for tiny in FORMS {
            for (matrices, expected) in
                [(Matrices::F32, GGML_F32), (Matrices::F16, GGML_F16), (Matrices::Q8_0, GGML_Q8_0)]
            {
                tiny.write(Sizes::SMALL, matrices, 1, &path).unwrap();
                let gguf = Gguf::open(&path).unwrap();
                let down = if tiny.experts.is_some() { "ffn_down_exps" } else { "ffn_down" };
                let ggml_type = gguf.tensor(&format!("blk.2.{down}.weight")).unwrap().ggml_type;
                assert_eq!(ggml_type, expected, "{}", tiny.name);
            }
            assert_eq!(form(tiny.name).unwrap().name, tiny.name);
            let same = FORMS.iter().filter(|other| other.name == tiny.name).count();
            assert_eq!(same, 1, "{}", tiny.name);
        }
    }
}
