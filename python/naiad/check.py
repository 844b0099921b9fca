"""Checked launches: what counts as uninitialized, and what becomes of what was found.

Under ``naiad run --check`` a launch with an error raises it and everything else is a warning. Under
``naiad check`` findings are printed, each once for its place, and the script goes on.
"""

import os
import sys
import warnings

from . import _naiad
from .errors import NaiadWarning, finding_of, from_finding
from .exposed import exposing
from .imports import when_imported

_SEVERITIES = ("note", "warning", "error")


class Collector:
    """Keeps what is found: of each kind and place the worst."""

    def __init__(self):
        self.launches = 0
        self.kernels = set()
        # By id, line and column.
        self._found = {}

    def launched(self, kernel, findings, failed):
        """Called for each checked launch. The fault of one that failed is the last finding."""
        self.launches += 1
        self.kernels.add(kernel)
        self.add(findings)

    def add(self, findings):
        for finding in findings:
            # Calls in one line are told apart, and what has no line by its words.
            key = (finding.id, finding.place or finding.human(), finding.column)
            before = self._found.get(key)
            if before is None or _worse(finding, before):
                self._found[key] = finding
                self._is_news(finding)

    def merge(self, other):
        """Takes over what another has found."""
        self.launches += other.launches
        self.kernels |= other.kernels
        self.add(other.found())

    def _is_news(self, finding):
        pass

    def found(self, *severities):
        """The findings, or those of some severities."""
        return [f for f in self._found.values() if not severities or f.severity in severities]

    def summary(self):
        """One line: what was checked and what was found."""
        counts = {s: len(self.found(s)) for s in reversed(_SEVERITIES)}
        parts = [_plural(n, severity) for severity, n in counts.items() if n]
        what = f"{_plural(self.launches, 'launch')} of {_plural(len(self.kernels), 'kernel')} checked"
        return f"naiad check: {what}: {', '.join(parts) if parts else 'nothing found'}"

    def exit_code(self, deny_warnings=False):
        return int(bool(self.found("error", "warning") if deny_warnings else self.found("error")))


class Printer(Collector):
    """Prints findings as they come. A SARIF log is one document, and is printed at the end."""

    def __init__(self, format="human", stream=None):
        super().__init__()
        self.format = format
        self.stream = stream

    def _is_news(self, finding):
        if self.format == "sarif":
            return
        text = {
            "human": lambda: finding.human().strip("\n") + "\n",
            "json": finding.json,
            "github": lambda: finding.github(os.getcwd()),
        }[self.format]()
        sys.stdout.flush()
        print(text, file=self.stream or sys.stderr)

    def close(self):
        """Prints what can be said only when all is known."""
        if self.format == "sarif":
            print(_naiad.sarif(self.found(), os.getcwd()), file=self.stream or sys.stderr)


def _worse(finding, other):
    return _SEVERITIES.index(finding.severity) > _SEVERITIES.index(other.severity)


def _plural(n, noun):
    ending = "es" if noun.endswith("ch") else "s"
    return f"{n} {noun}" if n == 1 else f"{n} {noun}{ending}"


# Who gets what is found; None raises and warns.
_collector = None
# What the last launch changed of what it had read: names of its parameters.
_updated = ()


def collect(collector):
    """From here on findings go to `collector`; gives the one before."""
    global _collector
    before, _collector = _collector, collector
    return before


if hasattr(os, "register_at_fork"):
    # A collector is asked in its own process; in others errors are raised, as in processes that are spawned.
    os.register_at_fork(after_in_child=lambda: collect(None))


def is_active():
    return _naiad.is_checked()


def launched(kernel, findings, updated, failed):
    """Called for each checked launch, by its executor. The fault of a failed one is the last finding, and is
    raised by whoever called."""
    global _updated
    _updated = tuple(updated)
    if _collector is not None:
        _collector.launched(kernel, findings, failed)
        return
    raised = None
    for finding in findings[:-1] if failed else findings:
        if finding.severity == "error" and raised is None:
            raised = from_finding(finding)
        else:
            warnings.warn(NaiadWarning("\n" + finding.human(), finding.id), stacklevel=4)
    # What ended the launch comes after what was found before it.
    if raised is not None and not failed:
        raise raised


def found(kernel, id, message, notes=(), help=()):
    """A finding of the Python side, about a jit function."""
    finding = kernel._kernel.finding(id, message, list(notes), list(help))
    if finding is None:
        return
    if _collector is not None:
        _collector.add([finding])
    else:
        warnings.warn(NaiadWarning("\n" + finding.human(), id), stacklevel=3)


def collected(error):
    """Gives what an exception was made of to the collector, where there is one and it has not had it. Says
    whether it has now."""
    finding = finding_of(error)
    if _collector is None or finding is None:
        return False
    _collector.add([finding])
    return True


def is_for_people():
    """Whether what is printed is read by people, and not by a program."""
    return getattr(_collector, "format", "human") == "human"


def changed_by_last_launch():
    """Names of the parameters that the last launch changed after it had read them."""
    return _updated


# Memory -------------------------------------------------------------------------------------------


def _extent(x):
    """Address and bytes of the memory of an array or tensor; None where it is not the CPU's."""
    if hasattr(x, "untyped_storage"):
        storage = x.untyped_storage()
        if getattr(storage, "device", x.device).type != "cpu" or not x.is_contiguous():
            return None
        return x.data_ptr(), x.numel() * x.element_size()
    interface = getattr(x, "__array_interface__", None)
    if interface is None or interface.get("strides") is not None:
        return None
    address, read_only = interface["data"]
    return None if read_only else (address, x.nbytes)


def uninitialized(x):
    """Has all of a contiguous tensor count as uninitialized, and fills it with arbitrary bits. Gives it."""
    extent = _extent(x)
    if extent is None:
        raise ValueError("only a contiguous tensor of this machine's memory, that may be written, can be uninitialized")
    _naiad.mark_uninitialized(*extent)
    return x


def initialized(x):
    """Has a tensor count as written, whatever is in it. Gives it."""
    extent = _extent(x)
    if extent is None:
        raise ValueError("only a contiguous tensor of this machine's memory can be marked")
    _naiad.mark_initialized(*extent)
    return x


def _marking(make):
    """`make` with what it gives marked as uninitialized."""

    def made(*args, **kwargs):
        x = make(*args, **kwargs)
        extent = _extent(x) if type(x).__name__ in ("ndarray", "Tensor") and not _is_object(x) else None
        if extent is not None and extent[1] > 0:
            _naiad.mark_uninitialized(*extent)
        return x

    made.__name__ = getattr(make, "__name__", "empty")
    made.__doc__ = make.__doc__
    made._naiad_makes = make
    return made


def _is_object(x):
    # Elements that are references must stay what they are.
    return getattr(x.dtype, "hasobject", False)


_NUMPY = ("empty", "empty_like")
_TORCH = ("empty", "empty_like", "empty_strided")
_TENSOR = ("new_empty",)


def watch_memory():
    """From here on memory that NumPy and torch make uninitialized counts as such."""
    _patch("numpy", "", _NUMPY)
    _patch("torch", "", _TORCH)
    _patch("torch", "Tensor", _TENSOR)
    _patch("torch", "Tensor", ("data_ptr",), exposing)


def _patch(module, part, names, wrap=_marking):
    if module not in sys.modules:
        when_imported(module, lambda: _patch(module, part, names, wrap))
        return
    holder = sys.modules[module]
    holder = getattr(holder, part) if part else holder
    for name in names:
        make = getattr(holder, name, None)
        if make is not None and not hasattr(make, "_naiad_makes"):
            setattr(holder, name, wrap(make))
