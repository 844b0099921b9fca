"""Results kept on disk, for processes that run at the same time and after one another."""

import hashlib
import json
import os
import pathlib
import sys
import tempfile
import warnings

from .. import knobs
from ..compiler.compiler import triton_key
from ..errors import NaiadWarning

__all__ = ["CacheManager", "Entry", "FileCacheManager", "directory", "get_cache_manager", "triton_key"]


def directory():
    """`NAIAD_CACHE_DIR`, else Triton's setting, else the platform's folder for caches."""
    chosen = knobs.cache.chosen_dir
    if chosen:
        return pathlib.Path(chosen)
    if sys.platform == "darwin":
        base = pathlib.Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = pathlib.Path(os.environ.get("LOCALAPPDATA") or pathlib.Path.home())
    else:
        base = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return base / "naiad"


class Entry:
    """One result, named by all that it depends on."""

    def __init__(self, kind, *facts):
        digest = hashlib.sha256("\0".join(map(str, facts)).encode()).hexdigest()
        self.path = directory() / kind / f"{digest}.json"

    def load(self):
        """The result; None where there is none that can be read."""
        try:
            return json.loads(self.path.read_text())
        except (OSError, ValueError):
            return None

    def store(self, result):
        """Keeps the result; others see it whole or not at all."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".", suffix=".json")
            try:
                with os.fdopen(handle, "w") as file:
                    json.dump(result, file)
                # In one step: another process that stores or loads it meets one file or the other.
                os.replace(name, self.path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as e:
            # Who launches a kernel wants it run: without a cache it is merely tuned again.
            warnings.warn(NaiadWarning(f"a result cannot be kept: {e}", "cache"), stacklevel=2)


class CacheManager:
    """Files under a key, as code asks for them that keeps its own beside Triton's."""

    def __init__(self, key):
        self.key = key


class FileCacheManager(CacheManager):
    """Keeps them in a folder of the key's."""

    def __init__(self, key, override=False, dump=False):
        super().__init__(key)
        base = knobs.cache.dump_dir if dump else knobs.cache.override_dir if override else directory()
        self.cache_dir = os.path.join(base, key)
        os.makedirs(self.cache_dir, exist_ok=True)

    def _path(self, filename):
        return os.path.join(self.cache_dir, filename)

    def has_file(self, filename):
        return os.path.exists(self._path(filename))

    def get_file(self, filename):
        """The path of a file that is kept; None if there is none."""
        return self._path(filename) if self.has_file(filename) else None

    def put(self, data, filename, binary=True):
        """Keeps data under a name; gives the path."""
        data = data if isinstance(data, bytes) else str(data).encode()
        handle, name = tempfile.mkstemp(dir=self.cache_dir, prefix=".")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, self._path(filename))
        return self._path(filename)

    def get_group(self, filename):
        """The files that were put as a group, by name; None unless all of them are there."""
        text = self.get_file(f"__grp__{filename}")
        if text is None:
            return None
        names = json.loads(pathlib.Path(text).read_text())["child_paths"]
        found = {name: self.get_file(name) for name in names}
        return found if all(found.values()) else None

    def put_group(self, filename, group):
        return self.put(json.dumps({"child_paths": {name: self._path(name) for name in group}}), f"__grp__{filename}")


def get_cache_manager(key):
    return (knobs.cache.manager_class or FileCacheManager)(key)
