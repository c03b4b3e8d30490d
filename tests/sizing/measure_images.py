"""Measures training steps of models with a tower of images, one image a sample, as rows like `measure.py`'s.

Usage: measure_images.py ORACLE.py CATALOGUE.jsonl OUT.jsonl [SEED [CASES_PER_BASE [BASE_PREFIX]]]

ORACLE.py is the step measurer (PyTorch on fake tensors; its module `images` says what a sample is); CATALOGUE.jsonl
holds configs ({id, config, params} a line). Configs are cut to a few layers and changed at random (sizes, heads,
images, vocabulary, what is taken of the tower); a row lists its changes, whose keys may be dotted. With 0 cases a base,
whole models of the catalogue are measured under the default recipe and one other.
"""
import json, os, random, sys, tempfile, traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import load  # noqa: E402
from measure_stacks import placed  # noqa: E402

TEXT = [{}, {"vocab_size": 32000}, {"num_key_value_heads": 4, "num_attention_heads": 16, "head_dim": 64}, {"hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 64, "intermediate_size": 2048}]
ENCODER = [{}, {"hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1024}, {"hidden_act": "gelu"}, {"attention_dropout": 0.1}]
QWEN2 = [{}, {"embed_dim": 640, "num_heads": 8}, {"mlp_ratio": 3}, {"patch_size": 16}]
QWEN = [{}, {"hidden_size": 512, "num_heads": 8, "intermediate_size": 1024}, {"patch_size": 12}, {"temporal_patch_size": 1}]
DELTA = [{}, {"linear_num_value_heads": 16, "linear_num_key_heads": 8}, {"vocab_size": 32000}]
FOUR = {"text_config.num_hidden_layers": 4, "text_config.layer_types": ["linear_attention"] * 3 + ["full_attention"]}
MIXED = {"text_config.num_hidden_layers": 4, "text_config.layer_types": ["sliding_attention"] * 3 + ["full_attention"]}
LLAMA4 = {"text_config.num_hidden_layers": 4, "text_config.num_local_experts": 4, "text_config.hidden_size": 2048, "text_config.num_attention_heads": 16, "text_config.intermediate_size": 2048, "text_config.vocab_size": 32000, "tie_word_embeddings": False}

# Base, changes that cut it, of its text model, of its tower, of the whole, and where the text's keys stand.
BASES = [
    ("google/gemma-3-12b-pt", {**MIXED, "text_config.hidden_size": 1536}, [{}, {"vocab_size": 32000}, {"sliding_window": 256}, {"num_key_value_heads": 4}], ENCODER + [{"image_size": 448}], [{"mm_tokens_per_image": 256}, {"vision_config.image_size": 224, "mm_tokens_per_image": 64}]),
    ("google/paligemma-3b-pt-224", {"text_config.num_hidden_layers": 3}, [{}, {"vocab_size": 32000}, {"num_key_value_heads": 2}], ENCODER + [{"image_size": 448}], [{}]),
    ("google/paligemma2-3b-pt-448", {"text_config.num_hidden_layers": 4, "text_config.layer_types": ["sliding_attention", "full_attention"] * 2}, [{}, {"vocab_size": 32000}, {"sliding_window": 256}], ENCODER + [{"image_size": 224}], [{}]),
    ("llava-hf/llava-1.5-7b-hf", {"text_config.num_hidden_layers": 3, "text_config.hidden_size": 2048, "text_config.num_attention_heads": 16, "text_config.num_key_value_heads": 16, "text_config.intermediate_size": 4096}, TEXT, ENCODER + [{"image_size": 224}], [{}, {"vision_feature_layer": -1}, {"vision_feature_layer": [-2, -3]}, {"vision_feature_select_strategy": "full"}, {"multimodal_projector_bias": False}]),
    ("llava-hf/llava-v1.6-mistral-7b-hf", {"text_config.num_hidden_layers": 3, "text_config.hidden_size": 2048, "text_config.num_attention_heads": 16, "text_config.num_key_value_heads": 4, "text_config.intermediate_size": 4096, "text_config.head_dim": 128}, TEXT, ENCODER + [{"image_size": 224, "patch_size": 16}], [{}, {"vision_feature_layer": -1}]),
    ("HuggingFaceM4/Idefics3-8B-Llama3", {"text_config.num_hidden_layers": 3, "text_config.hidden_size": 2048, "text_config.num_attention_heads": 16, "text_config.intermediate_size": 4096}, TEXT, ENCODER + [{"image_size": 448}], [{}, {"scale_factor": 1}]),
    ("HuggingFaceTB/SmolVLM-256M-Instruct", {"text_config.num_hidden_layers": 3}, [{}, {"vocab_size": 8000}], ENCODER, [{}, {"scale_factor": 2}, {"model_type": "smolvlm", "architectures": ["SmolVLMForConditionalGeneration"], "text_config.pad_token_id": 0}]),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", LLAMA4, [{}, {"vocab_size": 8000}, {"interleave_moe_layer_step": 2, "use_qk_norm": False, "attention_chunk_size": 512}, {"num_key_value_heads": 16}], [{}, {"hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048}, {"image_size": 448}], [{}, {"vision_config.projector_input_dim": 1024, "vision_config.projector_output_dim": 1024, "vision_config.vision_output_dim": 1024}]),
    ("Qwen/Qwen2-VL-2B-Instruct", {"num_hidden_layers": 3}, [{}, {"vocab_size": 32000}, {"num_key_value_heads": 4}, {"tie_word_embeddings": False}], QWEN2, [{}]),
    ("Qwen/Qwen2.5-VL-3B-Instruct", {"num_hidden_layers": 3}, [{}, {"vocab_size": 32000}, {"num_key_value_heads": 4}, {"tie_word_embeddings": False}], QWEN, [{"vision_config.fullatt_block_indexes": [1, 3]}, {"vision_config.fullatt_block_indexes": [2], "vision_config.window_size": 84}]),
    ("Qwen/Qwen3-VL-2B-Instruct", {"text_config.num_hidden_layers": 5}, [{}, {"vocab_size": 32000}, {"num_key_value_heads": 4}, {"attention_bias": True}], QWEN, [{"vision_config.deepstack_visual_indexes": [0, 1, 2]}, {"vision_config.deepstack_visual_indexes": [1]}, {"vision_config.deepstack_visual_indexes": [0, 2], "text_config.num_hidden_layers": 2}]),
    ("Qwen/Qwen3-VL-30B-A3B-Instruct", {"text_config.num_hidden_layers": 4, "text_config.num_experts": 16}, [{}, {"vocab_size": 32000}, {"num_experts_per_tok": 4}], QWEN, [{"vision_config.deepstack_visual_indexes": [0, 1, 2]}]),
    ("Qwen/Qwen3.5-0.8B", FOUR, DELTA, QWEN, [{}]),
    ("Qwen/Qwen3.5-35B-A3B", {**FOUR, "text_config.num_experts": 16}, DELTA, QWEN, [{}]),
]
FLAT = ("qwen2_vl", "qwen2_5_vl")
NO_FLASH = ("gemma3", "paligemma")
LENGTHS = [1024, 1001, 1536, 2048]


def recipe_of(rng, kind):
    recipe = rng.choice(["amp-bf16", "amp-bf16", "amp-bf16", "bf16", "bf16", "fp32", "lora", "lora", "lora-bf16", "lora-fp32"])
    lora = recipe.startswith("lora")
    attention = rng.choice(["sdpa", "sdpa", "sdpa", "eager"] + ([] if recipe == "fp32" or kind in NO_FLASH else ["flash"]))
    return dict(
        recipe=recipe, optimizer="fused" if rng.random() < 0.85 else "foreach", attention=attention,
        padding_mask=attention != "flash" and rng.random() < 0.2, checkpointing=rng.random() < 0.3,
        lora_rank=rng.choice([8, 16, 64]) if lora else None, targets=rng.choice(["attn", "all-linear"]) if lora else None,
        seq=rng.choice(LENGTHS),
    )


def drawn(rng, seed, catalogue, count, wanted):
    """(name, changes, case) of what is to be measured."""
    for name, cut, texts, towers, wholes in BASES:
        kind = catalogue[name]["model_type"]
        if not name.startswith(wanted):
            continue
        if count == 0:
            for recipe in ("amp-bf16", "lora"):
                lora = recipe == "lora"
                yield name, {}, dict(
                    recipe=recipe, optimizer="fused", attention="sdpa", padding_mask=False, checkpointing=lora,
                    lora_rank=16 if lora else None, targets="attn" if lora else None, seq=2048)
            continue
        for at in range((seed - 1) * count, seed * count):
            # Every change once over the seeds, then at random.
            text, tower, whole = (some[at] if at < len(some) else rng.choice(some) for some in (texts, towers, wholes))
            before = "" if kind in FLAT else "text_config."
            depth = "depth" if kind.startswith("qwen") else "num_hidden_layers"
            changes = {**cut, **{before + key: value for key, value in text.items()}}
            changes |= {"vision_config." + key: value for key, value in tower.items()}
            changes[f"vision_config.{depth}"] = rng.choice([4, 5, 6])
            changes |= whole
            if name == "Qwen/Qwen2-VL-2B-Instruct" and "vision_config.patch_size" in changes:
                changes["vision_config.spatial_patch_size"] = changes["vision_config.patch_size"]
            yield name, changes, recipe_of(rng, kind)


def main():
    oracle = load(sys.argv[1])
    catalogue = {row["id"]: row["config"] for row in map(json.loads, open(sys.argv[2]))}
    out = open(sys.argv[3], "a")
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    rng = random.Random(seed)
    count = int(sys.argv[5]) if len(sys.argv) > 5 else 3
    for name, changes, case in drawn(rng, seed, catalogue, count, sys.argv[6] if len(sys.argv) > 6 else ""):
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
            json.dump(placed(catalogue[name], changes), f)
        recipe, weights = ("lora", "fp32") if case["recipe"] == "lora-fp32" else (case["recipe"], None)
        try:
            done = oracle.one_case(
                f.name, [1, 2, 8], case["seq"], case["attention"], recipe, rank=case["lora_rank"] or 16,
                targets=case["targets"] or "attn", checkpointing=case["checkpointing"], optimizer=case["optimizer"],
                padding_mask=case["padding_mask"], weights=weights, real_first_step=False)
        except Exception:
            print("failed", name, json.dumps({**changes, **case}), traceback.format_exc().splitlines()[-1][:200], file=sys.stderr, flush=True)
            continue
        finally:
            os.unlink(f.name)
        for batch, got in done.items():
            row = dict(params=got["params"], trainable=got["trainable"], batch=batch, peak_bytes=got["peak_bytes"])
            out.write(json.dumps({"config": name, "catalogue": True, "changes": changes, **case, **row}, separators=(",", ":")) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
