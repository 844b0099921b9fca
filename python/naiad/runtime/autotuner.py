"""``autotune`` and ``heuristics``: launches whose meta-parameters are chosen here."""

import concurrent.futures
import os
import time
import warnings

from .. import _naiad, check, knobs
from ..errors import CompileTimeAssertionFailure, NaiadWarning
from ..tools.tensor_descriptor import TensorDescriptor
from . import cache, driver, source
from .errors import AutotunerError, OutOfResources, PTXASError
from .jit import KernelInterface, TensorWrapper, silently

# A configuration that fails so does not fit; anything else is a fault to be seen.
_UNFIT = (OutOfResources, CompileTimeAssertionFailure, PTXASError)


class Config:
    """One choice of meta-parameters and launch options."""

    def __init__(
        self,
        kwargs,
        num_warps=4,
        num_stages=3,
        num_ctas=1,
        maxnreg=None,
        pre_hook=None,
        ir_override=None,
        num_cpu_threads=None,
    ):
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override
        # Of the fork of Triton for CPUs, and kept: here all launches are spread over all threads.
        self.num_cpu_threads = num_cpu_threads

    def all_kwargs(self):
        """What a launch is given: the options that are None are left to their defaults."""
        options = {
            "num_warps": self.num_warps,
            "num_ctas": self.num_ctas,
            "num_stages": self.num_stages,
            "maxnreg": self.maxnreg,
            "ir_override": self.ir_override,
        }
        return {**self.kwargs, **{name: x for name, x in options.items() if x is not None}}

    def _key(self):
        return tuple(sorted((name, repr(value)) for name, value in self.all_kwargs().items()))

    def __eq__(self, other):
        same = isinstance(other, Config) and self.pre_hook == other.pre_hook
        return same and self._key() == other._key()

    def __hash__(self):
        return hash((self._key(), self.pre_hook))

    def __str__(self):
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())

    __repr__ = __str__


