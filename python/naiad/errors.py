"""Exceptions, and which of them a diagnostic is raised as.

Each has ``.diagnostic``: the message, its places and its help as a dictionary of plain values.
``str`` of it is the same, drawn as on a terminal.
"""

import json
import re
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


class GpuError(KernelError):
    """A GPU cannot be used, or a launch on it went wrong."""


class OutOfResources(TritonError):
    """A kernel needs more of something than the device has. Tuners pass such a configuration over."""

    def __init__(self, required=None, limit=None, name=None, text=None, diagnostic=None):
        text = text or (
            f"out of resource: {name}, required: {required}, limit: {limit}. "
            "Smaller block sizes or fewer `num_stages` may help."
        )
        super().__init__(text, diagnostic)
        self.required, self.limit, self.name = required, limit, name

    def __reduce__(self):
        # A tuner's workers send it on.
        return type(self), (self.required, self.limit, self.name, str(self), self.diagnostic)


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
    "gpu": GpuError,
    "internal": InternalError,
    "ir-syntax": InternalError,
}


# What exceptions were made of. Not in them: exceptions may go to other processes, and findings cannot.
_findings = weakref.WeakKeyDictionary()


def from_finding(finding):
    """The exception for a finding."""
    facts = json.loads(finding.json())
    # Whatever else there is concerns the kernel's source.
    text = "\n" + finding.human()
    if finding.id == "out-of-resources":
        error = OutOfResources(*_resource(facts), text, facts)
    else:
        found = _CLASSES.get(finding.id, CompilationError)
        if found is LaunchError and facts["message"].endswith(_TOO_LARGE):
            found = IntegerTooLargeError
        error = found(text, facts)
    _findings[error] = finding
    return error


def finding_of(error):
    """The finding that an exception was made of; none if of none."""
    return _findings.get(error)


def _resource(facts):
    """What is required, what there is, and of what, as a note says it."""
    for note in facts.get("notes", ()):
        found = re.match(r"out of resource: (.+), required: (\d+), limit: (\d+)", str(note))
        if found:
            return int(found[2]), int(found[3]), found[1]
    return None, None, None


# How the front end says so; Python has a class for just this.
_TOO_LARGE = "it has more than 64 bits"


def warn(id, text):
    warnings.warn(NaiadWarning("\n" + text, id), stacklevel=4)
