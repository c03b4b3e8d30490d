"""The attention kernel that CUDA would choose, and the work space inside kernels.

A PyTorch without CUDA chooses its CPU kernels, so `install` puts CUDA's choice (sm80 and later, cuDNN's kernel left
out) in the place of `scaled_dot_product_attention`:

- flash: 16-bit operands, no mask, one head size up to 256; shared keys as they are;
- memory-efficient: as many key as query heads, head sizes that its alignment allows, any mask;
- else written out: scores, softmax, product, in fp32 where operands are 16-bit.

Each runs as the operators that CUDA's autograd records, so what is saved for backward is what CUDA saves.

Measured: results, log-sum-exps and masks as these operators return them; of the two backward kernels also the fp32
accumulators and, where keys are shared, their expanded gradients, computed from the shapes (`WORKSPACE`).
Not measured: work space of all other kernels (tens of MB for matrix products), and cuDNN's attention.
"""
import collections
import math

import guard  # noqa: F401  (before torch)
import torch
import torch.nn.functional as F

aten = torch.ops.aten
FP32 = 4

# Kernels chosen since this was last cleared, with how often.
chosen = collections.Counter()


def raised_to(number, multiple):
    return -(-number // multiple) * multiple


def flash_backward_bytes(grad, query, key, *rest):
    """Row sums and the gradient of queries in fp32, rows in blocks of 128 and heads in widths of 32; gradients of keys
    and values for every query head where heads share them."""
    batch, heads, rows, width = query.shape
    accumulated = batch * heads * raised_to(rows, 128) * FP32 * (1 + raised_to(width, 32))
    if key.shape[1] == heads:
        return accumulated
    return accumulated + 2 * batch * heads * key.shape[2] * width * query.element_size()


def efficient_backward_bytes(grad, query, *rest):
    """Row sums in fp32, and the gradient of queries in fp32 where they are 16-bit."""
    batch, heads, rows, width = query.shape
    return batch * heads * rows * FP32 * (1 if query.element_size() == FP32 else 1 + width)


WORKSPACE = {
    aten._scaled_dot_product_flash_attention_backward.default: flash_backward_bytes,
    aten._scaled_dot_product_efficient_attention_backward.default: efficient_backward_bytes,
}


def widened(tensor, width):
    return tensor if tensor.shape[-1] == width else F.pad(tensor, (0, width - tensor.shape[-1]))


def flash(operands, dropout, causal, scale):
    query, key, value = operands
    width = query.shape[-1]
    multiple = raised_to(width, 8)
    whole = [widened(operand, multiple) for operand in (query, key, value)]
    out = aten._scaled_dot_product_flash_attention(*whole, dropout, causal, False, scale=scale)[0]
    return out if multiple == width else out[..., :width]


def as_bias(mask, query, key):
    """A mask as the kernel reads it: added to the scores, in their dtype, rows aligned to 8, one for every head."""
    bias = mask
    if bias.dtype == torch.bool:
        bias = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), -math.inf)
    bias = bias.to(query.dtype)
    columns = bias.shape[-1]
    if columns % 8:
        bias = widened(bias, raised_to(columns, 8))[..., :columns]
    return bias.expand(*query.shape[:3], key.shape[2])


def efficient(operands, mask, dropout, causal, scale):
    query, key, value = operands
    bias = None if mask is None else as_bias(mask, query, key)
    keeps = torch.is_grad_enabled() and any(operand.requires_grad for operand in operands)
    outputs = aten._scaled_dot_product_efficient_attention(query, key, value, bias, keeps, dropout, causal, scale=scale)
    return outputs[0]


def written_out(operands, mask, dropout, causal, scale):
    query, key, value = operands
    # The names are all that may hold the operands from here on.
    operands.clear()
    dtype = query.dtype
    times = query.shape[1] // key.shape[1]
    if times > 1:
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    query, key, value = (operand.to(torch.float32) for operand in (query, key, value))
    half_scale = math.sqrt(scale)
    with torch.autocast("cuda", enabled=False):
        scores = (query * half_scale) @ (key * half_scale).transpose(-2, -1)
        if causal:
            scores = scores + torch.zeros(scores.shape[-2:], dtype=scores.dtype, device=scores.device)
        elif mask is not None:
            scores = scores + (torch.zeros_like(mask, dtype=scores.dtype) if mask.dtype == torch.bool else mask)
        probabilities = scores.softmax(-1)
        del scores
        if dropout:
            probabilities = F.dropout(probabilities, dropout)
        return (probabilities @ value).to(dtype)


def lowered(tensor):
    """What autocast makes of an operand."""
    if tensor is None or not tensor.is_floating_point() or not torch.is_autocast_enabled("cuda"):
        return tensor
    return tensor.to(torch.get_autocast_dtype("cuda"))


def choice(query, key, value, masked):
    """The name of CUDA's kernel for these operands."""
    is_half = query.element_size() == 2
    widths = {query.shape[-1], value.shape[-1]}
    if is_half and not masked and len(widths) == 1 and max(widths) <= 256:
        return "flash"
    alignment = 8 if is_half else 4
    if query.shape[1] == key.shape[1] and not any(width % alignment for width in widths):
        return "efficient"
    return "math"


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """In the place of `torch.nn.functional.scaled_dot_product_attention`, for tensors on the device."""
    operands = [lowered(query), lowered(key), lowered(value)]
    mask = lowered(attn_mask)
    del query, key, value
    scale = scale or 1 / math.sqrt(operands[0].shape[-1])
    kernel = choice(*operands, mask is not None)
    chosen[kernel] += 1
    if kernel == "flash":
        return flash(operands, dropout_p, is_causal, scale)
    run = efficient if kernel == "efficient" else written_out
    return run(operands, mask, dropout_p, is_causal, scale)


def flash_library(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, **rest):
    """In the place of the flash_attn package, as transformers calls it: 16-bit operands, values as wide as queries,
    the result by token. It shares its kernels with PyTorch's."""
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if query.dtype == torch.float32:
        autocast = torch.is_autocast_enabled("cuda")
        dtype = torch.get_autocast_dtype("cuda") if autocast else torch.bfloat16
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    width, of_values = query.shape[-1], value.shape[-1]
    chosen["flash_attn"] += 1
    aligned = [widened(operand, raised_to(operand.shape[-1], 8)) for operand in (query, key, value)]
    aligned[2] = widened(aligned[2], aligned[0].shape[-1])
    scale = scaling or 1 / math.sqrt(width)
    out = aten._scaled_dot_product_flash_attention(*aligned, dropout, bool(causal), False, scale=scale)[0]
    return out[..., :of_values].transpose(1, 2), None


def install():
    """Makes `attention` what models call."""
    F.scaled_dot_product_attention = attention
    torch._C._nn.scaled_dot_product_attention = attention