class Autotuner(KernelInterface):
    """A kernel with several configurations, of which the fastest for each key is used."""

    def __init__(
        self,
        fn,
        arg_names,
        configs,
        key,
        reset_to_zero=None,
        restore_value=None,
        pre_hook=None,
        post_hook=None,
        prune_configs_by=None,
        warmup=None,
        rep=None,
        use_cuda_graph=False,
        do_bench=None,
        cache_results=False,
    ):
        # Classes that derive from this one pass these on; `autotune` says that they will go.
        if warmup is not None or rep is not None:
            do_bench = do_bench or _deprecated_bench({"warmup": warmup, "rep": rep})
        self.fn = fn
        self.base_fn = _base(fn)
        self.__name__ = self.base_fn.__name__
        self.__doc__ = getattr(self.base_fn, "__doc__", None)
        self.arg_names = arg_names
        self.configs = list(configs) or [Config({})]
        for config in self.configs:
            if not isinstance(config, Config):
                raise TypeError(f"a configuration is a `triton.Config`, not {config!r}")
        self.keys = list(key)
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        for name in self.keys:
            # Triton passes over it, and there is public code that has such.
            if name not in arg_names:
                what = f"`{name}` is no parameter of `{self.__name__}`, so as part of `key` it counts for nothing"
                warnings.warn(NaiadWarning(what), stacklevel=3)
        for name in [*self.reset_to_zero, *self.restore_value]:
            if name not in arg_names:
                raise ValueError(f"`{name}` is no parameter of `{self.__name__}`: {arg_names}")
        # Around each trial, in place of zeroing and restoring. Classes that derive from this one set them.
        self.pre_hook, self.user_defined_pre_hook = pre_hook, pre_hook is not None
        self.post_hook, self.user_defined_post_hook = post_hook, post_hook is not None
        prune = dict(prune_configs_by or {})
        self.early_config_prune = prune.pop("early_config_prune", None)
        self.perf_model = prune.pop("perf_model", None)
        self.configs_top_k = prune.pop("top_k", 1.0)
        if prune:
            raise ValueError(
                f"`prune_configs_by` has {', '.join(map(repr, prune))}, but knows "
                "'early_config_prune', 'perf_model' and 'top_k'"
            )
        self._do_bench = do_bench
        self.cache_results = cache_results
        self.cache = {}
        self.configs_timings = {}
        self.best_config = None
        self.bench_time = None

    def run(self, *args, **kwargs):
        if kwargs.get("warmup"):
            return self._compile(self._pruned(args, kwargs), args, kwargs)
        nargs = dict(zip(self.arg_names, args))
        if check.is_active() and len(self.configs) > 1:
            return self._run_checked(args, kwargs, nargs)
        tuned = False
        if len(self.configs) == 1:
            config = self.configs[0]
        else:
            key = self._key({**nargs, **kwargs})
            config = self.cache.get(key)
            if config is None:
                config, tuned = self._choose(key, args, kwargs, nargs)
                self.cache[key] = config
        if tuned:
            self._before(nargs, kwargs, reset_only=True)
        return self._launch_one(config, args, kwargs, nargs)

    def _launch_one(self, config, args, kwargs, nargs):
        """A launch of the chosen configuration."""
        self.best_config = config
        options = self._options(config, kwargs)
        if config.pre_hook is not None:
            config.pre_hook({**nargs, **options})
        return self.fn.run(*args, **options)

    def _run_checked(self, args, kwargs, nargs):
        """Launches the first configuration that fits, once: trials have nothing to add to a check. Where
        there would have been trials, says so if they would have spoiled the result."""
        key = self._key({**nargs, **kwargs})
        config = self.cache.get(key)
        if config is not None:
            return self._launch_one(config, args, kwargs, nargs)
        unfit = None
        for config in self._pruned(args, kwargs):
            self._before(nargs, kwargs, reset_only=True)
            try:
                result = self._launch_one(config, args, kwargs, nargs)
                break
            except _UNFIT as e:
                unfit = unfit or e
        else:
            raise self._none_fits(unfit) from unfit
        self.cache[key] = config
        kept = {*self.restore_value, *self.reset_to_zero}
        hooked = self.user_defined_pre_hook or config.pre_hook is not None
        for name in [] if hooked else check.changed_by_last_launch():
            if name in self.arg_names and name not in kept:
                check.found(
                    self.base_fn,
                    "autotune-hazard",
                    f"kernel `{self.__name__}` is tuned and changes `{name}` after reading it, so that each trial "
                    "begins with what the one before left",
                    ["Triton runs the kernel many times to tune it, and what was in the tensor is lost (Naiad puts it back)"],
                    [f"name it in `restore_value=[\"{name}\"]`, or in `reset_to_zero` if it begins as zeros"],
                )
        return result

    def _options(self, config, kwargs):
        """The keywords of a launch of this configuration."""
        chosen = config.all_kwargs()
        if chosen.keys() & kwargs.keys():
            # An option that is None is left to its default, so it contradicts nothing.
            kwargs = {name: x for name, x in kwargs.items() if name not in chosen or x is not None}
            conflicts = sorted(chosen.keys() & kwargs.keys())
            if conflicts:
                raise ValueError(
                    f"Conflicting meta-parameters: {', '.join(conflicts)}. They are tuned, so a "
                    "launch cannot give them too."
                )
        return {**kwargs, **chosen}

    def _key(self, arguments):
        key = [arguments[name] for name in self.keys if name in arguments]
        for name in self.arg_names:
            arg = arguments.get(name)
            if hasattr(arg, "dtype"):
                key.append(str(arg.dtype))
        try:
            hash(key := tuple(key))
        except TypeError:
            key = tuple(map(repr, key))
        return key

    def _choose(self, key, args, kwargs, nargs):
        """The best configuration for a key, and whether it had to be tuned for."""
        entry = self._entry(key)
        timings = entry and self._loaded(entry)
        if timings:
            self.configs_timings, self.bench_time = timings, None
            best = _best(timings)
        else:
            best = self._tune(args, kwargs, nargs)
            if entry:
                rows = [[self.configs.index(c), t] for c, t in self.configs_timings.items()]
                entry.store({"kernel": self.__name__, "key": repr(key), "timings": rows})
        if knobs.autotuning.print and not timings:
            print(
                f"autotune {self.__name__} for the key {key}: {best} is the fastest of "
                f"{len(self.configs_timings)} configurations, after {self.bench_time:.2f} s"
            )
        if knobs.autotuning.listener is not None:
            knobs.autotuning.listener(
                fn=self.base_fn,
                key=key,
                best_config=best,
                configs_timings=self.configs_timings,
                duration=self.bench_time,
                cache_hit=bool(timings),
            )
        return best, not timings

    def _entry(self, key):
        """Where the result for a key is kept on disk; None where it is not."""
        if not (self.cache_results or knobs.autotuning.cache):
            return None
        # What a hook does to a launch, and so to its time, is not in any key.
        if any(config.pre_hook is not None for config in self.configs):
            return None
        facts = [_naiad.__version__, os.cpu_count(), self.base_fn.cache_key]
        fn = self.fn
        while fn is not self.base_fn:
            if isinstance(fn, Heuristics):
                facts += [f"{name}={source.text_of(f)}" for name, f in fn.values.items()]
            fn = fn.fn
        # A pruning function sees more than the key, and can only have made the choice smaller.
        return cache.Entry("autotune", *facts, *self.configs, repr(key))

    def _loaded(self, entry):
        result = entry.load()
        try:
            timings = {self.configs[i]: t for i, t in result["timings"]}
            return timings if timings and _time(timings[_best(timings)]) < float("inf") else None
        except (TypeError, KeyError, IndexError, ValueError):
            # Not written by this version of these lines: tuned again, and then overwritten.
            return None

    def _tune(self, args, kwargs, nargs):
        start = time.perf_counter()
        configs = self._pruned(args, kwargs)
        for config in configs:
            self._options(config, kwargs)
        plain = [c for c in configs if c.pre_hook is None]
        compiled = dict(zip(plain, self._compile(plain, args, kwargs, silent=True)))
        # A launch that tunes leaves what one leaves that does not, whatever the trials have done to
        # the kernel's tensors, and even if one of them fails.
        saved = _Saved(nargs, kwargs, but=self.reset_to_zero)
        reasons = []
        try:
            timings, known = {}, {}
            for config in configs:
                same = self._code(config, compiled, args, kwargs, nargs)
                if same not in known:
                    best = min(map(_time, known.values()), default=float("inf"))
                    known[same] = self._measure(config, args, kwargs, nargs, reasons, best)
                timings[config] = known[same]
        finally:
            saved.restore()
        self.bench_time = time.perf_counter() - start
        self.configs_timings = timings
        best = _best(timings)
        if _time(timings[best]) == float("inf"):
            raise self._none_fits(reasons[0]) from reasons[0]
        return best

    def _none_fits(self, reason):
        return AutotunerError(f"no configuration of `{self.__name__}` can be run; the first one fails so: {reason}")

    def _code(self, config, compiled, args, kwargs, nargs):
        """What a trial of the configuration runs. Many differ in what only a GPU has, such as warps and
        stages, and are the same code on a CPU."""
        if driver.has_gpu():
            return config
        # Hooks choose the blocks of descriptors, which the code depends on. They are called for this where
        # it may spare a trial.
        alike = [c for c in self.configs if c.pre_hook == config.pre_hook and c.kwargs == config.kwargs]
        if config.pre_hook is not None and len(alike) > 1 and isinstance(self.fn, KernelInterface):
            config.pre_hook({**nargs, **self._options(config, kwargs)})
            [compiled[config]] = self._compile([config], args, kwargs, silent=True)
        code = getattr(compiled.get(config), "hash", None)
        return config if code is None else (repr(config.kwargs), config.pre_hook, code)

    def _compile(self, configs, args, kwargs, silent=False):
        """Compiles for all configurations at once.

        A silent one leaves to the trials, which are in order, what there is to show or to raise.
        """
        if not isinstance(self.fn, KernelInterface):
            return []

        def one(config):
            options = {**self._options(config, kwargs), "warmup": True}
            try:
                return self.fn.run(*args, **options)
            except Exception:
                if not silent:
                    raise

        if silent:
            one = silently(one)
        # What the first asks about the names that the kernel uses is not asked again by the rest.
        results = [one(config) for config in configs[:1]]
        rest = configs[1:]
        threads = min(len(rest), _cores())
        if threads < 2 or not silent:
            return results + [one(config) for config in rest]
        with concurrent.futures.ThreadPoolExecutor(threads, "naiad-compile") as pool:
            return results + list(pool.map(one, rest))

    def _measure(self, config, args, kwargs, nargs, reasons, best):
        """What the runs of a configuration take, where the best one before takes ``best``."""
        from .. import testing

        options = self._options(config, kwargs)

        def once():
            if config.pre_hook is not None:
                config.pre_hook({**nargs, **options})
            copies = self._before(nargs, kwargs)
            try:
                self.fn.run(*args, **options)
            except Exception as e:
                self._after(nargs, kwargs, copies, e)
                raise
            self._after(nargs, kwargs, copies, None)

        quantiles = (0.5, 0.2, 0.8)
        try:
            if self._do_bench is None:
                return testing.trial(once, quantiles, best)
            return self._do_bench(once, quantiles=quantiles)
        except _UNFIT as e:
            reasons.append(e)
            return [float("inf")] * 3

    def _before(self, nargs, kwargs, reset_only=False):
        """Zeroes what is to be zeroed; returns copies of what is to be restored."""
        arguments = {**nargs, **kwargs}
        if self.pre_hook is not None:
            self.pre_hook(arguments, **({"reset_only": True} if reset_only else {}))
            return {}
        # A pointer that is optional may be None.
        for name in self.reset_to_zero:
            if arguments[name] is not None:
                _fill_zero(arguments[name])
        if reset_only:
            return {}
        return {name: _copy(arguments[name]) for name in self.restore_value if arguments[name] is not None}

    def _after(self, nargs, kwargs, copies, exception):
        arguments = {**nargs, **kwargs}
        if self.post_hook is not None:
            self.post_hook(arguments, exception=exception)
            return
        for name, copy in copies.items():
            _restore(arguments[name], copy)

    def _pruned(self, args, kwargs):
        nargs = dict(zip(self.arg_names, args))
        configs = self.configs
        if self.early_config_prune:
            configs = list(self.early_config_prune(configs, nargs, **kwargs))
            if not configs:
                raise AutotunerError(
                    f"`early_config_prune` left no configuration of `{self.__name__}`: it must "
                    "return at least one of those it is given"
                )
        if self.perf_model:
            top_k = self.configs_top_k
            if isinstance(top_k, float):
                if top_k > 1.0:
                    raise ValueError("`top_k` is a count, or a fraction of at most 1.0")
                top_k = int(len(self.configs) * top_k)
            top_k = max(1, top_k)
            if len(configs) > top_k:
                model = [self.perf_model(**{**nargs, **kwargs, **c.all_kwargs()}) for c in configs]
                order = sorted(range(len(configs)), key=model.__getitem__)
                configs = [configs[i] for i in order[:top_k]]
        return configs


