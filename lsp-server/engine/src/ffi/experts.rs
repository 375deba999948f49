//! Reads which experts a mixture of experts chooses, while llama.cpp computes.
//!
//! llama.cpp calls back for every tensor of its graph. A tensor that is asked for is computed and
//! waited for there, which takes time on a GPU, so that only a context of such a model calls back.

use super::sys;
use feedback::experts::ExpertLayout;
use parking_lot::Mutex;
use std::ffi::{CStr, c_void};

/// The name of the tensor with a layer's choices, before the number of the layer. Its rows are
/// those of the tokens, and its type is I32.
const CHOSEN: &[u8] = b"ffn_moe_topk-";

/// Collects the choices of the tokens of one decode.
pub struct ExpertReader {
    layout: ExpertLayout,
    /// As [`ExpertLayout`] lays them out. Empty while nobody wants to know.
    choices: Vec<u8>,
    /// The first token behind which there are logits. The last layer is computed only from it on.
    first_logits: usize,
    /// The rows of each layer that were read.
    read: Vec<usize>,
}

impl ExpertReader {
    pub fn new(layout: ExpertLayout) -> ExpertReader {
        let read = vec![0; usize::from(layout.layers)];
        ExpertReader { layout, choices: Vec::new(), first_logits: 0, read }
    }

    /// Begins with the next `tokens` tokens that are decoded, in the order of their positions.
    pub fn begin(&mut self, tokens: usize, first_logits: usize) {
        self.choices = self.layout.unknown(tokens);
        self.first_logits = first_logits;
        self.read.fill(0);
    }

    /// The choices since [`ExpertReader::begin`]. What was not computed is unknown.
    pub fn end(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.choices)
    }

    /// Notes the choices of a micro-batch in one layer. `row_bytes` is the stride of the rows,
    /// which hold the ranking of all experts and begin with the chosen ones.
    fn note(&mut self, layer: usize, rows: usize, row_bytes: usize, bytes: &[u8]) {
        let Some(read) = self.read.get_mut(layer) else { return };
        let is_last = layer + 1 == usize::from(self.layout.layers);
        let first = *read + if is_last { self.first_logits } else { 0 };
        *read += rows;
        let used = usize::from(self.layout.used);
        for row in 0..rows {
            let ids = bytes.get(row * row_bytes..).unwrap_or_default().as_chunks().0;
            let ids = ids.iter().take(used).map(|id| i32::from_le_bytes(*id));
            let ids: Vec<u16> = ids.map(|id| u16::try_from(id).unwrap_or(u16::MAX)).collect();
            self.layout.put(&mut self.choices, first + row, layer, &ids);
        }
    }
}

/// The layer whose choices a tensor has.
fn layer_of(name: &[u8]) -> Option<usize> {
    std::str::from_utf8(name.strip_prefix(CHOSEN)?).ok()?.parse().ok()
}

/// With `ask`, llama.cpp asks whether the tensor is wanted; without, the tensor is computed. False
/// would end the computation then.
///
/// # Safety
/// `tensor` is one of llama.cpp's graph, and `data` a `Mutex<ExpertReader>` that outlives the call.
pub unsafe extern "C" fn eval_callback(
    tensor: *mut sys::ggml_tensor,
    ask: bool,
    data: *mut c_void,
) -> bool {
    // SAFETY: as the caller promises. A tensor's name ends with a zero.
    let (tensor, name, reader) = unsafe {
        let name = CStr::from_ptr((*tensor).name.as_ptr());
        (&*tensor, name.to_bytes(), &*data.cast::<Mutex<ExpertReader>>())
    };
    let Some(layer) = layer_of(name) else { return !ask };
    let mut reader = reader.lock();
    if reader.choices.is_empty() {
        return !ask;
    }
    if ask {
        return true;
    }
    let [ids, rows, ..] = tensor.ne;
    let is_as_expected = tensor.type_ == sys::GGML_TYPE_I32
        && ids == i64::from(reader.layout.used)
        && tensor.nb[0] == size_of::<i32>();
    // SAFETY: the buffer has as many bytes as the tensor spans, gaps between its rows included.
    let bytes = unsafe {
        let mut bytes = vec![0u8; sys::ggml_nbytes(tensor)];
        sys::ggml_backend_tensor_get(tensor, bytes.as_mut_ptr().cast(), 0, bytes.len());
        bytes
    };
    if is_as_expected {
        reader.note(layer, usize::try_from(rows).unwrap_or(0), tensor.nb[1], &bytes);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: ExpertLayout = ExpertLayout { experts: 4, used: 2, layers: 2 };

    /// Rows of the ranking of four experts.
    fn ranking(rows: &[[i32; 4]]) -> Vec<u8> {
        rows.iter().flatten().flat_map(|id| id.to_le_bytes()).collect()
    }

    #[test]
    fn the_choices_of_several_micro_batches_are_read_by_their_strides() {
        let mut reader = ExpertReader::new(LAYOUT);
        reader.begin(3, 1);
        reader.note(0, 2, 16, &ranking(&[[1, 0, 2, 3], [3, 2, 1, 0]]));
        reader.note(1, 1, 16, &ranking(&[[2, 3, 0, 1]]));
        // The last row has no ranking behind the chosen ones.
        reader.note(0, 1, 16, &ranking(&[[0, 1, 2, 3]])[..8]);
        reader.note(1, 1, 16, &ranking(&[[1, 2, 3, 0]])[..8]);
        reader.note(2, 1, 16, &ranking(&[[1, 2, 3, 0]]));
        assert_eq!(reader.end(), [1, 0, 255, 255, 3, 2, 2, 3, 0, 1, 1, 2]);
        reader.begin(1, 0);
        reader.note(0, 1, 16, &ranking(&[[-1, 9, 0, 0]]));
        assert_eq!(reader.end(), [255; 4], "no expert has such a number");
    }

    #[test]
    fn a_layer_is_known_by_the_tensors_name() {
        assert_eq!(layer_of(b"ffn_moe_topk-12"), Some(12));
        for other in [&b"ffn_moe_topk"[..], b"ffn_moe_topk-", b"ffn_moe_topk-1a", b"ffn_moe_out-1"]
        {
            assert_eq!(layer_of(other), None);
        }
    }
}
