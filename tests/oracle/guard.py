"""The device that steps are measured on: `cuda:0` without a GPU and without CUDA.

Importing this module compiles `guard.cpp` with g++ once a PyTorch version (into `.cache/oracle`, or where
`ORACLE_BUILD_DIR` says) and loads it before PyTorch, which looks its hooks up once. Then it answers three questions
that PyTorch would put to the driver: autocast exists, bf16 exists, the card is of compute capability 9.0.

Measured: nothing here. Not measured, since no driver is there: the CUDA context (0.3 to 0.6 GB a process) and what
the driver and cuBLAS keep for themselves.
"""
import ctypes
import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import pathlib
import subprocess
import sys
import warnings

SOURCE = pathlib.Path(__file__).with_name("guard.cpp")


def library():
    """The path of the compiled guard; compiles it where it is missing."""
    folder = pathlib.Path(os.environ.get("ORACLE_BUILD_DIR") or SOURCE.parents[2] / ".cache" / "oracle")
    made_of = SOURCE.read_bytes() + importlib.metadata.version("torch").encode()
    built = folder / f"guard-{hashlib.sha256(made_of).hexdigest()[:16]}.so"
    if built.exists():
        return built
    folder.mkdir(parents=True, exist_ok=True)
    torch_folder = pathlib.Path(importlib.util.find_spec("torch").origin).parent
    # Another process may compile at the same time; the last one to finish puts the same file in place.
    part = built.with_suffix(f".{os.getpid()}")
    subprocess.run(
        ["g++", "-O1", "-std=c++20", "-shared", "-fPIC", f"-I{torch_folder / 'include'}", str(SOURCE), "-o", str(part),
         f"-L{torch_folder / 'lib'}", f"-Wl,-rpath,{torch_folder / 'lib'}", "-lc10", "-ltorch_cpu"],
        check=True,
    )
    part.replace(built)
    return built


if "torch" in sys.modules:
    raise ImportError("The guard has to be imported before torch.")
ctypes.CDLL(str(library()))
# No model is ever downloaded; configs are files.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")
# peft imports bitsandbytes where it is, which says that there is no CUDA, and of each 8-bit layer that it casts inputs.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

import torch  # noqa: E402
import torch.cuda.amp.common  # noqa: E402

torch.cuda.amp.common.amp_definitely_not_available = lambda: False
torch.cuda.is_bf16_supported = lambda *args, **kwargs: True
torch.cuda.get_device_capability = lambda *args, **kwargs: (9, 0)
