"""`naiad check`: exit codes, the summary, and sweeps over sizes."""

import json

import pytest

HEAD = """
    import numpy as np
    import triton
    import triton.language as tl

    @triton.jit
    def total(x_ptr, out_ptr, n, fill, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=fill)
        tl.store(out_ptr, tl.sum(x))

    @triton.jit
    def fill(out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, i, mask=i < n)

    x, out = np.ones(10, np.float32), np.zeros(1, np.float32)
"""
RIGHT = "    total[(1,)](x, out, 10, 0.0, BLOCK=16)\n"
WRONG = "    total[(1,)](x, out, 10, 1.0, BLOCK=16)\n"
PARTLY = "    fill[(2,)](np.empty(10, np.int32), 10, BLOCK=4)\n"


def last_line(done):
    return done.stderr.strip().splitlines()[-1]


def test_exit_codes_and_summary(naiad_command):
    done = naiad_command("check", "script.py", script=HEAD + RIGHT)
    assert (done.returncode, last_line(done)) == (0, "naiad check: 1 launch of 1 kernel checked: nothing found")
    # Each finding is printed once, however often it is found.
    done = naiad_command("check", "script.py", script=HEAD + WRONG * 3 + "    print('goes on')\n")
    assert done.returncode == 1 and done.stdout == "goes on\n"
    assert done.stderr.count("error[padding-reduced]") == 1
    assert last_line(done) == "naiad check: 3 launches of 1 kernel checked: 1 error"
    done = naiad_command("check", "script.py", script=HEAD + PARTLY)
    assert done.returncode == 0 and "warning[unwritten-output]" in done.stderr
    done = naiad_command("check", "--deny", "warnings", "script.py", script=HEAD + PARTLY)
    assert done.returncode == 1


@pytest.mark.parametrize("executor", ["auto", "eager", "cpu", "interp", "lockstep"])
def test_every_launch_is_checked_whatever_executor_is_asked_for(naiad_command, monkeypatch, executor):
    monkeypatch.setenv("NAIAD_EXECUTOR", executor)
    # The first launch is small; later ones, and those of a launcher that is kept, are the same kernel's.
    kept = "    launch = total[(1,)]\n" + "    launch(x, out, 10, 1.0, BLOCK=16)\n" * 2
    done = naiad_command("check", "script.py", script=HEAD + RIGHT * 3 + kept)
    assert done.returncode == 1 and done.stderr.count("error[padding-reduced]") == 1
    assert last_line(done) == "naiad check: 5 launches of 1 kernel checked: 1 error"


def test_the_script_has_its_say(naiad_command):
    assert naiad_command("check", "script.py", script=HEAD + RIGHT + "    raise SystemExit(3)\n").returncode == 3
    done = naiad_command("check", "script.py", script=HEAD + RIGHT + "    raise ValueError('no')\n")
    assert done.returncode == 1 and "ValueError: no" in done.stderr
    past = "    fill[(4,)](np.zeros(10, np.int32), 16, BLOCK=4)\n"
    done = naiad_command("check", "script.py", script=HEAD + WRONG + past)
    # What was found before a fault is said as well, and the fault once.
    assert done.returncode == 1
    assert done.stderr.count("error[out-of-bounds]") == 1 and "error[padding-reduced]" in done.stderr


def test_json(naiad_command):
    done = naiad_command("check", "--format", "json", "script.py", script=HEAD + WRONG)
    [finding] = [json.loads(line) for line in done.stderr.splitlines()]
    assert (finding["id"], finding["severity"]) == ("padding-reduced", "error")
    # Every line is an object, those of what ends the script too.
    past = "    fill[(4,)](np.zeros(10, np.int32), 16, BLOCK=4)\n"
    done = naiad_command("check", "--format", "json", "script.py", script=HEAD + WRONG + past)
    findings = [json.loads(line) for line in done.stderr.splitlines()]
    assert [d["id"] for d in findings] == ["padding-reduced", "out-of-bounds"] and done.returncode == 1


