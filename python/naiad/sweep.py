"""Sizes and layouts that break kernels: ``naiad.testing.sweep``.

::

    @naiad.testing.sweep("m n", "n", block=64)
    def bias(x, b):
        np.testing.assert_allclose(add_bias(x, b), x + b)

The function gets an array for each description; axes of one name have one extent. It is called for
extents around the block, primes, 1 and 0, and for layouts that are not contiguous. A case fails if the
function raises, or if a launch in it has an error under ``naiad check``. The smallest that fails is
shown.
"""

import itertools
import math
import sys
import traceback

from . import _naiad, check

_registered = []

# By name: how an array of a shape is cut out of a larger one. What is beside it is NaN, or the largest
# number that an integer type has.
LAYOUTS = ("contiguous", "padded", "offset", "transposed")


def registered():
    """The sweeps of the script that is being run."""
    return _registered


def sweep(*arrays, block=1024, dtype="float32", sizes=None, layouts=LAYOUTS, library="numpy", seed=0):
    """A function's decorator. ``arrays`` describe its arguments by the names of their axes; ``block`` is
    the kernel's block size, or several; ``sizes`` replaces the extents that are tried."""
    unknown = [x for x in layouts if x not in LAYOUTS]
    if unknown:
        raise ValueError(f"no layout is called {unknown[0]!r}: there are {', '.join(LAYOUTS)}")
    if library not in ("numpy", "torch"):
        raise ValueError(f"`library` is 'numpy' or 'torch', not {library!r}")
    blocks = [block] if isinstance(block, int) else list(block)
    tried = _sizes(blocks) if sizes is None else sorted(set(sizes))

    def register(fn):
        made = Sweep(fn, [a.split() for a in arrays], tried, layouts, dtype, library, seed)
        _registered.append(made)
        return made

    return register


def _sizes(blocks):
    around = {n for b in blocks for n in (b - 1, b, b + 1, 2 * b + 3)}
    return sorted({0, 1, 7, 31, *around})


class Case:
    """Extents by the names of axes, and a layout."""

    def __init__(self, extents, layout):
        self.extents = extents
        self.layout = layout

    def __str__(self):
        sizes = ", ".join(f"{name} = {n}" for name, n in self.extents.items())
        return f"{sizes} ({self.layout})"


class Sweep:
    """A function with the cases that it is tried on; can still be called."""

    def __init__(self, fn, arrays, sizes, layouts, dtype, library, seed):
        self.fn = fn
        self.arrays = arrays
        self.sizes = sizes
        self.layouts = layouts
        self.dtype = dtype
        self.library = library
        self.seed = seed
        self.__name__ = getattr(fn, "__name__", "sweep")

    def __call__(self, *args, **kwargs):
        return self.fn(*args, **kwargs)

    def cases(self):
        """All cases, the smallest first; of one size the plainest layout first."""
        names = list(dict.fromkeys(name for axes in self.arrays for name in axes))
        chosen = []
        # Every size along one axis, with the others at each of a few.
        few = sorted({self.sizes[0], 1, *self.sizes[len(self.sizes) // 2 :][:1], self.sizes[-1]})
        for name in names:
            for n in self.sizes:
                rest = [few if other != name else [n] for other in names]
                chosen += itertools.product(*rest)
        all_cases = []
        for extents in dict.fromkeys(chosen):
            extents = dict(zip(names, extents))
            all_cases += [Case(extents, layout) for layout in self.layouts if self._differs(extents, layout)]

        def weight(case):
            elements = sum(math.prod(case.extents[n] for n in axes) for axes in self.arrays)
            return elements, sum(case.extents.values()), LAYOUTS.index(case.layout)

        return sorted(all_cases, key=weight)

    def _differs(self, extents, layout):
        shapes = [[extents[n] for n in axes] for axes in self.arrays]
        if layout == "contiguous":
            return True
        if any(0 in shape for shape in shapes):
            return False
        if layout == "padded":
            return any(len(shape) > 1 for shape in shapes)
        if layout == "transposed":
            return any(len(shape) > 1 and shape[-1] > 1 and shape[-2] > 1 for shape in shapes)
        return True

    def make(self, case):
        """The arrays of a case."""
        import numpy as np

        rng = np.random.default_rng(self.seed)
        return [self._array([case.extents[n] for n in axes], case.layout, rng) for axes in self.arrays]

    def _array(self, shape, layout, rng):
        import numpy as np

        dtype = np.dtype(self.dtype)
        around = np.nan if dtype.kind == "f" else np.iinfo(dtype).max if dtype.kind in "iu" else True
        base, cut = list(shape), tuple(slice(0, n) for n in shape)
        if layout == "padded" and len(shape) > 1:
            base[-1] += 3
        if layout == "offset":
            base = [n + 2 for n in base]
            cut = tuple(slice(1, 1 + n) for n in shape)
        turned = layout == "transposed" and len(shape) > 1
        if turned:
            base[-1], base[-2] = base[-2], base[-1]
            cut = (*cut[:-2], cut[-1], cut[-2])
        values = rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, 2 if dtype.kind == "b" else 100, shape)
        whole = np.full(base, around, dtype)
        view = whole[cut]
        view = np.swapaxes(view, -1, -2) if turned else view
        view[...] = values.astype(dtype)
        if self.library == "numpy":
            return view
        import torch

        # The same memory: strides of NumPy's are torch's.
        return torch.from_numpy(whole).as_strided(
            view.shape,
            [s // view.itemsize for s in view.strides],
            (view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // view.itemsize,
        )

    def run(self, collector=None):
        """Runs the cases up to the first that fails, and shows that. Says whether none does."""
        # A log for tools has no room for prose.
        stream = collector.stream if collector is not None and collector.format == "human" else None
        stream = stream or sys.stderr
        total = self.cases()
        was = check.is_active()
        _naiad.configure(True, 0)
        try:
            for done, case in enumerate(total):
                found = check.Collector()
                failure = self._try(case, found)
                if failure is not None:
                    print(f"sweep `{self.__name__}` fails, the smallest at {case}: {failure}", file=stream)
                    print(f"  {done} of {len(total)} cases came before it, and all passed", file=stream)
                    if collector is not None:
                        collector.merge(found)
                    return False
                if collector is not None:
                    # What passes is not reported, only counted.
                    collector.launches += found.launches
                    collector.kernels |= found.kernels
        finally:
            _naiad.configure(was, 0)
        print(f"sweep `{self.__name__}`: {len(total)} cases pass", file=stream)
        return True

    def _try(self, case, found):
        before = check.collect(found)
        try:
            self.fn(*self.make(case))
        except Exception as e:
            lines = traceback.format_exception_only(type(e), e)
            words = [line.strip() for line in "".join(lines).splitlines() if line.strip()]
            # What NumPy asserts has its first words on a line of their own.
            return " ".join(words[: 2 if words[0].endswith(":") else 1])
        finally:
            check.collect(before)
        errors = found.found("error")
        return f"a launch has an error ({errors[0].id})" if errors else None