class Heuristics(KernelInterface):
    """A kernel some of whose meta-parameters are computed from the arguments of each launch."""

    def __init__(self, fn, arg_names, values):
        self.fn = fn
        self.base_fn = _base(fn)
        self.__name__ = self.base_fn.__name__
        self.__doc__ = getattr(self.base_fn, "__doc__", None)
        self.arg_names = arg_names
        self.values = values

    def run(self, *args, **kwargs):
        for name, heuristic in self.values.items():
            kwargs[name] = heuristic({**dict(zip(self.arg_names, args)), **kwargs})
        return self.fn.run(*args, **kwargs)


def autotune(
    configs,
    key,
    prune_configs_by=None,
    reset_to_zero=None,
    restore_value=None,
    pre_hook=None,
    post_hook=None,
    warmup=None,
    rep=None,
    use_cuda_graph=False,
    do_bench=None,
    cache_results=False,
):
    """Times each configuration where the values of ``key`` are new, and keeps the fastest.

    With ``cache_results`` the times are kept on disk, and another process that launches the same
    kernel with the same configurations and key need not measure.
    """
    given = {"warmup": warmup, "rep": rep, "use_cuda_graph": use_cuda_graph or None}
    given = {name: value for name, value in given.items() if value is not None}
    if given:
        warnings.warn(
            f"`autotune` measures by `do_bench`: {', '.join(given)} will go. Write "
            "`do_bench=lambda fn, quantiles: triton.testing.do_bench(fn, warmup=..., rep=..., "
            "quantiles=quantiles)`",
            DeprecationWarning,
            stacklevel=2,
        )
        do_bench = do_bench or _deprecated_bench(given)

    def decorate(fn):
        return Autotuner(
            fn,
            fn.arg_names,
            configs,
            key,
            reset_to_zero=reset_to_zero,
            restore_value=restore_value,
            pre_hook=pre_hook,
            post_hook=post_hook,
            prune_configs_by=prune_configs_by,
            do_bench=do_bench,
            cache_results=cache_results,
        )

    return decorate


