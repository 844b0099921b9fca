"""The README's first example does what the README says."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def block(language, number=0):
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)[number]


def run(folder, source):
    (folder / "add.py").write_text(source)
    command = [sys.executable, "-m", "naiad", "run", "add.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_example_prints_what_the_readme_says(tmp_path):
    done = run(tmp_path, block("python"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == block("console").split("\n", 1)[1]


def test_the_mistake_is_reported_as_the_readme_shows(tmp_path):
    wrong = block("python").replace("x + y, mask=mask)", "x + y)")
    done = run(tmp_path, wrong)
    assert done.returncode == 1
    lines = [line.rstrip() for line in done.stderr.rstrip().split("\n")]
    assert "\n".join(lines) + "\n" == block("text")
