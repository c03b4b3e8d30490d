"""Traces modules with neurarch-trace, and measures training steps of the same modules.

Usage: measure_graphs.py trace OUT_FOLDER [NAME...]      writes NAME.neurarch.json each (needs `pip install neurarch-trace`)
       measure_graphs.py measure OUT.jsonl [NAME...]     appends rows; ORACLE_PYTHON's packages as for step.py

A row is a name of `graph_models.MODELS`, a recipe, an optimizer, a batch and what the step measurer found. The model
is called under autocast where the recipe has one, its scores are taken in fp32, and the loss is that of the table.
"""
import collections
import gc
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def traced(name, entry, folder):
    import torch
    from neurarch_trace import trace_model

    factory, samples, _ = entry
    torch.manual_seed(0)
    model = factory()

    def made(sample):
        return torch.zeros(2, sample[2], dtype=torch.int64) if sample[0] == "ids" else torch.randn(2, *sample)

    graph = trace_model(model, [made(sample) for sample in samples], name)
    for component in graph["components"]:
        component.pop("position", None)
    (folder / f"{name}.neurarch.json").write_text(json.dumps(graph, separators=(",", ":")) + "\n")


CASES = [  # recipe, optimizer, checkpoint
    ("fp32", "fused"), ("amp-bf16", "fused"), ("bf16", "fused"), ("amp-fp16", "sgd-momentum"), ("amp-bf16", "foreach"),
    ("fp32", "sgd"),
]


def recurrent_as_cudnn():
    """Recurrent nets as a GPU runs them: cuDNN takes weights that autocast cast once, where PyTorch without cuDNN casts
    them for every token; a fused cell keeps what cuDNN's reserve does. The GRU's cell lacks its shapes."""
    import torch

    shapes = torch.library.Library("aten", "IMPL", "Meta")

    def cell(gates, hidden_gates, hidden, *biases):
        return torch.empty_like(hidden), hidden.new_empty(hidden.shape[0], 5 * hidden.shape[1])

    def cell_backward(grad, workspace, biased):
        rows, width = grad.shape
        three = [grad.new_empty(rows, 3 * width) for _ in range(2)]
        return (*three, torch.empty_like(grad), *(grad.new_empty(3 * width) for _ in range(2)))

    shapes.impl("_thnn_fused_gru_cell", cell)
    shapes.impl("_thnn_fused_gru_cell_backward", cell_backward)
    for kind in ("lstm", "gru", "rnn_tanh"):
        plain = getattr(torch._VF, kind)

        def run(inputs, states, weights, *rest, plain=plain):
            if not torch.is_autocast_enabled("cuda"):
                return plain(inputs, states, weights, *rest)
            dtype = torch.get_autocast_dtype("cuda")
            states = tuple(s.to(dtype) for s in states) if isinstance(states, tuple) else states.to(dtype)
            with torch.autocast("cuda", enabled=False):
                return plain(inputs.to(dtype), states, [w.to(dtype) for w in weights], *rest)

        setattr(torch._VF, kind, run)
    return shapes


def measured(name, entry, batches, length, recipe, optimizer, accumulation=1):
    import step  # before torch
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    import kernels
    import optimizers
    from model import trainable_of, transformers_without_values
    from recipe import named
    from tracker import Tracker, rounded

    factory, samples, loss_kind = entry
    kind = named(recipe)
    tracker = Tracker(kernels.WORKSPACE)

    class Trained(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, inputs, labels):
            out = self.model(*inputs)
            if loss_kind == "image":
                return {"loss": torch.nn.functional.mse_loss(out, labels.to(out.dtype))}
            scores = out.float()
            if loss_kind == "tokens":
                return {"loss": torch.nn.functional.cross_entropy(scores.view(-1, scores.shape[-1]), labels.view(-1)), "out": out}
            return {"loss": torch.nn.functional.cross_entropy(scores, labels)}

    rows = []
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"), tracker, transformers_without_values(False):
        # Converting a model of tensors without data would untie what it shares.
        torch.set_default_dtype(kind.weights)
        model = factory()
        torch.set_default_dtype(torch.float32)
        whole = Trained(model)
        whole.train()
        trained = trainable_of(model)
        step.prepared(whole, kind)
        scaler = torch.amp.GradScaler("cuda") if kind.scales_loss else None
        run = step.Step(tracker, whole, trained, optimizers.made(optimizer, whole, trained), scaler, accumulation, True)
        run.prepare()
        params = sum(p.numel() for p in trained)
        for batch in batches:
            def made(sample):
                if sample[0] == "ids":
                    return torch.zeros(batch, length or sample[2], dtype=torch.int64)
                return torch.zeros(batch, *sample, dtype=kind.weights)

            inputs = [made(sample) for sample in samples]
            if loss_kind == "image":
                with torch.no_grad():
                    shape = model(*inputs).shape
                labels = torch.zeros(shape, dtype=kind.weights)
            else:
                labels = torch.zeros((batch, length or samples[0][2]) if loss_kind == "tokens" else (batch,), dtype=torch.int64)
            gc.collect()
            tracker.begin()
            run.run({"inputs": inputs, "labels": labels})
            peaks = {phase: tracker.peaks[phase] for phase in step.PHASES if phase in tracker.peaks}
            row = dict(graph=name, recipe=recipe, optimizer=optimizer, batch=batch, params=params,
                       peak_bytes=tracker.highest, peak_at=max(peaks, key=peaks.get))
            if samples[0][0] == "ids":
                row["seq"] = length or samples[0][2]
            if accumulation > 1:
                row["accumulation"] = accumulation
            rows.append(row)
            if os.environ.get("EXPLAIN"):
                tracker.begin(snapshot_at=tracker.highest_operator)
                run.run({"inputs": inputs, "labels": labels})
                alike = collections.Counter()
                for size, phase, operator, dtype, shape in tracker.snapshot:
                    alike[size, phase, operator, str(dtype), shape] += 1
                for (size, *rest), times in sorted(alike.items(), key=lambda one: -one[0][0] * one[1])[:int(os.environ["EXPLAIN"])]:
                    print(f"{size * times:>14,} = {times:>4} x", *rest, file=sys.stderr)
            del inputs, labels
    return rows


def main(what, out, *names):
    from graph_models import MODELS

    for name in names or MODELS:
        entry = MODELS[name]
        if what == "trace":
            traced(name, entry, pathlib.Path(out))
            continue
        text = entry[1][0][0] == "ids"
        cases = CASES if os.environ.get("EXPLAIN") is None else CASES[:1]
        if os.environ.get("CASES"):
            cases = [tuple(one.split(",")) for one in os.environ["CASES"].split()]
        # A row of numbers is so little that few of them tell nothing beside the weights.
        usual = "64 1024 16384" if len(entry[1][0]) == 1 else "2 8 32"
        batches = [int(one) for one in os.environ.get("BATCHES", usual).split()]
        with open(out, "a") as file:
            for recipe, optimizer in cases:
                for length in ([int(x) for x in os.environ.get("LENGTHS", "64 200").split()] if text else [None]):
                    for row in measured(name, entry, batches, length, recipe, optimizer):
                        file.write(json.dumps(row) + "\n")
                        file.flush()


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        # Not for traces: a package that transformers looks for bears the name of a module there.
        sys.path.insert(0, str(HERE.parent / "oracle"))
        import step  # noqa: F401  (before torch)

        KEEP = recurrent_as_cudnn()
    main(*sys.argv[1:])
