"""Rows of steps whose loss is fused, and of one card of several that share a job: see `fused` and `spread`.

  shared_rows.py OUT.jsonl [fused|spread|offload|mixtures]
      measures the cases below on cut-down models, those that the file lacks; `rows.py check` measures rows again

Rows are like those of `rows.py`, with the loss, the way to share and the number of cards.
"""
import json
import pathlib
import sys

import rows

PLAIN = dict(recipe="amp-bf16", optimizer="fused", attention="sdpa", padding_mask=False, checkpointing=False,
             lora_rank=None, targets=None, grad_accum=1)
LORA = {"recipe": "lora", "lora_rank": 16, "targets": "attn"}

# Vocabularies as they are, since the loss is about them; a dozen layers, so that shares of it are as in whole models.
WITH_FUSED = [
    ("meta-llama/Llama-3.2-1B", {"num_hidden_layers": 10, "tie_word_embeddings": False}),
    ("Qwen/Qwen2.5-0.5B", {"num_hidden_layers": 12}),
    ("Qwen/Qwen3-0.6B", {"num_hidden_layers": 12}),
    ("microsoft/Phi-3-mini-4k-instruct", {"num_hidden_layers": 8}),
    ("ibm-granite/granite-3.1-2b-base", {"num_hidden_layers": 12}),
    ("google/gemma-2-2b", {"num_hidden_layers": 6}),
    ("openai-community/gpt2", {}),
    ("EleutherAI/pythia-160m", {}),
]
FUSED = [{}, {"recipe": "bf16"}]
# The first two of them only.
FUSED_MORE = [{"checkpointing": True}, {**LORA, "checkpointing": True}, {"recipe": "fp32"}, LORA, {"recipe": "amp-fp16"}]
WITH_SPREAD = rows.CUT
SPREAD = [{}, {"recipe": "bf16"}, {"grad_accum": 4}, LORA]
# The first two of them only.
SPREAD_MORE = [{"optimizer": "foreach"}, {"checkpointing": True}, {"loss": "fused"}]
ENCODING = [
    ("google-bert/bert-base-uncased", {"num_hidden_layers": 4}),
    ("google-t5/t5-small", {}),
    ("google/vit-base-patch16-224", {"num_hidden_layers": 4}),
]
WITH_OFFLOAD = [
    ("meta-llama/Llama-3.2-1B", {"num_hidden_layers": 6, "tie_word_embeddings": False, "vocab_size": 40000}),
    ("Qwen/Qwen2.5-0.5B", {"num_hidden_layers": 8, "vocab_size": 60000}),
    ("Qwen/Qwen3-0.6B", {"num_hidden_layers": 5}),
    ("openai-community/gpt2", {"n_layer": 6}),
    ("EleutherAI/pythia-160m", {"num_hidden_layers": 6}),
]
OFFLOAD = [{}, LORA]
# The first of them only.
OFFLOAD_MORE = [{"checkpointing": True}, {"recipe": "bf16"}, {"recipe": "fp32"}, {"grad_accum": 4}, {"recipe": "bf16", "checkpointing": True},
                {**LORA, "checkpointing": True}]


# With experts, and with latent attention.
MIXTURES = [
    ("allenai/OLMoE-1B-7B-0924", {"num_hidden_layers": 3}),
    ("deepseek-ai/DeepSeek-V2-Lite", {"num_hidden_layers": 3}),
    ("Qwen/Qwen3-30B-A3B", {"num_hidden_layers": 3, "num_experts": 32}),
]


def cases(part):
    if part == "fused":
        for at, (name, changes) in enumerate(WITH_FUSED):
            for keys in FUSED + FUSED_MORE if at < 2 else FUSED:
                yield {"config": name, "changes": changes, **PLAIN, "loss": "fused", **keys}
    if part == "spread":
        for which, (name, changes) in enumerate(WITH_SPREAD):
            for parallel in ("ddp", "zero1", "zero2"):
                for at, keys in enumerate(SPREAD + SPREAD_MORE if which < 2 else SPREAD):
                    yield {"config": name, "changes": changes, **PLAIN, "loss": "full", "parallel": parallel,
                           "cards": (8, 2)[at % 2], **keys}
            yield {"config": name, "changes": changes, **PLAIN, "loss": "full", "parallel": "zero-redundancy", "cards": 4}
            for keys in ({}, {"recipe": "bf16"}, LORA):
                yield {"config": name, "changes": changes, **PLAIN, "loss": "full", "parallel": "offload-optimizer",
                       "cards": 1, **keys}
        for name, changes in ENCODING:
            for parallel in ("ddp", "zero1", "zero2"):
                yield {"config": name, "changes": changes, **PLAIN, "loss": "full", "parallel": parallel, "cards": 4}
    if part == "mixtures":
        for name, changes in MIXTURES:
            for keys in ({"loss": "fused"}, {"parallel": "zero2", "cards": 4}, {"parallel": "offload", "cards": 1}):
                yield {"config": name, "changes": changes, **PLAIN, "loss": "full", **keys}
    if part == "offload":
        for which, (name, changes) in enumerate(WITH_OFFLOAD):
            for at, keys in enumerate(OFFLOAD + OFFLOAD_MORE if which == 0 else OFFLOAD):
                for cards in (1, 4) if at == 0 else (1,):
                    yield {"config": name, "changes": changes, **PLAIN, "loss": "full", "parallel": "offload",
                           "cards": cards, **keys}


def main():
    out, *parts = sys.argv[1:]
    known = rows.configs()
    path = pathlib.Path(out)
    done = {case_of(json.loads(line)) for line in path.read_text().splitlines()} if path.exists() else set()
    with open(out, "a") as file:
        for part in parts or ("fused", "spread", "offload", "mixtures"):
            for case in cases(part):
                # bert has 512 positions.
                for seq in (256, 512 if case["config"] in dict(ENCODING) else 1024):
                    one = {**case, "seq": seq}
                    if case_of(one) in done:
                        continue
                    got = rows.measured(rows.config_of(one, known), one, [1, 2, 8])
                    file.writelines(rows.row_of(one, batch, figures) + "\n" for batch, figures in got.items())
                    file.flush()
    return 0


def case_of(row):
    return json.dumps([row.get(key) for key in rows.CASE])


if __name__ == "__main__":
    sys.exit(main())
