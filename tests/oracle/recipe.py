"""Recipes by name: what dtype weights have, what autocast lowers to, and what adapters are made of.

| name | weights | autocast | adapters | a Trainer that |
| --- | --- | --- | --- | --- |
| amp-bf16 | fp32 | bf16 | | has bf16=True, on a model loaded in fp32 |
| amp-fp16 | fp32 | fp16, with a GradScaler | | has fp16=True, on a model loaded in fp32 |
| bf16 | bf16 | | | loads in bf16 and has no mixed precision |
| bf16-autocast | bf16 | bf16 | | has bf16=True, on a model loaded in bf16 |
| fp32 | fp32 | | | has neither |
| lora | bf16, frozen | bf16 | fp32 | has bf16=True and peft, on a model loaded in bf16 |
| lora-fp16 | fp16, frozen | fp16, with a GradScaler | fp32 | has fp16=True and peft, on a model loaded in fp16 |
| lora-fp32 | fp32, frozen | bf16 | fp32 | has bf16=True and peft, on a model loaded in fp32 |
| lora-bf16 | bf16, frozen | | bf16 | peft without autocast and without raised adapters |
| nf4, int8 | bf16, linear layers quantised, rest fp32, frozen | bf16 | fp32 | has bf16=True and peft, on a model loaded in bf16 and prepared by peft's `prepare_model_for_kbit_training` |
| nf4-fp16, int8-fp16 | the same from fp16 | fp16, with a GradScaler | fp32 | has fp16=True in its place |
| nf4-fp32, int8-fp32 | the same from fp32 | bf16 | fp32 | the same, on a model loaded in fp32 |
| nf4-bf16, int8-bf16 | bf16, linear layers quantised, frozen | | bf16 | peft without autocast, preparation or raised adapters |

Quantised bases: see `quantised`. Not here: fp16=True on a base in bf16, whose weights autocast would copy once more.
"""
import dataclasses

import guard  # noqa: F401  (before torch)
import torch


@dataclasses.dataclass(frozen=True)
class Recipe:
    weights: torch.dtype
    # What autocast lowers to; None where it is off.
    autocast: torch.dtype | None
    lora: bool = False
    # Adapters are fp32 whatever the base is.
    raise_adapters: bool = False
    # How the linear layers of the base are quantised.
    quant: str | None = None

    @property
    def scales_loss(self):
        """fp16 has too few exponents for small gradients, so Trainer scales the loss."""
        return self.autocast == torch.float16


BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
RECIPES = {
    "amp-bf16": Recipe(FP32, BF16),
    "amp-fp16": Recipe(FP32, FP16),
    "bf16": Recipe(BF16, None),
    "bf16-autocast": Recipe(BF16, BF16),
    "fp32": Recipe(FP32, None),
    "lora": Recipe(BF16, BF16, lora=True, raise_adapters=True),
    "lora-fp16": Recipe(FP16, FP16, lora=True, raise_adapters=True),
    "lora-fp32": Recipe(FP32, BF16, lora=True, raise_adapters=True),
    "lora-bf16": Recipe(BF16, None, lora=True),
}
for quant in ("nf4", "int8"):
    for suffix, like in [("", "lora"), ("-fp16", "lora-fp16"), ("-fp32", "lora-fp32"), ("-bf16", "lora-bf16")]:
        RECIPES[quant + suffix] = dataclasses.replace(RECIPES[like], quant=quant)


def named(name, weights=None):
    """The recipe of a name; `weights` = "fp32" loads a LoRA base in fp32."""
    return RECIPES["lora-fp32" if name == "lora" and weights == "fp32" else name]
