"""Rows of measured training steps: measures them again, or new ones.

  rows.py check [FILE ...] [--count N] [--seed N] [--families a,b] [--all]
      measures cases of row files again, drawn at random but as evenly over families and recipes as can be, and
      compares every figure that a row has, to the byte; exits 1 where one differs
  rows.py measure CONFIG [--recipe amp-bf16] [--batches 1,2,8] [--seq 512] ... [--explain]
      prints a row a batch of a config.json, or of a name in tests/fixtures/sizing/configs.json; with --step a row as
      tests/fixtures/model/steps.jsonl has them, config and all: parameters and peak of a family's own test
  rows.py recipes OUT.jsonl
      measures the recipes of `RECIPE_CASES` on cut-down models
  rows.py quant OUT.jsonl
      measures quantised bases and 8-bit optimizer states, the cases of `quant_cases`
  rows.py dropout OUT.jsonl
      measures adapters whose inputs are dropped out, the cases of `dropout_cases`

A row holds its case (what was run) and figures in bytes. Measured and not measured: see `step`.
"""
import argparse
import collections
import contextlib
import json
import pathlib
import random
import sys
import tempfile
import time

import dropout_cases
import quant_cases

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "sizing"
FILES = [FIXTURES / "peaks.jsonl", FIXTURES / "extra.jsonl"]
DENSE = "llama,qwen2,qwen3,mistral,gemma,phi3,gpt2,gpt_neox,opt,falcon,starcoder2,olmo2,granite".split(",")
# What was run, beside the batch; the rest of a row is figures.
CASE = ["config", "changes", "recipe", "optimizer", "attention", "padding_mask", "checkpointing", "lora_rank", "targets",
        "grad_accum", "ddp", "loss", "parallel", "cards", "lora_dropout", "seq"]
FIGURES = ["params", "trainable", "peak_bytes", "weights", "optim", "grads", "phase_peaks", "model_class"]
DROPOUTS = ["attention_dropout", "embedding_dropout", "residual_dropout"]

# The first LoRA step of a process once counted two numbers that peft makes while it is imported; some rows have them.
IMPORTED = 1024

# Recipes that the published tables lack: what differs from the plain case, and whether LoRA runs it too.
RECIPE_CASES = [
    ({"recipe": "amp-fp16"}, True),
    ({"recipe": "amp-fp16", "attention": "eager"}, True),
    ({"optimizer": "sgd"}, True),
    ({"optimizer": "sgd-momentum"}, True),
    ({"optimizer": "adafactor"}, True),
    ({"optimizer": "adafactor", "recipe": "bf16"}, False),
    ({"optimizer": "lion"}, True),
    ({"optimizer": "lion", "recipe": "bf16"}, False),
    ({"grad_accum": 4}, True),
    ({"grad_accum": 4, "recipe": "bf16", "checkpointing": True}, False),
    ({"ddp": True}, True),
    ({"optimizer": "none"}, False),
]
CUT = [
    ("meta-llama/Llama-3.2-1B", {"num_hidden_layers": 3, "tie_word_embeddings": False, "vocab_size": 4000}),
    ("Qwen/Qwen2.5-0.5B", {"num_hidden_layers": 3, "vocab_size": 20000}),
    ("openai-community/gpt2", {"n_layer": 4}),
    ("EleutherAI/pythia-160m", {"num_hidden_layers": 3}),
]


def configs():
    return json.loads((FIXTURES / "configs.json").read_text())


def config_of(row, known):
    """The config of a row: a named one with the row's changes."""
    config = {**known[row["config"]], **row.get("changes", {})}
    # Rows without a fitted line are of a later run, which had starcoder2's config without its dropouts.
    if row["config"] == "bigcode/starcoder2-3b" and "changes" not in row and "act_fixed" not in row:
        config = {key: value for key, value in config.items() if key not in DROPOUTS}
    return config


