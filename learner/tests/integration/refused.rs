//! Models that the learner does not compute exactly are refused in one line, which names the file,
//! the reason and what to do.

use learner::model::load::load;
use models::gguf::{Gguf, Value};
use models::random_model::tiny::{Matrices, Sizes, form};

/// The header of a model of this form.
fn header(name: &str) -> (tempfile::TempDir, Gguf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.gguf");
    form(name).unwrap().write(Sizes::SMALL, Matrices::F32, 1, &path).unwrap();
    let gguf = Gguf::open(&path).unwrap();
    (folder, gguf)
}

/// Returns why a model is refused once its header is changed.
fn refused(name: &str, change: impl FnOnce(&mut Gguf)) -> String {
    let (_folder, mut gguf) = header(name);
    assert!(load(&gguf).is_ok(), "{name} itself is sound");
    change(&mut gguf);
    let error = load(&gguf).err().unwrap_or_else(|| panic!("a changed {name} is accepted"));
    let error = format!("{error:#}");
    assert!(error.contains("own.gguf") && !error.contains('\n'), "{error}");
    assert!(error.contains("`hone model list` shows the models that learn"), "{error}");
    error
}

fn set(gguf: &mut Gguf, key: &str, value: Value) {
    gguf.metadata.insert(key.to_owned(), value);
}

fn remove(gguf: &mut Gguf, name: &str) {
    gguf.tensors.retain(|tensor| tensor.name != name);
}

#[test]
fn an_architecture_that_is_not_computed_is_named_with_those_that_are() {
    let other = Value::String("mamba".into());
    let error = refused("llama", |gguf| set(gguf, "general.architecture", other));
    assert!(error.contains("the architecture mamba, only on qwen2, llama, granite, "), "{error}");
    let error = refused("llama", |gguf| drop(gguf.metadata.remove("general.architecture")));
    assert!(error.contains("general.architecture is missing"), "{error}");
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    for (key, value, reason) in [
        ("llama.expert_count", Value::U32(8), "llama.expert_used_count is missing"),
        ("llama.attention.head_count", Value::U32(3), "3 heads of 32 over 2 key/value heads"),
        ("llama.attention.head_count_kv", Value::U32(3), "4 heads of 32 over 3 key/value heads"),
        ("llama.attention.head_count_kv", Value::U32(0), "llama.attention.head_count_kv is 0"),
        ("llama.attention.head_count_kv", Value::Array(vec![]), "not one number for all layers"),
        ("llama.attention.value_length", Value::U32(16), "its values 16"),
        ("llama.attention.key_length", Value::U32(31), "its values 32"),
        ("llama.rope.dimension_count", Value::U32(8), "covers 8 of the 32 values of a head"),
        ("llama.block_count", Value::U32(4), "blk.3.attn_q.weight is missing"),
        ("llama.block_count", Value::U32(2), "a llama model with blk.2."),
        ("llama.feed_forward_length", Value::U32(95), "has shape [64, 96], [64, 95] was expected"),
        ("llama.embedding_length", Value::U32(0), "llama.embedding_length is 0"),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(f32::NAN), "not a finite number"),
        ("tokenizer.ggml.tokens", Value::Array(vec![]), "it has 0 tokens and the embeddings of 40"),
    ] {
        let error = refused("llama", |gguf| set(gguf, key, value));
        assert!(error.contains(reason), "{key}: {error}");
    }
    // An array with one number for every layer is read if the numbers are equal.
    let (_folder, mut gguf) = header("llama");
    let of_layers = |heads: [u32; 3]| Value::Array(heads.map(Value::U32).to_vec());
    set(&mut gguf, "llama.attention.head_count_kv", of_layers([2, 2, 2]));
    assert_eq!(load(&gguf).unwrap().shape.kv_heads, 2);
    set(&mut gguf, "llama.attention.head_count_kv", of_layers([2, 0, 2]));
    assert!(load(&gguf).is_err());
    let error = refused("llama", |gguf| drop(gguf.metadata.remove("llama.block_count")));
    assert!(error.contains("llama.block_count is missing"), "{error}");
    let error = refused("granite", |gguf| drop(gguf.metadata.remove("granite.logit_scale")));
    assert!(error.contains("granite.logit_scale is missing"), "{error}");
}

/// Without a stated width of its heads, the width of the model is divided among them.
#[test]
fn heads_that_do_not_divide_the_width_are_refused() {
    let error = refused("llama", |gguf| {
        gguf.metadata.remove("llama.attention.key_length");
        set(gguf, "llama.attention.head_count", Value::U32(5));
    });
    assert!(error.contains("5 heads do not divide a width of 64"), "{error}");
}

