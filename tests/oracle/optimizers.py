"""Optimizers by name, and what of each is measured.

Measured: the state that an optimizer keeps on the device and the temporaries of its step, operator by operator.

| name | what runs |
| --- | --- |
| fused | `torch.optim.AdamW(fused=True)`, Trainer's default: two states, an update in one kernel without temporaries |
| foreach | `torch.optim.AdamW(foreach=True)`, PyTorch's default on CUDA: two states, all square roots at once |
| sgd | `torch.optim.SGD(foreach=True)`, Trainer's `sgd`: no state, in place |
| sgd-momentum | the same with momentum 0.9: one state, in place |
| adafactor | transformers' `Adafactor` as Trainer's `adafactor` sets it (a fixed rate, no momentum): row and column means of squares in fp32, for vectors the whole; a parameter at a time, with temporaries of the largest ones |
| lion | `Lion` below: one state; a parameter at a time, with two temporaries as large as it |
| adamw-8bit | bitsandbytes' `AdamW` with 8 bits, Trainer's `adamw_8bit`: two states of a byte with a scale for 256 numbers, of parameters under 4096 numbers and of embedding tables (tied heads with them) in fp32; in place |
| none | nothing: the state and the update are elsewhere, which stands for a state that is offloaded to the host |

Parameters come in Trainer's two groups, those with weight decay (matrices) first, wherever the order matters; AdamW
and SGD get one group, as foreach's temporaries of two groups would not meet.

Not measured: paged states, and the copies in flight of an offloaded state.
"""
import guard  # noqa: F401  (before torch)
import torch

RATE = 1e-5


class Lion(torch.optim.Optimizer):
    """Sign of an average of momentum and gradient (Chen et al. 2023, arXiv 2302.06675), in the eager form of the usual
    PyPI packages: the average is made of a copy of the momentum and added out of place, one parameter at a time."""

    def __init__(self, params, lr=RATE, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)

    def _update(self, parameter, group):
        now, slow = group["betas"]
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum, grad = state["momentum"], parameter.grad
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        direction = momentum.clone().mul_(now).add(grad, alpha=1 - now).sign_()
        parameter.add_(direction, alpha=-group["lr"])
        momentum.mul_(slow).add_(grad, alpha=1 - slow)


class Elsewhere(torch.optim.Optimizer):
    """Keeps nothing on the device and updates nothing there."""

    def __init__(self, params):
        super().__init__(params, {})

    def step(self, closure=None):
        pass


def decay_first(model, trained):
    """Trainer's groups: parameters with weight decay, then norms and biases."""
    from transformers import Trainer

    decaying = set(Trainer.get_decay_parameter_names(None, model))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = ([], [])
    for parameter in trained:
        groups[names[id(parameter)] not in decaying].append(parameter)
    return [{"params": group} for group in groups if group]


def eight_bits(model, trained):
    """What Trainer makes of `adamw_8bit`, with the overrides that it registers for embeddings."""
    import bitsandbytes

    overrides = bitsandbytes.optim.GlobalOptimManager.get_instance()
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            overrides.register_module_override(module, "weight", {"optim_bits": 32})
    return bitsandbytes.optim.AdamW(decay_first(model, trained), lr=RATE, optim_bits=8)


def made(name, model, trained):
    """The optimizer of a name over the trained parameters of a model."""
    if name == "fused":
        return torch.optim.AdamW(trained, lr=RATE, fused=True)
    if name == "foreach":
        return torch.optim.AdamW(trained, lr=RATE, foreach=True)
    if name in ("sgd", "sgd-momentum"):
        return torch.optim.SGD(trained, lr=RATE, momentum=0.9 if name == "sgd-momentum" else 0.0, foreach=True)
    if name == "adafactor":
        from transformers.optimization import Adafactor

        return Adafactor(decay_first(model, trained), lr=RATE, scale_parameter=False, relative_step=False)
    if name == "lion":
        return Lion(decay_first(model, trained))
    if name == "adamw-8bit":
        return eight_bits(model, trained)
    if name == "none":
        return Elsewhere(trained)
    raise ValueError(f"no optimizer {name}")


def state_tensors(optimizer):
    if optimizer is None:
        return []
    return [value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]
