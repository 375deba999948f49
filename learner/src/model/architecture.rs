//! The architectures that the learner computes, as data. The passes have one code path, which
//! follows the [`Block`] that is read from the GGUF file here.
//!
//! The source of each architecture in llama.cpp is in its src/models/*.cpp.

use crate::kernels::activation::Activation;
use crate::kernels::norm::NormKind;
use crate::kernels::rope::{RopeFrequencies, RopePairs, Yarn};
use anyhow::{Context, bail, ensure};
use models::experts::Experts;
use models::gguf::Gguf;

/// The way in which the layers of a model are built, and what is multiplied between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub norm: NormKind,
    pub norm_epsilon: f64,
    pub activation: Activation,
    pub feed_forward: FeedForward,
    /// True if every head of q and k has a norm before it is rotated.
    pub has_head_norms: bool,
    /// The factor of embeddings.
    pub embedding_scale: f64,
    /// The factor of the outputs of attention and of the feed-forward part before they are added.
    pub residual_scale: f64,
    /// The factor of scores.
    pub attention_scale: f64,
    /// The factor of logits.
    pub logit_scale: f64,
}

/// The parts of the feed-forward part of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedForward {
    /// A down map behind an up map.
    Plain,
    /// The same with a gate next to the up map.
    Gated,
    /// Several gated parts, of which the router chooses some for each row. They have no adapter.
    Experts(Experts),
}

/// The properties that all models of one architecture have in common.
struct Family {
    name: &'static str,
    norm: NormKind,
    activation: Activation,
    is_gated: bool,
    has_experts: bool,
    has_head_norms: bool,
    pairs: RopePairs,
    /// True if embeddings are multiplied with √width.
    scales_embeddings: bool,
    /// True if the file has the multipliers of Granite.
    has_multipliers: bool,
}

const LLAMA: Family = Family {
    name: "llama",
    norm: NormKind::Rms,
    activation: Activation::Silu,
    is_gated: true,
    has_experts: false,
    has_head_norms: false,
    pairs: RopePairs::Adjacent,
    scales_embeddings: false,
    has_multipliers: false,
};

const QWEN2: Family = Family { name: "qwen2", pairs: RopePairs::Halves, ..LLAMA };

const FAMILIES: &[Family] = &[
    QWEN2,
    LLAMA,
    // Power Scheduler (arXiv:2408.13359) and Granite 3 have the multipliers of µP.
    Family { name: "granite", has_multipliers: true, ..LLAMA },
    Family { name: "qwen3", has_head_norms: true, ..QWEN2 },
    Family {
        name: "starcoder2",
        norm: NormKind::Layer,
        activation: Activation::Gelu,
        is_gated: false,
        ..QWEN2
    },
    // The converter has added the 1 to the weights of the norms.
    Family { name: "gemma", activation: Activation::Gelu, scales_embeddings: true, ..QWEN2 },
    Family { name: "qwen3moe", has_head_norms: true, has_experts: true, ..QWEN2 },
];

/// The names of all architectures that the learner computes.
pub fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|family| family.name)
}

/// The metadata of a model that are read next to its sizes.
pub struct Architecture {
    pub block: Block,
    pub pairs: RopePairs,
}

/// The metadata of one model, by the part of the key behind the architecture's name.
pub struct Keys<'a> {
    gguf: &'a Gguf,
    architecture: &'a str,
}

impl<'a> Keys<'a> {
    /// # Errors
    /// The file does not name an architecture that the learner computes.
    pub fn of(gguf: &'a Gguf) -> anyhow::Result<Keys<'a>> {
        let architecture = gguf.architecture().context("general.architecture is missing")?;
        if !names().any(|name| name == architecture) {
            let known = names().collect::<Vec<_>>().join(", ");
            bail!("Hone does not learn on the architecture {architecture}, only on {known}");
        }
        Ok(Keys { gguf, architecture })
    }

    pub fn architecture(&self) -> &'a str {
        self.architecture
    }

    pub fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    /// A size that is the same in every layer. Files in which it differs have an array here.
    pub fn size(&self, name: &str) -> anyhow::Result<usize> {
        let size = self.optional_size(name)?;
        size.with_context(|| format!("{} is missing", self.key(name)))
    }

    pub fn optional_size(&self, name: &str) -> anyhow::Result<Option<usize>> {
        let key = self.key(name);
        if !self.gguf.metadata.contains_key(&key) {
            return Ok(None);
        }
        let size = self.gguf.u32_of_layers(&key);
        let size = size.with_context(|| format!("{key} is not one number for all layers"))?;
        ensure!(size > 0, "{key} is 0");
        Ok(Some(size as usize))
    }

    fn number(&self, name: &str) -> anyhow::Result<Option<f64>> {
        let key = self.key(name);
        if !self.gguf.metadata.contains_key(&key) {
            return Ok(None);
        }
        let number = self.gguf.f32(&key).with_context(|| format!("{key} is not a float"))?;
        ensure!(number.is_finite(), "{key} is not a finite number");
        Ok(Some(f64::from(number)))
    }

    /// A multiplier. A file that has none, or 0, has the default of llama.cpp.
    fn multiplier(&self, name: &str, default: f64) -> anyhow::Result<f64> {
        Ok(self.number(name)?.filter(|factor| *factor != 0.0).unwrap_or(default))
    }

