"""Processes that `multiprocessing` spawns run under Naiad where their parent does.

A spawned process is a new Python, to which the parent sends what it needs to begin with. Forked ones
need none of this.
"""

from . import _naiad, alias, cuda


def inherit(check, gpu):
    """From here on spawned processes begin as this one did."""
    import multiprocessing.spawn

    prepare = multiprocessing.spawn.get_preparation_data

    def get_preparation_data(name):
        # The process reads this before it imports the script, and reading it is what counts.
        return {**prepare(name), "naiad": _Begin(check, gpu)}

    multiprocessing.spawn.get_preparation_data = get_preparation_data


class _Begin:
    """What takes effect by being unpickled."""

    def __init__(self, check, gpu):
        self.state = check, gpu

    def __reduce__(self):
        return begin, self.state


def begin(check, gpu):
    alias.install()
    # The parent has told of it.
    cuda.install(gpu, tell=False, always=check)
    inherit(check, gpu)
    _naiad.configure(check, 0)