#[test]
fn a_rotation_that_is_not_computed_is_refused() {
    for kind in ["longrope", "dynamic"] {
        let value = Value::String(kind.into());
        let error = refused("llama", |gguf| set(gguf, "llama.rope.scaling.type", value));
        assert!(error.contains(&format!("RoPE scaling of type {kind}")), "{error}");
    }
    for (name, key, value, reason) in [
        ("llama with YaRN", "factor", Value::F32(-2.0), "llama.rope.scaling.factor is below 0"),
        ("llama with YaRN", "factor", Value::F32(f32::NAN), "not a finite number"),
        ("llama with YaRN", "original_context_length", Value::U32(0), "context_length is 0"),
    ] {
        let error = refused(name, |gguf| set(gguf, &format!("llama.rope.scaling.{key}"), value));
        assert!(error.contains(reason), "{error}");
    }
    let error =
        refused("granite", |gguf| set(gguf, "granite.rope.scaling.finetuned", Value::Bool(false)));
    assert!(error.contains("a granite model without RoPE"), "{error}");
}

#[test]
fn a_missing_tensor_and_one_too_many_are_named() {
    for (name, tensor) in [
        ("qwen3", "blk.1.attn_k_norm.weight"),
        ("starcoder2", "blk.0.ffn_up.weight"),
        ("gemma", "token_embd.weight"),
        ("llama", "output_norm.weight"),
    ] {
        let error = refused(name, |gguf| remove(gguf, tensor));
        assert!(error.contains(&format!("{tensor} is missing")), "{error}");
    }
    // The file is one of qwen3, and what it says to be has no norms of heads.
    let error = refused("qwen3", |gguf| {
        let keys: Vec<_> = gguf.metadata.clone().into_iter().collect();
        for (key, value) in keys {
            if let Some(name) = key.strip_prefix("qwen3.") {
                set(gguf, &format!("qwen2.{name}"), value);
            }
        }
        set(gguf, "general.architecture", Value::String("qwen2".into()));
    });
    assert!(error.contains("a qwen2 model with blk.0.attn_q_norm.weight"), "{error}");
}

/// Each as the error says it.
#[test]
fn experts_that_cannot_be_are_refused() {
    for (key, value, reason) in [
        ("expert_count", Value::U32(0), "qwen3moe.expert_count is missing"),
        ("expert_count", Value::U32(7), "has shape [64, 96, 8], [64, 96, 7] was expected"),
        ("expert_used_count", Value::U32(0), "its tokens use 0 of 8 experts"),
        ("expert_used_count", Value::U32(9), "its tokens use 9 of 8 experts"),
        ("expert_feed_forward_length", Value::U32(64), "[64, 64, 8] was expected"),
        ("expert_feed_forward_length", Value::U32(0), "expert_feed_forward_length is 0"),
        ("expert_weights_scale", Value::F32(2.5), "with qwen3moe.expert_weights_scale"),
        ("expert_group_count", Value::U32(4), "a model with 4 groups of experts"),
    ] {
        let error = refused("qwen3moe", |gguf| set(gguf, &format!("qwen3moe.{key}"), value));
        assert!(error.contains(reason), "{key}: {error}");
    }
    let error = refused("qwen3moe", |gguf| remove(gguf, "blk.1.ffn_gate_inp.weight"));
    assert!(error.contains("blk.1.ffn_gate_inp.weight is missing"), "{error}");
    let error = refused("qwen3moe", |gguf| {
        let down = gguf.tensors.iter_mut().find(|tensor| tensor.name.contains("down_exps"));
        down.unwrap().dims.swap(0, 1);
    });
    assert!(error.contains("ffn_down_exps.weight has shape [64, 96, 8]"), "{error}");
    // A dense architecture with experts, as Mixtral has them.
    let error = refused("llama", |gguf| {
        set(gguf, "llama.expert_count", Value::U32(8));
        set(gguf, "llama.expert_used_count", Value::U32(2));
    });
    assert!(error.contains("a llama model with experts, and it has 8"), "{error}");
}

#[test]
fn a_tensor_in_a_format_that_is_not_read_is_named() {
    let error = refused("llama", |gguf| gguf.tensors[0].ggml_type = 39);
    assert!(error.contains("token_embd.weight has ggml type 39"), "{error}");
}
