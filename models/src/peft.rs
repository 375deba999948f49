//! Adapters in the form of Hugging Face PEFT: a folder with `adapter_config.json` and
//! `adapter_model.safetensors`.
//!
//! PEFT names maps after the layers of the models in transformers, and keeps their order
//! of rows. In GGUF files of some architectures the rows of q and k are permuted, because
//! llama.cpp's RoPE turns adjacent pairs there and that of transformers turns halves. The B of
//! those maps is therefore permuted on import and on export. [`architecture`] has names and
//! orders.

use crate::adapter::{LoraAdapter, LoraPair};
use crate::architecture::{self, Architecture};
use crate::file::read_plain;
use crate::gguf::Gguf;
use anyhow::{Context, Result, bail, ensure};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

pub const CONFIG_FILE: &str = "adapter_config.json";
pub const WEIGHTS_FILE: &str = "adapter_model.safetensors";

/// The longest configuration, in bytes. PEFT writes less than one KiB.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The longest file of weights, in bytes. Rank 64 of a model with 8 billion weights has 700 MB.
const WEIGHTS_BYTES_MAX: u64 = 4 << 30;

/// The fields of PEFT's `LoraConfig` that decide what the weights mean.
#[derive(Debug, Serialize, Deserialize)]
struct LoraConfig {
    peft_type: String,
    #[serde(default)]
    task_type: Option<String>,
    #[serde(default)]
    base_model_name_or_path: Option<String>,
    r: usize,
    lora_alpha: f32,
    #[serde(default)]
    lora_dropout: f32,
    #[serde(default = "no_bias")]
    bias: String,
    target_modules: Option<serde_json::Value>,
    #[serde(default)]
    use_rslora: bool,
    #[serde(default)]
    use_dora: bool,
    #[serde(default)]
    fan_in_fan_out: bool,
    #[serde(default)]
    inference_mode: bool,
    /// Activated LoRA: the adapter acts from these tokens on (PEFT ≥ 0.18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alora_invocation_tokens: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "map_is_empty")]
    rank_pattern: serde_json::Map<String, serde_json::Value>,
    #[serde(default, skip_serializing_if = "map_is_empty")]
    alpha_pattern: serde_json::Map<String, serde_json::Value>,
    /// The way in which the weights began: a name, or true or false for the plain ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init_lora_weights: Option<serde_json::Value>,
    /// The fields of other versions of PEFT.
    #[serde(flatten)]
    others: serde_json::Map<String, serde_json::Value>,
}

/// The fields that mean nothing for weights that are saved, whatever their value.
const MEANINGLESS_FIELDS: [&str; 9] = [
    "auto_mapping",
    "eva_config",
    "exclude_modules",
    "layers_pattern",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
];

/// The beginnings that leave the base as it is.
const PLAIN_BEGINNINGS: [&str; 3] = ["eva", "gaussian", "orthogonal"];

fn no_bias() -> String {
    "none".into()
}

fn map_is_empty(map: &serde_json::Map<String, serde_json::Value>) -> bool {
    map.is_empty()
}

/// Writes `adapter`, which was learned on `base`, into `folder`, which is created.
pub fn export(adapter: &LoraAdapter, base: &Gguf, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let known = known(base)?;
    let rows = RowOrder::of(base)?;
    let mut tensors: BTreeMap<String, (Vec<usize>, Vec<u8>)> = BTreeMap::new();
    for pair in &adapter.pairs {
        let (layer, map, module) = locate(&pair.name, known)?;
        let name = |part: &str| tensor_name(layer, module, part);
        let b = rows.of_transformers(map, &pair.b, pair.rows_out, adapter.rank)?;
        tensors.insert(name("lora_A"), (vec![adapter.rank, pair.rows_in], bytes(&pair.a)));
        tensors.insert(name("lora_B"), (vec![pair.rows_out, adapter.rank], bytes(&b)));
    }
    let views = tensors
        .iter()
        .map(|(name, (shape, bytes))| {
            Ok((name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes)?))
        })
        .collect::<Result<Vec<_>>>()?;
    let weights = safetensors::serialize(views, None)?;
    let config = LoraConfig {
        peft_type: "LORA".into(),
        task_type: Some("CAUSAL_LM".into()),
        base_model_name_or_path: base.str("general.name").map(str::to_owned),
        r: adapter.rank,
        lora_alpha: adapter.alpha,
        lora_dropout: 0.0,
        bias: no_bias(),
        target_modules: Some(
            known.maps.iter().map(|(_, module)| module.rsplit('.').next()).collect(),
        ),
        use_rslora: false,
        use_dora: false,
        fan_in_fan_out: false,
        inference_mode: true,
        alora_invocation_tokens: Some(adapter.invocation.clone()).filter(|it| !it.is_empty()),
        rank_pattern: Default::default(),
        alpha_pattern: Default::default(),
        init_lora_weights: None,
        others: Default::default(),
    };
    let config = serde_json::to_vec_pretty(&config)?;
    for (name, content) in [(WEIGHTS_FILE, weights), (CONFIG_FILE, config)] {
        let path = folder.join(name);
        crate::file::write_atomic(&path, &content)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    Ok(())
}

