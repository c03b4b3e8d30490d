"""One card of several that share a job, in one process: a process group whose communication moves nothing.

`cards` opens PyTorch's fake process group, in which every call succeeds at once and buffers stay as they are: what the
first of so many cards holds is all that is looked at. Ways to share:

| name | what runs |
| --- | --- |
| ddp | `torch.nn.parallel.DistributedDataParallel`: its reducer's buckets, and gradients that are copied into them and back |
| zero1 | `Shares` below at stage 1: whole gradients, a share of each parameter's optimizer state |
| zero2 | `Shares` at stage 2: a gradient is scattered as soon as it is there, and its share alone is kept |
| zero-redundancy | `torch.distributed.optim.ZeroRedundancyOptimizer`: stage 1 with whole parameters dealt out, so shares are uneven |
| offload-optimizer | torchao's `CPUOffloadOptimizer` on one card: the state and its step on the host, gradients here until then |
| offload | FSDP2 (`fully_shard`) as accelerate prepares it, with parameters, gradients and state in host memory |

Not measured: memory of the communication library; DeepSpeed's own engine, whose reduction buckets have a size of their
own (by its settings, 0.4 to 2 GB); buckets that DDP lays out anew after the first step, which are as large.
"""
import contextlib
import types

import guard  # noqa: F401  (before torch)
import torch
import torch.distributed as dist


@contextlib.contextmanager
def cards(count):
    """A process group of so many cards, of which this is the first; gives their mesh."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=count)
    try:
        with streams(None):
            mesh = init_device_mesh("cuda", (count,), mesh_dim_names=("shard",))
        yield mesh
    finally:
        dist.destroy_process_group()


class Ignored:
    """Takes every call."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


class NotRebuilt:
    """DDP's reducer; it would agree with other cards on a new order of buckets, for which it reads values."""

    def __init__(self, reducer):
        self._reducer = reducer

    def __getattr__(self, name):
        return getattr(self._reducer, name)

    def _rebuild_buckets(self):
        return False


def data_parallel(model):
    """The model in `DistributedDataParallel`."""
    from torch.nn.parallel import DistributedDataParallel

    def communicated(state, bucket):
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    wrapped = DistributedDataParallel(model, init_sync=False)
    wrapped.logger = Ignored()
    wrapped.reducer = NotRebuilt(wrapped.reducer)
    wrapped.register_comm_hook(None, communicated)
    return wrapped


@contextlib.contextmanager
def synchronized(model, last):
    """A micro-batch as accelerate runs it: before the last one FSDP2 keeps gradients whole."""
    if hasattr(model, "set_requires_gradient_sync"):
        model.set_requires_gradient_sync(last)
    with contextlib.nullcontext() if last or not hasattr(model, "no_sync") else model.no_sync():
        yield


