"""A quantised base under adapters, as `from_pretrained` with a `BitsAndBytesConfig` makes one and peft prepares it.

| quant | what |
| --- | --- |
| nf4 | load_in_4bit, NF4, double quantisation, blocks of 64; products in the dtype of autocast, without one in the base's |
| int8 | load_in_8bit, outliers from 6 |

Measured: transformers decides which modules it converts (`get_modules_to_not_convert`: all linear layers but the
output head, tied ones and those a family keeps in fp32; experts held in one tensor are no linear layers) and replaces
them (`replace_with_bnb_linear`); bitsandbytes quantises their weights. peft's `prepare_model_for_kbit_training` then
raises what is left in 16 bits to fp32, where the recipe has autocast; a recipe all in 16 bits leaves it out.

What stands for what: quantised weights are plain parameters with bitsandbytes' state on them, since its own class of
parameters cannot hold tensors without data; loading is no part of a step.
"""
import guard  # noqa: F401  (before torch)
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

import bitsandbytes


def config_of(quant, compute):
    from transformers import BitsAndBytesConfig

    if quant == "int8":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=compute)


def quantised(model, quant, compute):
    """The model with its linear layers quantised, their products in `compute`."""
    from transformers.integrations.bitsandbytes import replace_with_bnb_linear
    from transformers.pytorch_utils import Conv1D
    from transformers.quantizers.base import HfQuantizer

    keep = HfQuantizer.get_modules_to_not_convert(model, None, model._keep_in_fp32_modules)
    before = dict(model.named_modules())
    with unset_fake_temporarily():
        replace_with_bnb_linear(model, keep, config_of(quant, compute))
    for name, module in model.named_modules():
        if not isinstance(module, (bitsandbytes.nn.Linear4bit, bitsandbytes.nn.Linear8bitLt)):
            continue
        whole = before.pop(name)
        module.bias = None if whole.bias is None else torch.nn.Parameter(whole.bias.detach(), requires_grad=False)
        weight = whole.weight.detach()
        if isinstance(whole, Conv1D):
            weight = weight.T
        module.weight = packed_4bit(weight, module) if quant == "nf4" else packed_8bit(weight)
        whole.weight = None
    setattr(model, "is_loaded_in_4bit" if quant == "nf4" else "is_loaded_in_8bit", True)
    return model


def packed_4bit(weight, module):
    """`Params4bit._quantize` on a plain parameter."""
    made = module.weight
    packed, state = bitsandbytes.functional.quantize_4bit(
        weight.contiguous(), blocksize=made.blocksize, compress_statistics=made.compress_statistics,
        quant_type=made.quant_type, quant_storage=made.quant_storage)
    parameter = torch.nn.Parameter(packed, requires_grad=False)
    parameter.quant_state = module.quant_state = state
    parameter.compress_statistics, parameter.quant_type = made.compress_statistics, made.quant_type
    parameter.bnb_quantized = True
    return parameter


def packed_8bit(weight):
    """`Int8Params._quantize` on a plain parameter."""
    rows, statistics, _ = bitsandbytes.functional.int8_vectorwise_quant(weight.contiguous().to(torch.float16))
    parameter = torch.nn.Parameter(rows, requires_grad=False)
    parameter.CB, parameter.SCB, parameter.has_fp16_weights = rows, statistics, False
    return parameter


def prepared_for_adapters(model, checkpointing):
    """peft's preparation; Trainer then asks for checkpointing once more, in its own form."""
    from peft import prepare_model_for_kbit_training

    model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=checkpointing)
    if checkpointing:
        model.gradient_checkpointing_enable()
    return model


def state_tensors(model):
    """What bitsandbytes keeps of quantised weights beside them."""
    found = []
    for module in model.modules():
        state = getattr(module, "quant_state", None)
        if isinstance(module, bitsandbytes.nn.Linear4bit):
            found += [state.absmax, state.code, state.offset, state.state2.absmax, state.state2.code]
        elif isinstance(module, bitsandbytes.nn.Linear8bitLt):
            found += [module.weight.SCB if module.state.SCB is None else module.state.SCB]
    return found
