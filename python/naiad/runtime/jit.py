"""``@triton.jit``: kernels as Python objects."""

import ast
import collections.abc
import functools
import inspect
import textwrap
import threading

from .. import _naiad, cuda, knobs
from . import hooks, source
from ._allocation import set_allocator
from .types import mangle_type, type_canonicalisation_dict


class KernelInterface:
    """What can be launched: jit functions, and the wrappers that tune them."""

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def warmup(self, *args, grid=(1,), **kwargs):
        """Compiles for these arguments and launches nothing."""
        args = [MockTensor.wrap(arg) for arg in args]
        kwargs = {name: MockTensor.wrap(arg) for name, arg in kwargs.items()}
        return self.run(*args, grid=grid, warmup=True, **kwargs)


class _lazy:
    """An attribute that is made at its first use, and then is as any other.

    Not `functools.cached_property`, whose lock a fork could leave taken.
    """

    def __init__(self, make):
        self.make = make

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.make(instance))


class JITCallable:
    """What kernels can call: functions of theirs, and functions of Python's on constexprs."""

    def __deepcopy__(self, memo):
        """As with any function, a copy of what holds it holds the same one."""
        return self

    @property
    def __globals__(self):
        return self.fn.__globals__

    @property
    def module(self):
        return self.fn.__module__

    @property
    def starting_line_number(self):
        """That of the first decorator."""
        return self.fn.__code__.co_firstlineno

    @_lazy
    def _found(self):
        return source.find(self.fn)

    @_lazy
    def raw_src(self):
        """The lines from the first decorator on, as `inspect.getsourcelines` gives them."""
        return source.lines_of(self._found)

    @_lazy
    def _src(self):
        text = textwrap.dedent("".join(self.raw_src))
        return text[source.start_of_def(text) :]

    @property
    def src(self):
        """The text from ``def`` on, dedented: to the byte what Triton has."""
        return self._src

    def parse(self):
        """The text as a syntax tree of Python's."""
        return ast.parse(self.src)

    @property
    def cache_key(self):
        """A digest of all that the code depends on: this text, the texts of the functions that it
        reaches, the constants that they read, and Naiad's version."""
        return source.digest(self)

    def get_capture_scope(self):
        """What its names outside mean, by name."""
        return self.__globals__ | inspect.getclosurevars(self.fn).nonlocals


class KernelParam:
    """A parameter of a jit function."""

    def __init__(self, num, param, annotation, is_constexpr, specialize, assume_alignment):
        self.num = num
        self.name = param.name
        self.annotation = annotation or ""
        self.default = param.default
        self.is_constexpr = is_constexpr
        self.do_not_specialize = not specialize
        self.do_not_specialize_on_alignment = not assume_alignment
        self._param = param

    @property
    def has_default(self):
        return self.default is not inspect.Parameter.empty

    @property
    def is_const(self):
        return self.annotation.rsplit(".", 1)[-1] == "const" or self.annotation.startswith("*k")

    def __repr__(self):
        return f"KernelParam({self.name})"


