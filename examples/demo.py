"""Runs every example, prints a table, and shows what naiad says of a kernel that is wrong.

    naiad run examples/demo.py                       through naiad
    TRITON_INTERPRET=1 python examples/demo.py       through Triton's interpreter, for comparison

The exit status is 1 if a result is further from NumPy's float64 than its tolerance allows.
"""

import subprocess
import sys
from pathlib import Path

import common

import bias_add
import gelu
import matmul
import row_stats
import row_sum
import softmax
import transpose

EXAMPLES = bias_add, row_stats, transpose, gelu, softmax, row_sum, matmul


def check_all():
    """Runs each example's checks: odd sizes, views, extremes. Returns how many examples fail."""
    failures = 0
    for example in EXAMPLES:
        try:
            example.check()
        except AssertionError as error:
            failures += 1
            print(f"{example.__name__} is wrong: {error}")
    print(f"{len(EXAMPLES) - failures} of {len(EXAMPLES)} examples pass their checks\n")
    return failures


def show_diagnostic():
    """Runs the wrong kernel on its own, prints the diagnostic; returns whether there was none."""
    script = Path(__file__).parent / "wrong" / "reused_mask.py"
    print("\nAnd a kernel that is wrong: it reuses the input's mask for the transposed output.\n")
    command = [sys.executable, "-m", "naiad", "run", str(script)]
    result = subprocess.run(command, capture_output=True, text=True)
    print(result.stdout + result.stderr)
    return result.returncode == 0


def main():
    failures = check_all()
    failures += common.show(row for example in EXAMPLES for row in example.cases())
    if "naiad" in sys.modules:
        failures += show_diagnostic()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
