"""The loss that never holds all logits: Liger's fused linear cross entropy, as `use_liger_kernel` puts it into a model.

`patched` lets `liger_kernel` (0.8) patch a model's forward with nothing but its loss: with its norms, rotary embeddings
and SwiGLU as well, which `use_liger_kernel=True` turns on too, a step keeps less. What runs is its own Python: the
logits in chunks of about as many elements as the hidden states have, and the gradients of hidden states and head, which
the forward computes. Families that it does not patch get the same function in the place of head and loss.

Not run: its Triton kernels, which work in place and take no memory that an allocator hands out; a launch does nothing.
"""
import guard  # noqa: F401  (before torch)

# How the library names the parts that are left alone.
PARTS = ("rope", "rms_norm", "swiglu", "geglu", "layer_norm", "cross_entropy")


class Launched:
    """A Triton kernel that is launched and does nothing."""

    def __getitem__(self, grid):
        return lambda *args, **kwargs: None


def _library():
    """The library's module, its kernels replaced, and the forward that it had at first."""
    import liger_kernel.ops.fused_linear_cross_entropy as module

    function = module.LigerFusedLinearCrossEntropyFunction
    if not hasattr(function, "original"):
        function.original = staticmethod(function.forward)
    module.liger_cross_entropy_kernel = Launched()
    # Scales what the forward computed, in place, where the loss was scaled.
    module.fused_linear_cross_entropy_backward = lambda scale, *gradients: gradients
    return module


def known(model_type):
    """Whether the library patches the family."""
    from liger_kernel.transformers.monkey_patch import MODEL_TYPE_TO_APPLY_LIGER_FN

    return model_type in MODEL_TYPE_TO_APPLY_LIGER_FN


def patch(model, tracker):
    """Puts the loss into a model, adapted or not. The loss reads the number of labels off the device."""
    module = _library()
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    kind = base.config.model_type
    if known(kind):
        import inspect

        from liger_kernel.transformers.monkey_patch import MODEL_TYPE_TO_APPLY_LIGER_FN

        apply = MODEL_TYPE_TO_APPLY_LIGER_FN[kind]
        takes = inspect.signature(apply).parameters
        try:
            apply(fused_linear_cross_entropy=True, model=base, **{part: False for part in PARTS if part in takes})
        except NotImplementedError:
            # Known for its other kernels only (granite).
            _in_place_of_head(base, module)
    else:
        _in_place_of_head(base, module)

    module.LigerFusedLinearCrossEntropyFunction.forward = staticmethod(_reading(tracker))


def _reading(tracker):
    """The function's forward, for which the number of labels is read off the device."""
    module = _library()

    def forward(ctx, *args, **kwargs):
        before, tracker.reads_find_zero = tracker.reads_find_zero, True
        try:
            return module.LigerFusedLinearCrossEntropyFunction.original(ctx, *args, **kwargs)
        finally:
            tracker.reads_find_zero = before

    return forward


def _in_place_of_head(base, module):
    """The head hands on what it is given, and the loss applies it."""
    head = base.get_output_embeddings()
    head.forward = lambda hidden: hidden

    def loss(logits, labels, vocab_size=None, **rest):
        from liger_kernel.transformers.model.loss_utils import LigerForCausalLMLoss

        return LigerForCausalLMLoss(
            logits, head.weight, labels, logits.shape[-1], **({"bias": head.bias} if head.bias is not None else {}))

    base.loss_function = loss
