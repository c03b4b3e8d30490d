"""Peak device memory of one training step: the step itself, run on tensors without data.

`one_case` builds a model and runs forward, loss, backward, clipping and optimizer step on fake tensors at `cuda:0`,
with the real classes of transformers, peft and torch.optim and the real autograd, while `tracker` counts. Nothing is
computed, so a CPU does it in seconds whatever the model's size, and no formula of a transformer is in it.

Measured: weights, buffers, gradients, optimizer state, activations, temporaries; the maximum of forward, of backward
and of the optimizer's step, in a step that is not the first (the optimizer's state is there). Beside the plain step:

- `accumulation` > 1: two micro-batches in a row, the second with the gradients of the first; more add nothing.
- a loss scaler, where the recipe is of fp16: `torch.amp.GradScaler` scales the loss, then gradients are unscaled and
  checked in place and the step is taken as if none had overflowed.
- `buckets`: DDP's flat copies of all gradients, there for the whole run, in buckets of 25 MiB after a first one of 1;
  communication works in place on them and its own memory is not counted.
- `optimizer` "none": its state and its step are on the host (offload); gradients stay until the step is over.
- `loss` "fused": see `fused`. `parallel`: one card of several that share the job, or with parameters or state on the
  host; see `spread`.

Not measured: what `tracker`, `kernels`, `bitsandbytes_kernels`, `model`, `quantised` and `guard` say of themselves; the
count of label tokens that Trainer keeps on the device (a number); the data loader; evaluation.
"""
import contextlib
import gc
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guard  # noqa: E402,F401  (before torch)
import torch  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

import fused  # noqa: E402
import images  # noqa: E402
import kernels  # noqa: E402
import optimizers  # noqa: E402
import scans  # noqa: E402
import spread  # noqa: E402
import standins  # noqa: E402
from model import (adapted, build, family, load_config, lora_targets, make_inputs, trainable_of,  # noqa: E402
                   transformers_without_values)
from recipe import named  # noqa: E402
from tracker import Tracker, rounded, storage_bytes  # noqa: E402

MIB = 1 << 20
PHASES = ("forward", "backward", "optimizer")


class Step:
    """One training step of a model, with what lives around it."""

    def __init__(self, tracker, model, trained, optimizer, scaler, accumulation, clip):
        self.tracker = tracker
        self.model = model
        self.trained = trained
        self.optimizer = optimizer
        self.scaler = scaler
        self.accumulation = accumulation
        self.clip = clip

    def prepare(self):
        """Makes the optimizer's state, with gradients that are not kept, and the scaler's."""
        self.tracker.phase = "before"
        for parameter in self.trained:
            parameter.grad = torch.zeros_like(parameter.detach())
        self._update()
        if self.scaler is not None:
            self.scaler.scale(torch.zeros(()))

    def run(self, inputs):
        for left in reversed(range(min(self.accumulation, 2))):
            with spread.synchronized(self.model, left == 0):
                self._micro_batch(inputs)
        self.tracker.phase = "optimizer"
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        if self.clip:
            clipped = self.optimizer.clipped() if isinstance(self.optimizer, spread.Shares) else self.trained
            torch.nn.utils.clip_grad_norm_(clipped, 1.0, foreach=True)
        self._update()

    def _micro_batch(self, inputs):
        self.tracker.phase = "forward"
        # Trainer lets the outputs go before backward.
        loss = self.model(**inputs)["loss"]
        self.tracker.phase = "backward"
        if self.accumulation > 1:
            loss = loss / self.accumulation
        if self.scaler is None:
            loss.backward()
        else:
            self.scaler.scale(loss).backward()

    def _update(self):
        with reading_zeros(self.tracker):
            if self.scaler is None or self.scaler._scale is None:
                self.optimizer.step()
            else:
                self.scaler.step(self.optimizer)
                self.scaler.update()
        self.tracker.phase = "after"
        for parameter in self.trained:
            parameter.grad = None


@contextlib.contextmanager
def reading_zeros(tracker):
    """Values that are read of the device are zero: no gradient overflowed."""
    tracker.reads_find_zero = True
    try:
        yield
    finally:
        tracker.reads_find_zero = False


def flat_buckets(trained, first=MIB, rest=25 * MIB):
    """DDP's buckets: a bucket is full with the parameter that reaches its limit, last parameters first."""
    buckets, sizes, limit = [], 0, first
    for parameter in reversed(trained):
        sizes += parameter.numel()
        if sizes * parameter.element_size() >= limit:
            buckets.append(torch.empty(sizes, dtype=parameter.dtype))
            sizes, limit = 0, rest
    if sizes:
        buckets.append(torch.empty(sizes, dtype=trained[0].dtype))
    return buckets


def prepared(model, recipe):
    """The model as accelerate prepares it: forward under autocast, outputs in fp32."""
    if recipe.autocast is None:
        return
    from accelerate.utils.operations import convert_outputs_to_fp32

    model.forward = convert_outputs_to_fp32(torch.autocast("cuda", dtype=recipe.autocast)(model.forward))


def optimizer_of(parallel, cards, name, model, trained):
    """The optimizer of a name, over this card's part of the parameters where several share its state."""
    if parallel == "offload":
        return optimizers.made("none", model, trained)
    if parallel == "offload-optimizer":
        return spread.on_host(trained)
    if parallel in ("zero1", "zero2"):
        return spread.Shares(trained, cards, int(parallel[-1]), lambda shares: optimizers.made(name, model, shares))
    if parallel == "zero-redundancy":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return ZeroRedundancyOptimizer(trained, torch.optim.AdamW, lr=optimizers.RATE, fused=True)
    return optimizers.made(name, model, trained)


