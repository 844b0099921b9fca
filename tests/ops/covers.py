"""That every public name of the language has a module here which calls it."""

import importlib
import inspect
import pathlib
import re

import pytest

FOLDER = pathlib.Path(__file__).parent
MODULES = sorted(p.stem for p in FOLDER.glob("[a-z]*.py") if p.stem not in ("conftest", "covers"))
TABLES = sorted((FOLDER.parents[1] / "crates/naiad-front/src/names").glob("*.rs"))

# Names that have no tests of their own yet. None may be listed that has.
NOT_YET = set()


def table():
    """The rows with something to call. Other spellings, and names that are missing, have none."""
    makers = "name method only of_dtype of_window python unary value library".split()
    row = re.compile(rf'^ +(?:{"|".join(makers)})\(\s*"([\w.]+)"', re.MULTILINE)
    rows = {path for table in TABLES for path in row.findall(table.read_text())}
    assert len(rows) > 100, "the table's form has changed"
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
        assert re.search(rf"\b{re.escape(word)}\b", text), path


@pytest.mark.parametrize("module", MODULES)
def test_what_a_module_covers_exists(module):
    assert covered(module) <= table()


def test_every_name_is_covered():
    every = set().union(*map(covered, MODULES))
    assert table() - every == NOT_YET
