#!/bin/sh
# Measures training steps on fake tensors (see step.py), in a virtual environment of its own. Without arguments some
# published rows are measured again; arguments are those of rows.py: `sh tests/oracle/run.sh measure config.json`.
# ORACLE_PYTHON names a Python that has the packages already.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
. "$here/../../.ci/lib.sh"
# lib.sh takes the folder above the script that sources it.
ROOT=$(CDPATH= cd -- "$here/../.." && pwd)
cd "$ROOT" || exit 1
python=${ORACLE_PYTHON:-}
if [ -z "$python" ]; then
  apt_need g++ g++ || exit 1
  python=$ROOT/.cache/oracle/venv/bin/python
  # PyTorch's own index has the builds without CUDA, and is asked for that one package alone.
  venv_need "$ROOT/.cache/oracle/venv" "importlib.metadata; importlib.metadata.version('torch')" \
    torch==2.13.0+cpu --no-deps --retries 2 --index-url https://download.pytorch.org/whl/cpu || exit 1
  if ! "$python" -c "import torch, transformers, peft, bitsandbytes" 2>/dev/null; then
    say "installing transformers, peft and bitsandbytes into .cache/oracle/venv"
    "$python" -m pip install -q --disable-pip-version-check transformers==5.24.0 peft==0.21.0 \
      bitsandbytes==0.50.2 numpy || exit 1
  fi
fi
[ $# -gt 0 ] || set -- check
exec "$python" tests/oracle/rows.py "$@"