class JITFunction(_naiad.Launchable, JITCallable, KernelInterface):
    """A function that is compiled from its text. Launch it as ``f[grid](...)``.

    Launches that nobody hears of do not come by here: see `launcher.rs`.
    """

    def __init__(
        self,
        fn,
        *,
        version=None,
        repr=None,
        launch_metadata=None,
        do_not_specialize=None,
        do_not_specialize_on_alignment=None,
        debug=None,
        noinline=None,
    ):
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.version = version
        self.launch_metadata = launch_metadata
        self.do_not_specialize = list(do_not_specialize or ())
        self.do_not_specialize_on_alignment = list(do_not_specialize_on_alignment or ())
        self.debug = debug
        self.noinline = noinline
        self.pre_run_hooks = []
        self._repr = repr
        try:
            # What is done to them from here on says nothing of the kernel, as in Triton.
            self._annotations = dict(fn.__annotations__)
        except NameError:
            # From Python 3.14 on they are computed here, and may name what does not exist.
            self._annotations = {}

    @_lazy
    def signature(self):
        found = inspect.signature(self.fn)
        given = self._annotations
        params = [
            param.replace(annotation=given.get(name, inspect.Parameter.empty))
            for name, param in found.parameters.items()
        ]
        return found.replace(parameters=params)

    @_lazy
    def arg_names(self):
        return source.parameter_names(self.fn)

    @_lazy
    def _kernel(self):
        return _make_kernel(self)

    @_lazy
    def _text(self):
        return self._found

    @property
    def params(self):
        rows = zip(self.signature.parameters.values(), self._kernel.params)
        return [KernelParam(i, param, *row[1:]) for i, (param, row) in enumerate(rows)]

    @property
    def constexprs(self):
        """The positions of the parameters that are constants of the compilation."""
        return [p.num for p in self.params if p.is_constexpr]

    def is_gluon(self):
        return False

    def _unsafe_update_src(self, new_src):
        """Has another text compiled from here on. What it names is looked up as before."""
        self._src = new_src
        new_src = inspect.cleandoc("\n" + new_src) + "\n"
        file = f"<new source of {self.__qualname__}>"
        self._text = (self.__name__, file, new_src, 0, len(new_src.encode()))
        # Its parameters are read anew.
        self.__dict__.pop("_kernel", None)

    @property
    def device_caches(self):
        """The compiled variants, by device."""
        return DeviceCaches({0: DeviceCache(self)})

    cache = device_caches

    def run(self, *args, grid, warmup=False, **kwargs):
        settings = knobs.runtime
        if settings.debug:
            kwargs["debug"] = True
            kwargs.setdefault("sanitize_overflow", settings.sanitize_overflow)
        if warmup:
            return self._compile(args, kwargs)
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        if settings.hooks_launches:
            return hooks.launch(self, grid, args, kwargs)
        return self._kernel.launch(grid, args, kwargs)

    def _compile(self, args, kwargs):
        mode = AsyncCompileMode.active
        if mode is not None and not _thread.silent:
            return mode.submit(self, args, kwargs)
        if not _thread.silent and knobs.runtime.hooks_compilation:
            return hooks.compile(self, args, kwargs, True)
        return self._kernel.compile(_thread.silent, args, kwargs)

    def _kernel_of(self, types):
        """The kernel with other types for its parameters, by position; None leaves one as it is."""
        mine = source.annotations(self)
        return _make_kernel(self, [mine[i] if ty is None else ty for i, ty in enumerate(types)])

    def preload(self, specialization_data):
        """Compiles what a hook for compilation was told of, maybe in another process."""
        source, options = hooks.from_specialization_data(self, specialization_data)
        return self._kernel.compile(False, tuple(source.arguments()[0]), options)

    def bind(self, *args, **kwargs):
        """The arguments by name, defaults included, and the launch options."""
        return self._kernel.bind(args, kwargs)

    def add_pre_run_hook(self, hook):
        """`hook(*args, **kwargs)` is called before each launch."""
        if not callable(hook):
            raise TypeError(f"a hook is called before each launch, which {hook!r} cannot be")
        self.pre_run_hooks.append(hook)

    def repr(self, specialization):
        """What the kernel calls itself: the name, unless ``repr=`` was given."""
        return self.__name__ if self._repr is None else self._repr(specialization)

    def _called(self, params):
        """What `repr=` calls a variant with these parameters: names with types and values."""
        return self._repr(Specialization(params))

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            f"`{self.__name__}` is a kernel and cannot be called from Python: launch it with "
            f"`{self.__name__}[grid](...)`, or call it in another kernel"
        )

    def __repr__(self):
        return f"JITFunction({self.__module__}:{self.__qualname__})"


class Specialization:
    """The types and constexprs of a variant, by the names of the parameters."""

    def __init__(self, params):
        self.signature = {name: ty for name, ty, _ in params}
        self.constants = {name: value for name, ty, value in params if ty == "constexpr"}


# Launches go by way of whatever stands in the place of this.
run = JITFunction.run


def _make_kernel(function, annotations=None):
    gpu = cuda.gpu()
    # What `tl.target_info` says in kernels is what `triton.runtime.driver` says on the host.
    told = {} if gpu is None else {"cuda_capability": gpu.capability}
    return _naiad.Kernel(
        function,
        source.annotations(function) if annotations is None else annotations,
        function.do_not_specialize,
        function.do_not_specialize_on_alignment,
        bool(function.debug),
        **told,
    )


def get_device_key():
    """Names the current device among the caches of a kernel."""
    from . import driver

    return driver.active.get_current_device()


class DeviceCaches(dict):
    """By device. There is one, and torch calls it "cpu"."""

    def __missing__(self, device):
        return self[0]

    def clear(self):
        for cache in self.values():
            cache[0].clear()


class DeviceCache(tuple):
    """What there is of a kernel on one device; first of all its compiled variants."""

    def __new__(cls, function):
        from ..compiler.compiler import make_backend
        from . import driver

        target = driver.active.get_current_target()
        return super().__new__(cls, (Variants(function), {}, target, make_backend(target), function.bind))

    def __repr__(self):
        return f"<{len(self[0])} compiled variants>"


class Variants(collections.abc.Mapping):
    """The compiled variants by key, as far as they can be looked at."""

    def __init__(self, function):
        self._function = function

    def _all(self):
        named = {}
        # Those that differ in what they read of the host have a key in common.
        for key, compiled in self._function._kernel.variants():
            named[key if key not in named else f"{key}#{len(named)}"] = compiled
        return named

    def __getitem__(self, key):
        return self._all()[key]

    def __iter__(self):
        return iter(self._all())

    def __len__(self):
        return len(self._function._kernel)

    def clear(self):
        """Forgets them: the next launch compiles again."""
        self._function._kernel.clear()


class _Thread(threading.local):
    # Whether compilations here leave what they have to show to whoever uses the code.
    silent = False


_thread = _Thread()


def silently(f):
    """`f`, run so that what it compiles is shown only where it is used."""

    def run(*args, **kwargs):
        before, _thread.silent = _thread.silent, True
        try:
            return f(*args, **kwargs)
        finally:
            _thread.silent = before

    return run


