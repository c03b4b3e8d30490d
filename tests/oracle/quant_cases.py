"""What `rows.py quant` measures: quantised bases under LoRA, and AdamW with 8-bit states."""
PLAIN = dict(recipe="nf4", optimizer="fused", attention="sdpa", padding_mask=False, checkpointing=False, lora_rank=16,
             targets="attn", grad_accum=1, ddp=False)
UNTIED = {"tie_word_embeddings": False, "vocab_size": 4000}
LLAMA = ("meta-llama/Llama-3.2-1B", {"num_hidden_layers": 4, **UNTIED})
QWEN2 = ("Qwen/Qwen2.5-0.5B", {"num_hidden_layers": 4, "vocab_size": 20000})
GPT2 = ("openai-community/gpt2", {"n_layer": 4})
NEOX = ("EleutherAI/pythia-160m", {"num_hidden_layers": 3})
MIXTURE = ("allenai/OLMoE-1B-7B-0924", {"num_hidden_layers": 3, "num_experts": 16, "vocab_size": 4000})
MODELS = [
    LLAMA, QWEN2, GPT2, NEOX, MIXTURE,
    ("Qwen/Qwen3-0.6B", {"num_hidden_layers": 4, "vocab_size": 20000}),
    ("mistralai/Mistral-7B-v0.1", {"num_hidden_layers": 3, "vocab_size": 4000}),
    ("google/gemma-2b", {"num_hidden_layers": 3, "vocab_size": 20000}),
    ("microsoft/Phi-3-mini-4k-instruct", {"num_hidden_layers": 3}),
]
WHOLE = ["meta-llama/Llama-3.1-8B", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "Qwen/Qwen3-0.6B"]

# On every model, with both ways of quantising.
USUAL = [
    {},
    {"lora_rank": 64, "targets": "all-linear", "checkpointing": True},
    {"lora_rank": 8, "attention": "eager"},
    {"lora_rank": 8, "targets": "all-linear"},
    {"lora_rank": 64, "attention": "eager", "checkpointing": True},
]
# On few models: other precisions, and what else a recipe may have.
RARE = [
    {"recipe": "-bf16"},
    {"recipe": "-bf16", "checkpointing": True, "targets": "all-linear"},
    {"recipe": "-fp16"},
    {"recipe": "-fp32"},
    {"padding_mask": True},
    {"attention": "flash"},
    {"grad_accum": 4, "checkpointing": True},
    {"optimizer": "adamw-8bit", "targets": "all-linear", "checkpointing": True},
]
FULL = [
    {"recipe": "amp-bf16"},
    {"recipe": "bf16"},
    {"recipe": "bf16", "checkpointing": True, "grad_accum": 4},
    {"recipe": "lora", "targets": "all-linear"},
]


def cases():
    for quant in ("nf4", "int8"):
        for models, changes in [(MODELS, USUAL), ([LLAMA, QWEN2, GPT2], RARE)]:
            for name, cut in models:
                for one in changes:
                    yield {"config": name, "changes": cut, **PLAIN, **one, "recipe": quant + one.get("recipe", "")}
        for name in WHOLE:
            for one in USUAL[:2]:
                yield {"config": name, "changes": {}, **PLAIN, **one, "recipe": quant}
    for name, cut in (LLAMA, QWEN2, GPT2, NEOX, MIXTURE):
        for one in FULL:
            lora = one["recipe"] == "lora"
            yield {"config": name, "changes": cut, **PLAIN, **one, "optimizer": "adamw-8bit",
                   "lora_rank": 16 if lora else None, "targets": one["targets"] if lora else None}
