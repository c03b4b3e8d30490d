"""Measures training steps drawn at random from all decoders of the catalogue and all keys of a recipe.

Usage: measure_drawn.py ORACLE.py CATALOGUE.jsonl OUT.jsonl SEED CASES [MODEL_TYPE,...]

ORACLE.py is the step measurer (PyTorch on fake tensors); CATALOGUE.jsonl holds configs ({id, config, params} a line).
Families come in turn, so that each is drawn as often; a model of it is cut to a few layers and changed at random, and
every key of the recipe is drawn by itself: so combinations that no table was made for come up. Appends a JSON object a
batch; a case that does not run is told on stderr.
"""
import json, os, random, sys, tempfile, traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import load  # noqa: E402

# Their own scripts draw these: other layers, or classes that are not the library's.
LEFT_OUT = {"mamba", "falcon_mamba", "nemotron_h", "qwen3_next", "internlm2", "internlm3", "kimi_k2", "glm_moe_dsa"}
NO_FLASH = {"falcon", "gpt_neo", "gpt_oss", "bloom"}
LAYERS = {"gpt2": "n_layer", "gpt_bigcode": "n_layer", "gptj": "n_layer", "bloom": "n_layer", "gpt_neo": "num_layers"}
EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts")
RECIPES = ["amp-bf16", "amp-bf16", "bf16", "fp32", "amp-fp16", "lora", "lora", "lora-bf16", "lora-fp32", "lora-fp16",
           "nf4", "nf4", "int8", "int8", "nf4-bf16", "int8-bf16", "nf4-fp32"]
OPTIMIZERS = ["fused"] * 5 + ["foreach", "adamw-8bit", "adafactor", "lion", "sgd-momentum"]


def changes_of(rng, kind, config):
    changes = {}
    layers = rng.choice([1, 2, 3, 4])
    kinds = config.get("layer_types")
    if kinds:
        layers = len(set(kinds)) + rng.choice([0, 1, 2])
        changes["layer_types"] = kinds[:layers]
    if kind == "gpt_neo":
        layers = 2 * rng.choice([1, 2])
        changes["attention_types"] = [[["global", "local"], layers // 2]]
    if kind in ("glm4_moe", "deepseek_v2"):
        layers += 1                                # the first is dense
    changes[LAYERS.get(kind, "num_hidden_layers")] = layers
    if rng.random() < 0.5:
        changes["vocab_size"] = rng.choice([5000, 20011, 60000, 32768])
    if rng.random() < 0.3 and kind != "gpt_bigcode":
        changes["tie_word_embeddings"] = rng.choice([True, False])
    changes |= {key: 32 for key in EXPERTS if (config.get(key) or 0) > 32}
    return changes


def recipe_of(rng, kind, config):
    recipe = rng.choice(RECIPES)
    lora = recipe.startswith(("lora", "nf4", "int8"))
    flash = [] if recipe == "fp32" or kind in NO_FLASH else ["flash"]
    attention = rng.choice(["sdpa", "sdpa", "sdpa", "eager"] + flash)
    context = config.get("max_position_embeddings") or config.get("n_positions") or 1024
    case = dict(
        recipe=recipe, optimizer=rng.choice(OPTIMIZERS), attention=attention,
        padding_mask=attention != "flash" and rng.random() < 0.3, checkpointing=rng.random() < 0.4,
        lora_rank=rng.choice([4, 8, 16, 64, 128]) if lora else None,
        targets=rng.choice(["attn", "all-linear"]) if lora else None,
        grad_accum=4 if rng.random() < 0.2 else 1, seq=min(rng.choice([128, 300, 512, 1024, 1500, 2048]), context),
    )
    if rng.random() < 0.12:
        case["loss"] = "fused"
    if rng.random() < 0.3:
        case |= dict(parallel=rng.choice(["zero1", "zero2", "ddp"]), cards=rng.choice([2, 4, 8]))
    return case


class Measurer:
    """Measures drawn cases, a row a batch, into a file; one that does not run is told on stderr."""

    def __init__(self, oracle, out):
        import transformers.masking_utils as masking
        self.oracle, self.out, self.masking = oracle, out, masking
        self.skip_mask = masking._ignore_causal_mask_sdpa       # the measurer replaces it for padded batches, for good

    def measure(self, config, case, batches):
        """`config` is the whole one, changes included; `case` is what a row says of it."""
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
            json.dump(config, f)
        self.masking._ignore_causal_mask_sdpa = self.skip_mask
        recipe, weights = ("lora", "fp32") if case["recipe"] == "lora-fp32" else (case["recipe"], None)
        parallel = case.get("parallel")
        try:
            done = self.oracle.one_case(
                f.name, batches, case["seq"], case["attention"], recipe, rank=case["lora_rank"] or 16,
                targets=case["targets"] or "attn", checkpointing=case["checkpointing"], optimizer=case["optimizer"],
                padding_mask=case["padding_mask"], weights=weights, accumulation=case["grad_accum"],
                buckets=parallel == "ddp", loss=case.get("loss", "full"),
                parallel=None if parallel == "ddp" else parallel, cards=case.get("cards", 1))
        except Exception:
            print("failed", json.dumps(case), traceback.format_exc().splitlines()[-1][:200], file=sys.stderr, flush=True)
            return
        finally:
            os.unlink(f.name)
        if parallel == "ddp":
            case["ddp"] = True
        for batch, got in done.items():
            row = dict(params=got["params"], trainable=got["trainable"], batch=batch, peak_bytes=got["peak_bytes"])
            self.out.write(json.dumps({**case, **row}, separators=(",", ":")) + "\n")
        self.out.flush()


def main():
    measurer = Measurer(load(sys.argv[1]), open(sys.argv[3], "a"))
    rng = random.Random(int(sys.argv[4]))
    only = set(sys.argv[6].split(",")) if len(sys.argv) > 6 else None
    families = {}
    for row in map(json.loads, open(sys.argv[2])):
        kind = row["config"].get("model_type")
        if "CausalLM" in str(row["config"].get("architectures")) and kind not in LEFT_OUT and (only is None or kind in only):
            families.setdefault(kind, []).append(row)
    kinds = sorted(families)
    rng.shuffle(kinds)
    for at in range(int(sys.argv[5])):
        kind = kinds[at % len(kinds)]
        drawn = rng.choice(families[kind])
        changes = changes_of(rng, kind, drawn["config"])
        case = dict(config=drawn["id"], changes=changes, catalogue=True, **recipe_of(rng, kind, drawn["config"]))
        measurer.measure({**drawn["config"], **changes}, case, [1, 2, 8])


if __name__ == "__main__":
    main()
