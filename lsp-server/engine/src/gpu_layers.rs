//! How many of a model's layers go to the GPU: as many as its free memory holds
//! with their share of the KV cache, or what the user has said.

use models::gguf::Gguf;
use std::fmt;

/// Free memory that is left to others, in bytes: the desktop is drawn there, and
/// llama.cpp's own buffers come on top of what is counted here.
const LEFT_TO_OTHERS: u64 = 512 << 20;

/// Bytes of a number in the KV cache (f16).
const KV_BYTES: u64 = 2;

/// A GPU that this build can compute on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// As the engine names it.
    pub name: String,
    /// In bytes.
    pub free: u64,
}

/// Where a model is computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuLayers {
    /// What llama.cpp is told: layers, and one for the output behind them.
    pub gpu_layers: u32,
    gpu: Option<String>,
    all: u32,
}

/// What the layers of a model hold, in bytes.
#[derive(Debug, PartialEq, Eq)]
struct Weights {
    layers: Vec<u64>,
    /// The output behind them.
    output: u64,
    /// Of each layer's keys and values.
    kv: u64,
}

impl GpuLayers {
    /// `wanted`: layers that the user asks for. `cells`: of the KV cache.
    pub fn choose(gguf: &Gguf, gpu: Option<Gpu>, wanted: Option<u32>, cells: usize) -> GpuLayers {
        let weights = Weights::of(gguf, cells);
        let all = weights.layers.len() as u32 + 1;
        let gpu_layers = match &gpu {
            Some(gpu) => wanted.unwrap_or_else(|| weights.fitting(gpu.free)).min(all),
            None => 0,
        };
        let gpu = gpu.map(|gpu| gpu.name);
        GpuLayers { gpu_layers, gpu, all }
    }
}

impl fmt::Display for GpuLayers {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let GpuLayers { gpu_layers, all, .. } = self;
        match &self.gpu {
            Some(gpu) if gpu_layers == all => write!(f, "all layers on {gpu}"),
            Some(gpu) if *gpu_layers > 0 => {
                write!(f, "{gpu_layers} of {all} layers on {gpu}, the others on the CPU")
            }
            Some(gpu) => write!(f, "CPU; no layer fits on {gpu}, or none may"),
            None => write!(f, "CPU"),
        }
    }
}

impl Weights {
    fn of(gguf: &Gguf, cells: usize) -> Weights {
        let key = |name: &str| {
            let architecture = gguf.architecture().unwrap_or_default();
            gguf.u32(&format!("{architecture}.{name}"))
        };
        let count = key("block_count").unwrap_or_default();
        let mut weights =
            Weights { layers: vec![0; count as usize], output: 0, kv: kv_bytes(&key, cells) };
        for tensor in &gguf.tensors {
            let number = tensor.name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
            let number = number.and_then(|(number, _)| number.parse::<usize>().ok());
            match number.and_then(|number| weights.layers.get_mut(number)) {
                Some(layer) => *layer += tensor.bytes,
                // The embedding is copied where it serves as the output too.
                None => weights.output += tensor.bytes,
            }
        }
        weights
    }

    /// Layers that fit, the last first, as llama.cpp takes them.
    fn fitting(&self, free: u64) -> u32 {
        let mut room = free.saturating_sub(LEFT_TO_OTHERS);
        let needs = [self.output].into_iter();
        let needs = needs.chain(self.layers.iter().rev().map(|layer| layer + self.kv));
        let fits = |need: &u64| match room.checked_sub(*need) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        };
        needs.take_while(fits).count() as u32
    }
}

/// Keys and values of one layer.
fn kv_bytes(key: &dyn Fn(&str) -> Option<u32>, cells: usize) -> u64 {
    let number = |name: &str| u64::from(key(name).unwrap_or_default());
    let heads = number("attention.head_count").max(1);
    let width = key("attention.key_length").map(u64::from);
    let width = width.unwrap_or_else(|| number("embedding_length") / heads);
    let kv_heads = key("attention.head_count_kv").map_or(heads, u64::from);
    2 * KV_BYTES * kv_heads * width * cells as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn weights() -> Weights {
        Weights { layers: vec![100 * MIB; 24], output: 150 * MIB, kv: 4 * MIB }
    }

    #[test]
    fn as_many_layers_go_to_the_gpu_as_fit_beside_what_others_need() {
        let fitting = |free: u64| weights().fitting(LEFT_TO_OTHERS + free * MIB);
        assert_eq!(fitting(10_000), 25, "all, and the output");
        assert_eq!(fitting(150 + 24 * 104), 25);
        assert_eq!(fitting(150 + 24 * 104 - 1), 24);
        assert_eq!(fitting(150 + 104), 2);
        assert_eq!(fitting(149), 0);
        assert_eq!(weights().fitting(0), 0);
    }

    #[test]
    fn a_layers_keys_and_values_are_counted() {
        let of = |names: &'static [(&str, u32)]| {
            let key = move |name: &str| names.iter().find(|n| n.0 == name).map(|n| n.1);
            kv_bytes(&key, 1_000)
        };
        let qwen = of(&[
            ("embedding_length", 896),
            ("attention.head_count", 14),
            ("attention.head_count_kv", 2),
        ]);
        assert_eq!(qwen, 2 * 2 * 128 * 1_000);
        let wide = of(&[("attention.head_count", 4), ("attention.key_length", 256)]);
        assert_eq!(wide, 2 * 2 * 4 * 256 * 1_000);
    }

    #[test]
    fn it_says_where_a_model_is_computed() {
        let says = |gpu_layers, gpu: Option<&str>| {
            GpuLayers { gpu_layers, gpu: gpu.map(Into::into), all: 25 }.to_string()
        };
        assert_eq!(says(0, None), "CPU");
        assert_eq!(says(25, Some("CUDA0")), "all layers on CUDA0");
        assert_eq!(says(9, Some("CUDA0")), "9 of 25 layers on CUDA0, the others on the CPU");
        assert!(says(0, Some("Vulkan0")).starts_with("CPU; no layer"));
    }
}