def measured(config, case, batches, **more):
    """Figures by batch of a case on a config."""
    from step import one_case

    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        return one_case(
            file.name, batches, case["seq"], case["attention"], case["recipe"], rank=case["lora_rank"] or 16,
            targets=case["targets"] or "attn", checkpointing=case["checkpointing"], optimizer=case["optimizer"],
            padding_mask=case["padding_mask"], accumulation=case.get("grad_accum", 1), buckets=case.get("ddp", False),
            loss=case.get("loss", "full"), parallel=case.get("parallel"), cards=case.get("cards", 1),
            lora_dropout=case.get("lora_dropout", 0.0), **more,
        )


def differences(row, got):
    """Figures of a row that differ, with the row's and the measured one."""
    found = {name: (row[name], got[name]) for name in FIGURES if name in row and row[name] != got[name]}
    if row["recipe"].startswith("lora") and set(found) <= {"peak_bytes", "phase_peaks"}:
        by_phase = row.get("phase_peaks", {})
        expected = {"peak_bytes": row["peak_bytes"] - IMPORTED, "phase_peaks": {k: v - IMPORTED for k, v in by_phase.items()}}
        if all(now == expected[name] for name, (_, now) in found.items()):
            return {}
    return found


def grouped(rows):
    """Rows of one case together, so that its model is built once."""
    cases = collections.defaultdict(list)
    for row in rows:
        cases[json.dumps([row.get(key) for key in CASE])].append(row)
    return list(cases.values())


def drawn(cases, known, count, seed):
    """`count` cases, in turn of each family, and of its recipes those drawn least so far."""
    rng = random.Random(seed)
    by_family = collections.defaultdict(list)
    for case in cases:
        by_family[known[case[0]["config"]]["model_type"]].append(case)
    for family in by_family.values():
        rng.shuffle(family)
    seen = collections.Counter()
    chosen = []

    def kind(case):
        return tuple(case[0].get(key) for key in ("recipe", "optimizer", "attention", "padding_mask", "checkpointing"))

    while len(chosen) < count and any(by_family.values()):
        for family in by_family.values():
            if family and len(chosen) < count:
                family.sort(key=lambda case: seen[kind(case)])
                chosen.append(family.pop(0))
                seen[kind(chosen[-1])] += 1
    return chosen


def check(options):
    known = configs()
    families = options.families.split(",")
    rows = [json.loads(line) for file in options.files or FILES for line in open(file)]
    rows = [row for row in rows if row["config"] in known and known[row["config"]]["model_type"] in families]
    cases = grouped(rows)
    if not options.all:
        cases = drawn(cases, known, options.count, options.seed)
    counts, wrong = collections.Counter(), 0
    for case in cases:
        first = case[0]
        began = time.time()
        got = measured(config_of(first, known), first, [row["batch"] for row in case])
        different = {row["batch"]: differences(row, got[row["batch"]]) for row in case}
        different = {batch: by_name for batch, by_name in different.items() if by_name}
        counts[known[first["config"]]["model_type"]] += len(case)
        wrong += len(different)
        words = [first["config"], first["recipe"], first["optimizer"], first["attention"], f"seq {first['seq']}"]
        words += [key for key in ("checkpointing", "padding_mask", "targets", "changes") if first.get(key)]
        verdict = f"differs: {different} {first.get('changes', '')}" if different else "equal"
        print(f"{len(case)} rows {verdict}: {', '.join(words)} ({time.time() - began:.0f} s)", flush=True)
    print(f"{sum(counts.values())} rows measured again, {wrong} differ; {dict(counts)}")
    return 1 if wrong else 0


def row_of(case, batch, got):
    figures = {name: got[name] for name in FIGURES}
    return json.dumps({**case, "batch": batch, **figures}, separators=(",", ":"))


def step_of(case, batch, got, config):
    """A row that needs no name for its config: what was run, parameters (without adapters) and the peak."""
    row = {key: case[key] for key in ("recipe", "attention", "checkpointing", "seq")}
    row |= {"batch": batch, "config": config, "params": got["params"], "peak": got["peak_bytes"]}
    return json.dumps(row, separators=(",", ":"))


