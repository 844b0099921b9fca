"""`naiad lint`: what is said of kernels without a launch is written beside the line."""

import json
import re
from pathlib import Path

import pytest
from test_check import PAGES, REVIEWED, SCRIPTS, _expected

from naiad import _naiad

ROOT = Path(__file__).resolve().parents[2]
RULES = sorted((ROOT / "tests" / "lint").glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def lint(tmp_path):
    """Reviews a file, or a text; gives the exit code and the findings as dictionaries."""

    def run(path, text=None):
        if text is not None:
            path = tmp_path / "kernels.py"
            path.write_text(text)
        found = tmp_path / "found.json"
        code = _naiad.cli_main(["naiad", "lint", "--format", "json", "--output", str(found), str(path)])
        return code, [json.loads(line) for line in found.read_text().splitlines()]

    return run


@pytest.mark.parametrize("path", [*RULES, *SCRIPTS], ids=lambda p: f"{p.parent.stem}-{p.stem}")
def test_says_what_is_marked_and_nothing_else(path, lint):
    found = {}
    for d in lint(path)[1]:
        [line] = [x["line"] for x in d["labels"] if x["primary"]]
        found[line, d["id"]] = d["severity"]
    assert found == _expected(path.read_text(), "lints")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_says_nothing_of_examples(path, lint):
    assert lint(path) == (0, [])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_pages(page, lint):
    """Of pages on the review's own kinds the first kernel is found; of no page the second one is."""
    first, second = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    if page.stem in REVIEWED:
        assert {d["id"] for d in lint(page, first)[1]} == {page.stem}
    # Whether two limits are one number is not known without a launch.
    assert lint(page, second)[1] == []


HELPER = """
import triton
import triton.language as tl
from . import sizes
from .sizes import *

@triton.jit
def total(ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    return FACTOR * tl.sum(tl.load(ptr + i, mask=i < n))

@triton.jit
def left(i):
    return i < sizes.LEFT
"""
USER = """
import triton
import triton.language as tl
{imports}

@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    keep = {left}(tl.program_id(0))
    tl.store(out_ptr + tl.program_id(0), {total}(x_ptr, n, BLOCK), mask=keep)
"""


@pytest.fixture
def package(tmp_path):
    """Files of a package `ops` with a kernel in `ops/norms/layer.py` and one in a script beside the package;
    gives a function that reviews files."""
    folder = tmp_path / "ops"
    (folder / "norms").mkdir(parents=True)
    (folder / "__init__.py").write_text("from .helpers import total as summed\n")
    (folder / "helpers.py").write_text(HELPER)
    (folder / "sizes.py").write_text("import triton.language as tl\nLEFT = tl.constexpr(4)\nFACTOR = tl.constexpr(2.0)\n")

    def run(*paths, **texts):
        for path, text in texts.items():
            (tmp_path / f"{path.replace('__', '/')}.py").write_text(text)
        found = tmp_path / "found.json"
        paths = [str(tmp_path / path) for path in paths]
        code = _naiad.cli_main(["naiad", "lint", "--format", "json", "--output", str(found), *paths])
        rows = [json.loads(line) for line in found.read_text().splitlines()]
        return code, [(d["id"], Path(next(x["file"] for x in d["labels"] if x["primary"])).name) for d in rows]

    return run


@pytest.mark.parametrize(
    ("imports", "total", "left"),
    [
        ("from ..helpers import total, left", "total", "left"),
        ("from .. import helpers", "helpers.total", "helpers.left"),
        ("from ops.helpers import *", "total", "left"),
        ("import ops.helpers as h", "h.total", "h.left"),
        ("import ops, ops.helpers", "ops.summed", "ops.helpers.left"),
        ("from .. import summed\nfrom ops.helpers import left as l", "summed", "l"),
    ],
)
def test_helpers_of_other_files_are_found(package, imports, total, left):
    text = USER.format(imports=imports, total=total, left=left)
    # The helper's line is told, as where it is called in one file.
    assert package("ops/norms/layer.py", ops__norms__layer=text) == (0, [("undefined-reduced", "helpers.py")])


def test_helpers_beside_a_script_are_found(package):
    text = USER.format(imports="from helpers import total, left", total="total", left="left")
    beside = HELPER.replace("from .", "from ").replace("from  import", "import")
    found = [("undefined-reduced", "helpers.py")]
    sizes = "from ops.sizes import FACTOR, LEFT\n"
    assert package("script.py", script=text, helpers=beside, sizes=sizes) == (0, found)
    # One helper of two files is reported once; what its file allows is not.
    assert package("script.py", "other.py", other=text) == (0, found)
    assert package("./script.py", "ops/../script.py") == (0, found)
    allowed = beside.replace("mask=i < n))", "mask=i < n))  # naiad: allow(undefined-reduced)")
    assert package("script.py", "other.py", helpers=allowed) == (0, [])


def test_what_is_not_found_is_not_guessed(package):
    text = USER.format(imports="from elsewhere import total, left", total="total", left="left")
    assert package("script.py", script=text) == (0, [("check-limit", "script.py")])
    # A name that may come from such a file is not undefined, and imports may go in a circle.
    text = USER.format(imports="from elsewhere import *", total="total", left="left")
    assert package("script.py", script=text) == (0, [("check-limit", "script.py")])
    text = USER.format(imports="from circle import *\nleft = BOUND", total="total", left="left")
    circle = "from script import left\nBOUND = left\n"
    assert package("script.py", script=text, circle=circle)[0] == 0
    # A file that is no Python brings nothing.
    assert package("script.py", circle="def (")[1] == [("check-limit", "script.py")]


def test_exit_codes(lint):
    head = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x_ptr):\n    "
    assert lint(None, head + "pid = tl.program_id(0)\n    tl.store(x_ptr, 1)\n")[0] == 0
    code, [d] = lint(None, head + "tl.store(x_ptr, tl.stoer)\n")
    assert code == 1 and d["id"] == "unknown-tl-name"
    code, [d] = lint(None, head.replace("@", "# naiad: signature(x_ptr=*fp31)\n@") + "tl.store(x_ptr, 1)\n")
    assert code == 1 and d["id"] == "bad-launch" and d["labels"][0]["line"] == 4


def test_denied_warnings(tmp_path, capfd):
    """As `naiad check` has it: notes never count, warnings where they are denied."""
    path = tmp_path / "kernels.py"
    head = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x_ptr, n, BLOCK: tl.constexpr):\n"
    head += "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    mask = i < n\n"
    note = "    tl.store(x_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask)))\n"

    def code(body, *options):
        path.write_text(head + body)
        return _naiad.cli_main(["naiad", "lint", *options, str(path)]), capfd.readouterr().err

    quiet = "    tl.store(x_ptr + i, 1, mask)\n"
    assert code(quiet, "--deny", "warnings") == (0, "")
    warning = "    tl.store(x_ptr + i, 1)\n"
    found, text = code(warning)
    assert found == 0 and "warning[unused-mask]" in text
    assert code(warning, "--deny", "warnings")[0] == 1
    found, text = code(note, "--deny", "warnings")
    assert found == 0 and "note[undefined-reduced]" in text
    assert code(warning, "--deny", "notes")[0] == 2
