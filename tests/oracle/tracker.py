"""Live device memory while operators run: every storage from the operator that returned it to its death.

Measured: the bytes of all storages on the device that some tensor, name or autograd node still holds, each rounded
up to 512 as CUDA's allocator hands memory out, after every operator; and work space inside kernels where `kernels`
knows it. Their maximum is what `torch.cuda.max_memory_allocated` reports.

Not measured: reserved memory beyond the allocated (fragmentation, 2 to 10 %), work space of other kernels, and
memory that no operator returns.
"""
import weakref

import guard  # noqa: F401  (before torch)
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.utils._python_dispatch import TorchDispatchMode

SEGMENT = 512


def rounded(size):
    return -(-size // SEGMENT) * SEGMENT


def storage_bytes(tensors):
    """Bytes of the storages behind tensors, each storage once."""
    sizes = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        sizes[storage._cdata] = rounded(storage.nbytes())
    return sum(sizes.values())


class Tracker(TorchDispatchMode):
    """Follows storages of one device type. `workspace` maps an operator to a function of its arguments that tells the
    bytes it takes while it runs. `phase` is the part of the step that maxima are kept by."""

    def __init__(self, workspace, device="cuda"):
        super().__init__()
        self.workspace = workspace
        self.device = device
        self.live_bytes = 0
        self.phase = None
        self.peaks = {}
        self.highest = 0
        self.highest_operator = 0
        self.operators = 0
        self.reads_find_zero = False
        self._live = {}
        self._snapshot_at = None
        self.snapshot = []

    def begin(self, snapshot_at=None):
        """Forgets maxima, not memory. `snapshot_at`: the operator after which to note what lives."""
        self.peaks = {}
        self.highest = self.live_bytes
        self.operators = self.highest_operator = 0
        self._snapshot_at = snapshot_at

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        try:
            result = operator(*args, **(kwargs or {}))
        except DataDependentOutputException:
            # A tensor without data has no value to read; a loss scaler reads one to learn whether gradients overflowed.
            if not self.reads_find_zero:
                raise
            return 0.0
        self.operators += 1
        for value in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(value, torch.Tensor):
                self._follow(value, operator)
        inside = self.workspace.get(operator)
        self._note(self.live_bytes + (0 if inside is None else inside(*args)))
        if self.operators == self._snapshot_at:
            self.snapshot = [entry for entry in self._live.values()]
        return result

    def _follow(self, tensor, operator):
        if tensor.device.type != self.device:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._live:
            return
        size = rounded(storage.nbytes())
        self._live[key] = (size, self.phase, str(operator), tensor.dtype, tuple(tensor.shape))
        self.live_bytes += size
        weakref.finalize(storage, self._died, key).atexit = False

    def resized(self, storage):
        """A followed storage has another size now: FSDP empties storages and fills them again."""
        size, *rest = self._live[storage._cdata]
        now = rounded(storage.nbytes())
        self._live[storage._cdata] = (now, *rest)
        self.live_bytes += now - size
        self._note(self.live_bytes)

    def _died(self, key):
        self.live_bytes -= self._live.pop(key)[0]

    def _note(self, size):
        self.peaks[self.phase] = max(size, self.peaks.get(self.phase, 0))
        if size > self.highest:
            self.highest, self.highest_operator = size, self.operators