def one_case(path, batches, seq, attention, recipe, rank=16, targets="attn", checkpointing=False, optimizer="fused",
             padding_mask=False, clip=True, weights=None, real_first_step=False, accumulation=1, buckets=False,
             loss="full", parallel=None, cards=1, explain=False, lora_dropout=0.0):
    """Measures a step of the model of a config.json for each of `batches`, at `seq` tokens a sample.

    `recipe` is a name of `recipe.RECIPES`, `optimizer` one of `optimizers`, `attention` sdpa, flash or eager; `rank`,
    `targets` and `lora_dropout` are those of LoRA. `real_first_step`: the optimizer's state comes of a whole step instead of empty
    gradients. `loss` = "fused" is that of `fused`; `parallel` is a way to share of `spread`, over `cards` cards of which
    one is measured. `explain` adds what lived at the peak. Returns a dict of figures by batch; bytes throughout.
    """
    kind = named(recipe, weights)
    config, cls = load_config(path)
    uses_bitsandbytes = kind.quant is not None or optimizer == "adamw-8bit"
    if uses_bitsandbytes:
        # Imported where it is needed only: it takes a while, and makes tensors that are no part of a step.
        import bitsandbytes_kernels

        bitsandbytes_kernels.install()
    inputs_kind = family(cls, config)
    changes = images.changes(config, seq) if inputs_kind == "text-and-image" else standins.changes(config) + scans.changes(config)
    tracker = Tracker(kernels.WORKSPACE)
    done = {}
    offloads = parallel == "offload"
    group = spread.cards(cards) if parallel else contextlib.nullcontext()
    streams = spread.streams(tracker) if offloads or parallel == "offload-optimizer" else contextlib.nullcontext()
    with group as mesh, FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"), tracker, \
            transformers_without_values(padding_mask, changes), streams:
        if uses_bitsandbytes:
            bitsandbytes_kernels.started_anew()
        model = build(config, cls, kind.weights, attention)
        model.train()
        for one in (model.config, getattr(model.config, "text_config", None)):
            if hasattr(one, "use_cache"):
                one.use_cache = False              # as TrainingArguments has it
        params = sum(p.numel() for p in {id(p): p for p in model.parameters()}.values())
        if kind.quant is not None:
            import quantised

            model = quantised.quantised(model, kind.quant, kind.autocast or kind.weights)
            if kind.autocast is not None:
                model = quantised.prepared_for_adapters(model, checkpointing)
        if checkpointing:
            model.gradient_checkpointing_enable()
        if kind.lora:
            if checkpointing:
                model.enable_input_require_grads()
            model = adapted(model, rank, lora_targets(model, targets), kind.raise_adapters,
                            None if kind.quant is None else kind.weights, lora_dropout)
            model.train()
        if loss == "fused":
            fused.patch(model, tracker)
        trained = trainable_of(model)
        count = sum(p.numel() for p in trained)
        flat = flat_buckets(trained) if buckets else []
        if not offloads:
            prepared(model, kind)
        else:
            # Without autocast: FSDP gathers parameters in the lower dtype.
            model = spread.offloaded(model, mesh, kind.autocast)
            trained = trainable_of(model)
        called = spread.data_parallel(model) if parallel in ("ddp", "zero-redundancy") else model
        step = Step(tracker, called, trained, optimizer_of(parallel, cards, optimizer, model, trained),
                    torch.amp.GradScaler("cuda") if kind.scales_loss else None, accumulation, clip and not offloads)

        def inputs_of(batch):
            inputs = make_inputs(inputs_kind, config, batch, seq, padding_mask)
            if kind.weights == torch.float32:
                return inputs
            return {k: v.to(kind.weights) if images.fed(v) and v.is_floating_point() else v for k, v in inputs.items()}

        if offloads:
            # Nothing of the optimizer is on the device; the first step lays groups out.
            step.run(inputs_of(1))
        elif real_first_step:
            step.run(inputs_of(1))
        else:
            step.prepare()
        gc.collect()
        quantisation = quantised.state_tensors(model) if kind.quant is not None else []
        always = dict(
            params=params, trainable=count,
            weights=storage_bytes([*([] if offloads else model.parameters()), *model.buffers(), *quantisation]),
            optim=storage_bytes(optimizers.state_tensors(spread.own(step.optimizer))),
            grads=sum(rounded(p.numel() * p.element_size()) for p in trained),
            buckets=storage_bytes(flat), model_class=cls.__name__,
        )
        for batch in batches:
            inputs = inputs_of(batch)
            gc.collect()
            kernels.chosen.clear()
            tracker.begin()
            step.run(inputs)
            peaks = {phase: tracker.peaks[phase] for phase in PHASES if phase in tracker.peaks}
            done[batch] = dict(
                always, peak_bytes=tracker.highest, peak_at=max(peaks, key=peaks.get), phase_peaks=peaks,
                kernels=dict(kernels.chosen) or {"eager": 1},
            )
            if explain:
                gc.collect()
                tracker.begin(snapshot_at=tracker.highest_operator)
                step.run(inputs)
                done[batch]["live"] = tracker.snapshot
            del inputs
    return done
