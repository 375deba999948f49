//! The number of layers of a model that are computed on the GPU: as many as its free memory holds
//! with their share of the KV cache, or as many as the user has set. If the GPU does not take them
//! after all, the CPU computes everything.

use models::gguf::Gguf;
use std::fmt;

/// Free memory that is left for others, in bytes: the desktop needs some, and llama.cpp's own
/// buffers come on top of what is counted here.
const LEFT_TO_OTHERS: u64 = 512 << 20;

/// Bytes of a number in the KV cache (f16).
const KV_BYTES: u64 = 2;

/// Tokens that a CPU computes at once. The abort callback is called between graph nodes, and an
/// aborted micro-batch is lost.
const CPU_MICRO_BATCH_TOKENS: usize = 64;

/// Tokens that a GPU computes at once. It reads all weights for each micro-batch, and has the time
/// of several hundred tokens to compute meanwhile.
const GPU_MICRO_BATCH_TOKENS: usize = 512;

/// The free memory, in bytes, that a GPU needs next to the model for the buffers of
/// [`GPU_MICRO_BATCH_TOKENS`]: each token has a row of logits there, of 4 bytes for each of some
/// 150,000 vocabulary entries, and the activations of a layer.
const GPU_BATCH_BYTES: u64 = 1 << 30;

/// A GPU that this build can compute on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// The engine's number for it.
    pub device: usize,
    /// The engine's name for it.
    pub name: String,
    /// Free memory in bytes.
    pub free: u64,
}

/// The device that a model is computed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuLayers {
    /// The number that llama.cpp gets: the layers, and one more for the output behind them.
    pub gpu_layers: u32,
    gpu: Option<Gpu>,
    all_layers: u32,
    /// Tokens to compute at once.
    pub micro_batch: usize,
    /// True if the GPU was tried and has failed.
    has_failed: bool,
}

/// The sizes of a model's layers in bytes.
#[derive(Debug, PartialEq, Eq)]
struct Weights {
    layers: Vec<u64>,
    /// The output behind the layers.
    output: u64,
    /// The keys and values of each layer.
    kv: u64,
}

impl GpuLayers {
    /// Chooses the layers for the GPU. `wanted` is the number that the user asks for; `cells` is
    /// the size of the KV cache.
    pub fn choose(gguf: &Gguf, gpu: Option<Gpu>, wanted: Option<u32>, cells: usize) -> GpuLayers {
        let weights = Weights::of(gguf, cells);
        let all_layers = weights.layers.len() as u32 + 1;
        let gpu_layers = match &gpu {
            Some(gpu) => wanted.unwrap_or_else(|| weights.fitting(gpu.free)).min(all_layers),
            None => 0,
        };
        let has_room = gpu
            .as_ref()
            .is_some_and(|gpu| gpu.free >= weights.bytes() + LEFT_TO_OTHERS + GPU_BATCH_BYTES);
        let micro_batch = if has_room && gpu_layers == all_layers {
            GPU_MICRO_BATCH_TOKENS
        } else {
            CPU_MICRO_BATCH_TOKENS
        };
        GpuLayers { gpu_layers, gpu, all_layers, micro_batch, has_failed: false }
    }

    /// The number of the GPU, if it gets any layer.
    pub fn device(&self) -> Option<usize> {
        self.gpu.as_ref().filter(|_| self.gpu_layers > 0).map(|gpu| gpu.device)
    }

    /// Loads a model here. If the GPU fails, because another process was faster or its driver is
    /// broken, the CPU takes its place: completions continue, and slower. Returns where it was
    /// loaded.
    ///
    /// # Errors
    /// The CPU cannot load it either.
    pub fn try_gpu<T>(
        self,
        load: impl Fn(&GpuLayers) -> Result<T, String>,
    ) -> Result<(T, GpuLayers), String> {
        match load(&self) {
            Err(error) if self.device().is_some() => {
                tracing::warn!("{error}; {self} was planned, and the CPU computes everything now");
                let cpu = self.without_gpu();
                load(&cpu).map(|loaded| (loaded, cpu))
            }
            loaded => loaded.map(|loaded| (loaded, self)),
        }
    }

    /// Returns where the model is computed after the GPU has failed: on the CPU alone.
    fn without_gpu(self) -> GpuLayers {
        let micro_batch = CPU_MICRO_BATCH_TOKENS;
        GpuLayers { gpu_layers: 0, micro_batch, has_failed: true, ..self }
    }
}

