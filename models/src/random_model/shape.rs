//! The shapes of real models, and the matrices that a model of a shape has.

use super::{Format, Random};

/// The spread of a logit of a plain word. At this spread a few tokens hold most of the probability,
/// as they do in a real model.
const LOGIT_SPREAD: f32 = 4.0;

/// The sizes of a qwen2 model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub feed_forward: usize,
    pub context: usize,
    /// Whether the output has a matrix of its own. Otherwise it is the embedding.
    pub has_output: bool,
}

impl Shape {
    /// Qwen2.5-Coder of this size: `0.5b`, `1.5b` or `7b`. `tiny` is the shape of no model, and
    /// lets programs be tried on a machine that is too slow for the others.
    ///
    /// All have an output of their own. With random weights, one matrix for both repeats the last
    /// token for ever, because a token's row is most like itself. What is computed is the same.
    pub fn named(name: &str) -> Option<Shape> {
        let (context, has_output) = (32_768, true);
        let shape = |layers, width, heads, kv_heads, feed_forward| {
            Some(Shape { layers, width, heads, kv_heads, feed_forward, context, has_output })
        };
        match name {
            "0.5b" => shape(24, 896, 14, 2, 4864),
            "tiny" => shape(2, 256, 4, 2, 512),
            "1.5b" => shape(28, 1536, 12, 2, 8960),
            "7b" => shape(28, 3584, 28, 4, 18_944),
            _ => None,
        }
    }

    /// The metadata that tell the sizes.
    pub(super) fn sizes(&self, architecture: &str) -> Vec<(String, u32)> {
        let sizes = [
            ("block_count", self.layers),
            ("context_length", self.context),
            ("embedding_length", self.width),
            ("feed_forward_length", self.feed_forward),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
        ];
        sizes.map(|(key, size)| (format!("{architecture}.{key}"), size as u32)).to_vec()
    }

    pub(super) fn matrices(&self, vocabulary: usize) -> Vec<Matrix> {
        let Shape { layers, width, feed_forward, .. } = *self;
        let kv = width / self.heads * self.kv_heads;
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
                matrix("attn_q", width, width, false),
                matrix("attn_k", kv, width, false),
                matrix("attn_v", kv, width, wide),
                Matrix::zeros(name("attn_q.bias"), width),
                Matrix::zeros(name("attn_k.bias"), kv),
                Matrix::zeros(name("attn_v.bias"), kv),
                added(matrix("attn_output", width, width, false)),
                matrix("ffn_gate", feed_forward, width, false),
                matrix("ffn_up", feed_forward, width, false),
                added(matrix("ffn_down", width, feed_forward, wide)),
            ]);
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
    pub rows: usize,
    width: usize,
    /// A vector has one row and one dimension.
    is_vector: bool,
    pub format: Format,
    /// The standard deviation of a value; the value itself in a vector.
    spread: f32,
    /// Whether each row belongs to a token.
    pub of_tokens: bool,
}

impl Matrix {
    fn new(name: String, rows: usize, width: usize, wide: bool) -> Matrix {
        let format = Format::of_matrix(width, wide);
        let spread = 1.0 / (width as f32).sqrt();
        Matrix { name, rows, width, is_vector: false, format, spread, of_tokens: false }
    }

    fn ones(name: String, width: usize) -> Matrix {
        let format = Format::F32;
        Matrix { name, rows: 1, width, is_vector: true, format, spread: 1.0, of_tokens: false }
    }

    fn zeros(name: String, width: usize) -> Matrix {
        Matrix { spread: 0.0, ..Matrix::ones(name, width) }
    }

    /// In ggml's order.
    pub fn dims(&self) -> Vec<u64> {
        if self.is_vector {
            vec![self.width as u64]
        } else {
            vec![self.width as u64, self.rows as u64]
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
