"""``triton.profiler`` (Proton), which asks a GPU what it does. Without one there is nothing to ask: code
that marks what is to be measured runs as it is, and a warning says that nothing is recorded.
"""

import contextlib
import warnings

from .errors import NaiadWarning

_SESSION = 0


def start(name=None, *, context="shadow", data="tree", backend=None, mode=None, hook=None):
    """Begins a session, in which nothing is recorded."""
    # Python shows it once for each line that starts a session.
    warnings.warn(
        "`triton.profiler` records nothing, for it is a GPU's: no file will be written. Time launches by "
        "`triton.testing.do_bench`, or count them by `pytest --naiad --naiad-stats`",
        NaiadWarning,
        stacklevel=2,
    )
    return _SESSION


def activate(session=None):
    pass


def deactivate(session=None, flushing=False):
    pass


def finalize(session=None, output_format=""):
    pass


def profile(func=None, *, name=None, **how):
    """Gives the function itself."""
    if func is None:
        return lambda func: profile(func, name=name, **how)
    start(name, **how)
    return func


class scope(contextlib.ContextDecorator):
    """A part of a program, to be measured under a name: as a context or as a decorator."""

    def __init__(self, name=None, metrics=None):
        self.name, self.metrics = name, metrics

    def __enter__(self):
        return enter_scope(self.name, metrics=self.metrics)

    def __exit__(self, *error):
        exit_scope(self.name)


cpu_timed_scope = state = scope


def enter_scope(name, *, triggered=True, metrics=None):
    return _SESSION


def exit_scope(name, *, triggered=True, metrics=None):
    return _SESSION
