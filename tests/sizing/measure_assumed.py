"""Measures training steps of families of which something is assumed, so that the page can say how far off they are.

Usage: measure_assumed.py ORACLE.py CATALOGUE.jsonl OUT.jsonl

ORACLE.py is the step measurer; CATALOGUE.jsonl holds configs ({id, config, params} a line), which are cut to a few
layers. A row holds its whole config and how it was run: a text model beside a tower on text alone, recurrent layers
without the kernels of mamba_ssm.
"""
import json, os, sys, tempfile, traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import load  # noqa: E402
from measure_stacks import placed  # noqa: E402

MIXED = {"text_config.num_hidden_layers": 4, "text_config.layer_types": ["sliding_attention"] * 3 + ["full_attention"]}
FEW = {"text_config.num_hidden_layers": 3, "vision_config.num_hidden_layers": 4}
CASES = [
    ("nvidia/Nemotron-H-56B-Base-8K", {"hidden_size": 2048, "num_attention_heads": 16, "mamba_num_heads": 64, "intermediate_size": 4096, "vocab_size": 32000, "hybrid_override_pattern": "M-M*-M-", "num_hidden_layers": 7}, "without the kernels of mamba_ssm"),
    ("meta-llama/Llama-3.2-11B-Vision", {"text_config.num_hidden_layers": 5, "text_config.cross_attention_layers": [3], "vision_config.num_hidden_layers": 4, "vision_config.num_global_layers": 2, "vision_config.intermediate_layers_indices": [0, 1, 2, 3, 3]}, "text alone"),
    ("google/gemma-4-31B", {**MIXED, "vision_config.num_hidden_layers": 4}, "text alone"),
    ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", FEW, "text alone"),
    ("HuggingFaceM4/idefics2-8b", FEW, "text alone"),
]
# Keys that the library's config class refuses as these files have them.
REFUSED = ("auto_map", "time_step_limit")


def main():
    oracle = load(sys.argv[1])
    catalogue = {row["id"]: row["config"] for row in map(json.loads, open(sys.argv[2]))}
    with open(sys.argv[3], "w") as out:
        for name, changes, how in CASES:
            raw = placed({k: v for k, v in catalogue[name].items() if k not in REFUSED}, changes)
            with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
                json.dump(raw, f)
                f.flush()
                try:
                    done = oracle.one_case(f.name, [1, 8], 1024, "sdpa", "amp-bf16")
                except Exception:
                    print("failed", name, traceback.format_exc().splitlines()[-1][:200], file=sys.stderr)
                    continue
            case = dict(config=f"{name} (cut)", how=how, raw=raw, recipe="amp-bf16", optimizer="fused", attention="sdpa", padding_mask=False, checkpointing=False, lora_rank=None, targets=None, seq=1024)
            for batch, got in done.items():
                row = dict(params=got["params"], trainable=got["trainable"], batch=batch, peak_bytes=got["peak_bytes"])
                out.write(json.dumps({**case, **row}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
