"""Measures training steps that the published table lacks, on fake tensors, and writes them as rows like its own.

Usage: measure.py ORACLE.py CONFIGS.json OUT.jsonl [SEED [CASES_PER_CONFIG]]
       measure.py ORACLE.py CATALOGUE.jsonl OUT.jsonl [SEED [MODELS]]
       measure.py ORACLE.py CATALOGUE.jsonl OUT.jsonl SEED decoders|quant [MODEL_TYPE ...]

ORACLE.py is the step measurer (PyTorch on fake tensors); CONFIGS.json holds configs by name. Configs are cut to a
few layers, so that short-lived memory shows beside what adds up over layers, and changed at random (window,
vocabulary, head counts, biases); a row lists its changes. From a catalogue ({id, config, params} a line), models
drawn at random are measured as they are. With `decoders`, models of the catalogue (and CONFIGS.json beside OUT.jsonl)
that are not dense are cut to a few layers and measured under every recipe at two lengths; with `quant` these and all
dense ones with quantised bases and 8-bit optimizer states, at one length. Recipes and lengths are drawn at random too. Appends a JSON object a batch.
"""
import importlib.util, json, os, random, sys, tempfile, traceback


def load(path):
    spec = importlib.util.spec_from_file_location("oracle", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LENGTHS = [96, 200, 512, 1001, 1024, 2048, 4096]
# Of each family: a base config and changes to choose from, beside those that all share.
FAMILIES = [
    ("meta-llama/Llama-3.2-1B", [{}, {"attention_bias": True, "mlp_bias": True}, {"num_key_value_heads": 32}, {"tie_word_embeddings": False}, {"vocab_size": 32000}]),
    ("HuggingFaceTB/SmolLM2-135M", [{}, {"hidden_act": "gelu"}, {"num_key_value_heads": 9, "tie_word_embeddings": False}]),
    ("Qwen/Qwen2.5-0.5B", [{}, {"use_sliding_window": True, "sliding_window": 256, "max_window_layers": 2}, {"vocab_size": 20000}]),
    ("Qwen/Qwen3-0.6B", [{}, {"tie_word_embeddings": False}, {"vocab_size": 20000, "attention_bias": True}]),
    ("mistralai/Mistral-7B-v0.1", [{"sliding_window": 256}, {"sliding_window": None}, {"sliding_window": 1024}, {"num_key_value_heads": 32}]),
    ("google/gemma-2b", [{}, {"num_key_value_heads": 8}, {"num_key_value_heads": 2, "vocab_size": 32000}]),
    ("microsoft/Phi-3-mini-4k-instruct", [{}, {"sliding_window": 256}, {"sliding_window": None, "num_key_value_heads": 8}, {"partial_rotary_factor": 0.75}]),
    ("openai-community/gpt2", [{}, {"resid_pdrop": 0.0, "attn_pdrop": 0.0, "embd_pdrop": 0.0}, {"activation_function": "gelu"}, {"n_head": 8}]),
    ("EleutherAI/pythia-160m", [{}, {"use_parallel_residual": False}, {"hidden_dropout": 0.1, "attention_dropout": 0.1}, {"rotary_pct": 1.0}, {"attention_bias": False, "tie_word_embeddings": True}]),
    ("facebook/opt-125m", [{}, {"do_layer_norm_before": False, "word_embed_proj_dim": 512}, {"dropout": 0.0}, {"attention_dropout": 0.1}]),
    ("tiiuae/falcon-7b", [{}, {"new_decoder_architecture": True, "num_attention_heads": 64, "hidden_size": 4096, "num_kv_heads": 8}, {"bias": True}, {"hidden_dropout": 0.1}]),
    ("tiiuae/falcon-rw-1b", [{}, {"attention_dropout": 0.1, "hidden_dropout": 0.1}, {"alibi": False}]),
    ("bigcode/starcoder2-3b", [{}, {"sliding_window": 256}, {"residual_dropout": 0.0, "attention_dropout": 0.0, "embedding_dropout": 0.0}, {"use_bias": False, "num_key_value_heads": 24}]),
    ("allenai/OLMo-2-1124-7B", [{}, {"num_key_value_heads": 8}, {"vocab_size": 20000}]),
    ("ibm-granite/granite-3.3-2b-instruct", [{}, {"tie_word_embeddings": False}, {"num_key_value_heads": 32}]),
]
LAYER_KEYS = {"gpt2": "n_layer"}


def cases(rng, name, config, variants, count):
    for _ in range(count):
        changes = dict(rng.choice(variants))
        changes[LAYER_KEYS.get(config["model_type"], "num_hidden_layers")] = rng.choice([1, 2, 4, 5])
        recipe = rng.choice(["amp-bf16", "bf16", "fp32", "lora", "lora", "lora-bf16", "lora-fp32"])
        lora = recipe.startswith("lora")
        attentions = ["sdpa", "sdpa", "eager"] + ([] if recipe == "fp32" or config["model_type"] == "falcon" else ["flash"])
        case = dict(
            config=name, changes=changes, recipe=recipe,
            optimizer="fused" if rng.random() < 0.8 else "foreach",
            attention=rng.choice(attentions), padding_mask=rng.random() < 0.3, checkpointing=rng.random() < 0.4,
            lora_rank=rng.choice([8, 16, 64]) if lora else None,
            targets=rng.choice(["attn", "all-linear"]) if lora else None, seq=rng.choice(LENGTHS),
        )
        if case["attention"] == "flash":
            case["padding_mask"] = False           # flash_attn reads the mask's values; fake tensors have none
        yield case


DENSE = {"llama", "qwen2", "qwen3", "mistral", "gemma", "phi3", "gpt2", "gpt_neox", "opt", "falcon", "starcoder2", "olmo2", "granite"}


def drawn(rng, path, count):
    """(config, case) pairs: cut and changed configs, or whole ones of a catalogue."""
    if not path.endswith(".jsonl"):
        configs = json.load(open(path))
        for name, variants in FAMILIES:
            for case in cases(rng, name, configs[name], variants, count):
                yield {**configs[name], **case["changes"]}, case
        return
    rows = [json.loads(line) for line in open(path)]
    rows = [r for r in rows if r["config"].get("model_type") in DENSE and r["params"] < 9e9]
    rows = [r for r in rows if str(r["config"].get("architectures")).find("CausalLM") > 0]
    for row in rng.sample(rows, count):
        config = row["config"]
        for case in cases(rng, row["id"], config, [{}], 1):
            del case["changes"]
            context = config.get("max_position_embeddings") or config.get("n_positions") or 1024
            yield config, {**case, "catalogue": True, "seq": min(rng.choice([512, 1024, 2048, 4096]), context)}


# Decoders beside the dense ones: a model, and changes that cut it to a few layers with each kind of layer among them.
DECODERS = [
    ("mistralai/Mixtral-8x22B-v0.1", dict(num_hidden_layers=3)),
    ("Qwen/Qwen1.5-MoE-A2.7B-Chat", dict(num_hidden_layers=3)),
    ("Qwen/Qwen3-30B-A3B", dict(num_hidden_layers=4)),
    ("openai/gpt-oss-20b", dict(num_hidden_layers=4, layer_types=["sliding_attention", "full_attention"] * 2)),
    ("deepseek-ai/DeepSeek-V2-Lite", dict(num_hidden_layers=4)),
    ("deepseek-ai/DeepSeek-V2", dict(num_hidden_layers=3, n_routed_experts=32)),
    ("moonshotai/Kimi-K2-Instruct", dict(model_type="deepseek_v3", num_hidden_layers=3, n_routed_experts=32)),
    ("zai-org/GLM-4.5", dict(num_hidden_layers=4, n_routed_experts=32, first_k_dense_replace=1)),
    ("MiniMaxAI/MiniMax-M2.5", dict(num_hidden_layers=3, num_local_experts=32)),
    ("microsoft/Phi-3.5-MoE-instruct", dict(num_hidden_layers=3)),
    ("allenai/OLMoE-1B-7B-0924", dict(num_hidden_layers=4)),
    ("ibm-granite/granite-3.1-1b-a400m-base", dict(num_hidden_layers=4)),
    ("bigscience/bloom-560m", dict(n_layer=4)),
    ("CohereLabs/aya-23-8B", dict(num_hidden_layers=3)),
    ("CohereLabs/c4ai-command-r-plus", dict(num_hidden_layers=3)),
    ("CohereLabs/c4ai-command-r7b-12-2024", dict(num_hidden_layers=4, sliding_window=512)),
    ("EleutherAI/gpt-neo-125m", dict(num_layers=4, attention_types=[[["global", "local"], 2]])),
    ("swiss-ai/Apertus-8B-2509", dict(num_hidden_layers=3)),
    ("tencent/Hunyuan-7B-Instruct", dict(num_hidden_layers=3)),
    ("stabilityai/stablelm-2-12b", dict(num_hidden_layers=3)),
    ("ibm-granite/granite-4.0-1b", dict(num_hidden_layers=4, layer_types=["attention"] * 4)),
    ("allenai/OLMo-1B-hf", dict(num_hidden_layers=4)),
    ("nvidia/Minitron-4B-Base", dict(num_hidden_layers=3)),
    ("google/gemma-4-31B (text)", dict(num_hidden_layers=4, layer_types=["sliding_attention"] * 3 + ["full_attention"], sliding_window=512)),
    ("google/gemma-4-26B-A4B (text)", dict(num_hidden_layers=4, num_experts=16, layer_types=["sliding_attention"] * 3 + ["full_attention"], sliding_window=512)),
    ("zai-org/GLM-5", dict(num_hidden_layers=3, n_routed_experts=16, first_k_dense_replace=1)),
    ("LiquidAI/LFM2-350M", dict(num_hidden_layers=5, layer_types=["conv", "conv", "full_attention", "conv", "conv"])),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", dict(num_hidden_layers=4, num_experts=64)),
    ("Qwen/Qwen3.5-0.8B (text)", dict(num_hidden_layers=4, layer_types=["linear_attention"] * 3 + ["full_attention"])),
    ("Qwen/Qwen3.5-35B-A3B (text)", dict(num_hidden_layers=4, num_experts=32, layer_types=["linear_attention"] * 3 + ["full_attention"])),
    ("state-spaces/mamba-370m-hf", dict(num_hidden_layers=4)),
    ("state-spaces/mamba-1.4b-hf", dict(num_hidden_layers=5, vocab_size=8000, state_size=32, use_bias=True)),
    ("state-spaces/mamba-790m-hf", dict(num_hidden_layers=3, residual_in_fp32=False, use_conv_bias=False, conv_kernel=3, time_step_rank=16)),
    ("internlm/internlm2-chat-7b", dict(num_hidden_layers=3)),
    ("internlm/internlm3-8b-instruct", dict(num_hidden_layers=3, vocab_size=32000)),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct (text)", dict(num_hidden_layers=4, num_local_experts=4, attention_chunk_size=1024)),
]
# Of a decoder, each of these at two lengths.
RECIPES = [
    dict(recipe="amp-bf16"), dict(recipe="bf16"), dict(recipe="fp32"), dict(recipe="lora", targets="attn"),
    dict(recipe="lora", targets="all-linear"), dict(recipe="amp-bf16", checkpointing=True),
    dict(recipe="lora-bf16", targets="all-linear", checkpointing=True), dict(recipe="amp-bf16", attention="eager"),
    dict(recipe="bf16", padding_mask=True), dict(recipe="lora-fp32", targets="attn", checkpointing=True),
    dict(recipe="bf16", attention="flash", optimizer="foreach"),
]


# Measured like the dense ones in other tables, and cut here.
MORE_DENSE = [
    ("google/gemma-2-2b", dict(num_hidden_layers=4, vocab_size=20000)),
    ("google/gemma-3-270m", dict(num_hidden_layers=6, vocab_size=20000)),
    ("microsoft/phi-2", dict(num_hidden_layers=3)),
    ("EleutherAI/gpt-j-6b", dict(n_layer=3)),
    ("zai-org/glm-4-9b-hf", dict(num_hidden_layers=3, vocab_size=20000)),
    ("zai-org/GLM-4-9B-0414", dict(num_hidden_layers=3, vocab_size=20000)),
    ("allenai/Olmo-3-1025-7B", dict(num_hidden_layers=4, vocab_size=20000, layer_types=["sliding_attention"] * 3 + ["full_attention"])),
    ("LGAI-EXAONE/EXAONE-4.0-1.2B", dict(num_hidden_layers=4, vocab_size=20000, layer_types=["full_attention"] * 4)),
    ("bigcode/starcoderbase-1b", dict(n_layer=3)),
    ("baidu/ERNIE-4.5-0.3B-PT", dict(num_hidden_layers=4, vocab_size=20000)),
    ("HuggingFaceTB/SmolLM3-3B", dict(num_hidden_layers=4, vocab_size=20000)),
]
# The same with a quantised base or an 8-bit optimizer, at one length.
QUANT_RECIPES = [
    dict(recipe="nf4", targets="attn"), dict(recipe="int8", targets="all-linear", checkpointing=True),
    dict(recipe="amp-bf16", optimizer="adamw-8bit"),
]


def decoders(rng, catalogue, beside, only, models=DECODERS, recipes=RECIPES, lengths=2):
    listed = {r["id"]: r["config"] for r in map(json.loads, open(catalogue))}
    configs = {**json.load(open(beside)), **listed}
    for name, changes in models:
        config = configs[name]
        if only and config["model_type"] not in only:
            continue
        for recipe in recipes:
            if recipe.get("checkpointing") and config["model_type"] == "gemma4_text":
                continue                           # keys and values that two layers keep are not sized
            if recipe.get("attention") == "flash" and config["model_type"] == "gpt_neo":
                continue                           # it chooses its attention class when it is built, as eager
            if config["model_type"] == "mamba" and (
                    recipe["recipe"].startswith(("lora", "nf4", "int8")) or recipe.get("attention")
                    or recipe.get("padding_mask")):
                continue                           # it has no attention, and its kernel reads weights past adapters
            for seq in rng.sample([200, 512, 1001, 2048], lengths):
                lora = recipe["recipe"].startswith(("lora", "nf4", "int8"))
                case = dict(
                    config=name, changes=changes, optimizer="fused", attention="sdpa", padding_mask=False,
                    checkpointing=False, lora_rank=16 if lora else None, targets=None, seq=seq)
                if models is not DECODERS and name in listed:
                    case["catalogue"] = True
                yield {**config, **changes}, {**case, **recipe}


def main():
    oracle = load(sys.argv[1])
    out = open(sys.argv[3], "a")
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    import transformers.masking_utils as masking
    skip_mask = masking._ignore_causal_mask_sdpa       # the measurer replaces it for padded batches, for good
    if sys.argv[5:6] in (["decoders"], ["quant"]):
        beside = os.path.join(os.path.dirname(os.path.abspath(sys.argv[3])), "configs.json")
        dense = [(name, {"n_layer" if name.endswith("gpt2") else "num_hidden_layers": 4, **variants[0]}) for name, variants in FAMILIES]
        more = (dense + MORE_DENSE + DECODERS, QUANT_RECIPES, 1) if sys.argv[5] == "quant" else ()
        todo = decoders(rng, sys.argv[2], beside, sys.argv[6:], *more)
    else:
        todo = drawn(rng, sys.argv[2], int(sys.argv[5]) if len(sys.argv) > 5 else 12)
    for raw, case in todo:
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
            json.dump(raw, f)
        # LoRA under autocast on a base loaded in fp32.
        recipe, weights = ("lora", "fp32") if case["recipe"] == "lora-fp32" else (case["recipe"], None)
        masking._ignore_causal_mask_sdpa = skip_mask
        try:
            done = oracle.one_case(
                f.name, [1, 2, 8], case["seq"], case["attention"], recipe, rank=case["lora_rank"] or 16,
                targets=case["targets"] or "attn", checkpointing=case["checkpointing"], optimizer=case["optimizer"],
                padding_mask=case["padding_mask"], weights=weights, real_first_step=False)
        except Exception:
            print("failed", json.dumps(case), traceback.format_exc().splitlines()[-1], file=sys.stderr)
            continue
        finally:
            os.unlink(f.name)
        for batch, got in done.items():
            row = dict(params=got["params"], trainable=got["trainable"], batch=batch, peak_bytes=got["peak_bytes"])
            out.write(json.dumps({**case, **row}, separators=(",", ":")) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