class Shares(torch.optim.Optimizer):
    """ZeRO's stages 1 and 2 (Rajbhandari et al. 2020, arXiv 1910.02054) on `torch.distributed`: of every parameter a card
    updates its share, an even cut through all elements, and gathers the rest. `inner` makes the optimizer of the shares."""

    def __init__(self, trained, count, stage, inner):
        super().__init__(trained, {})
        self.count = count
        self.stage = stage
        self.trained = trained
        self.shares = [parameter.detach().view(-1)[:-(-parameter.numel() // count)] for parameter in trained]
        self.inner = inner(self.shares)
        if stage == 2:
            for parameter, share in zip(trained, self.shares):
                parameter.register_post_accumulate_grad_hook(self._scattering(share))

    @property
    def state(self):
        return self.inner.state if hasattr(self, "inner") else {}

    @state.setter
    def state(self, value):
        pass

    def clipped(self):
        """What the norm of gradients is taken of."""
        return self.trained if self.stage == 1 else self.shares

    def _pieces(self, tensor):
        """Every card's part of a tensor, as views."""
        return list(torch.chunk(tensor.view(-1), self.count))

    def _scattering(self, share):
        def scatter(parameter):
            own = torch.empty_like(share)
            dist.reduce_scatter(own, self._pieces(parameter.grad))
            parameter.grad = None
            if share.grad is None:
                share.grad = own
            else:
                share.grad.add_(own)
        return scatter

    def step(self, closure=None):
        for parameter, share in zip(self.trained, self.shares):
            if parameter.grad is not None:
                share.grad = parameter.grad.view(-1)[:share.numel()]
        self.inner.step()
        for parameter, share in zip(self.trained, self.shares):
            share.grad = None
            dist.all_gather(self._pieces(parameter.detach()), share)


class Stream:
    """A stream or an event of a device on which everything happens in order."""

    device = torch.device("cuda:0")

    def record_event(self, *args):
        return Stream()

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


@contextlib.contextmanager
def streams(tracker):
    """What FSDP2 asks of a device beside tensors; and storages that it empties and fills again, which the tracker is
    told of."""
    import torch.distributed.fsdp._fully_shard._fsdp_param as parameters
    import torch.distributed.fsdp._fully_shard._fsdp_param_group as groups

    def told(change):
        def changed(tensor):
            change(tensor)
            tracker.resized(tensor.untyped_storage())
        return changed

    def stream(*args, **kwargs):
        return Stream()

    changes = [
        (torch.cuda, "Stream", stream), (torch.cuda, "Event", stream), (torch.cuda, "current_stream", stream),
        (torch.cuda, "stream", lambda *args: contextlib.nullcontext()), (torch.cuda, "current_device", lambda: 0),
        (torch.cuda, "set_device", lambda *args: None), (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "device_count", lambda: 1), (torch.cuda, "synchronize", lambda *args: None),
        (parameters, "alloc_storage", told(parameters.alloc_storage)),
        (parameters, "free_storage", told(parameters.free_storage)),
        (groups, "alloc_storage", told(groups.alloc_storage)),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def offloaded(model, mesh, mixed):
    """The model as accelerate lays it out with FSDP2 and `fsdp_offload_params`: layers, embedding and head in groups of
    their own, sharded over a mesh, their shards in host memory. `mixed`: what mixed precision lowers to, or None."""
    from accelerate.utils import FullyShardedDataParallelPlugin
    from accelerate.utils.fsdp_utils import fsdp2_prepare_model
    from torch.distributed.fsdp import CPUOffloadPolicy

    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="transformer_based_wrap", reshard_after_forward=True,
        cpu_ram_efficient_loading=False, cpu_offload=False)
    plugin.cpu_offload = CPUOffloadPolicy(pin_memory=False)
    name = {None: "no", torch.bfloat16: "bf16", torch.float16: "fp16"}[mixed]
    if mixed is not None:
        plugin.set_mixed_precision(name)
    accelerator = types.SimpleNamespace(
        state=types.SimpleNamespace(fsdp_plugin=plugin), mixed_precision=name, is_main_process=False, device="cuda",
        torch_device_mesh=mesh,
        parallelism_config=types.SimpleNamespace(fsdp_dim_names=("shard",)))
    return fsdp2_prepare_model(accelerator, model)


def own(optimizer):
    """The optimizer that keeps the state on this card, inside of one that shares or offloads it; None without one."""
    for name in ("d_opt", "optim"):
        if hasattr(optimizer, name):
            return getattr(optimizer, name)
    return optimizer


def on_host(trained):
    """AdamW whose state and step are on the host; parameters of fewer than 4,096 elements stay, as torchao has it."""
    import torchao.optim.cpu_offload as library

    library.get_available_devices = lambda: ["cpu", "cuda"]
    library.torch.empty_like, empty_like = _unpinned(torch.empty_like), torch.empty_like
    try:
        return library.CPUOffloadOptimizer(trained, torch.optim.AdamW, lr=1e-5, fused=True)
    finally:
        torch.empty_like = empty_like


def _unpinned(empty_like):
    """Host memory that is not pinned: there is no driver to pin it."""
    return lambda *args, pin_memory=False, **kwargs: empty_like(*args, **kwargs)
