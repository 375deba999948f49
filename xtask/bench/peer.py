"""The peer of `cargo xtask bench learn`: the same step with torch and PEFT.

Loads the same GGUF (dequantised to f32), puts LoRA on the same seven linear
maps, and answers the same lines on stdin as `learner/examples/step.rs`. Logits
are computed for the completion's tokens only, as there.

`check FOLDER` loads the adapter that the other side left there and compares its
log-probs of the completion, and their gradient with respect to every LoRA
tensor, with torch's: {"logprob_mean", "logprob_max" (nats), "gradient_cosine",
"gradient_error" (norm of the difference over the norm)}. It also lets PEFT load
the folder that was exported for it, and compares the log-probs that this gives
in one pass over the whole sequence: {"exported_mean", "exported_max"}.
"""

import argparse
import gc
import json
import sys
import time
import warnings

import gguf
import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

warnings.filterwarnings("ignore")

# GGUF's names of a layer's linear maps, and those of transformers.
MAPS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--completion", type=int, required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--mode", choices=["tail", "everywhere"], required=True)
    parser.add_argument("--threads", type=int, required=True)
    return parser.parse_args()


def to_halves(weight, heads):
    """llama in GGUF pairs RoPE's values (2j, 2j+1); transformers (j, j + half)."""
    rows = weight.shape[0]
    pairs = weight.reshape(heads, rows // heads // 2, 2, *weight.shape[1:])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def to_pairs(weight, heads):
    """The inverse of `to_halves`."""
    rows = weight.shape[0]
    halves = weight.reshape(heads, 2, rows // heads // 2, *weight.shape[1:])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def load(path):
    reader = gguf.GGUFReader(path)
    field = lambda key: reader.fields[key].contents()
    arch = field("general.architecture")
    key = lambda name: field(f"{arch}.{name}")
    tensors = {
        tensor.name: torch.from_numpy(
            np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        )
        for tensor in reader.tensors
    }
    layers, heads = key("block_count"), key("attention.head_count")
    kv_heads = key("attention.head_count_kv")
    config_type, model_type = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    }[arch]
    config = config_type(
        vocab_size=tensors["token_embd.weight"].shape[0],
        hidden_size=key("embedding_length"),
        intermediate_size=key("feed_forward_length"),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=key("context_length"),
        rms_norm_eps=key("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": key("rope.freq_base")},
        tie_word_embeddings="output.weight" not in tensors,
    )
    config._attn_implementation = "sdpa"
    model = model_type(config)
    state = {
        "model.embed_tokens.weight": tensors["token_embd.weight"],
        "lm_head.weight": tensors.get("output.weight", tensors["token_embd.weight"]),
        "model.norm.weight": tensors["output_norm.weight"],
    }
    permuted = {"attn_q": heads, "attn_k": kv_heads} if arch == "llama" else {}
    for layer in range(layers):
        for name, theirs in {**MAPS, **NORMS}.items():
            for part in ("weight", "bias"):
                tensor = tensors.get(f"blk.{layer}.{name}.{part}")
                if tensor is not None:
                    if name in permuted:
                        tensor = to_halves(tensor, permuted[name])
                    state[f"model.layers.{layer}.{theirs}.{part}"] = tensor
    result = model.load_state_dict(state, strict=False)
    assert not result.unexpected_keys and not result.missing_keys, result
    return model, permuted


def main():
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    tokens = torch.tensor(json.load(open(arguments.tokens)))[None]
    learned = tokens.shape[1] - arguments.completion
    inputs, targets = tokens[:, :-1], tokens[0, learned:]

    lora = LoraConfig(
        r=arguments.rank,
        lora_alpha=2 * arguments.rank,
        lora_dropout=0.0,
        bias="none",
        task_type="CAUSAL_LM",
        target_modules=[theirs.split(".")[1] for theirs in MAPS.values()],
    )
    plain, permuted = load(arguments.model)
    peft = get_peft_model(plain, lora)
    model = peft.base_model.model
    trained = [parameter for parameter in peft.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.0)
    past = None

    def prompt():
        """The prompt's keys and values under the base, without an adapter."""
        nonlocal past
        with torch.no_grad(), peft.disable_adapter():
            cache = model.model(input_ids=tokens[:, :learned], use_cache=True).past_key_values
        past = [(layer.keys, layer.values) for layer in cache.layers]

    def hidden():
        if arguments.mode == "everywhere":
            return model.model(input_ids=inputs, use_cache=False).last_hidden_state[0]
        cache = DynamicCache()
        for index, (keys, values) in enumerate(past):
            # The row that predicts the first token is the adapter's.
            cache.update(keys[:, :, : learned - 1], values[:, :, : learned - 1], index)
        positions = torch.arange(learned - 1, inputs.shape[1])[None]
        return model.model(
            input_ids=inputs[:, learned - 1 :],
            past_key_values=cache,
            use_cache=True,
            position_ids=positions,
        ).last_hidden_state[0]

    def loss():
        """Log-probs of the completion, a column."""
        logits = model.lm_head(hidden()[-arguments.completion :])
        return torch.log_softmax(logits, -1).gather(1, targets[:, None])

    def step():
        optimizer.zero_grad(set_to_none=True)
        (-loss().mean()).backward()
        optimizer.step()

    def loras():
        """Every LoRA tensor in the order of the other side, with its RoPE heads."""
        modules = dict(peft.named_modules())
        for layer in range(model.config.num_hidden_layers):
            for name, theirs in MAPS.items():
                module = modules[f"base_model.model.model.layers.{layer}.{theirs}"]
                heads = permuted.get(name)
                yield f"blk.{layer}.{name}.weight.lora_a", module.lora_A["default"].weight, None
                yield f"blk.{layer}.{name}.weight.lora_b", module.lora_B["default"].weight, heads

    def exported(folder):
        """Log-probs of the completion under the adapter as PEFT loads it."""
        model = PeftModel.from_pretrained(load(arguments.model)[0], f"{folder}/peft").eval()
        with torch.no_grad():
            logits = model(
                input_ids=inputs, use_cache=False, logits_to_keep=arguments.completion
            ).logits[0]
            return torch.log_softmax(logits, -1).gather(1, targets[:, None]).numpy()[:, 0]

    def check(folder):
        adapter = {
            tensor.name: torch.from_numpy(np.array(tensor.data, dtype=np.float32))
            for tensor in gguf.GGUFReader(f"{folder}/adapter.gguf").tensors
        }
        with torch.no_grad():
            for name, weight, heads in loras():
                tensor = adapter[name]
                weight.copy_(to_halves(tensor, heads) if heads else tensor)
        optimizer.zero_grad(set_to_none=True)
        logprobs = loss()
        (-logprobs.mean()).backward()
        theirs = np.fromfile(f"{folder}/logprobs.f32", dtype=np.float32)
        off = np.abs(logprobs.detach().numpy()[:, 0] - theirs)
        exported_off = np.abs(exported(folder) - theirs)
        ours = torch.cat(
            [
                (to_pairs(weight.grad, heads) if heads else weight.grad).flatten()
                for _, weight, heads in loras()
            ]
        )
        theirs = torch.from_numpy(np.fromfile(f"{folder}/gradient.f32", dtype=np.float32))
        ours, theirs = ours.double(), theirs.double()
        return {
            "logprob_mean": float(off.mean()),
            "logprob_max": float(off.max()),
            "exported_mean": float(exported_off.mean()),
            "exported_max": float(exported_off.max()),
            "gradient_cosine": float(ours @ theirs / (ours.norm() * theirs.norm())),
            "gradient_error": float((ours - theirs).norm() / ours.norm()),
        }

    if arguments.mode == "tail":
        prompt()
    def forget_peak():
        """What loading and comparing took is not counted."""
        gc.collect()
        open("/proc/self/clear_refs", "w").write("5")

    forget_peak()
    for line in sys.stdin:
        begun = time.monotonic()
        if line.strip() == "end":
            status = open("/proc/self/status").read()
            peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
            print(json.dumps({"peak_mb": peak}), flush=True)
            return
        if line.startswith("check "):
            print(json.dumps(check(line.strip().removeprefix("check "))), flush=True)
            forget_peak()
            continue
        {"prompt": prompt, "step": step}[line.strip()]()
        print(json.dumps({"s": time.monotonic() - begun}), flush=True)


main()
