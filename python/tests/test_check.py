"""Checked execution: scripts with what must be found written beside the line, and nothing else."""

import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from naiad import KernelError, _naiad, check

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "tests" / "check").glob("*.py"))


def _expected(text, verb="finds"):
    """What is marked so beside the lines: `# finds: error[race]; lints: note[flat-index]`."""
    wanted = {}
    for number, line in enumerate(text.splitlines(), 1):
        if mark := re.search(rf"[#;] {verb}: ([^;]*)", line):
            for one in mark[1].split(","):
                severity, id = re.fullmatch(r"(\w+)\[([\w-]+)\]", one.strip()).groups()
                wanted[number, id] = severity
    return wanted


@pytest.fixture
def checked(monkeypatch, tmp_path):
    """Runs a script under the checker, with `triton` meaning Naiad; gives the findings as dictionaries."""
    monkeypatch.setattr(np, "empty", check._marking(np.empty))
    stream = io.StringIO()
    collector = check.Printer("json", stream)
    before = check.collect(collector)
    _naiad.configure(True, 0)

    def run(path, text=None, format="json"):
        collector.format = format
        if text is None:
            text = path.read_text()
        else:
            # Kernels are read from their files.
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
            path.write_text(text)
        text = text.replace("import triton.language as tl", "import naiad.language as tl")
        text = text.replace("import triton\n", "import naiad as triton\n")
        run = {"__name__": "__check__", "__file__": str(path)}
        if format == "human":
            with pytest.raises(KernelError):
                exec(compile(text, str(path), "exec"), run)
            return stream.getvalue()
        exec(compile(text, str(path), "exec"), run)
        return [json.loads(line) for line in stream.getvalue().splitlines() if line]

    yield run
    _naiad.configure(False, 0)
    check.collect(before)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_finds_what_is_marked_and_nothing_else(path, checked):
    found = {}
    order = ["note", "warning", "error"]
    for d in checked(path):
        lines = [x["line"] for x in d["labels"] if x["primary"]]
        key = lines[0] if lines else None, d["id"]
        found[key] = max(d["severity"], found.get(key, "note"), key=order.index)
    assert found == _expected(path.read_text())


DRAWN = sorted((ROOT / "tests" / "diag" / "checked").glob("*.py"))


@pytest.mark.parametrize("path", DRAWN, ids=lambda p: p.stem)
def test_drawings(path, checked):
    """`NAIAD_BLESS=1` rewrites what is drawn. The last launch of each script ends it."""
    drawn = checked(path, format="human").replace(f"{path.parent}{os.sep}", "")
    golden = path.with_suffix(".txt")
    if os.environ.get("NAIAD_BLESS"):
        golden.write_text(drawn)
    assert drawn == golden.read_text()


PAGES = sorted((ROOT / "docs" / "checks").glob("*.md"))


def _kinds(*headings):
    """The kinds of a part of the table, by its heading and the next one's."""
    text = (ROOT / "crates" / "naiad-diag" / "src" / "ids.rs").read_text()
    return set(re.findall(r'= "([\w-]+)"', text.split(f"// {headings[0]}")[1].split(f"// {headings[1]}")[0]))


REVIEWED = _kinds("Lint.", "Ours.")


@pytest.mark.parametrize("page", [p for p in PAGES if p.stem not in REVIEWED], ids=lambda p: p.stem)
def test_pages_show_a_kernel_that_is_found_and_one_that_is_not(page, checked):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert len(blocks) == 2
    try:
        found = checked(page, blocks[0])
    except KernelError as e:
        # What ends the launch has been collected before.
        found = [e.diagnostic]
    assert {d["id"] for d in found} == {page.stem}
    before = len(found)
    assert len(checked(page, blocks[1])) == before


def test_every_kind_has_a_page():
    kinds = _kinds("Checked execution.", "Lint.") | REVIEWED | {"outside-view"}
    # A limit of the checker's is no fault of a kernel's: docs/checker.md says what there is.
    assert kinds - {"check-limit"} == {p.stem for p in PAGES}
    page = (ROOT / "docs" / "checker.md").read_text()
    assert all(f"(checks/{kind}.md)" in page for kind in kinds - {"check-limit"})
