"""Results kept on disk, for processes that run at the same time and after one another."""

import hashlib
import json
import os
import pathlib
import sys
import tempfile
import warnings

from .. import knobs
from ..errors import NaiadWarning


def directory():
    """`NAIAD_CACHE_DIR`, or the platform's folder for caches."""
    if knobs.cache.dir:
        return pathlib.Path(knobs.cache.dir)
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