impl fmt::Display for GpuLayers {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let GpuLayers { gpu_layers, all_layers, .. } = self;
        match self.gpu.as_ref().map(|gpu| &gpu.name) {
            Some(gpu) if self.has_failed => write!(f, "CPU; {gpu} could not take the model"),
            Some(gpu) if gpu_layers == all_layers => write!(f, "all layers on {gpu}"),
            Some(gpu) if *gpu_layers > 0 => {
                write!(f, "{gpu_layers} of {all_layers} layers on {gpu}, the others on the CPU")
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
            gguf.u32_of_layers(&format!("{architecture}.{name}"))
        };
        let count = key("block_count").unwrap_or_default();
        let mut weights =
            Weights { layers: vec![0; count as usize], output: 0, kv: kv_bytes(&key, cells) };
        for tensor in &gguf.tensors {
            let number = tensor.name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
            let number = number.and_then(|(number, _)| number.parse::<usize>().ok());
            match number.and_then(|number| weights.layers.get_mut(number)) {
                Some(layer) => *layer += tensor.bytes,
                // The embedding is counted too, because it is copied where it serves as the output.
                None => weights.output += tensor.bytes,
            }
        }
        weights
    }

    /// All layers with their keys and values, and the output.
    fn bytes(&self) -> u64 {
        self.output + self.layers.iter().map(|layer| layer + self.kv).sum::<u64>()
    }

    /// The number of layers that fit, counted from the last one, as llama.cpp takes them.
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

/// The bytes of the keys and values of one layer.
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
    fn as_many_layers_go_to_the_gpu_as_fit_next_to_the_reserve() {
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
    fn the_text_for_the_user_tells_where_a_model_is_computed() {
        let placed = |gpu_layers, gpu: Option<&str>| GpuLayers {
            gpu_layers,
            gpu: gpu.map(|name| Gpu { device: 1, name: name.into(), free: 0 }),
            all_layers: 25,
            micro_batch: GPU_MICRO_BATCH_TOKENS,
            has_failed: false,
        };
        let shown = |gpu_layers, gpu| placed(gpu_layers, gpu).to_string();
        assert_eq!(shown(0, None), "CPU");
        assert_eq!(shown(25, Some("CUDA0")), "all layers on CUDA0");
        assert_eq!(shown(9, Some("CUDA0")), "9 of 25 layers on CUDA0, the others on the CPU");
        assert!(shown(0, Some("Vulkan0")).starts_with("CPU; no layer"));
        let failed = placed(25, Some("CUDA0")).without_gpu();
        assert_eq!(failed.to_string(), "CPU; CUDA0 could not take the model");
        assert_eq!((failed.gpu_layers, failed.device()), (0, None));
        assert_eq!(failed.micro_batch, CPU_MICRO_BATCH_TOKENS);
    }

    #[test]
    fn the_cpu_takes_the_place_of_a_gpu_that_fails() {
        let on = |gpu_layers| GpuLayers {
            gpu_layers,
            gpu: Some(Gpu { device: 3, name: "CUDA0".into(), free: 0 }),
            all_layers: 25,
            micro_batch: GPU_MICRO_BATCH_TOKENS,
            has_failed: false,
        };
        let fails_on_gpu = |layers: &GpuLayers| match layers.device() {
            Some(device) => Err(format!("device {device} has no memory")),
            None => Ok(layers.gpu_layers),
        };
        let (loaded, layers) = on(9).try_gpu(fails_on_gpu).unwrap();
        assert_eq!((loaded, layers.to_string()), (0, on(9).without_gpu().to_string()));
        let (loaded, layers) = on(9).try_gpu(|layers| Ok(layers.gpu_layers)).unwrap();
        assert_eq!((loaded, layers), (9, on(9)));

        // The CPU's own failure is the one to tell, and it is tried once.
        let tries = std::cell::Cell::new(0);
        let fails = |_: &GpuLayers| {
            tries.set(tries.get() + 1);
            Err::<(), _>(format!("try {}", tries.get()))
        };
        assert_eq!(on(9).try_gpu(fails).unwrap_err(), "try 2");
        assert_eq!(on(0).try_gpu(fails).unwrap_err(), "try 3");
    }

    #[test]
    fn only_a_gpu_with_room_for_the_buffers_computes_wide_batches() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty.gguf");
        let mut header = b"GGUF".to_vec();
        header.extend(3u32.to_le_bytes());
        header.extend([0; 16]);
        std::fs::write(&path, header).unwrap();
        let gguf = Gguf::open(&path).unwrap();
        let of = |free: Option<u64>, wanted| {
            let gpu = free.map(|free| Gpu { device: 1, name: "CUDA0".into(), free });
            GpuLayers::choose(&gguf, gpu, wanted, 1_000).micro_batch
        };
        assert_eq!(of(Some(2 << 30), None), GPU_MICRO_BATCH_TOKENS);
        assert_eq!(of(Some(1 << 30), None), CPU_MICRO_BATCH_TOKENS);
        assert_eq!(of(Some(2 << 30), Some(0)), CPU_MICRO_BATCH_TOKENS);
        assert_eq!(of(None, None), CPU_MICRO_BATCH_TOKENS);
    }
}
