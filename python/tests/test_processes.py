"""Launches in worker processes, forked and spawned, as scripts under `naiad run` make them."""

import sys

import pytest

HEAD = """
    import multiprocessing, os, sys
    import numpy as np
    import triton
    import triton.language as tl

    @triton.jit
    def scale(x, n, BY: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, BY * tl.load(x + i, mask=i < n), mask=i < n)

    def work(by):
        x = np.ones(1000, np.float32)
        scale[(triton.cdiv(1000, 16),)](x, 1000, BY=by, BLOCK=16)
        return float(x.sum())

    """


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_process_launches_what_its_parent_compiled_and_more(naiad_command):
    body = """
    assert work(2) == 2000
    reader, writer = os.pipe()
    if os.fork() == 0:
        ok = work(2) == 2000 and work(3) == 3000
        os.write(writer, b"y" if ok else b"n")
        os._exit(0)
    assert os.read(reader, 1) == b"y" and os.wait()[1] == 0
    assert work(3) == 3000
    print("done")
    """
    done = naiad_command("run", "script.py", script=HEAD + body)
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing(naiad_command, method):
    if sys.platform == "win32" and method == "fork":
        pytest.skip("needs fork")
    body = f"""
    if __name__ == "__main__":
        work(1)
        with multiprocessing.get_context("{method}").Pool(2) as pool:
            print(pool.map(work, [1, 2, 3]))
    """
    done = naiad_command("run", "script.py", script=HEAD + body)
    assert (done.stdout, done.stderr) == ("[1000.0, 2000.0, 3000.0]\n", "")


def test_a_spawned_process_checks_where_its_parent_does(naiad_command):
    body = """
    def past_the_view(_):
        x = np.zeros(32, np.float32)
        try:
            scale[(1,)](x[:8], 9, BY=2, BLOCK=16)
        except RuntimeError as e:
            return type(e).__name__

    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(past_the_view, [0]))
    """
    done = naiad_command("run", "--check", "script.py", script=HEAD + body)
    assert (done.stdout, done.stderr) == ("['OutOfBoundsError']\n", "")
