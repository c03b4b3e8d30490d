"""Measures training steps of models with sizes that nobody ships: odd widths, head counts, lengths and batches.

Usage: measure_odd.py ORACLE.py CATALOGUE.jsonl OUT.jsonl SEED CASES [MODEL_TYPE,...]

ORACLE.py is the step measurer (PyTorch on fake tensors); CATALOGUE.jsonl holds configs ({id, config, params} a line).
Families come in turn; a model of one gets all its sizes drawn anew (a row lists the changes), and every key of the
recipe is drawn by itself, as in `measure_drawn.py`. Of some the vocabulary head is replaced by a classifier, or taken
away (a bare model's loss is the mean of its output). Three batches of 1 to 9 a case. Appends a JSON object a batch; a
case that does not run is told on stderr.
"""
import json, os, random, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import load  # noqa: E402
from measure_drawn import Measurer, recipe_of  # noqa: E402
from measure_stacks import towers  # noqa: E402

LENGTHS = [100, 129, 255, 333, 512, 777, 1024, 1500, 1999, 2048]
VOCABULARIES = [1009, 5003, 32000, 32003, 50257, 65536, 100003, 151936]
SIZES = [16, 32, 40, 48, 64, 64, 72, 80, 96, 100, 112, 128, 128, 160, 192, 256]
# What llama and its like share: one head's size, so many heads, so many of keys, and a feed-forward width.
USUAL = {"llama", "qwen2", "qwen3", "mistral", "gemma", "gemma2", "gemma3_text", "phi3", "olmo2", "olmo3", "granite", "starcoder2",
         "smollm3", "cohere", "cohere2", "stablelm", "exaone4", "glm", "glm4", "ernie4_5", "apertus", "hunyuan_v1_dense", "olmo",
         "mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "granitemoe", "phimoe", "glm4_moe", "minimax_m2", "gpt_oss", "qwen3_vl_text"}
# These take a head's size from the hidden size.
SPLIT = {"starcoder2", "stablelm", "olmo", "olmo2", "olmo3", "qwen2", "granitemoe", "cohere", "cohere2", "phi3", "phimoe", "qwen2_moe", "olmoe"}
GPT2 = {"gpt2": ("n_embd", "n_layer", "n_head", "n_inner"), "gpt_bigcode": ("n_embd", "n_layer", "n_head", "n_inner"),
        "gptj": ("n_embd", "n_layer", "n_head", "n_inner")}


def usual(rng, kind, config):
    size = rng.choice(SIZES)
    kv = rng.choice([1, 2, 3, 4, 8])
    heads = kv * rng.choice([1, 2, 3, 5, 7]) if rng.random() < 0.7 else kv
    if kind in ("cohere", "cohere2", "stablelm", "glm", "glm4") and size < 32:
        size = 64
    split = kind in SPLIT or rng.random() < 0.5
    # Its own head size or not, the library wants a hidden size that the heads divide.
    hidden = heads * (size if split else rng.choice([24, 40, 56, 72, 100, 136]))
    changes = dict(hidden_size=hidden, num_attention_heads=heads, num_key_value_heads=kv,
                   intermediate_size=rng.choice([hidden * 4, 1371, 2730, 5461, 3 * hidden + 8, 1024]))
    if not (kind in SPLIT and "head_dim" not in config):
        changes["head_dim"] = size
    layers = rng.choice([1, 2, 3, 5, 6])
    types = config.get("layer_types")
    if types:
        layers = max(layers, 2)
        kinds = sorted(set(types))
        changes["layer_types"] = [rng.choice(kinds) for _ in range(layers)]
    changes["num_hidden_layers"] = layers
    if config.get("sliding_window") is not None or kind in ("mistral", "phi3"):
        changes["sliding_window"] = rng.choice([None, 64, 500, 4096] if kind in ("mistral", "phi3", "starcoder2", "mixtral") else [64, 500, 4096])
    if kind == "qwen2" and rng.random() < 0.3:
        changes |= {"use_sliding_window": True, "sliding_window": 256, "max_window_layers": 1}
    if kind in ("llama", "qwen3", "granite", "glm", "glm4") and rng.random() < 0.3:
        changes["attention_bias"] = True
    if kind == "llama" and rng.random() < 0.3:
        changes["mlp_bias"] = True
    if kind == "starcoder2":
        changes["use_bias"] = rng.random() < 0.6
    if kind == "stablelm":
        changes |= {"use_qkv_bias": rng.random() < 0.5, "qk_layernorm": rng.random() < 0.3, "use_parallel_residual": rng.random() < 0.3}
    if kind == "phi3":
        changes["partial_rotary_factor"] = rng.choice([1.0, 0.75, 0.5])
    if kind in ("llama", "mistral", "qwen2", "qwen3", "granite", "phi3", "olmo2") and rng.random() < 0.15:
        changes["attention_dropout"] = 0.1
    if kind == "phi3" and rng.random() < 0.2:
        changes |= {"resid_pdrop": 0.1, "embd_pdrop": 0.1}
    experts = next((key for key in ("num_experts", "n_routed_experts", "num_local_experts") if config.get(key)), None)
    if experts:
        count = rng.choice([3, 4, 8, 16, 30])
        changes[experts] = count
        # Grouped products take rows of 16 bytes.
        changes["intermediate_size"] = changes["intermediate_size"] // 8 * 8
        changes["num_experts_per_tok"] = rng.choice([n for n in (1, 2, 3, 4, 8) if n <= count])
        if kind == "phimoe":
            changes["num_experts_per_tok"] = 2
        for key in ("moe_intermediate_size", "shared_expert_intermediate_size"):
            if config.get(key):
                changes[key] = rng.choice([96, 512, 1000, 1408])
        if kind == "glm4_moe":
            changes |= {"first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "use_qk_norm": rng.random() < 0.5}
            changes["num_hidden_layers"] = max(2, layers)
        if kind == "minimax_m2":
            changes["rotary_dim"] = size
        if kind in ("qwen2_moe", "qwen3_moe") and rng.random() < 0.4:
            changes |= {"decoder_sparse_step": 2} if rng.random() < 0.5 else {"mlp_only_layers": [0]}
    return changes


def gpt2_like(rng, kind):
    hidden, layers, heads, inner = GPT2[kind]
    count, size = rng.choice([1, 3, 6, 12, 20]), rng.choice([s for s in SIZES if s >= 64])
    changes = {hidden: count * size, heads: count, layers: rng.choice([1, 2, 4, 7]), inner: rng.choice([None, 1000, 3072])}
    if kind == "gptj":
        changes["rotary_dim"] = rng.choice([16, 64])
    else:
        for key in ("resid_pdrop", "attn_pdrop", "embd_pdrop"):
            changes[key] = rng.choice([0.0, 0.1])
    if kind == "gpt2":
        changes["activation_function"] = rng.choice(["gelu_new", "gelu", "relu", "gelu_pytorch_tanh"])
        changes["scale_attn_by_inverse_layer_idx"] = rng.random() < 0.2
    if kind == "gpt_bigcode":
        changes["multi_query"] = rng.random() < 0.6
    return changes


def sizes_of(rng, kind, config):
    if kind in GPT2:
        changes = gpt2_like(rng, kind)
    elif kind in USUAL:
        changes = usual(rng, kind, config)
    elif kind in ("gpt_neox", "opt", "phi", "bloom", "falcon"):
        heads, size = rng.choice([2, 3, 6, 8, 12, 20]), rng.choice([32, 64, 80, 96, 128])
        layers = rng.choice([1, 2, 3, 5])
        hidden = heads * size
        changes = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
        if kind == "bloom":
            changes = {"hidden_size": hidden, "n_layer": layers, "n_head": heads, "hidden_dropout": rng.choice([0.0, 0.1]), "attention_dropout": rng.choice([0.0, 0.1])}
        if kind == "gpt_neox":
            changes |= {"intermediate_size": rng.choice([4 * hidden, 1000, 2731]), "rotary_pct": rng.choice([0.25, 0.5, 1.0]),
                        "use_parallel_residual": rng.random() < 0.6, "hidden_act": rng.choice(["gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"])}
        if kind == "opt":
            changes |= {"ffn_dim": rng.choice([4 * hidden, 1000, 2731]), "word_embed_proj_dim": hidden, "dropout": rng.choice([0.0, 0.1])}
        if kind == "phi":
            changes |= {"num_key_value_heads": heads, "intermediate_size": rng.choice([4 * hidden, 1000]), "partial_rotary_factor": rng.choice([0.5, 1.0]),
                        "qk_layernorm": False, "resid_pdrop": rng.choice([0.0, 0.1]), "hidden_act": rng.choice(["gelu_new", "gelu"])}
        if kind == "falcon":
            way = rng.choice(["new", "multi", "plain"])
            changes |= {"new_decoder_architecture": way == "new", "multi_query": way == "multi", "num_kv_heads": rng.choice([1, heads]) if way == "new" else heads,
                        "alibi": False, "parallel_attn": rng.random() < 0.7, "bias": rng.random() < 0.4}
    elif kind == "gpt_neo":
        heads, size = rng.choice([3, 8, 12]), rng.choice([64, 80, 128])
        changes = dict(hidden_size=heads * size, num_heads=heads, num_layers=2, attention_types=[[["global", "local"], 1]], intermediate_size=rng.choice([None, 1000]))
    elif kind in ("deepseek_v2", "deepseek_v3", "kimi_k2"):
        heads = rng.choice([2, 5, 8, 16])
        changes = dict(
            hidden_size=rng.choice([640, 1024, 1504]), num_attention_heads=heads, num_key_value_heads=heads, intermediate_size=rng.choice([1000, 2731]),
            moe_intermediate_size=rng.choice([96, 512, 1408]), n_routed_experts=rng.choice([4, 8, 16]), num_experts_per_tok=rng.choice([1, 2, 3]),
            n_shared_experts=rng.choice([1, 2]), first_k_dense_replace=1, num_hidden_layers=rng.choice([2, 3, 5]), n_group=1, topk_group=1,
            q_lora_rank=rng.choice([None, 96, 300]), kv_lora_rank=rng.choice([64, 200, 512]), qk_nope_head_dim=rng.choice([32, 64, 128]),
            qk_rope_head_dim=rng.choice([32, 64]), v_head_dim=rng.choice([64, 128]))
        if kind == "kimi_k2":
            changes["model_type"] = "deepseek_v3"
    else:
        return None
    changes["vocab_size"] = rng.choice(VOCABULARIES)
    changes["pad_token_id"] = 0                    # those of files and of classes may lie beyond a small vocabulary
    if rng.random() < 0.4 and kind not in ("gpt_bigcode", "gptj", "phi", "phimoe"):
        changes["tie_word_embeddings"] = rng.random() < 0.5
    return changes


def with_other_head(rng, config, changes, case):
    """The model with a classifier or with no head, where the library has such a class; adapters leave that head alone."""
    import transformers

    name = config["architectures"][0]
    ends = [end for end in ("ForCausalLM", "LMHeadModel") if name.endswith(end)]
    other = name.removesuffix(ends[0]) + rng.choice(["ForSequenceClassification", "ForTokenClassification", "Model"])
    if not hasattr(transformers, other):
        return
    changes["architectures"] = [other]
    if rng.random() < 0.5 and not other.endswith("Model"):
        changes["id2label"] = {str(label): str(label) for label in range(5)}
    case.pop("loss", None)
    if case["targets"]:
        case["targets"] = "attn"


def main():
    oracle = load(sys.argv[1])
    towers(oracle)
    measurer = Measurer(oracle, open(sys.argv[3], "a"))
    rng = random.Random(int(sys.argv[4]))
    only = set(sys.argv[6].split(",")) if len(sys.argv) > 6 else None
    families = {}
    for row in map(json.loads, open(sys.argv[2])):
        kind = row["config"].get("model_type")
        if "CausalLM" in str(row["config"].get("architectures")) or "LMHead" in str(row["config"].get("architectures")):
            if (only is None or kind in only) and sizes_of(random.Random(1), kind, row["config"]) is not None:
                families.setdefault(kind, []).append(row)
    kinds = sorted(families)
    rng.shuffle(kinds)
    for at in range(int(sys.argv[5])):
        kind = kinds[at % len(kinds)]
        drawn = rng.choice(families[kind])
        changes = sizes_of(rng, kind, drawn["config"])
        case = dict(config=drawn["id"], changes=changes, catalogue=True, **recipe_of(rng, kind, drawn["config"]))
        case["seq"] = min(rng.choice(LENGTHS), drawn["config"].get("max_position_embeddings") or drawn["config"].get("n_positions") or 1024)
        if rng.random() < float(os.environ.get("OTHER_HEADS", "0.15")):
            with_other_head(rng, drawn["config"], changes, case)
        measurer.measure({**drawn["config"], **changes}, case, sorted(rng.sample([1, 2, 3, 5, 7, 9], 3)))


if __name__ == "__main__":
    main()