    /// Returns what the rotation depends on, without the divisors, which are a tensor.
    ///
    /// # Errors
    /// The rotation is scaled in a way that the learner does not compute.
    pub fn rope(&self) -> anyhow::Result<RopeFrequencies> {
        let factor = match self.number("rope.scaling.factor")? {
            Some(factor) => factor,
            // The name of the key in old files.
            None => self.number("rope.scale_linear")?.unwrap_or(0.0),
        };
        // llama.cpp does not scale by 0.
        let factor = if factor == 0.0 { 1.0 } else { factor };
        ensure!(factor > 0.0, "{} is below 0", self.key("rope.scaling.factor"));
        let mut magnitude = self.multiplier("rope.scaling.attn_factor", 1.0)?;
        let (scale, yarn) = match self.gguf.str(&self.key("rope.scaling.type")).unwrap_or("linear")
        {
            "none" => (1.0, None),
            "linear" => (1.0 / factor, None),
            "yarn" => {
                magnitude *= Yarn::magnitude(factor);
                (1.0 / factor, Some(Yarn { context: self.yarn_context()? }))
            }
            other => bail!("Hone does not learn on a model with RoPE scaling of type {other}"),
        };
        // llama.cpp reads this as a switch of Granite's rotation.
        ensure!(
            self.architecture != "granite" || self.is_true("rope.scaling.finetuned") != Some(false),
            "Hone does not learn on a granite model without RoPE"
        );
        // 10,000 is the default of llama.cpp.
        let base = self.number("rope.freq_base")?.unwrap_or(10_000.0);
        Ok(RopeFrequencies { base, scale, yarn, magnitude, factors: Vec::new() })
    }

    /// The tokens of the context before YaRN stretched it. Of the other numbers of YaRN, llama.cpp
    /// reads none for the architectures here, so that they say nothing.
    fn yarn_context(&self) -> anyhow::Result<usize> {
        match self.optional_size("rope.scaling.original_context_length")? {
            Some(context) => Ok(context),
            None => self.size("context_length"),
        }
    }

    fn is_true(&self, name: &str) -> Option<bool> {
        match self.gguf.metadata.get(&self.key(name))? {
            models::gguf::Value::Bool(is) => Some(*is),
            _ => None,
        }
    }

    /// The feed-forward part of a family's layers.
    ///
    /// # Errors
    /// The file has experts where the family has none, or the reverse, or experts that are chosen
    /// or weighted in a way that the learner does not compute.
    fn feed_forward(&self, family: &Family) -> anyhow::Result<FeedForward> {
        let experts = Experts::of(self.gguf).map_err(anyhow::Error::msg)?;
        let Some(experts) = experts.filter(|_| family.has_experts) else {
            if let Some(Experts { count, .. }) = experts {
                bail!(
                    "Hone does not learn on a {} model with experts, and it has {count}",
                    family.name
                );
            }
            ensure!(!family.has_experts, "{} is missing", self.key("expert_count"));
            return Ok(if family.is_gated { FeedForward::Gated } else { FeedForward::Plain });
        };
        ensure!(
            self.multiplier("expert_weights_scale", 1.0)? == 1.0,
            "Hone does not learn on a model with {}",
            self.key("expert_weights_scale")
        );
        let groups = self.optional_size("expert_group_count")?.unwrap_or(1);
        ensure!(
            groups == 1,
            "Hone does not learn on a model with {groups} groups of experts ({})",
            self.key("expert_group_count")
        );
        Ok(FeedForward::Experts(experts))
    }

    /// Returns how the layers of a model with these sizes are built.
    pub fn architecture_of(&self, width: usize, head: usize) -> anyhow::Result<Architecture> {
        let family = FAMILIES.iter().find(|family| family.name == self.architecture);
        let family = family.context("the architecture is not known")?;
        let epsilon = match family.norm {
            NormKind::Rms => "attention.layer_norm_rms_epsilon",
            NormKind::Layer => "attention.layer_norm_epsilon",
        };
        let epsilon =
            self.number(epsilon)?.with_context(|| format!("{} is missing", self.key(epsilon)))?;
        let mut block = Block {
            norm: family.norm,
            norm_epsilon: epsilon,
            activation: family.activation,
            feed_forward: self.feed_forward(family)?,
            has_head_norms: family.has_head_norms,
            embedding_scale: 1.0,
            residual_scale: 1.0,
            attention_scale: 1.0 / (head as f64).sqrt(),
            logit_scale: 1.0,
        };
        if family.scales_embeddings {
            block.embedding_scale = (width as f64).sqrt();
        }
        if family.has_multipliers {
            let divisor = self.number("logit_scale")?.filter(|divisor| *divisor != 0.0);
            let missing = || format!("{} is missing", self.key("logit_scale"));
            block.logit_scale = 1.0 / divisor.with_context(missing)?;
            block.embedding_scale = self.multiplier("embedding_scale", 1.0)?;
            block.residual_scale = self.multiplier("residual_scale", 1.0)?;
            block.attention_scale = self.multiplier("attention.scale", block.attention_scale)?;
        }
        ensure!(block.attention_scale > 0.0, "{} is below 0", self.key("attention.scale"));
        Ok(Architecture { block, pairs: family.pairs })
    }
}
