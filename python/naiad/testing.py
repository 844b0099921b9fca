"""Timing and comparing: ``triton.testing``."""

import contextlib
import csv
import os
import time

from . import knobs
from .runtime import driver
from .sweep import sweep


def do_bench(
    fn,
    warmup=25,
    rep=100,
    grad_to_none=None,
    quantiles=None,
    return_mode="mean",
    measure_time_with_hooks=False,
):
    """Milliseconds that ``fn`` takes. ``warmup`` and ``rep`` are milliseconds too.

    Gives a float, or a list where quantiles or all times are asked for. ``measure_time_with_hooks``, which
    Triton's fork for CPUs knows, counts what is in launches alone; a GPU only queues these, so there it is an
    error.

    On a CPU ``fn`` is called once, since it may compile, then up to five times for an estimate, and then for
    ``warmup`` and ``rep``. Where fewer than five calls fill both, these are the measurement: a ``fn`` that
    takes longer than ``warmup + rep`` is called twice.
    """
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise ValueError(f"unknown return_mode '{return_mode}'")
    if driver.has_gpu():
        if measure_time_with_hooks:
            raise ValueError("measure_time_with_hooks is for CPUs, where a launch is over when it returns")
        times = _on_gpu(fn, warmup, rep, grad_to_none or ())
    else:
        clock = _milliseconds_in_launches if measure_time_with_hooks else _milliseconds
        times = _on_cpu(fn, warmup, rep, grad_to_none or (), clock)
    return _summary(times, quantiles, return_mode)


def trial(fn, quantiles, best):
    """What `do_bench` gives of ``fn``, where a rival is known that takes ``best``.

    Kernels on a CPU may take seconds, and tuners have dozens of them: there a first run of more than ten times
    what `do_bench` would fill is the measurement, since compilation adds little to it, and of what takes three
    times ``best`` there is no second measurement.
    """
    if driver.has_gpu():
        return do_bench(fn, quantiles=quantiles)
    warmup, rep = 25, 100
    first = _milliseconds(fn)
    if first > 10 * (warmup + rep):
        return _summary([first], quantiles, "mean")
    second = _milliseconds(fn)
    if min(first, second) > 3 * best:
        return _summary([min(first, second)], quantiles, "mean")
    return _summary(_repeated(fn, warmup, rep, (), _milliseconds, [second]), quantiles, "mean")


def _on_cpu(fn, warmup, rep, grad_to_none, clock):
    """Milliseconds of each run, by such a clock."""
    fn()
    return _repeated(fn, warmup, rep, grad_to_none, clock, [])


def _repeated(fn, warmup, rep, grad_to_none, clock, known):
    """Milliseconds of each run of what has run already, with those that are ``known``."""

    def run():
        for tensor in grad_to_none:
            tensor.grad = None
        start = time.perf_counter()
        counted = clock(fn)
        return counted, (time.perf_counter() - start) * 1e3

    # One of five may compile still: the first launch of a kernel is not always machine code's.
    runs = [(ms, ms) for ms in known]
    while len(runs) < 5:
        if sum(whole for _, whole in runs) > warmup + rep:
            return [counted for counted, _ in runs]
        runs.append(run())
    estimate = max(min(whole for _, whole in runs), 1e-6)
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    return [run()[0] for _ in range(max(1, int(rep / estimate)))]


def _on_gpu(fn, warmup, rep, grad_to_none):
    """Milliseconds of each run, between events of the GPU. Before each the caches are filled with other
    memory, so that a run reads its own from where a first one would."""
    gpu = driver.active.get_device_interface()
    others = driver.active.get_empty_cache_for_benchmark()

    def events(n):
        return [gpu.Event(enable_timing=True) for _ in range(n)]

    fn()
    gpu.synchronize()
    start, end = events(2)
    start.record()
    for _ in range(5):
        driver.active.clear_cache(others)
        fn()
    end.record()
    gpu.synchronize()
    estimate = max(start.elapsed_time(end) / 5, 1e-3)
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    runs = max(1, int(rep / estimate))
    starts, ends = events(runs), events(runs)
    for start, end in zip(starts, ends):
        for tensor in grad_to_none:
            tensor.grad = None
        driver.active.clear_cache(others)
        start.record()
        fn()
        end.record()
    gpu.synchronize()
    return [start.elapsed_time(end) for start, end in zip(starts, ends)]


def _summary(times, quantiles, return_mode):
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


def _milliseconds(fn):
    start = time.perf_counter()
    fn()
    return (time.perf_counter() - start) * 1e3


def _milliseconds_in_launches(fn):
    begun, spent = [], []

    def enter(_about):
        begun.append(time.perf_counter())

    def exit(_about):
        spent.append(time.perf_counter() - begun.pop())

    runtime = knobs.runtime
    runtime.launch_enter_hook.add(enter)
    runtime.launch_exit_hook.add(exit)
    try:
        fn()
    finally:
        runtime.launch_enter_hook.remove(enter)
        runtime.launch_exit_hook.remove(exit)
    return sum(spent) * 1e3


