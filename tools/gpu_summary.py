"""A plugin of pytest's for `gpu_check.py`: the reasons of failures, the commonest first, with an example of each."""

import collections
import re


def pytest_terminal_summary(terminalreporter):
    reasons = collections.defaultdict(list)
    for kind in ("failed", "error"):
        for report in terminalreporter.stats.get(kind, []):
            reasons[reason(str(report.longrepr))].append(report.nodeid)
    if not reasons:
        return
    terminalreporter.section("reasons")
    for why, tests in sorted(reasons.items(), key=lambda pair: -len(pair[1]))[:60]:
        terminalreporter.write_line(f"{len(tests):5}  {why}\n         {tests[0]}")


def reason(text):
    """The message of Naiad's own, else the last line that pytest marks."""
    said = re.search(r"error\[[\w-]+\]: .*", text)
    if said:
        return said[0][:220]
    marked = re.findall(r"^E +(\S.*)$", text, re.M)
    line = (marked or text.strip().splitlines()[-1:] or ["?"])[0]
    # Of numbers that differ only their places are alike.
    return re.sub(r"-?\d[\w.+-]*", "#", line)[:110]