def measure(options):
    known = configs()
    config = known.get(options.config) or json.loads(pathlib.Path(options.config).read_text())
    lora = options.recipe.startswith(("lora", "nf4", "int8"))
    case = dict(
        config=options.config, recipe=options.recipe, optimizer=options.optimizer, attention=options.attention,
        padding_mask=options.padding_mask, checkpointing=options.checkpointing, lora_rank=options.rank if lora else None,
        targets=options.targets if lora else None, grad_accum=options.grad_accum, ddp=options.ddp, seq=options.seq,
    )
    if options.lora_dropout:
        case["lora_dropout"] = options.lora_dropout
    batches = [int(batch) for batch in options.batches.split(",")]
    for batch, got in measured(config, case, batches, explain=options.explain).items():
        print(step_of(case, batch, got, config) if options.step else row_of(case, batch, got))
        if options.explain:
            explained(got["live"])
    return 0


def explained(live):
    """What lived at the peak, the largest first, to stderr."""
    sums = collections.defaultdict(lambda: [0, 0])
    for size, phase, operator, dtype, shape in live:
        entry = sums[phase, operator.removeprefix("aten."), str(dtype).removeprefix("torch."), shape]
        entry[0] += size
        entry[1] += 1
    for what, (size, times) in sorted(sums.items(), key=lambda one: -one[1][0])[:40]:
        print(f"{size / 1e9:10.4f} GB in {times:4d}  {' '.join(map(str, what))}", file=sys.stderr)


def recipe_cases():
    plain = dict(recipe="amp-bf16", optimizer="fused", attention="sdpa", padding_mask=False, checkpointing=False,
                 lora_rank=None, targets=None, grad_accum=1, ddp=False)
    for name, changes in CUT:
        for keys, with_lora in RECIPE_CASES:
            full = {"config": name, "changes": changes, **plain, **keys}
            yield full
            if with_lora:
                recipe = "lora-fp16" if full["recipe"] == "amp-fp16" else "lora"
                yield {**full, "recipe": recipe, "lora_rank": 16, "targets": "attn"}


def recipes(options):
    known = configs()
    with open(options.out, "w") if options.out != "-" else contextlib.nullcontext(sys.stdout) as out:
        for case in options.cases():
            for seq in [case["seq"]] if "seq" in case else options.lengths:
                one = {**case, "seq": seq}
                for batch, got in measured(config_of(one, known), one, options.sizes).items():
                    out.write(row_of(one, batch, got) + "\n")
                out.flush()
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("check")
    one.add_argument("files", nargs="*")
    one.add_argument("--count", type=int, default=13, help="cases, of some three rows each")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--families", default=",".join(DENSE))
    one.add_argument("--all", action="store_true", help="every case of the files")
    one.set_defaults(run=check)
    one = commands.add_parser("measure")
    one.add_argument("config")
    one.add_argument("--recipe", default="amp-bf16")
    one.add_argument("--optimizer", default="fused")
    one.add_argument("--attention", default="sdpa", choices=["sdpa", "flash", "eager"])
    one.add_argument("--batches", default="1,2,8")
    one.add_argument("--seq", type=int, default=512)
    one.add_argument("--rank", type=int, default=16)
    one.add_argument("--targets", default="attn")
    one.add_argument("--lora-dropout", type=float, default=0.0)
    one.add_argument("--grad-accum", type=int, default=1)
    for switch in ("--padding-mask", "--checkpointing", "--ddp", "--explain", "--step"):
        one.add_argument(switch, action="store_true")
    one.set_defaults(run=measure)
    usual = ((256, 1024), [1, 2, 8])
    for name, cases, (lengths, sizes) in [("recipes", recipe_cases, usual), ("quant", quant_cases.cases, usual),
                                          ("dropout", dropout_cases.cases, ((512, 1024), [1, 2, 4]))]:
        one = commands.add_parser(name)
        one.add_argument("out")
        one.set_defaults(run=recipes, cases=cases, lengths=lengths, sizes=sizes)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
