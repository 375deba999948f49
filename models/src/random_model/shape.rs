//! The shapes of real models, and the matrices that a model of a shape has.

use super::{Format, Random};
use crate::experts::Experts;

/// The spread of a logit of a plain word. At this spread a few tokens hold most of the probability,
/// as they do in a real model.
const LOGIT_SPREAD: f32 = 4.0;

/// The sizes of a model of qwen2, or of qwen3moe if it has experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_width: usize,
    /// The width between the maps of the feed-forward part, or of each expert.
    pub feed_forward: usize,
    pub experts: Option<Experts>,
    pub context: usize,
    /// True if the output has a matrix of its own. Otherwise it is the embedding.
    pub has_output: bool,
}

impl Shape {
    /// Qwen2.5-Coder of this size: `0.5b`, `1.5b` or `7b`; `30b-a3b` is Qwen3-Coder. `tiny` is the
    /// shape of no model, and lets programs be tried on a machine that is too slow for the others.
    ///
    /// All have an output of their own. With random weights, one matrix for both repeats the last
    /// token for ever, because a token's row is most like itself. What is computed is the same.
    pub fn named(name: &str) -> Option<Shape> {
        let shape = |layers, width, heads, kv_heads, feed_forward| Shape {
            layers,
            width,
            heads,
            kv_heads,
            head_width: width / heads,
            feed_forward,
            experts: None,
            context: 32_768,
            has_output: true,
        };
        Some(match name {
            "0.5b" => shape(24, 896, 14, 2, 4864),
            "tiny" => shape(2, 256, 4, 2, 512),
            "1.5b" => shape(28, 1536, 12, 2, 8960),
            "7b" => shape(28, 3584, 28, 4, 18_944),
            "30b-a3b" => Shape {
                head_width: 128,
                experts: Some(Experts { count: 128, used: 8 }),
                ..shape(48, 2048, 32, 4, 768)
            },
            _ => return None,
        })
    }

    pub(super) fn architecture(&self) -> &'static str {
        if self.experts.is_some() { "qwen3moe" } else { "qwen2" }
    }

    /// The metadata that state the sizes, without the architecture's name.
    pub(super) fn sizes(&self) -> Vec<(&'static str, u32)> {
        let mut sizes = vec![
            ("block_count", self.layers),
            ("context_length", self.context),
            ("embedding_length", self.width),
            ("feed_forward_length", self.feed_forward),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
        ];
        if let Some(Experts { count, used }) = self.experts {
            sizes.extend([
                ("attention.key_length", self.head_width),
                ("attention.value_length", self.head_width),
                ("expert_count", count),
                ("expert_used_count", used),
                ("expert_feed_forward_length", self.feed_forward),
            ]);
        }
        sizes.into_iter().map(|(key, size)| (key, size as u32)).collect()
    }

    pub(super) fn matrices(&self, vocabulary: usize) -> Vec<Matrix> {
        let Shape { layers, width, feed_forward, .. } = *self;
        let (q, kv) = (self.heads * self.head_width, self.kv_heads * self.head_width);
        let tokens = |name: &str, wide: bool, spread: f32| Matrix {
            of_tokens: true,
            spread: spread / (width as f32).sqrt(),
            ..Matrix::new(name.to_owned(), vocabulary, width, wide)
        };
        let mut matrices = vec![
            tokens("token_embd.weight", !self.has_output, LOGIT_SPREAD),
            Matrix::ones("output_norm.weight".to_owned(), width),
        ];
        if self.has_output {
            matrices.push(tokens("output.weight", true, LOGIT_SPREAD));
        }
        for layer in 0..layers {
            let name = |part: &str| format!("blk.{layer}.{part}");
            let wide = self.gets_more_bits(layer);
            let matrix = |part: &str, rows, columns, wide| {
                Matrix::new(name(&format!("{part}.weight")), rows, columns, wide)
            };
            // What is added to the residual stream is smaller, so that the sum over all layers
            // is not much larger than what one layer adds.
            let added = |matrix: Matrix| Matrix {
                spread: matrix.spread / (2.0 * layers as f32).sqrt(),
                ..matrix
            };
            matrices.extend([
                Matrix::ones(name("attn_norm.weight"), width),
                Matrix::ones(name("ffn_norm.weight"), width),
                matrix("attn_q", q, width, false),
                matrix("attn_k", kv, width, false),
                matrix("attn_v", kv, width, wide),
                added(matrix("attn_output", width, q, false)),
            ]);
            match self.experts {
                None => matrices.extend([
                    Matrix::zeros(name("attn_q.bias"), width),
                    Matrix::zeros(name("attn_k.bias"), kv),
                    Matrix::zeros(name("attn_v.bias"), kv),
                    matrix("ffn_gate", feed_forward, width, false),
                    matrix("ffn_up", feed_forward, width, false),
                    added(matrix("ffn_down", width, feed_forward, wide)),
                ]),
                Some(Experts { count, .. }) => matrices.extend([
                    Matrix::ones(name("attn_q_norm.weight"), self.head_width),
                    Matrix::ones(name("attn_k_norm.weight"), self.head_width),
                    matrix("ffn_gate_inp", count, width, false).in_full(),
                    matrix("ffn_gate_exps", feed_forward, width, false).times(count),
                    matrix("ffn_up_exps", feed_forward, width, false).times(count),
                    added(matrix("ffn_down_exps", width, feed_forward, wide)).times(count),
                ]),
            }
        }
        matrices
    }

    /// The rule of llama.cpp (`use_more_bits`): the first and the last eighth of the layers, and
    /// every third one between them.
    fn gets_more_bits(&self, layer: usize) -> bool {
        let eighth = self.layers / 8;
        layer < eighth || layer >= 7 * self.layers / 8 || (layer - eighth) % 3 == 2
    }
}

