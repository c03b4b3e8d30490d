"""Measures training steps of encoders, encoder-decoders and models of images and sound, as rows like `measure.py`'s.

Usage: measure_stacks.py ORACLE.py CATALOGUE.jsonl CONFIGS.json OUT.jsonl [SEED [CASES_PER_BASE [BASE_PREFIX [quant]]]]

ORACLE.py is the step measurer (PyTorch on fake tensors); CATALOGUE.jsonl holds configs ({id, config, params} a line),
CONFIGS.json those of families that it lacks, by name. Configs are cut to a few layers and changed at random; a row
lists its changes. With 0 cases a base, the catalogue's models of these families are measured as they are instead. With `quant` all recipes are quantised bases under
LoRA, or 8-bit optimizer states.

What the measurer does not know is stated here:
- A bare model has no loss: the mean of its output, and of its pooled output where it has one, stands for one.
- Two towers are trained with their own contrastive loss, a text and an image a sample.
- Reading the values of a padding mask finds padding.
- LoRA on "attention" adapts the query, key, value and output projections under each family's names.
- `untied` gives T5 the head of its own that its checkpoints have (the library ties it on loading).
"""
import json, os, random, sys, tempfile, traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import load  # noqa: E402

LENGTHS = {"text": [96, 200, 384, 512], "long": [96, 200, 512, 1024], "clip": [77, 40], "siglip": [64, 33], "image": [1], "whisper": [448, 96]}
SEQ = {"is_encoder_decoder": True, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
BART = {"architectures": ["BartForConditionalGeneration"], "decoder_start_token_id": 2, "pad_token_id": 1, "eos_token_id": 2}


def arch(name):
    return {"architectures": [name]}


# Base id or config, its lengths, the keys of its depth, changes to choose from.
BASES = [
    ("google-bert/bert-base-uncased", "text", ["num_hidden_layers"], [{}, {"hidden_act": "relu"}, {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}, arch("BertForSequenceClassification"), arch("BertForTokenClassification"), {"hidden_act": "gelu_new"}]),
    ("sentence-transformers/all-MiniLM-L6-v2", "text", ["num_hidden_layers"], [{}]),
    ("FacebookAI/roberta-base", "text", ["num_hidden_layers"], [{}, arch("RobertaForSequenceClassification"), {"vocab_size": 8000}]),
    ("BAAI/bge-m3", "long", ["num_hidden_layers"], [{}, {"vocab_size": 8000}]),
    ("BAAI/bge-reranker-large", "text", ["num_hidden_layers"], [{}, {"vocab_size": 8000}, arch("XLMRobertaForMaskedLM")]),
    ("distilbert/distilbert-base-uncased", "text", ["n_layers"], [{}, arch("DistilBertForSequenceClassification"), {"dropout": 0.0, "attention_dropout": 0.0}, arch("DistilBertModel")]),
    ("google/electra-base-discriminator", "text", ["num_hidden_layers"], [{}, {"embedding_size": 256}, arch("ElectraForMaskedLM"), arch("ElectraForSequenceClassification")]),
    ("albert/albert-base-v2", "text", ["num_hidden_layers"], [{}, {"hidden_act": "gelu"}, arch("AlbertForSequenceClassification"), {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}]),
    ("microsoft/deberta-v3-xsmall", "text", ["num_hidden_layers"], [{}, {**arch("DebertaV2ForSequenceClassification"), "problem_type": "single_label_classification"}, {"vocab_size": 8000}, {"share_att_key": False}, {"pos_att_type": ["c2p"]}]),
    ("microsoft/deberta-v3-base", "text", ["num_hidden_layers"], [{"vocab_size": 8000}]),
    ("answerdotai/ModernBERT-base", "long", ["num_hidden_layers"], [{}, arch("ModernBertForSequenceClassification"), {"global_attn_every_n_layers": 2}]),
    ("google-t5/t5-small", "long", ["num_layers", "num_decoder_layers"], [SEQ, {**SEQ, "vocab_size": 4000}, {**SEQ, "dropout_rate": 0.0}]),
    ("google/flan-t5-small", "long", ["num_layers", "num_decoder_layers"], [SEQ, {**SEQ, "vocab_size": 4000}]),
    ("google/mt5-small", "text", ["num_layers", "num_decoder_layers"], [{**SEQ, "vocab_size": 8000}]),
    ("facebook/bart-base", "long", ["encoder_layers", "decoder_layers"], [BART, {**BART, "vocab_size": 8000}, {**BART, **arch("BartModel")}, {**BART, "activation_dropout": 0.1, "attention_dropout": 0.1}]),
    ("facebook/mbart-large", "long", ["encoder_layers", "decoder_layers"], [{}, {"vocab_size": 4000}]),
    ("openai/whisper-tiny", "whisper", ["encoder_layers", "decoder_layers"], [{}, {"vocab_size": 4000, "pad_token_id": 0}, {"dropout": 0.1, "activation_dropout": 0.1}]),
    ("google/vit-base-patch16-224", "image", ["num_hidden_layers"], [{}, {"image_size": 384}, {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}, arch("ViTModel")]),
    ("facebook/dinov2-small", "image", ["num_hidden_layers"], [{}, {"image_size": 224}, {"use_swiglu_ffn": True}, arch("Dinov2Model"), {"drop_path_rate": 0.1}]),
    ("facebook/dinov2-with-registers-small", "image", ["num_hidden_layers"], [{}, {"image_size": 224}]),
    ("openai/clip-vit-base-patch32", "clip", ["text_config.num_hidden_layers", "vision_config.num_hidden_layers"], [{}]),
    ("google/siglip-base-patch16-224", "siglip", ["text_config.num_hidden_layers", "vision_config.num_hidden_layers"], [{}]),
    ("microsoft/mpnet-base", "text", ["num_hidden_layers"], [{}]),
]
NO_CHECKPOINTING = {"albert", "mpnet"}
NO_FLASH = {"t5", "mt5", "deberta-v2", "mpnet", "bart", "mbart"}
NO_KERNEL = {"deberta-v2", "mpnet"}
NO_MASK = {"vit", "dinov2", "dinov2_with_registers", "whisper"}
NO_LORA = {"siglip"}
MORE_NAMES = ["q_lin", "k_lin", "v_lin", "out_lin", "query_proj", "key_proj", "value_proj", "Wqkv"]


def placed(config, changes):
    """The config with changes, whose keys may be dotted."""
    config = json.loads(json.dumps(config))
    for key, value in changes.items():
        at = config
        *outer, last = key.split(".")
        for name in outer:
            at = at.setdefault(name, {})
        at[last] = value
    return config


def towers(oracle):
    """What the measurer feeds to the models that it does not know, and the losses of those that have none."""
    import torch
    known_family, known_inputs, known_build = oracle.family, oracle.make_inputs, oracle.build

    def family(cls, cfg):
        name = cls.__name__
        if name in ("CLIPModel", "SiglipModel"):
            return "towers"
        if name.endswith("Model"):
            return "bare-image" if hasattr(cfg, "image_size") else "bare"
        return "tokens" if name.endswith("ForTokenClassification") else known_family(cls, cfg)

    def make_inputs(fam, cfg, b, s, mask):
        if fam == "towers":
            v = cfg.vision_config
            d = dict(input_ids=torch.zeros(b, s, dtype=torch.int64),
                     pixel_values=torch.zeros(b, v.num_channels, v.image_size, v.image_size))
        elif fam == "bare-image":
            d = dict(pixel_values=torch.zeros(b, cfg.num_channels, cfg.image_size, cfg.image_size))
        elif fam == "bare":
            d = dict(input_ids=torch.zeros(b, s, dtype=torch.int64))
        else:
            return known_inputs("causal" if fam == "tokens" else fam, cfg, b, s, mask)
        if mask:
            d["attention_mask"] = torch.ones(b, s, dtype=torch.int64)
        return d

    def build(cfg, cls, dtype, attn):
        model = known_build(cfg, cls, dtype, attn)
        if UNTIED[0]:
            model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
        if not cls.__name__.endswith("Model"):
            return model
        forward = model.forward
        if cls.__name__ in ("CLIPModel", "SiglipModel"):
            model.forward = lambda *args, **kwargs: forward(*args, return_loss=True, **kwargs)
            return model

        def with_loss(*args, **kwargs):
            out = forward(*args, **kwargs)
            loss = out.last_hidden_state.mean()
            pooled = getattr(out, "pooler_output", None)
            if pooled is not None:
                loss = loss + pooled.mean()
            out["loss"] = loss
            return out

        model.forward = with_loss
        return model

    oracle.family, oracle.make_inputs, oracle.build = family, make_inputs, build
    known_targets = oracle.lora_targets

    def lora_targets(model, spec):
        if spec == "all-linear":
            return spec
        have = {n.rsplit(".", 1)[-1] for n, _ in model.named_modules()}
        return known_targets(model, spec) + [n for n in MORE_NAMES if n in have]

    oracle.lora_targets = lora_targets
    # `torch.tensor` makes a real tensor where a layer is run again within backward; these are a scalar all the same.
    import transformers.models.deberta_v2.modeling_deberta_v2 as deberta
    deberta.scaled_size_sqrt = lambda query, factor: query.new_full((), float(query.size(-1) * factor), dtype=torch.float32).sqrt()


UNTIED = [False]
QUANT = [False]


def recipe_of(rng, base, lengths):
    """A random recipe that the library and the measurer run for this family."""
    kind = base["model_type"]
    lora = rng.random() < 0.35 and kind not in NO_LORA
    recipe = rng.choice(["lora", "lora-bf16", "lora-fp32"]) if lora else rng.choice(["amp-bf16", "amp-bf16", "bf16", "fp32"])
    if QUANT[0]:
        lora = rng.random() < 0.8 and kind not in NO_LORA
        recipe = rng.choice(["nf4", "nf4", "int8", "int8", "nf4-bf16", "int8-bf16"]) if lora else "amp-bf16"
    attentions = ["sdpa"] if kind in NO_KERNEL else ["sdpa", "sdpa", "eager"]
    if kind not in NO_FLASH and recipe != "fp32":
        attentions.append("flash")
    attention = rng.choice(attentions)
    return dict(
        recipe=recipe, optimizer="adamw-8bit" if QUANT[0] and not lora else "fused" if rng.random() < 0.8 else "foreach", attention=attention,
        padding_mask=attention != "flash" and kind not in NO_MASK and rng.random() < 0.3,
        checkpointing=kind not in NO_CHECKPOINTING and rng.random() < 0.3,
        lora_rank=rng.choice([8, 16, 64]) if lora else None, targets=rng.choice(["attn", "all-linear"]) if lora else None,
        untied=kind in ("t5", "mt5") and base.get("tie_word_embeddings") is False,
        seq=rng.choice(LENGTHS[lengths]),
    )


def drawn(rng, configs, catalogue, count, wanted):
    """(name, config, changes, case) of what is to be measured."""
    if count == 0:
        kinds = {configs[base]["model_type"]: lengths for base, lengths, _, _ in BASES}
        for name, config in catalogue.items():
            lengths = kinds.get(config.get("model_type"))
            if lengths is not None and name.startswith(wanted):
                changes = {k: v for k, v in (SEQ if "t5" in config["model_type"] else {}).items() if k not in config}
                for _ in range(2):
                    yield name, config, changes, recipe_of(rng, config, lengths)
        return
    for base, lengths, depths, variants in BASES:
        if not base.startswith(wanted):
            continue
        for at in range(count):
            # Every change once, then at random.
            changes = dict(variants[at % len(variants)] if at < 2 * len(variants) else rng.choice(variants))
            for key in depths:
                changes[key] = rng.choice([1, 2, 3, 4, 5, 6])
            yield base, configs[base], changes, recipe_of(rng, configs[base], lengths)


def main():
    oracle = load(sys.argv[1])
    towers(oracle)
    catalogue = {row["id"]: row["config"] for row in map(json.loads, open(sys.argv[2]))}
    configs = {**catalogue, **json.load(open(sys.argv[3]))}
    out = open(sys.argv[4], "a")
    rng = random.Random(int(sys.argv[5]) if len(sys.argv) > 5 else 1)
    count = int(sys.argv[6]) if len(sys.argv) > 6 else 8
    QUANT[0] = sys.argv[8:] == ["quant"]
    import transformers.masking_utils as masking
    names = ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa")
    skips = {name: getattr(masking, name) for name in names}
    for name, config, changes, case in drawn(rng, configs, catalogue, count, sys.argv[7] if len(sys.argv) > 7 else ""):
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
            json.dump(placed(config, changes), f)
        recipe, weights = ("lora", "fp32") if case["recipe"] == "lora-fp32" else (case["recipe"], None)
        for skip in names:
            setattr(masking, skip, skips[skip])
        if case["padding_mask"]:
            masking._ignore_bidirectional_mask_sdpa = lambda *a, **k: False
        UNTIED[0] = case["untied"]
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
            out.write(json.dumps({"config": name, "changes": changes, **case, **row}, separators=(",", ":")) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