/// Reads the adapter in `folder` as one for `base`.
///
/// # Errors
/// The adapter does not fit `base`, or means anything but y = Wx + (alpha/r)·B·A·x on all
/// maps of every layer.
pub fn import(folder: &Path, base: &Gguf, base_sha256: &str) -> Result<LoraAdapter> {
    let path = folder.join(CONFIG_FILE);
    let text = read_plain(&path, CONFIG_BYTES_MAX).with_context(|| {
        format!("{}: cannot be read; name a folder that PEFT has saved", path.display())
    })?;
    let config: LoraConfig = serde_json::from_slice(&text)
        .with_context(|| format!("{}: not a LoraConfig", path.display()))?;
    check(&config).with_context(|| path.display().to_string())?;

    let path = folder.join(WEIGHTS_FILE);
    let content = read_plain(&path, WEIGHTS_BYTES_MAX).with_context(|| {
        format!("{}: cannot be read; save the adapter as safetensors", path.display())
    })?;
    let adapter = pairs(&content, &config, base)
        .map(|pairs| LoraAdapter {
            architecture: base.architecture().unwrap_or_default().to_owned(),
            base_sha256: base_sha256.to_owned(),
            rank: config.r,
            shared_rank: 0,
            alpha: config.lora_alpha,
            invocation: config.alora_invocation_tokens.clone().unwrap_or_default(),
            pairs,
        })
        .with_context(|| path.display().to_string())?;
    adapter.check_base(base, base_sha256)?;
    Ok(adapter)
}

fn check(config: &LoraConfig) -> Result<()> {
    ensure!(config.peft_type == "LORA", "peft_type is {}, only LORA is read", config.peft_type);
    ensure!(config.r > 0, "r is 0");
    for (name, set) in [
        ("use_rslora", config.use_rslora),
        ("use_dora", config.use_dora),
        ("fan_in_fan_out", config.fan_in_fan_out),
        ("rank_pattern", !config.rank_pattern.is_empty()),
        ("alpha_pattern", !config.alpha_pattern.is_empty()),
        ("bias", config.bias != "none"),
    ] {
        ensure!(!set, "{name} is set, which Hone does not serve; train the adapter without it");
    }
    if let Some(beginning) = &config.init_lora_weights {
        let is_plain = beginning.is_boolean()
            || beginning.as_str().is_some_and(|name| PLAIN_BEGINNINGS.contains(&name));
        ensure!(
            is_plain,
            "init_lora_weights is {beginning}, which may have changed the base as well; save the \
             adapter with path_initial_model_for_weight_conversion, which makes it a plain one"
        );
    }
    // A later PEFT may have a field that changes what the numbers mean.
    let unknown = config
        .others
        .iter()
        .find(|(name, value)| !MEANINGLESS_FIELDS.contains(&name.as_str()) && !says_nothing(value));
    if let Some((name, _)) = unknown {
        bail!("{name} is set, which Hone does not serve; train the adapter without it");
    }
    Ok(())
}

/// Returns true if the value is what a field has that is not used.
fn says_nothing(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null => true,
        serde_json::Value::Bool(set) => !set,
        serde_json::Value::Number(_) => false,
        serde_json::Value::String(text) => text.is_empty(),
        serde_json::Value::Array(items) => items.is_empty(),
        serde_json::Value::Object(fields) => fields.is_empty(),
    }
}

