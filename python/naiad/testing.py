"""Timing and comparing: ``triton.testing``."""

import time


def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
    """Milliseconds that ``fn`` takes. ``warmup`` and ``rep`` are milliseconds too.

    Gives a float, or a list where quantiles or all times are asked for.
    """
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise ValueError(f"unknown return_mode '{return_mode}'")
    fn()
    start = time.perf_counter()
    for _ in range(5):
        fn()
    estimate = max((time.perf_counter() - start) / 5 * 1e3, 1e-6)
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    times = []
    for _ in range(max(1, int(rep / estimate))):
        for tensor in grad_to_none or ():
            tensor.grad = None
        start = time.perf_counter()
        fn()
        times.append((time.perf_counter() - start) * 1e3)
    times.sort()
    if quantiles is not None:
        found = [_quantile(times, q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return times
    return {
        "min": times[0],
        "max": times[-1],
        "mean": sum(times) / len(times),
        "median": _quantile(times, 0.5),
    }[return_mode]


def do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
    """As `do_bench`: there is no graph to record on a CPU."""
    return do_bench(fn, 0, rep, grad_to_none, quantiles, return_mode)


def _quantile(ordered, q):
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def assert_close(x, y, atol=None, rtol=None, err_msg=""):
    """Fails unless ``x`` is close to ``y``: within ``atol + rtol * abs(y)``."""
    import numpy as np

    x, y = _to_numpy(x), _to_numpy(y)
    np.testing.assert_allclose(
        x,
        y,
        atol=1e-2 if atol is None else atol,
        rtol=0 if rtol is None else rtol,
        equal_nan=True,
        err_msg=err_msg,
    )


def _to_numpy(x):
    import numpy as np

    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = (x.float() if x.is_floating_point() else x).numpy()
    return np.asarray(x)


class Benchmark:
    """What `perf_report` is to measure and how to show it."""

    def __init__(
        self,
        x_names,
        x_vals,
        line_arg,
        line_vals,
        line_names,
        plot_name,
        args,
        xlabel="",
        ylabel="",
        x_log=False,
        y_log=False,
        styles=None,
    ):
        self.x_names = x_names
        self.x_vals = x_vals
        self.line_arg = line_arg
        self.line_vals = line_vals
        self.line_names = line_names
        self.plot_name = plot_name
        self.args = args
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.x_log = x_log
        self.y_log = y_log
        self.styles = styles


class Mark:
    """A function with the benchmarks to run it under."""

    def __init__(self, fn, benchmarks):
        self.fn = fn
        self.benchmarks = benchmarks

    def run(self, show_plots=False, print_data=False, save_path="", return_df=False, **kwargs):
        """Measures every point; a table is printed where ``print_data`` asks for it."""
        many = isinstance(self.benchmarks, (list, tuple))
        tables = [self._run(b, print_data, **kwargs) for b in (self.benchmarks if many else [self.benchmarks])]
        if return_df:
            return tables if many else tables[0]

    def _run(self, bench, print_data, **kwargs):
        rows = []
        for x in bench.x_vals:
            xs = x if isinstance(x, (list, tuple)) else [x] * len(bench.x_names)
            point = dict(zip(bench.x_names, xs))
            row = list(xs)
            for line in bench.line_vals:
                y = self.fn(**point, **{bench.line_arg: line}, **bench.args, **kwargs)
                row.append(y[0] if isinstance(y, tuple) else y)
            rows.append(row)
        if print_data:
            print(f"{bench.plot_name}:")
            for row in [[*bench.x_names, *bench.line_names], *rows]:
                print("  " + "  ".join(f"{cell:>14.6g}" if isinstance(cell, float) else f"{cell!s:>14}" for cell in row))
        return rows


def perf_report(benchmarks):
    """Lets a function of a benchmark's arguments be run over all its points."""
    return lambda fn: Mark(fn, benchmarks)
