"""Mamba's layer as its kernels allocate, without the kernels.

transformers calls `mamba_inner_fn` of the package mamba_ssm while it trains, where that is installed; without it a loop
in Python goes from token to token, which nobody trains with. The kernel is an autograd function whose code is public;
here is one that makes the tensors which that one makes, keeps those that it keeps, and computes nothing.

Measured: the layer's inputs, what the function saves (it makes the convolution's result and the time steps again in its
backward), its results and the larger tensors of its backward. Not measured: work space inside the CUDA kernels.
"""
import guard  # noqa: F401  (before torch)
import torch

# Tokens of a chunk of the scan, a state of which is kept.
CHUNK = 2048


class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xz, conv_weight, conv_bias, x_proj, dt_proj, out_proj, out_bias, A, D, dt_bias):
        batch, both, length = xz.shape
        inner, state, rank = both // 2, A.shape[-1], dt_proj.shape[1]
        ctx.autocast = torch.is_autocast_enabled("cuda")
        ctx.inputs = (conv_weight, conv_bias, x_proj, dt_proj, out_proj, out_bias, A, D, dt_bias)
        if ctx.autocast:
            dtype = torch.get_autocast_dtype("cuda")
            x_proj, dt_proj, out_proj = x_proj.to(dtype), dt_proj.to(dtype), out_proj.to(dtype)
        if xz.stride(-1) != 1:
            xz = xz.contiguous()
        convolved = torch.empty_like(xz[:, :inner])
        x_dbl = xz.new_empty(batch * length, rank + 2 * state)
        delta = xz.new_empty(inner, batch * length)
        B, C = (xz.new_empty(batch, 1, state, length) for _ in range(2))
        states = torch.empty(batch, inner, -(-length // CHUNK), 2 * state, dtype=torch.float32, device=xz.device)
        out, out_z = torch.empty_like(convolved), torch.empty_like(convolved)
        ctx.save_for_backward(xz, x_dbl, x_proj, dt_proj, out_proj, A, B, C, states, out)
        result = xz.new_empty(batch, length, out_proj.shape[0])
        del convolved, delta, out_z
        return result

    @staticmethod
    def backward(ctx, dout):
        xz, x_dbl, x_proj, dt_proj, out_proj, A, B, C, states, out = ctx.saved_tensors
        conv_weight, conv_bias, _, _, _, out_bias, _, D, dt_bias = ctx.inputs
        batch, _, length = xz.shape
        convolved, delta = torch.empty_like(out), torch.empty_like(out)
        dxz = torch.empty_like(xz)
        dout_y = torch.empty_like(out)
        dconvolved, ddelta, out_z = (torch.empty_like(out) for _ in range(3))
        dA = torch.empty_like(A)
        dB, dC = (torch.empty(B.shape, dtype=torch.float32, device=B.device) for _ in range(2))
        dD, dbias = torch.empty_like(D), torch.empty_like(dt_bias)
        turned = torch.empty_like(out_z) if batch > 1 else None
        dout_proj = torch.empty_like(out_proj)
        del turned
        dx_dbl = torch.empty_like(x_dbl)
        del dB, dC
        ddt_proj, dx_proj = torch.empty_like(dt_proj), torch.empty_like(x_proj)
        del convolved, delta, dout_y, dconvolved, ddelta, out_z, dx_dbl
        dconv = torch.empty_like(conv_weight)
        dconv_bias = None if conv_bias is None else torch.empty_like(conv_bias)
        dout_bias = None if out_bias is None else torch.empty_like(out_bias)
        return dxz, dconv, dconv_bias, dx_proj, ddt_proj, dout_proj, dout_bias, dA, dD, dbias


def inner_fn(xz, conv_weight, conv_bias, x_proj, dt_proj, out_proj, out_bias, A, B, C, D, delta_bias, **rest):
    return Inner.apply(xz, conv_weight, conv_bias, x_proj, dt_proj, out_proj, out_bias, A, D, delta_bias)


def changes(config):
    """(owner, name, value) for models of this layer."""
    if config.model_type != "mamba":
        return []
    import transformers.models.mamba.modeling_mamba as mamba

    return [(mamba, "mamba_inner_fn", inner_fn)]