fn pairs(content: &[u8], config: &LoraConfig, base: &Gguf) -> Result<Vec<LoraPair>> {
    let tensors = SafeTensors::deserialize(content).context("it is not a safetensors file")?;
    let known = known(base)?;
    let rows = RowOrder::of(base)?;
    let mut pairs = Vec::new();
    for layer in 0..layers(base)? {
        for &(map, module) in known.maps {
            let matrix = |part: &str| -> Result<(Vec<f32>, usize, usize)> {
                let name = tensor_name(layer, module, part);
                let tensor = tensors.tensor(&name).ok().with_context(|| {
                    let modules: Vec<_> = known.maps.iter().map(|(_, module)| *module).collect();
                    format!("no {name}; Hone needs all of {}", modules.join(", "))
                })?;
                let &[height, width] = tensor.shape() else { bail!("{name} is not a matrix") };
                Ok((floats(&tensor).with_context(|| name.clone())?, height, width))
            };
            let ((a, rank, rows_in), (b, rows_out, b_rank)) =
                (matrix("lora_A")?, matrix("lora_B")?);
            ensure!(
                rank == config.r && b_rank == config.r,
                "layer {layer} {module} has ranks {rank} and {b_rank}, {CONFIG_FILE} says {}",
                config.r
            );
            let b = rows.of_gguf(map, &b, rows_out, rank)?;
            pairs.push(LoraPair {
                name: format!("blk.{layer}.{map}.weight"),
                rows_out,
                rows_in,
                a,
                b,
            });
        }
    }
    let expected = 2 * pairs.len();
    ensure!(tensors.len() == expected, "{} tensors, {expected} were expected", tensors.len());
    Ok(pairs)
}

fn tensor_name(layer: usize, module: &str, part: &str) -> String {
    format!("base_model.model.model.layers.{layer}.{module}.{part}.weight")
}

/// The layer, the map in GGUF and the module in transformers of a tensor such as
/// `blk.3.attn_q.weight`.
fn locate(name: &str, known: &Architecture) -> Result<(usize, &'static str, &'static str)> {
    let parts = name.strip_prefix("blk.").and_then(|name| name.strip_suffix(".weight"));
    let found = parts.and_then(|parts| parts.split_once('.')).and_then(|(layer, map)| {
        let (map, module) = known.maps.iter().find(|(known, _)| *known == map)?;
        Some((layer.parse().ok()?, *map, *module))
    });
    found.with_context(|| format!("PEFT has no name for {name}"))
}

/// Returns what is known of the architecture of a base on which Hone learns.
fn known(base: &Gguf) -> Result<&'static Architecture> {
    let name = base.architecture().unwrap_or_default();
    let known = architecture::of(name).filter(|known| known.learns);
    known.with_context(|| {
        format!("the names that PEFT has for a model of architecture {name} are not known")
    })
}

fn layers(base: &Gguf) -> Result<usize> {
    let key = format!("{}.block_count", base.architecture().unwrap_or_default());
    base.u32(&key).map(|count| count as usize).with_context(|| format!("the base has no {key}"))
}

/// The order of the rows of q and k.
struct RowOrder {
    /// The number of heads of q and of k, if GGUF has their rows permuted.
    permuted: Option<(usize, usize)>,
}

impl RowOrder {
    fn of(base: &Gguf) -> Result<RowOrder> {
        let known = known(base)?;
        let permuted = if known.permutes_heads {
            let key = format!("{}.attention.head_count", known.name);
            let heads =
                base.u32_of_layers(&key).with_context(|| format!("the base has no {key}"))?;
            let kv = base.u32_of_layers(&format!("{key}_kv")).unwrap_or(heads);
            Some((heads as usize, kv as usize))
        } else {
            None
        };
        Ok(RowOrder { permuted })
    }

    fn heads(&self, map: &str) -> Option<usize> {
        let (q, k) = self.permuted?;
        match map {
            "attn_q" => Some(q),
            "attn_k" => Some(k),
            _ => None,
        }
    }

    fn of_transformers(&self, map: &str, b: &[f32], rows: usize, rank: usize) -> Result<Vec<f32>> {
        self.moved(map, b, rows, rank, |pair, side, half| (side * half + pair, 2 * pair + side))
    }

    fn of_gguf(&self, map: &str, b: &[f32], rows: usize, rank: usize) -> Result<Vec<f32>> {
        self.moved(map, b, rows, rank, |pair, side, half| (2 * pair + side, side * half + pair))
    }

