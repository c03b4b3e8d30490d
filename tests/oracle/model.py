"""The model, its adapters and its inputs, from the classes that users train.

Measured: weights and buffers as transformers 5.24 makes them of a config, adapters as peft 0.21 adds them, and inputs
of full length: token ids with as many labels (an image or a sound where the model takes one, see `images` for those
that take both).

Not measured, and what stands for it: values do not exist, so weights stay uninitialised, samples are full and
unpacked, and under `padding_mask` a mask of ones is taken for one that hides something. Experts get equal shares of
the tokens. Loading a checkpoint is no part of a step.
"""
import contextlib
import json

import guard  # noqa: F401  (before torch)
import peft  # here, since some of its modules make tensors when they are imported, which are no part of a step
import torch

import images
import kernels
import standins

# What "attn" adapts: the projections into and out of attention, under the names that families give them.
ATTENTION_NAMES = [
    "q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj", "query_key_value", "c_attn", "query", "key", "value", "out_proj",
    "wqkv", "wo", "q", "k", "v", "o", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj",
]


def load_config(path):
    """The config object of a config.json and the model class that it names, or the class for causal language."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    with open(path) as file:
        raw = {key: value for key, value in json.load(file).items() if not key.startswith("_")}
    standing_in = standins.config_of(raw)
    if standing_in is not None:
        return standing_in
    config = CONFIG_MAPPING[raw["model_type"]].from_dict(raw)
    named = getattr(transformers, (raw.get("architectures") or [""])[0], None)
    return config, named or transformers.AutoModelForCausalLM._model_mapping[type(config)]


def family(cls, config):
    """What kind of inputs a class takes."""
    if config.model_type == "whisper":
        return "whisper"
    if config.model_type in images.SUPPORTED and hasattr(config, "vision_config"):
        return "text-and-image"
    for part, kind in [("ImageClassification", "image"), ("MaskedLM", "mlm"), ("SequenceClassification", "cls")]:
        if part in cls.__name__:
            return kind
    return "seq2seq" if getattr(config, "is_encoder_decoder", False) else "causal"


def make_inputs(kind, config, batch, length, mask):
    """Inputs of a batch. Call under the device they shall be on."""
    def whole(*shape):
        return torch.zeros(*shape, dtype=torch.int64)

    if kind == "text-and-image":
        return images.inputs(config, batch, length, mask)
    if kind == "image":
        pixels = torch.zeros(batch, config.num_channels, config.image_size, config.image_size)
        return {"pixel_values": pixels, "labels": whole(batch)}
    if kind == "whisper":
        frames = torch.zeros(batch, config.num_mel_bins, 2 * config.max_source_positions)
        return {"input_features": frames, "labels": whole(batch, min(length, config.max_target_positions))}
    inputs = {"input_ids": whole(batch, length), "labels": whole(batch) if kind == "cls" else whole(batch, length)}
    if mask:
        inputs["attention_mask"] = torch.ones(batch, length, dtype=torch.int64)
    return inputs


def build(config, cls, dtype, attention):
    """A model with weights of `dtype` whose attention is computed by `sdpa`, `flash` or `eager`."""
    flash = attention == "flash"
    # Without an sdpa form transformers falls back to eager when nothing is asked (soft-capped scores, say).
    unable = attention == "sdpa" and not getattr(cls, "_supports_sdpa", True)
    model = cls._from_config(config, dtype=dtype, attn_implementation="eager" if flash or unable else attention)
    if flash:
        _set_attention(model, "measured_flash")
    return model


def _set_attention(model, name):
    """Sets an attention function on the configs; not every family lets one choose a name it does not know."""
    for module in model.modules():
        config = getattr(module, "config", None)
        for part in (None, "text_config", "encoder", "decoder"):
            one = config if part is None else getattr(config, part, None)
            if hasattr(one, "_attn_implementation_internal"):
                one._attn_implementation_internal = name


def trainable_of(model):
    """The trained parameters, each once."""
    return [p for p in {id(p): p for p in model.parameters()}.values() if p.requires_grad]


def lora_targets(model, spec):
    """Names of the modules that adapters go to: `attn`, `all-linear`, or names with commas."""
    if spec == "all-linear":
        return spec
    if spec != "attn":
        return spec.split(",")
    present = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    return [name for name in ATTENTION_NAMES if name in present]


def adapted(model, rank, targets, raise_adapters, dtype=None, dropout=0.0):
    """The model with LoRA; adapters in fp32 where `raise_adapters`, else as the base, or in `dtype` where the base has
    none of its own since it is quantised; `dropout` is that of the adapters' inputs."""
    adapters = peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=dropout, target_modules=targets, init_lora_weights=False)
    model = peft.get_peft_model(model, adapters, autocast_adapter_dtype=raise_adapters)
    if dtype is not None and not raise_adapters:
        for parameter in trainable_of(model):
            parameter.data = parameter.data.to(dtype)
    return model


def _apply_in_place(self, convert, recurse=True):
    """`Module._apply` that binds new parameters; the original swaps contents, which fake tensors do not allow."""
    for module in self.modules():
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            with torch.no_grad():
                converted = convert(parameter)
            if converted is not parameter:
                module._parameters[name] = torch.nn.Parameter(converted, requires_grad=parameter.requires_grad)
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else convert(buffer)
    return self


def _ties_only(self, *args, **kwargs):
    """Initialisation writes values; only the ties that it makes matter."""
    if hasattr(self, "tie_weights"):
        self.tie_weights()


@contextlib.contextmanager
def transformers_without_values(padding_mask, more=()):
    """transformers for tensors without values: what it would read of them is answered as the module says, and by `more`.
    Functions that the caller replaced beforehand stay as they are."""
    import transformers.integrations.moe as moe
    import transformers.masking_utils as masking
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, PreTrainedModel

    kernels.install()
    ALL_ATTENTION_FUNCTIONS.register("measured_flash", kernels.flash_library)
    ALL_MASK_ATTENTION_FUNCTIONS.register("measured_flash", ALL_MASK_ATTENTION_FUNCTIONS["flash_attention_2"])
    changes = [
        (PreTrainedModel, "init_weights", _ties_only),
        (torch.nn.Module, "_apply", _apply_in_place),
        (masking, "find_packed_sequence_indices", lambda position_ids: None),
        # CUDA's grouped product takes bf16 at once and anything else expert by expert; without values the latter
        # cannot run, so transformers' own operator stands for it: as much with trained experts, and the gradient of
        # a frozen expert too much (LoRA on a base in fp32 or fp16).
        (moe, "_can_use_grouped_mm", lambda x, weight, offsets: weight.dtype == torch.bfloat16),
    ]
    changes += more
    if padding_mask:
        changes.append((masking, "_ignore_causal_mask_sdpa", lambda *args, **kwargs: False))
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
