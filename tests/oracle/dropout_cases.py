"""What `rows.py dropout` measures: LoRA whose inputs are dropped out (`lora_dropout`), on cut-down models."""
PLAIN = dict(recipe="lora", optimizer="fused", attention="sdpa", padding_mask=False, checkpointing=False, lora_rank=16,
             targets="attn", grad_accum=1, ddp=False, lora_dropout=0.05)
UNTIED = {"tie_word_embeddings": False, "vocab_size": 4000}
LLAMA = ("meta-llama/Llama-3.2-1B", {"num_hidden_layers": 4, **UNTIED})
GPT2 = ("openai-community/gpt2", {"n_layer": 4})
MODELS = [LLAMA, GPT2, ("Qwen/Qwen3-0.6B", {"num_hidden_layers": 4, "vocab_size": 8000})]
TARGETS = ("attn", "all-linear")
# On these, for both kinds of targets, with and without checkpointing, at the lengths of `rows.py`.
RECIPES = ["lora", "lora-bf16", "lora-fp32", "nf4", "int8"]

# What else a recipe may have.
RARE = [
    {"recipe": "lora-fp16"},
    {"recipe": "nf4-bf16", "targets": "all-linear"},
    {"recipe": "int8-bf16", "targets": "all-linear"},
    {"recipe": "nf4-fp32"},
    {"attention": "eager", "targets": "all-linear"},
    {"attention": "flash"},
    {"padding_mask": True},
    {"loss": "fused", "targets": "all-linear"},
    {"grad_accum": 4, "targets": "all-linear"},
    {"lora_rank": 64, "targets": "all-linear", "lora_dropout": 0.1},
]
FURTHER = [
    ("EleutherAI/pythia-160m", {"num_hidden_layers": 3, "vocab_size": 8000}),
    ("mistralai/Mistral-7B-v0.1", {"num_hidden_layers": 3, "vocab_size": 4000}),
    ("google/gemma-2b", {"num_hidden_layers": 3, "vocab_size": 8000}),
]
SOME = [
    {},
    {"recipe": "lora-bf16", "targets": "all-linear"},
    {"recipe": "lora", "targets": "all-linear", "checkpointing": True},
    {"recipe": "nf4", "targets": "all-linear"},
    {"recipe": "int8", "checkpointing": True},
]
# Families whose programs differ, under few recipes. peft has no dropout for experts that are one tensor.
OTHERS = [
    ("Qwen/Qwen2.5-0.5B", {"num_hidden_layers": 3, "vocab_size": 8000}),
    ("google/gemma-2-2b", {"num_hidden_layers": 2, "vocab_size": 8000}),
    ("google/gemma-3-1b-pt", {"num_hidden_layers": 3, "vocab_size": 8000}),
    ("google-bert/bert-base-uncased", {"num_hidden_layers": 3}),
    ("google-t5/t5-small", {"num_layers": 2, "num_decoder_layers": 2}),
    ("tiiuae/falcon-rw-1b", {"num_hidden_layers": 2, "vocab_size": 4000}),
    ("facebook/opt-125m", {"num_hidden_layers": 3, "vocab_size": 4000}),
    ("bigscience/bloom-560m", {"n_layer": 3, "vocab_size": 4000}),
    ("bigcode/starcoder2-3b", {"num_hidden_layers": 2, "vocab_size": 4000}),
    ("google/vit-base-patch16-224", {"num_hidden_layers": 3}),
]
EXPERTS = [
    ("Qwen/Qwen3-30B-A3B", {"num_hidden_layers": 2, "num_experts": 16, "vocab_size": 4000}),
    ("deepseek-ai/DeepSeek-V2-Lite", {"num_hidden_layers": 3, "n_routed_experts": 16, "vocab_size": 4000}),
]
FEW = [{"targets": "all-linear", "recipe": "lora-bf16"}, {"targets": "all-linear", "checkpointing": True}]


def cases():
    for name, cut in MODELS:
        for recipe in RECIPES:
            for targets in TARGETS:
                for checkpointing in (False, True):
                    yield {"config": name, "changes": cut, **PLAIN, "recipe": recipe, "targets": targets,
                           "checkpointing": checkpointing}
    for models, changes in [([LLAMA], RARE), (FURTHER, SOME), (OTHERS, FEW), (EXPERTS, [{}])]:
        for name, cut in models:
            for one in changes:
                yield {"config": name, "changes": cut, **PLAIN, **one, "seq": 512}
