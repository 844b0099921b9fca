"""A launch takes little memory beside its arguments, however large those are.

Of machine code; what the reference executor takes is tested beside it, in Rust.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# In a process of its own, whose memory is nobody else's. The first launch compiles.
SCRIPT = """
import numpy as np
import naiad
naiad.alias.install()
import bias_add, common, gelu, matmul, row_stats, row_sum, softmax, transpose

ROWS, COLS = 4096, 4096
# Ones and not zeros, so that the memory is there.
x, out = np.ones((2, ROWS, COLS), np.float32)
row, column, other = np.ones((3, COLS), np.float32)
s, n = common.strides(x), ROWS * COLS
launches = {
    "bias_add": lambda: bias_add.bias_add(x, row, out),
    "row_stats": lambda: row_stats.row_stats_kernel[(ROWS,)](x, column, other, COLS, *s, BLOCK=4096),
    "gelu": lambda: gelu.gelu_kernel[(n // 1024,)](x.ravel(), out.ravel(), n, 1, 1, BLOCK=1024),
    "softmax": lambda: softmax.softmax(x, out),
    "transpose": lambda: transpose.transpose(x, out, (32, 32)),
    "row_sum": lambda: row_sum.row_sum_kernel[(ROWS,)](x, column, COLS, *s, BLOCK=2048),
    "matmul": lambda: matmul.matmul(x[:1024, :1024], x[:1024, :1024], out=out[:1024, :1024]),
}

def field(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

for name, launch in launches.items():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    before = field("VmRSS")
    launch()
    print(name, field("VmHWM") - before)
"""

LIMIT = 64 << 20


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_launches_stay_small():
    path = os.pathsep.join(filter(None, [str(EXAMPLES), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "NAIAD_EXECUTOR": "cpu", "PYTHONPATH": path}
    command = [sys.executable, "-c", SCRIPT]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    grown = dict(line.split() for line in result.stdout.splitlines())
    assert len(grown) == 7
    assert {name: n for name, n in grown.items() if int(n) > LIMIT} == {}