/// A tensor of a random model.
pub(super) struct Matrix {
    pub name: String,
    /// The rows of all matrices of a stack.
    pub rows: usize,
    width: usize,
    /// The matrices that stand one after the other in the tensor, if it has a third dimension.
    stack: Option<usize>,
    /// A vector has one row and one dimension.
    is_vector: bool,
    pub format: Format,
    /// The standard deviation of a value; the value itself in a vector.
    spread: f32,
    /// True if each row belongs to a token.
    pub of_tokens: bool,
}

impl Matrix {
    fn new(name: String, rows: usize, width: usize, wide: bool) -> Matrix {
        let format = Format::of_matrix(width, wide);
        let spread = 1.0 / (width as f32).sqrt();
        let (stack, is_vector, of_tokens) = (None, false, false);
        Matrix { name, rows, width, stack, is_vector, format, spread, of_tokens }
    }

    /// A stack of `count` matrices like this one.
    fn times(self, count: usize) -> Matrix {
        Matrix { rows: self.rows * count, stack: Some(count), ..self }
    }

    /// The same in 32 bits, as files have the router.
    fn in_full(self) -> Matrix {
        Matrix { format: Format::RandomF32, ..self }
    }

    fn ones(name: String, width: usize) -> Matrix {
        let (stack, is_vector, of_tokens) = (None, true, false);
        let (format, spread) = (Format::F32, 1.0);
        Matrix { name, rows: 1, width, stack, is_vector, format, spread, of_tokens }
    }

    fn zeros(name: String, width: usize) -> Matrix {
        Matrix { spread: 0.0, ..Matrix::ones(name, width) }
    }

    /// In ggml's order.
    pub fn dims(&self) -> Vec<u64> {
        match self.stack {
            _ if self.is_vector => vec![self.width as u64],
            None => vec![self.width as u64, self.rows as u64],
            Some(count) => vec![self.width as u64, (self.rows / count) as u64, count as u64],
        }
    }

    pub fn row_bytes(&self) -> usize {
        self.width / self.format.values() * self.format.bytes()
    }

    pub fn bytes(&self) -> usize {
        self.rows * self.row_bytes()
    }

    /// Appends the bytes of one row whose values are `size` times as large as usual.
    pub fn row(&self, size: f32, random: &mut Random, bytes: &mut Vec<u8>) {
        for _ in 0..self.width / self.format.values() {
            self.format.put(self.spread * size, random, bytes);
        }
    }
}
