"""``autotune`` and ``heuristics``: launches whose meta-parameters are chosen here."""

from ..errors import CompileTimeAssertionFailure
from .errors import AutotunerError, OutOfResources, PTXASError
from .jit import KernelInterface

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
    ):
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def all_kwargs(self):
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
        do_bench=None,
    ):
        self.fn = fn
        self.base_fn = _base(fn)
        self.__name__ = self.base_fn.__name__
        self.arg_names = arg_names
        self.configs = list(configs) or [Config({})]
        self.keys = list(key)
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        for name in [*self.keys, *self.reset_to_zero, *self.restore_value]:
            if name not in arg_names:
                raise ValueError(f"`{name}` is no parameter of `{self.__name__}`: {arg_names}")
        self.user_pre_hook = pre_hook
        self.user_post_hook = post_hook
        prune = prune_configs_by or {}
        self.early_config_prune = prune.get("early_config_prune")
        self.perf_model = prune.get("perf_model")
        self.configs_top_k = prune.get("top_k", 1.0)
        self._do_bench = do_bench
        self.cache = {}
        self.configs_timings = {}
        self.best_config = None
        self.bench_time = None

    def run(self, *args, **kwargs):
        nargs = dict(zip(self.arg_names, args))
        tuned = False
        if len(self.configs) == 1:
            config = self.configs[0]
        else:
            key = self._key({**nargs, **kwargs})
            config = self.cache.get(key)
            if config is None:
                config, tuned = self._tune(args, kwargs, nargs), True
                self.cache[key] = config
        self.best_config = config
        self._check_conflicts(config, kwargs)
        if tuned:
            self._before(nargs, kwargs, reset_only=True)
        if config.pre_hook is not None:
            config.pre_hook({**nargs, **kwargs, **config.all_kwargs()})
        return self.fn.run(*args, **kwargs, **config.all_kwargs())

    def warmup(self, *args, **kwargs):
        nargs = dict(zip(self.arg_names, args))
        configs = self._prune(nargs, kwargs)
        return [self.fn.warmup(*args, **kwargs, **config.all_kwargs()) for config in configs]

    def _key(self, arguments):
        named = [arguments[name] for name in self.keys if name in arguments]
        typed = [str(arg.dtype) for arg in arguments.values() if hasattr(arg, "dtype")]
        return (*named, *typed)

    def _tune(self, args, kwargs, nargs):
        import time

        start = time.perf_counter()
        configs = self._prune(nargs, kwargs)
        timings = {config: self._time(config, args, kwargs, nargs) for config in configs}
        self.bench_time = time.perf_counter() - start
        self.configs_timings = timings
        best = min(timings, key=lambda config: timings[config][0])
        if timings[best][0] == float("inf"):
            raise AutotunerError(f"no configuration of `{self.__name__}` can be run")
        return best

    def _time(self, config, args, kwargs, nargs):
        from ..testing import do_bench

        self._check_conflicts(config, kwargs)
        meta = config.all_kwargs()

        def once():
            if config.pre_hook is not None:
                config.pre_hook({**nargs, **kwargs, **meta})
            copies = self._before(nargs, kwargs)
            try:
                self.fn.run(*args, **kwargs, **meta)
            except Exception as e:
                self._after(nargs, kwargs, copies, e)
                raise
            self._after(nargs, kwargs, copies, None)

        bench = self._do_bench or do_bench
        try:
            return bench(once, quantiles=(0.5, 0.2, 0.8))
        except _UNFIT:
            return [float("inf")] * 3

    def _before(self, nargs, kwargs, reset_only=False):
        """Zeroes what is to be zeroed; returns copies of what is to be restored."""
        arguments = {**nargs, **kwargs}
        if self.user_pre_hook is not None:
            self.user_pre_hook(arguments, reset_only=reset_only)
            return {}
        for name in self.reset_to_zero:
            _fill_zero(arguments[name])
        if reset_only:
            return {}
        return {name: _copy(arguments[name]) for name in self.restore_value}

    def _after(self, nargs, kwargs, copies, exception):
        arguments = {**nargs, **kwargs}
        if self.user_post_hook is not None:
            self.user_post_hook(arguments, exception=exception)
        for name, copy in copies.items():
            _restore(arguments[name], copy)

    def _check_conflicts(self, config, kwargs):
        conflicts = sorted(set(config.kwargs) & set(kwargs))
        if conflicts:
            raise ValueError(
                f"Conflicting meta-parameters: {', '.join(conflicts)}. They are tuned, so a launch "
                "cannot give them too."
            )

    def _prune(self, nargs, kwargs):
        configs = self.configs
        if self.early_config_prune:
            configs = self.early_config_prune(configs, nargs, **kwargs)
            if not configs:
                raise AutotunerError("`early_config_prune` left no configuration")
        if self.perf_model:
            top_k = self.configs_top_k
            if isinstance(top_k, float):
                if top_k > 1.0:
                    raise ValueError("`top_k` is a count, or a fraction of at most 1.0")
                top_k = max(1, int(len(self.configs) * top_k))
            if len(configs) > top_k:
                model = {c: self.perf_model(**{**nargs, **kwargs, **c.all_kwargs()}) for c in configs}
                configs = sorted(configs, key=model.__getitem__)[:top_k]
        return configs


class Heuristics(KernelInterface):
    """A kernel some of whose meta-parameters are computed from the arguments of each launch."""

    def __init__(self, fn, arg_names, values):
        self.fn = fn
        self.base_fn = _base(fn)
        self.__name__ = self.base_fn.__name__
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
    """Times each configuration where the values of ``key`` are new, and keeps the fastest."""

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
        )

    return decorate


def heuristics(values):
    """Computes meta-parameters from the arguments: ``{"EVEN": lambda args: ...}``."""
    return lambda fn: Heuristics(fn, fn.arg_names, values)


def _base(fn):
    while isinstance(fn, (Autotuner, Heuristics)):
        fn = fn.fn
    return fn


def _fill_zero(tensor):
    tensor.zero_() if hasattr(tensor, "zero_") else tensor.fill(0)


def _copy(tensor):
    return tensor.clone() if hasattr(tensor, "clone") else tensor.copy()


def _restore(tensor, copy):
    if hasattr(tensor, "copy_"):
        tensor.copy_(copy)
    else:
        tensor[...] = copy
