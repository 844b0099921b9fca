"""Makes ``import triton`` mean Naiad."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types

# The version that `triton` says it has. Public code asks, and branches; Naiad follows the language
# as it was before 3.9 took block pointers out.
TRITON_VERSION = "3.8.0"


def install():
    """From here on `triton` and all below it are Naiad's modules. Doing so twice does nothing."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if "triton" in sys.modules:
        raise ImportError(
            "triton itself is already imported, so its place cannot be taken: call "
            "`naiad.alias.install()` before anything imports triton"
        )
    sys.meta_path.insert(0, _Finder())


# Parts of Triton that Naiad will not have, and what to do instead.
_REFUSED = {
    "triton.experimental": (
        "Gluon is not part of Naiad: its kernels spell out the layouts and pipelines of one GPU. Run kernels "
        "written in `triton.language`, and guard this import by `except ImportError` where both are kept"
    ),
    **dict.fromkeys(
        ("triton.profiler.viewer", "triton.profiler.language"),
        "There is no GPU for Proton to record: nothing can be shown of it, nor measured within kernels. Time "
        "launches by `triton.testing.do_bench`, or count them by `pytest --naiad --naiad-stats`, and guard "
        "this import by `except ImportError`",
    ),
}


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname == "triton":
            return importlib.machinery.ModuleSpec(fullname, _Top(), is_package=True)
        for refused, why in _REFUSED.items():
            if fullname == refused or fullname.startswith(refused + "."):
                raise ModuleNotFoundError(f"{why} (importing `{fullname}`)", name=fullname)
        if fullname.startswith("triton."):
            ours = "naiad" + fullname[len("triton") :]
            if _exists(ours):
                return importlib.machinery.ModuleSpec(fullname, _Below(ours), is_package=True)
        return None


def _exists(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class _Top(importlib.abc.Loader):
    """`triton` is a module of its own, since its version is not Naiad's."""

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        import naiad

        module.__doc__ = naiad.__doc__
        module.__all__ = naiad.__all__
        module.__version__ = TRITON_VERSION
        for name in naiad.__all__:
            value = getattr(naiad, name)
            # Submodules are set by their own import, which makes them known as `triton.x` too.
            if isinstance(value, types.ModuleType):
                importlib.import_module(f"triton.{name}")
            else:
                setattr(module, name, value)


class _Below(importlib.abc.Loader):
    """The modules below it are Naiad's own, under two names."""

    def __init__(self, ours):
        self.ours = ours

    def create_module(self, spec):
        self.module = importlib.import_module(self.ours)
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module):
        # The import system has written the other name's spec into the module.
        module.__spec__ = self.spec
