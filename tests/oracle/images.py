"""One image a sample, for models with a tower of images beside their text model.

`inputs` makes what a processor hands to such a model: token ids of full length of which some stand for the image, the
image's pixels, and its size where a model takes it. What the model would read of tensors without data is answered by
`changes`: where the image's tokens stand, how an image is cut into windows, its positions.

Measured: the tower, its projector and the text model as transformers runs them, the image as large as the tower's own
size, or of 48 x 48 patches where a tower takes any size (fewer where the sample has no room for them).
Not measured: the check that there are as many tokens as features, which looks them up once at the begin of forward;
images cut into more tiles; videos.
"""
import math

import guard  # noqa: F401  (before torch)
import torch

QWEN = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe")
SUPPORTED = (*QWEN, "gemma3", "paligemma", "llava", "llava_next", "idefics3", "smolvlm", "llama4")
# Patches to a side of an image, for towers that take any.
ANY_SIDE = 48


class Numbers:
    """Whole numbers that a model reads of a tensor."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, at):
        return Numbers(self.rows[at])

    def __sub__(self, other):
        return Numbers([a - b for a, b in zip(self.rows, other.rows)])

    def __floordiv__(self, number):
        return Numbers([row // number for row in self.rows])

    def prod(self, dim):
        return Numbers([math.prod(row) for row in self.rows])

    def tolist(self):
        return self.rows


def ends(lengths):
    total, found = 0, [0]
    for length in lengths:
        total += length
        found.append(total)
    return Numbers(found)


def side_of(config, length):
    """Patches to a side of the image, of a tower that takes any."""
    merge = config.vision_config.spatial_merge_size
    return min(ANY_SIDE // merge, math.isqrt(length)) * merge


def tokens_of(config, length):
    """Tokens that stand for a sample's image."""
    vision = config.vision_config
    kind = config.model_type
    if kind in QWEN:
        return (side_of(config, length) // vision.spatial_merge_size) ** 2
    side = vision.image_size // vision.patch_size
    if kind == "gemma3":
        return config.mm_tokens_per_image
    if kind in ("idefics3", "smolvlm"):
        return side**2 // config.scale_factor**2
    if kind == "llama4":
        return int(side**2 * vision.pixel_shuffle_ratio**2)
    if kind == "llava_next":
        # The image as a whole, and once more with a line's end after each row.
        return 2 * side**2 + side
    full = kind == "llava" and config.vision_feature_select_strategy == "full"
    return side**2 + (1 if full else 0)


def inputs(config, batch, length, mask):
    """Inputs of a batch, or None where the image has no room in a sample. Call under the device they shall be on."""
    def whole(*shape):
        return torch.zeros(*shape, dtype=torch.int64)

    vision, kind = config.vision_config, config.model_type
    if tokens_of(config, length) > length:
        raise ValueError("an image has more tokens than a sample")
    made = {"input_ids": whole(batch, length), "labels": whole(batch, length)}
    if mask:
        made["attention_mask"] = torch.ones(batch, length, dtype=torch.int64)
    if kind in QWEN:
        side = side_of(config, length)
        pixels = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
        made["pixel_values"] = torch.zeros(batch * side**2, pixels)
        made["image_grid_thw"] = Numbers([[1, side, side]] * batch)
        made["mm_token_type_ids"] = torch.zeros(batch, length, dtype=torch.int32)
        return made
    channels = getattr(vision, "num_channels", 3)
    tiles = {"llava_next": [3], "idefics3": [1], "smolvlm": [1]}.get(kind, [])
    made["pixel_values"] = torch.zeros(batch, *tiles, channels, vision.image_size, vision.image_size)
    if kind == "llava_next":
        made["image_sizes"] = [[vision.image_size, vision.image_size]] * batch
    if kind in ("gemma3", "paligemma"):
        # It tells the image's tokens from the text's; with it they attend to each other both ways.
        made["token_type_ids"] = whole(batch, length)
    return made


def fed(value):
    return not isinstance(value, (Numbers, list))


def changes(config, length):
    """(owner, name, value) of what reads values, with what is read."""
    import importlib

    kind = config.model_type
    module = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    found = [(module, "torch_compilable_check", lambda *args, **kwargs: None)]
    if kind in QWEN:
        found += of_qwen(module, config, length)
    if kind == "llama4":
        # 5.24 asks its text model's output for a field that it does not have, and so never returns.
        from transformers.modeling_outputs import MoeCausalLMOutputWithPast

        MoeCausalLMOutputWithPast.image_outputs = None
    if kind in ("idefics3", "smolvlm"):
        import transformers.masking_utils as masking

        found.append((model_class(module), "get_image_features", idefics_features))
        # The image fills its tile, which a look at the mask would find.
        found.append((masking, "_ignore_bidirectional_mask_sdpa", lambda *args, **kwargs: True))
    return found


def model_class(module):
    names = [name for name in dir(module) if name.endswith("Model") and hasattr(getattr(module, name), "get_placeholder_mask")]
    names += [name for name in dir(module) if name in ("Idefics3Model", "SmolVLMModel")]
    return getattr(module, names[0])


def idefics_features(self, pixel_values, pixel_attention_mask=None, **kwargs):
    """Of `Idefics3Model`, no image being padding."""
    kwargs.pop("return_dict", None)
    batch, images = pixel_values.shape[:2]
    pixels = pixel_values.to(dtype=self.dtype).view(batch * images, *pixel_values.shape[2:])
    pixels = pixels[torch.zeros(batch * images, dtype=torch.int64, device=pixels.device)].contiguous()
    shape = (pixels.size(0), pixels.size(2), pixels.size(3))
    mask = torch.ones(size=shape, dtype=torch.bool, device=pixels.device)
    patch = self.config.vision_config.patch_size
    grid = mask.unfold(dimension=1, size=patch, step=patch).unfold(dimension=2, size=patch, step=patch)
    patch_mask = (grid.sum(dim=(-1, -2)) > 0).bool()
    outputs = self.vision_model(pixel_values=pixels, patch_attention_mask=patch_mask, return_dict=True, **kwargs)
    features = self.connector(outputs.last_hidden_state)
    outputs.pooler_output = [one.reshape(-1, one.shape[-1]) for one in features.split([images] * batch)]
    return outputs


def of_qwen(module, config, length):
    vision = config.vision_config
    merge = vision.spatial_merge_size
    side = side_of(config, length)
    device = "cuda"

    def seqlens(grid, *args, **kwargs):
        return ends([side**2] * len(grid.rows)), side**2

    def positions(grid, *args, **kwargs):
        return torch.zeros(len(grid.rows) * side**2, 2, dtype=torch.int64, device=device)

    def taps(grid, *args, **kwargs):
        rows = len(grid.rows) * side**2
        return torch.zeros(rows, 4, dtype=torch.int64, device=device), torch.zeros(rows, 4, device=device)

    def windows(grid, *args, **kwargs):
        merged = side // merge
        across = vision.window_size // merge // vision.patch_size
        cuts = [min(across, merged - at) for at in range(0, merged, across)]
        one = [a * b * merge**2 for a in cuts for b in cuts]
        index = torch.zeros(len(grid.rows) * merged**2, dtype=torch.int64, device=device)
        return index, ends(one * len(grid.rows))

    def three_axes(self, input_ids, inputs_embeds, **kwargs):
        return torch.zeros(3, *inputs_embeds.shape[:2], dtype=torch.int64, device=device)

    def deepstack(self, hidden, places, features):
        features = features.to(hidden.device, hidden.dtype)
        hidden = hidden.clone()
        count = features.shape[0]
        at = tuple(torch.zeros(count, dtype=torch.int64, device=device) for _ in range(2))
        local = hidden[at] + features
        hidden[at] = local
        return hidden

    found = [(module, "get_vision_attention_seqlens", seqlens), (module, "get_vision_position_ids", positions)]
    for name, value in [("get_vision_interpolation_indices_and_weights", taps), ("get_vision_window_index", windows),
                        ("get_max_seqlen", lambda *args, **kwargs: side**2)]:
        if hasattr(module, name):
            found.append((module, name, value))
    found.append((model_class(module), "compute_3d_position_ids", three_axes))
    for name in dir(module):
        if hasattr(getattr(module, name), "_deepstack_process"):
            found.append((getattr(module, name), "_deepstack_process", deepstack))
    return found