def test_sarif(naiad_command, tmp_path):
    found = tmp_path / "found.sarif"
    arguments = ["check", "--format", "sarif", "--output", str(found), "script.py"]
    done = naiad_command(*arguments, script=HEAD + WRONG * 2 + PARTLY)
    # One log, whatever the script says; and each finding once in it.
    assert (done.returncode, done.stderr) == (1, "")
    [run] = json.loads(found.read_text())["runs"]
    results = [(r["ruleId"], r["level"]) for r in run["results"]]
    assert results == [("padding-reduced", "error"), ("unwritten-output", "warning")]
    [at] = run["results"][0]["locations"]
    assert at["physicalLocation"]["artifactLocation"]["uri"] == "script.py"
    # What cannot be compiled is a result as well.
    done = naiad_command(*arguments, script=(HEAD + RIGHT).replace("tl.sum", "tl.sun"))
    [run] = json.loads(found.read_text())["runs"]
    assert [r["ruleId"] for r in run["results"]] == ["unknown-tl-name"] and done.returncode == 1
    done = naiad_command("check", "--format", "sarif", "script.py", script=HEAD + RIGHT)
    assert json.loads(done.stderr)["runs"][0]["results"] == []
    done = naiad_command("check", "--output", "no/such/folder", "script.py", script=HEAD + RIGHT)
    assert done.returncode == 2 and "cannot be written" in done.stderr


def test_github(naiad_command):
    done = naiad_command("check", "--format", "github", "script.py", script=HEAD + WRONG)
    first, summary = done.stderr.splitlines()
    assert first.startswith("::error file=script.py,line=10,endLine=10,col=") and summary.endswith("1 error")
    assert ",title=naiad%3A padding-reduced::kernel `total`" in first and done.returncode == 1


def test_run_with_check_raises(naiad_command):
    text = HEAD + "    try:\n    " + WRONG + "    except triton.KernelError as e:\n        print(e.diagnostic['id'])\n"
    done = naiad_command("run", "--check", "script.py", script=text)
    assert (done.stdout, done.returncode) == ("padding-reduced\n", 0)
    done = naiad_command("run", "script.py", script=HEAD + WRONG)
    assert (done.stderr, done.returncode) == ("", 0)


SWEEP = """
    import numpy as np
    import triton
    import triton.language as tl
    from triton.testing import sweep

    @triton.jit
    def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

    def double(x, programs):
        out = np.empty(x.shape, x.dtype)
        double_kernel[(programs,)](x, out, x.size, BLOCK=16)
        return out

    @sweep("n", block=16)
    def rounded_up(x):
        np.testing.assert_array_equal(double(x, triton.cdiv(x.size, 16)), 2 * x)

    @sweep("n", block=16)
    def rounded_down(x):
        np.testing.assert_array_equal(double(x, max(x.size // 16, 1)), 2 * x)

    @sweep("m n", block=16)
    def of_rows(x):
        np.testing.assert_array_equal(double(x, triton.cdiv(x.size, 16)), 2 * x)
"""


def test_sweeps_show_the_smallest_case_that_fails(naiad_command):
    done = naiad_command("check", "--sweep", "script.py", script=SWEEP)
    assert done.returncode == 1
    assert "sweep `rounded_up`: " in done.stderr and "cases pass" in done.stderr
    assert "sweep `rounded_down` fails, the smallest at n = 17 (contiguous)" in done.stderr
    # Rows that are padded or transposed are not one after the other.
    assert "sweep `of_rows` fails, the smallest at m = " in done.stderr
    assert "n = 1 (contiguous)" not in done.stderr
    done = naiad_command("check", "--sweep", "script.py", script=HEAD)
    assert done.returncode == 2 and "has no function for `naiad.testing.sweep`" in done.stderr
