"""``device="cuda"`` served by the CPU, so that unmodified scripts for GPUs run without one.

``install`` waits for torch; once it is imported, and has no GPU, torch is patched: tensors "on cuda"
are CPU tensors whose memory is marked (`tensors`), and ``torch.cuda`` speaks of a GPU out of a table
(`gpus`, `api`). Where there is a GPU, or no torch, nothing is touched.

Why it is done by patching attributes:

- A global ``TorchFunctionMode`` would see every call and know every result's device. But each operator
  of every script pays for it, it is per thread, and it is off in whatever a torch function calls:
  ``device="cuda"`` in a ``backward`` that ``loss.backward()`` runs goes past it.
- Tensor subclasses, and a device with the dispatch key PrivateUse1, pay for each operator too, and
  their memory cannot be passed to a kernel as an address.
- Attributes of ``torch`` and ``torch.Tensor`` cost nothing where they are not called, hold in all
  threads and forked workers, and leave tensors what they are, so that copying, pickling, printing and
  optimizers need no care. With torch 2.15, with the machine to itself, a patched ``torch.empty`` takes
  0.6 us more, 1.6 us with a device; ``empty_like`` 0.9, ``clone`` 0.4, ``x.device`` 0.3, ``data_ptr``
  0.7; operators nothing. What is lost is the device of a result that C++ made; see `tensors` for what is
  assumed of it.
"""

import os
import sys

from ..imports import when_imported
from . import gpus

__all__ = ["gpu", "install"]

# The variable of the environment that asks for the CPU, by "cpu", where there is a GPU.
DEVICE = "NAIAD_DEVICE"

_installed = None
# What is to be done once torch is imported.
_asked = []


def gpu():
    """The GPU that is impersonated; None where none is."""
    return _installed


def install(name=None, tell=True, always=False):
    """Serves cuda by the CPU from here on, as the GPU of this name: see `gpus`.

    The first use is told on stderr, unless not to be told. Where there is a GPU nothing is done, unless it
    is to be done `always`, as for launches that are checked, which run on the CPU, or the environment asks for
    the CPU.
    """
    chosen = gpus.chosen(name)
    always = always or os.environ.get(DEVICE) == "cpu"
    if "torch" in sys.modules:
        _patch(chosen, tell, always)
    else:
        if not _asked:
            when_imported("torch", lambda: _patch(*_asked.pop()))
        # What was asked for last counts.
        _asked[:] = [(chosen, tell, always)]


def _has_gpu(torch):
    """Asked without a context on the device, which a process that forks must not have."""
    variable = "PYTORCH_NVML_BASED_CUDA_CHECK"
    before = os.environ.get(variable)
    os.environ[variable] = "1"
    try:
        return torch.cuda.is_available()
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def _patch(chosen, tell, always=False):
    global _installed
    import torch

    if _installed is not None:
        if chosen is not _installed:
            raise RuntimeError(f"`cuda` is {_installed.name} already in this process, and cannot become {chosen.name}")
        return
    if not always and _has_gpu(torch):
        return
    from . import api, legacy, precision, tensors

    _installed = chosen
    # Code that was compiled for cuda would not be for the tensors that come.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    tensors.patch()
    precision.patch()
    api.patch(chosen)
    legacy.patch()
    if tell:
        tensors._State.on_first_use = staticmethod(_tell)


def _tell():
    print(
        f"naiad: `cuda` is served by this machine's CPU, as one {_installed.name} "
        f"(`--gpu NAME` or {gpus.VARIABLE} names another)",
        file=sys.stderr,
    )
