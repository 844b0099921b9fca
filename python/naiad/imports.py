"""Calls when a module has been imported: what is patched into NumPy and torch waits for whoever imports them."""

import importlib.abc
import importlib.util
import sys
import threading

_waiting = {}


def when_imported(module, action):
    """Calls `action` once the module, which is not there yet, has been imported; several in their order."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    _waiting.setdefault(module, []).append(action)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: has what others find loaded by a loader that calls back. Much code asks where a module
    is and imports it later, or never."""

    def __init__(self):
        self.asking = threading.local()

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in _waiting or getattr(self.asking, "others", False):
            return None
        self.asking.others = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.asking.others = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads a module as its own loader does, and then calls back. Its own may load others too, as pytest's does, so
    nothing is put into it."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        # What else is asked of it; a copy that is being made has no loader yet.
        return getattr(self.__dict__["loader"], name) if "loader" in self.__dict__ else object.__getattribute__(self, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        for action in _waiting.pop(module.__name__, ()):
            action()