class FutureKernel:
    """A variant that is being compiled in the background."""

    def __init__(self, name, future):
        self._name = name
        self._future = future

    def result(self):
        """The compiled kernel; waits for it."""
        return self._future.result()

    def __getattr__(self, attribute):
        return getattr(self.result(), attribute)

    def __repr__(self):
        state = "compiled" if self._future.done() else "compiling"
        return f"<{state} {self._name}>"


class AsyncCompileMode:
    """``with AsyncCompileMode(executor):`` compiles what is warmed up in it on the executor.

    A launch waits for its own code only. Leaving the block waits for all of it, and raises what
    went wrong unless ``ignore_errors``.
    """

    active = None

    def __init__(self, executor, *, ignore_errors=False):
        self.executor = executor
        self.ignore_errors = ignore_errors
        self._futures = []

    def submit(self, function, args, kwargs):
        kernel = function._kernel
        future = self.executor.submit(silently(kernel.compile), True, args, kwargs)
        self._futures.append(future)
        return FutureKernel(function.__name__, future)

    def __enter__(self):
        if AsyncCompileMode.active is not None:
            raise RuntimeError("`AsyncCompileMode` is on already, and cannot be on twice")
        AsyncCompileMode.active = self
        return self

    def __exit__(self, kind, value, traceback):
        AsyncCompileMode.active = None
        errors = [future.exception() for future in self._futures]
        self._futures.clear()
        errors = [error for error in errors if error is not None]
        # An exception of the block's own says more than what follows from it.
        if errors and kind is None and not self.ignore_errors:
            raise errors[0]


def jit(fn=None, **options):
    """Marks a function as a kernel, or as one that kernels call."""
    if fn is None:
        return lambda fn: jit(fn, **options)
    if isinstance(fn, JITFunction):
        fn = fn.fn
    if not inspect.isfunction(fn):
        raise TypeError(f"`@triton.jit` takes a function, not {type(fn).__name__}")
    if fn.__name__ == "<lambda>":
        raise TypeError(
            "`@triton.jit` takes a function that is written with `def`, and this one is a lambda: "
            "write `def name(...): return ...` under `@triton.jit`"
        )
    return JITFunction(fn, **options)


class ConstexprFunction(JITCallable):
    """A Python function that kernels may call while they are compiled, on constexprs."""

    def __init__(self, fn):
        functools.update_wrapper(self, fn)
        self.fn = fn

    def __call__(self, *args, **kwargs):
        from ..language.core import constexpr

        def plain(x):
            return x.value if isinstance(x, constexpr) else x

        return self.fn(*map(plain, args), **{name: plain(x) for name, x in kwargs.items()})


def constexpr_function(fn):
    """Lets kernels call the function on constexprs; the result is one too."""
    return ConstexprFunction(fn)


class MockTensor:
    """Stands for a tensor of a dtype where nothing is launched."""

    def __init__(self, dtype, shape=(1,)):
        self.dtype = dtype
        self.shape = tuple(shape)

    @staticmethod
    def wrap(arg):
        is_dtype = type(arg).__name__ == "dtype" and type(arg).__module__ == "torch"
        return MockTensor(arg) if is_dtype else arg

    def __getattr__(self, name):
        # What is compiled for it is for the GPU, if there is one; otherwise it has no such attribute.
        from . import driver

        if name == "device" and driver.has_gpu():
            return driver.active.get_active_torch_device()
        raise AttributeError(name)

    def stride(self):
        strides = [1]
        for extent in reversed(self.shape[1:]):
            strides.append(strides[-1] * extent)
        return tuple(reversed(strides))

    @staticmethod
    def data_ptr():
        return 0

    @staticmethod
    def ptr_range():
        return 0


class TensorWrapper:
    """A tensor that kernels see with another element type."""

    def __init__(self, base, dtype):
        self.base = base
        self.dtype = dtype
        self.data = getattr(base, "data", None)
        self.device = base.device
        self.shape = base.shape

    def data_ptr(self):
        return self.base.data_ptr()

    def stride(self, *args):
        return self.base.stride(*args)

    def element_size(self):
        return self.base.element_size()

    def untyped_storage(self):
        return self.base.untyped_storage()

    def cpu(self):
        return TensorWrapper(self.base.cpu(), self.dtype)

    def clone(self):
        return TensorWrapper(self.base.clone(), self.dtype)

    def copy_(self, other):
        self.base.copy_(other.base)

    def to(self, device):
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, size):
        return TensorWrapper(self.base.new_empty(size), self.dtype)

    def new_zeros(self, size):
        return TensorWrapper(self.base.new_zeros(size), self.dtype)

    def __repr__(self):
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor, dtype):
    """The tensor with its bits taken for another dtype of the same width."""
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    if dtype == base.dtype:
        return base
    return TensorWrapper(base, dtype)


# The names that Triton's module for jit functions has as well.
__all__ = """
    AsyncCompileMode ConstexprFunction JITCallable JITFunction KernelInterface KernelParam MockTensor
    TensorWrapper constexpr_function get_device_key jit mangle_type reinterpret set_allocator
    type_canonicalisation_dict
""".split()
