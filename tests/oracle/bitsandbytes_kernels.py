"""bitsandbytes on tensors without data: what its CUDA kernels allocate.

bitsandbytes runs as it is: its modules, its autograd functions, its optimizers. Its CUDA backend cannot load without
CUDA, and what its operators register for fake tensors makes their results alone. So `install` puts, in the place of
each operator that makes more on its way, a function that makes all those tensors in the same order as
`bitsandbytes/backends/cuda/ops.py` and `backends/default/ops.py` (0.50.2) do. Its optimizers' operators work in place.

What values would decide:

- 4-bit products: few tokens (up to 4, and up to 1536 in a batch for some shapes on some cards) have a fused kernel. All
  others make the 16-bit matrix first and multiply with that; so do all here.
- LLM.int8() keeps features with a value of 6 or more apart. Inputs of a language model's layers hold such values nearly
  always (one token is enough), so one feature is kept apart here. Under autocast that decides the result's type: the
  product with those features is an `addmm`, which autocast runs in 16 bits.

Not measured: work space of cuBLASLt's integer product.
"""
import guard  # noqa: F401  (before torch)
import torch

import bitsandbytes

OPS = torch.ops.bitsandbytes


def code_book(*args, **kwargs):
    """A code book of 256 numbers; which ones does not matter."""
    return torch.zeros(256, device="cpu")


def started_anew():
    """Forgets what bitsandbytes keeps beyond a model: the code book it has on the device, and optimizers' overrides."""
    bitsandbytes.functional.name2qmap.clear()
    bitsandbytes.functional.name2qmap["dynamic"] = code_book().to("cuda")
    bitsandbytes.optim.GlobalOptimManager.get_instance().initialize()


def product_4bit(inputs, packed, shape, absmax, blocksize, quant_type, bias=None, absmax_8bit=None, absmax_code=None,
                 absmax_offset=None):
    if absmax_8bit is not None:
        raised = torch.empty_like(absmax_8bit, dtype=torch.float32)
        absmax = raised + absmax_offset
    weight = torch.empty(shape, dtype=inputs.dtype, device=inputs.device)
    return torch.nn.functional.linear(inputs, weight, bias)


def rows_8bit(matrix, threshold=0.0):
    statistics = torch.empty(matrix.numel() // matrix.shape[-1], device=matrix.device, dtype=torch.float32)
    rows = torch.empty(matrix.shape, device=matrix.device, dtype=torch.int8)
    outliers = None
    if threshold > 0.0:
        large = matrix.abs() >= threshold
        large.any()
        # `argwhere` of as many as there are.
        large.any(dim=0)
        outliers = torch.empty(1, device=matrix.device, dtype=torch.int64)
        rows[:, outliers] = 0
    return rows, statistics, outliers


def product_8bit_mixed(inputs, rows, weight, row_statistics, column_statistics, outliers=None, bias=None):
    apart = inputs[:, outliers].contiguous()
    columns = OPS.int8_vectorwise_dequant.default(weight[:, outliers].contiguous(), column_statistics)
    columns = columns.to(inputs.dtype).t()
    out = product_8bit(rows, weight, row_statistics, column_statistics, bias, inputs.dtype)
    return out.addmm(apart, columns), apart


def product_8bit(rows, weight, row_statistics, column_statistics, bias=None, dtype=None):
    sums = torch.empty((*rows.shape[:-1], weight.shape[0]), device=rows.device, dtype=torch.int32)
    out = torch.empty_like(sums, dtype=torch.float16)
    if bias is not None and bias.dtype != torch.float16:
        out.add_(bias)
    return out.to(dtype or torch.float16)


def raised_8bit(matrix, statistics):
    return matrix * statistics.view(-1, 1) * 7.874015718698502e-3


class InPlaceOf:
    """A function where an operator is expected, by name or by its only overload."""

    def __init__(self, function):
        self.default = function

    def __call__(self, *args, **kwargs):
        return self.default(*args, **kwargs)


def install():
    """Makes these functions what bitsandbytes calls."""
    bitsandbytes.functional.create_dynamic_map = code_book
    bitsandbytes.optim.optimizer.sync_gpu = lambda tensor: None
    OPS.gemm_4bit = InPlaceOf(product_4bit)
    OPS.int8_vectorwise_quant = InPlaceOf(rows_8bit)
    OPS.int8_mixed_scaled_mm = InPlaceOf(product_8bit_mixed)
    OPS.int8_scaled_mm = InPlaceOf(product_8bit)
    OPS.int8_vectorwise_dequant = InPlaceOf(raised_8bit)
