"""Exceptions, and which of them a diagnostic is raised as.

Each has ``.diagnostic``: the message, its places and its help as a dictionary of plain values.
``str`` of it is the same, drawn as on a terminal.
"""

import json
import warnings
import weakref


class TritonError(Exception):
    """What Naiad raises about a kernel or its launch."""

    def __init__(self, text="", diagnostic=None):
        super().__init__(text)
        self.diagnostic = diagnostic


class CompilationError(TritonError):
    """The kernel cannot be compiled."""

    @property
    def error_message(self):
        """The message alone, without its places."""
        return self.diagnostic["message"] if self.diagnostic else str(self)


class CompileTimeAssertionFailure(CompilationError):
    """``tl.static_assert`` failed."""


class UnsupportedLanguageConstruct(CompilationError):
    """A part of Python that kernels cannot contain."""


class LaunchError(TritonError, TypeError):
    """Arguments or grid do not fit the kernel."""


class IntegerTooLargeError(LaunchError, OverflowError):
    """An integer has more bits than any type of kernels."""


class KernelError(TritonError, RuntimeError):
    """The kernel did something wrong while it ran."""


class OutOfBoundsError(KernelError):
    """An access outside the memory of the launch's arguments, or outside a tensor's view."""


class DeadlockError(KernelError):
    """Programs wait for one another forever."""


class DeviceAssertError(KernelError, AssertionError):
    """``tl.device_assert`` failed."""


class InternalError(TritonError, RuntimeError):
    """A bug of Naiad: please report it."""


class NaiadWarning(UserWarning):
    """A finding that does not stop a launch."""

    def __init__(self, text="", id=None):
        super().__init__(text)
        self.id = id


_CLASSES = {
    "static-assert": CompileTimeAssertionFailure,
    "unsupported-python": UnsupportedLanguageConstruct,
    "bad-launch": LaunchError,
    "bad-grid": LaunchError,
    "out-of-bounds": OutOfBoundsError,
    "outside-view": OutOfBoundsError,
    "misaligned": KernelError,
    "deadlock": DeadlockError,
    "device-assert": DeviceAssertError,
    **dict.fromkeys(
        (
            "padding-reduced",
            "undefined-reduced",
            "undefined-used",
            "uninitialized-read",
            "race",
            "narrow-scope",
            "wrapped-offset",
            "zero-divisor",
            "false-assume",
        ),
        KernelError,
    ),
    "interrupted": KernelError,
    "out-of-memory": KernelError,
    "internal": InternalError,
    "ir-syntax": InternalError,
}


# What exceptions were made of. Not in them: exceptions may go to other processes, and findings cannot.
_findings = weakref.WeakKeyDictionary()


def from_finding(finding):
    """The exception for a finding."""
    facts = json.loads(finding.json())
    # Whatever else there is concerns the kernel's source.
    found = _CLASSES.get(finding.id, CompilationError)
    if found is LaunchError and facts["message"].endswith(_TOO_LARGE):
        found = IntegerTooLargeError
    error = found("\n" + finding.human(), facts)
    _findings[error] = finding
    return error


def finding_of(error):
    """The finding that an exception was made of; none if of none."""
    return _findings.get(error)


# How the front end says so; Python has a class for just this.
_TOO_LARGE = "it has more than 64 bits"


def warn(id, text):
    warnings.warn(NaiadWarning("\n" + text, id), stacklevel=4)