def do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
    """Milliseconds of ``fn`` without what its calls cost the host: many runs are recorded in a graph, which
    the GPU replays. On a CPU there is nothing to record, and it is as `do_bench`."""
    if not driver.has_gpu():
        return do_bench(fn, 0, rep, grad_to_none, quantiles, return_mode)
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        # What is compiled and loaded must be so before the recording.
        fn()
        for tensor in grad_to_none or ():
            tensor.detach_()
            tensor.requires_grad_(True)
            tensor.grad = None
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(5):
            fn()
        end.record()
        torch.cuda.synchronize()
        runs = max(1, min(1000, int(rep / max(start.elapsed_time(end) / 5, 1e-3))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(runs):
                for tensor in grad_to_none or ():
                    tensor.grad = None
                fn()
        times = []
        for _ in range(10):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) / runs)
    return _summary(times, quantiles, return_mode)


# There is no profiler to ask.
do_bench_proton = do_bench
do_bench_cudagraph_proton = do_bench_cudagraph


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


def get_dram_gbps(device=None):
    """GB/s that a GPU's memory can move at best."""
    if not driver.has_gpu():
        _refuse("get_dram_gbps", "measure the bandwidth of a large copy with `do_bench`")
    found = driver.active.utils.get_device_properties(driver.active.get_current_device() if device is None else device)
    # Two transfers for each beat of the clock, which is in kHz, over as many wires as the bus is wide.
    return found["mem_clock_rate"] * found["mem_bus_width"] * 2 / 1e6 / 8


def _refuse(name, instead):
    raise NotImplementedError(
        f"`triton.testing.{name}` tells what a GPU can do at best, and kernels run on this machine's "
        f"CPU: {instead}"
    )


def _of_a_gpu(name, instead):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"`triton.testing.{name}` is not known: {instead}")

    refuse.__name__ = name
    return refuse


get_max_tensorcore_tflops = _of_a_gpu(
    "get_max_tensorcore_tflops", "measure a large product of your matrix library's with `do_bench`"
)
get_max_simd_tflops = _of_a_gpu(
    "get_max_simd_tflops", "measure a large product of your matrix library's with `do_bench`"
)
nvsmi = _of_a_gpu("nvsmi", "there is no `nvidia-smi` to be asked")


@contextlib.contextmanager
def set_gpu_clock(ref_sm_clock=1350, ref_mem_clock=1215):
    """Sets nothing: gives 0 for the rates that a GPU would have had, as where it cannot be set."""
    yield 0, 0


def cuda_memcheck(**target_kwargs):
    """Leaves the test as it is: `naiad run --check` looks after every access of a kernel."""
    return lambda test: test


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
        """Measures every point.

        ``print_data`` prints a table, ``save_path`` names a folder for one file of comma separated
        values each, ``return_df`` gives the tables, as pandas' where that is installed. Plots are
        not drawn.
        """
        many = isinstance(self.benchmarks, (list, tuple))
        tables = []
        for bench in self.benchmarks if many else [self.benchmarks]:
            heads, rows = self._measure(bench, kwargs)
            if print_data:
                print(f"{bench.plot_name}:")
                for row in [heads, *rows]:
                    print("  " + "  ".join(_cell(x) for x in row))
            if save_path:
                os.makedirs(save_path, exist_ok=True)
                with open(os.path.join(save_path, f"{bench.plot_name}.csv"), "w", newline="") as file:
                    csv.writer(file).writerows([heads, *rows])
            tables.append(_frame(heads, rows))
        if return_df:
            return tables if many else tables[0]

    def _measure(self, bench, kwargs):
        unit = f" ({bench.ylabel})" if bench.ylabel else ""
        heads = [*bench.x_names, *(f"{name}{unit}" for name in bench.line_names)]
        rows = []
        for x in bench.x_vals:
            xs = x if isinstance(x, (list, tuple)) else [x] * len(bench.x_names)
            point = dict(zip(bench.x_names, xs))
            row = list(xs)
            for line in bench.line_vals:
                y = self.fn(**point, **{bench.line_arg: line}, **bench.args, **kwargs)
                # Of a value with its range the table has the value.
                row.append(y[0] if isinstance(y, tuple) else y)
            rows.append(row)
        return heads, rows


def _cell(x):
    return f"{x:>14.6g}" if isinstance(x, float) else f"{x!s:>14}"


def _frame(heads, rows):
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows, columns=heads)


def perf_report(benchmarks):
    """Lets a function of a benchmark's arguments be run over all its points."""
    return lambda fn: Mark(fn, benchmarks)
