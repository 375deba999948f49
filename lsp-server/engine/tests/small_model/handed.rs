//! The keys and values of a prompt can be taken out of the engine for the learner.

use crate::{generate, load, prompt, request};
use engine::Engine;
use models::fim::template;

/// SmolLM2-135M has three heads of keys and values, of 64 numbers each.
const LAYERS: usize = 30;
const KV_WIDTH: usize = 192;

#[test]
fn a_prompt_is_given_while_the_engine_holds_it() {
    let mut engine = load(template("prefix-only").unwrap());
    let asked = request(prompt("def add(a, b):\n", "    return"));
    let generated = generate(&mut engine, &asked);
    let base = &generated.prompt[..generated.adapter_from];
    let rows = engine.prompt_kv(base).expect("the engine holds the prompt of its last answer");

    let part = base.len() * KV_WIDTH * size_of::<u16>();
    assert_eq!(rows.len(), 2 * LAYERS * part, "keys and values of each layer");

    // The beginning of a prompt has the same rows, whatever follows it.
    let half = engine.prompt_kv(&base[..base.len() / 2]).unwrap();
    let half_part = half.len() / (2 * LAYERS);
    for (layer, half) in rows.chunks_exact(part).zip(half.chunks_exact(half_part)) {
        assert_eq!(layer[..half_part], *half);
    }
    let mut other = base.to_vec();
    *other.last_mut().unwrap() += 1;
    assert_eq!(engine.prompt_kv(&other), None, "another prompt");
}
