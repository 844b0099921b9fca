"""The reasons of failures, the commonest first, with an example of each: for `shards.py`, and as a plugin of pytest's."""

import collections
import re


def pytest_terminal_summary(terminalreporter):
    bad = [report for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, [])]
    write(terminalreporter.write_line, [(reason(str(report.longrepr)), report.nodeid) for report in bad])


def write(line, bad):
    """Writes pairs of a reason and a test by `line`."""
    reasons = collections.defaultdict(list)
    for why, test in bad:
        reasons[why].append(test)
    for why, tests in sorted(reasons.items(), key=lambda pair: -len(pair[1]))[:60]:
        line(f"{len(tests):5}  {why}\n         {tests[0]}")


def reason(text):
    """The message of Naiad's own, else the last line that pytest marks."""
    said = re.search(r"error\[[\w-]+\]: .*", text)
    if said:
        return said[0][:220]
    marked = re.findall(r"^E +(\S.*)$", text, re.M)
    line = (marked or text.strip().splitlines()[-1:] or ["?"])[0]
    # Of numbers that differ only their places are alike.
    return re.sub(r"-?\d[\w.+-]*", "#", line)[:110]