    /// Moves rows. `place` returns (to, from) within a head for each side of each pair.
    fn moved(
        &self,
        map: &str,
        b: &[f32],
        rows: usize,
        rank: usize,
        place: impl Fn(usize, usize, usize) -> (usize, usize),
    ) -> Result<Vec<f32>> {
        let Some(heads) = self.heads(map) else { return Ok(b.to_vec()) };
        ensure!(
            heads > 0 && rows.is_multiple_of(2 * heads) && b.len() == rows * rank,
            "{map} has {rows} rows, which are not {heads} heads of pairs"
        );
        let width = rows / heads;
        let half = width / 2;
        let mut moved = vec![0.0; b.len()];
        for head in 0..heads {
            for pair in 0..half {
                for side in 0..2 {
                    let (to, from) = place(pair, side, half);
                    let (to, from) = ((head * width + to) * rank, (head * width + from) * rank);
                    moved[to..to + rank].copy_from_slice(&b[from..from + rank]);
                }
            }
        }
        Ok(moved)
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(tensor: &TensorView) -> Result<Vec<f32>> {
    let data = tensor.data();
    Ok(match tensor.dtype() {
        Dtype::F32 => data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        Dtype::F16 => {
            data.as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect()
        }
        Dtype::BF16 => {
            data.as_chunks().0.iter().map(|b| half::bf16::from_le_bytes(*b).to_f32()).collect()
        }
        other => bail!("it is of type {other:?}; F32, F16 and BF16 are read"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf_write::Builder;
    use serde_json::json;

    const SHA: &str = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32";

    /// The outputs and inputs of each map of one layer with 2 heads of 4, 1 key/value head, width 6
    /// and feed-forward width 5.
    fn shapes(architecture: &str) -> impl Iterator<Item = (&'static str, (usize, usize))> {
        architecture::of(architecture).unwrap().maps.iter().map(|(map, _)| {
            let shape = match *map {
                "attn_q" => (8, 6),
                "attn_k" | "attn_v" => (4, 6),
                "attn_output" => (6, 8),
                "ffn_down" => (6, 5),
                _ => (5, 6),
            };
            (*map, shape)
        })
    }

    fn base(folder: &Path, architecture: &str) -> Gguf {
        let mut builder = Builder::default();
        builder.string("general.architecture", architecture);
        builder.u32(&format!("{architecture}.block_count"), 1);
        builder.u32(&format!("{architecture}.attention.head_count"), 2);
        builder.u32(&format!("{architecture}.attention.head_count_kv"), 1);
        for (map, (rows_out, rows_in)) in shapes(architecture) {
            let zeros = vec![0.0; rows_out * rows_in];
            let dims = [rows_in as u64, rows_out as u64];
            builder.tensor(&format!("blk.0.{map}.weight"), &dims, &zeros);
        }
        let path = folder.join(format!("{architecture}.gguf"));
        std::fs::write(&path, builder.finish()).unwrap();
        Gguf::open(&path).unwrap()
    }

    fn adapter(architecture: &str) -> LoraAdapter {
        let pairs = shapes(architecture).map(|(map, (rows_out, rows_in))| LoraPair {
            name: format!("blk.0.{map}.weight"),
            rows_out,
            rows_in,
            a: (0..2 * rows_in).map(|i| i as f32).collect(),
            // Each row of B holds its own number, twice.
            b: (0..2 * rows_out).map(|i| (i / 2) as f32).collect(),
        });
        LoraAdapter {
            architecture: architecture.into(),
            base_sha256: SHA.into(),
            rank: 2,
            shared_rank: 0,
            alpha: 4.0,
            invocation: vec![7],
            pairs: pairs.collect(),
        }
    }

    #[test]
    fn what_is_exported_is_imported_unchanged() {
        for architecture in architecture::learned() {
            let folder = tempfile::tempdir().unwrap();
            let base = base(folder.path(), architecture);
            let peft = folder.path().join("peft");
            export(&adapter(architecture), &base, &peft).unwrap();
            assert_eq!(import(&peft, &base, SHA).unwrap(), adapter(architecture));
        }
    }

    /// The rows of a head of 4 in transformers are the rows 0, 2, 1, 3 in GGUF, because the
    /// pairs (0, 1) and (2, 3) of GGUF are the pairs (0, 2) and (1, 3) of transformers.
    #[test]
    fn rows_are_in_transformers_order() {
        let folder = tempfile::tempdir().unwrap();
        let rows = |architecture: &str, module: &str| -> Vec<f32> {
            let base = base(folder.path(), architecture);
            let peft = folder.path().join("peft");
            export(&adapter(architecture), &base, &peft).unwrap();
            let content = std::fs::read(peft.join(WEIGHTS_FILE)).unwrap();
            let tensors = SafeTensors::deserialize(&content).unwrap();
            let b = tensors.tensor(&tensor_name(0, module, "lora_B")).unwrap();
            floats(&b).unwrap().chunks(2).map(|row| row[0]).collect()
        };
        assert_eq!(rows("llama", "self_attn.q_proj"), [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
        assert_eq!(rows("llama", "self_attn.k_proj"), [0.0, 2.0, 1.0, 3.0]);
        assert_eq!(rows("llama", "self_attn.v_proj"), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(rows("granite", "self_attn.k_proj"), [0.0, 2.0, 1.0, 3.0]);
        for halves in ["qwen2", "qwen3", "gemma", "starcoder2"] {
            assert_eq!(rows(halves, "self_attn.k_proj"), [0.0, 1.0, 2.0, 3.0], "{halves}");
        }
        assert_eq!(rows("starcoder2", "mlp.c_fc"), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    /// Imports an adapter that is saved with one field of its own.
    fn import_with(
        folder: &Path,
        base: &Gguf,
        key: &str,
        value: serde_json::Value,
    ) -> Result<LoraAdapter> {
        let peft = folder.join("peft");
        export(&adapter("qwen2"), base, &peft).unwrap();
        let path = peft.join(CONFIG_FILE);
        let mut config: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        config[key] = value;
        std::fs::write(&path, config.to_string()).unwrap();
        import(&peft, base, SHA)
    }

    /// With PiSSA the base was changed too, and the saved pair fits only that base. Such adapters
    /// were imported without a word.
    #[test]
    fn a_field_that_changes_what_the_numbers_mean_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let base = base(folder.path(), "qwen2");
        for (key, value) in [
            ("init_lora_weights", json!("pissa")),
            ("init_lora_weights", json!("pissa_niter_16")),
            ("init_lora_weights", json!("olora")),
            ("init_lora_weights", json!("corda")),
            ("init_lora_weights", json!("loftq")),
            ("init_lora_weights", json!("lora_ga")),
            ("init_lora_weights", json!("of a later version")),
            ("alpha_pattern", json!({"q_proj": 8})),
            ("rank_pattern", json!({"q_proj": 8})),
            ("arrow_config", json!({"top_k": 2})),
            ("corda_config", json!({"corda_method": "kpm"})),
            ("layer_replication", json!([[0, 12], [6, 24]])),
            ("layers_to_transform", json!([0, 1])),
            ("layers_to_transform", json!(0)),
            ("loftq_config", json!({"loftq_bits": 4})),
            ("lora_bias", json!(true)),
            ("megatron_config", json!({"hidden_size": 8})),
            ("modules_to_save", json!(["lm_head"])),
            ("target_parameters", json!(["experts.gate_up_proj"])),
            ("trainable_token_indices", json!({"embed_tokens": [1]})),
            ("use_bdlora", json!(true)),
            ("use_qalora", json!(true)),
            ("a_field_of_a_later_version", json!(1)),
        ] {
            let error = format!("{:#}", import_with(folder.path(), &base, key, value).unwrap_err());
            assert!(error.contains(key) && !error.contains('\n'), "{error}");
        }
        for (key, value) in [
            ("init_lora_weights", json!(true)),
            ("init_lora_weights", json!(false)),
            ("init_lora_weights", json!(null)),
            ("init_lora_weights", json!("gaussian")),
            ("init_lora_weights", json!("eva")),
            ("init_lora_weights", json!("orthogonal")),
            ("auto_mapping", json!({"base_model_class": "Qwen2ForCausalLM"})),
            ("eva_config", json!({"rho": 2.0})),
            ("exclude_modules", json!(["lm_head"])),
            ("layers_pattern", json!(["layers"])),
            ("layers_to_transform", json!(null)),
            ("loftq_config", json!({})),
            ("megatron_core", json!("megatron.core")),
            ("modules_to_save", json!([])),
            ("peft_version", json!("0.18.0")),
            ("qalora_group_size", json!(16)),
            ("revision", json!("main")),
            ("use_qalora", json!(false)),
        ] {
            let said = format!("{key}: {value}");
            let imported = import_with(folder.path(), &base, key, value);
            assert_eq!(imported.expect(&said), adapter("qwen2"), "{said}");
        }
    }

    #[test]
    fn what_means_something_else_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let base = base(folder.path(), "qwen2");
        let peft = folder.path().join("peft");
        let refused = |key: &str, value: serde_json::Value| {
            format!("{:#}", import_with(folder.path(), &base, key, value).unwrap_err())
        };
        assert!(refused("use_dora", true.into()).contains("use_dora is set"));
        assert!(refused("use_rslora", true.into()).contains("use_rslora is set"));
        assert!(refused("peft_type", "IA3".into()).contains("peft_type is IA3"));
        assert!(refused("bias", "all".into()).contains("bias is set"));
        assert!(refused("r", 3.into()).contains("has ranks 2 and 2"));
        let missing = format!("{:#}", import(folder.path(), &base, SHA).unwrap_err());
        assert!(missing.contains("name a folder that PEFT has saved"), "{missing}");
        export(&adapter("qwen2"), &base, &peft).unwrap();
        std::fs::write(peft.join(WEIGHTS_FILE), b"no").unwrap();
        let damaged = format!("{:#}", import(&peft, &base, SHA).unwrap_err());
        assert!(damaged.contains("not a safetensors file"), "{damaged}");
    }
}
