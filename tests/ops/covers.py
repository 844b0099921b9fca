"""That every public name of the language has a module here which calls it."""

import importlib
import inspect
import pathlib
import re

import pytest

from naiad._naiad import public_names

FOLDER = pathlib.Path(__file__).parent
MODULES = sorted(p.stem for p in FOLDER.glob("[a-z]*.py") if p.stem not in ("conftest", "covers"))

# Names that have no tests of their own yet. None may be listed that has.
NOT_YET = set()


def table():
    """What kernels can use. Names that are missing, and other spellings of one, are not in it."""
    rows = set(public_names())
    assert len(rows) > 100, "the names have changed their form"
    return rows


def covered(module):
    return set(importlib.import_module(f".{module}", __package__).COVERS)


@pytest.mark.parametrize("module", MODULES)
def test_what_a_module_covers_occurs_in_it(module):
    module = importlib.import_module(f".{module}", __package__)
    assert module.__doc__
    text = inspect.getsource(module).replace(module.__doc__, "")
    text = re.sub(r"^COVERS = \[.*?\]", "", text, flags=re.MULTILINE | re.DOTALL)
    for path in module.COVERS:
        word = path.removeprefix("python.").removeprefix("dtype.")
        word = word if word.startswith(("triton.", "PropagateNan.")) else word.rsplit(".", 1)[-1]
        # A direction of rounding may be joined to what is rounded.
        word = re.sub(r"(_r[nzdu])$", r"(\1)?", re.escape(word))
        assert re.search(rf"\b{word}\b", text), path


@pytest.mark.parametrize("module", MODULES)
def test_what_a_module_covers_exists(module):
    assert covered(module) <= table()


def test_every_name_is_covered():
    every = set().union(*map(covered, MODULES))
    assert table() - every == NOT_YET
