//! The architectures that Hone serves, by their names in GGUF, and what is known of each next to
//! the file. llama.cpp serves more; those here were tried with the prompts that Hone makes.

/// A linear map that an adapter acts on: its name in GGUF, and in transformers.
pub type MapName = (&'static str, &'static str);

/// An architecture.
#[derive(Debug, PartialEq, Eq)]
pub struct Architecture {
    pub name: &'static str,
    /// True if the learner computes it. It is served without an adapter otherwise.
    pub learns: bool,
    /// The maps of a layer that an adapter acts on, in the order of its pairs. There are none if
    /// the architecture is only served.
    pub maps: &'static [MapName],
    /// True if GGUF has the rows of q and k in another order than transformers, so that llama.cpp
    /// rotates adjacent values.
    pub permutes_heads: bool,
}

const GATED: &[MapName] = &[
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// The maps of a mixture of experts: those of attention. An expert that few tokens choose would
/// learn from few labels, and the adapter of all experts would be 60 times as large.
const ATTENTION: &[MapName] = &[
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
];

const STARCODER2: &[MapName] = &[
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_up", "mlp.c_fc"),
    ("ffn_down", "mlp.c_proj"),
];

const QWEN2: Architecture =
    Architecture { name: "qwen2", learns: true, maps: GATED, permutes_heads: false };

const ARCHITECTURES: &[Architecture] = &[
    QWEN2,
    Architecture { name: "llama", permutes_heads: true, ..QWEN2 },
    Architecture { name: "granite", permutes_heads: true, ..QWEN2 },
    Architecture { name: "qwen3", ..QWEN2 },
    Architecture { name: "starcoder2", maps: STARCODER2, ..QWEN2 },
    Architecture { name: "gemma", ..QWEN2 },
    Architecture { name: "qwen3moe", maps: ATTENTION, ..QWEN2 },
];

/// The architecture of this name, if Hone serves it.
pub fn of(name: &str) -> Option<&'static Architecture> {
    ARCHITECTURES.iter().find(|architecture| architecture.name == name)
}

pub fn is_served(name: &str) -> bool {
    of(name).is_some()
}

/// Returns true if Hone learns on models of this architecture.
pub fn learns(name: &str) -> bool {
    of(name).is_some_and(|architecture| architecture.learns)
}

/// Returns why nothing is learned on a model of this architecture, in a sentence for the user.
pub fn learning_refusal(name: &str) -> Option<String> {
    (!learns(name)).then(|| {
        format!(
            "nothing is learned: Hone serves {name} models and does not learn on them; `hone model \
             list` shows the models that learn"
        )
    })
}

/// The names of the architectures on which Hone learns.
pub fn learned() -> impl Iterator<Item = &'static str> {
    ARCHITECTURES.iter().filter(|architecture| architecture.learns).map(|known| known.name)
}

pub(crate) fn served_names() -> String {
    ARCHITECTURES.iter().map(|architecture| architecture.name).collect::<Vec<_>>().join(", ")
}