def heuristics(values):
    """Computes meta-parameters from the arguments: ``{"EVEN": lambda args: ...}``."""
    return lambda fn: Heuristics(fn, fn.arg_names, values)


def _deprecated_bench(given):
    given = {name: given[name] for name in ("warmup", "rep") if given.get(name) is not None}

    def bench(fn, quantiles):
        from ..testing import do_bench

        return do_bench(fn, quantiles=quantiles, **given)

    return bench


def _base(fn):
    while isinstance(fn, (Autotuner, Heuristics)):
        fn = fn.fn
    return fn


def _time(measured):
    """The time that counts of what a `do_bench` returned."""
    return measured[0] if isinstance(measured, (list, tuple)) else measured


def _best(timings):
    return min(timings, key=lambda config: _time(timings[config]))


def _cores():
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Saved:
    """The contents of a launch's tensors, to be put back."""

    def __init__(self, nargs, kwargs, but):
        arguments = {**nargs, **kwargs}
        tensors = [tensor for name, arg in arguments.items() if name not in but for tensor in _tensors(arg)]
        self.copies = [(tensor, _copy(tensor)) for tensor in tensors if _may_change(tensor)]

    def restore(self):
        for tensor, copy in self.copies:
            _restore(tensor, copy)


def _tensors(arg):
    """The tensors that a kernel reaches by an argument."""
    if isinstance(arg, (tuple, list)):
        for item in arg:
            yield from _tensors(item)
    else:
        yield arg.base if isinstance(arg, (TensorDescriptor, TensorWrapper)) else arg


def _may_change(arg):
    """Whether a kernel can write to the argument, and so can we."""
    if not hasattr(arg, "dtype") or not getattr(arg, "shape", ()):
        return False
    if hasattr(arg, "copy_"):
        # Elements of an expanded tensor share their memory, and torch refuses to write there.
        strides = zip(arg.shape, arg.stride())
        return hasattr(arg, "clone") and not any(s == 0 and n > 1 for n, s in strides)
    writable = getattr(getattr(arg, "flags", None), "writeable", False)
    return bool(writable and hasattr(arg, "copy"))


def _fill_zero(tensor):
    tensor.zero_() if hasattr(tensor, "zero_") else tensor.fill(0)


def _copy(tensor):
    return _unseen(tensor).clone() if hasattr(tensor, "clone") else tensor.copy()


def _restore(tensor, copy):
    if hasattr(tensor, "copy_"):
        _unseen(tensor).copy_(copy)
    else:
        tensor[...] = copy


def _unseen(tensor):
    """The tensor's memory, so that autograd sees no writes: what is put back was never changed."""
    return tensor.data if hasattr(tensor, "detach") else tensor
