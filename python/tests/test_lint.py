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


def test_exit_codes(lint):
    head = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x_ptr):\n    "
    assert lint(None, head + "pid = tl.program_id(0)\n    tl.store(x_ptr, 1)\n")[0] == 0
    code, [d] = lint(None, head + "tl.store(x_ptr, tl.stoer)\n")
    assert code == 1 and d["id"] == "unknown-tl-name"
    code, [d] = lint(None, head.replace("@", "# naiad: signature(x_ptr=*fp31)\n@") + "tl.store(x_ptr, 1)\n")
    assert code == 1 and d["id"] == "bad-launch" and d["labels"][0]["line"] == 4
