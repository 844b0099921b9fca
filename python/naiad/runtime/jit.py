"""``@triton.jit``: kernels as Python objects."""

import functools
import inspect

from .. import _naiad


class KernelInterface:
    """What can be launched: jit functions, and the wrappers that tune them."""

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def warmup(self, *args, grid=(1,), **kwargs):
        """Compiles for these arguments and launches nothing."""
        args = [MockTensor.wrap(arg) for arg in args]
        kwargs = {name: MockTensor.wrap(arg) for name, arg in kwargs.items()}
        return self.run(*args, grid=grid, warmup=True, **kwargs)


class JITParam:
    """A parameter of a jit function."""

    def __init__(self, num, name, annotation, has_default, is_constexpr, do_not_specialize):
        self.num = num
        self.name = name
        self.annotation = annotation or ""
        self.has_default = has_default
        self.is_constexpr = is_constexpr
        self.do_not_specialize = do_not_specialize

    def __repr__(self):
        return f"JITParam({self.name})"


class JITFunction(KernelInterface):
    """A function that is compiled from its text. Launch it as ``f[grid](...)``."""

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
        self.signature = inspect.signature(fn)
        self.arg_names = list(self.signature.parameters)
        self.pre_run_hooks = []
        self._repr = repr

    def __getattr__(self, name):
        # Made at its first use; not by `cached_property`, whose lock a fork could leave taken.
        if name == "_kernel":
            kernel = _naiad.Kernel(self, self.do_not_specialize, bool(self.debug))
            return self.__dict__.setdefault(name, kernel)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @functools.cached_property
    def params(self):
        fixed = self.do_not_specialize
        return [
            JITParam(i, name, annotation, default, constexpr, name in fixed or i in fixed)
            for i, (name, annotation, default, constexpr) in enumerate(self._kernel.params)
        ]

    @property
    def src(self):
        """The text from `def` on, dedented as in Triton."""
        text = inspect.cleandoc("\n" + inspect.getsource(self.fn))
        return text[text.index("def ") :]

    raw_src = src

    @property
    def cache_key(self):
        import hashlib

        return hashlib.sha256(self.src.encode()).hexdigest()

    def run(self, *args, grid, warmup=False, **kwargs):
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        return self._kernel.launch(grid, warmup, args, kwargs)

    def bind(self, *args, **kwargs):
        """The arguments by name, defaults included, and the launch options."""
        return self._kernel.bind(args, kwargs)

    def add_pre_run_hook(self, hook):
        """`hook(*args, **kwargs)` is called before each launch."""
        self.pre_run_hooks.append(hook)

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            f"`{self.__name__}` is a kernel and cannot be called from Python: launch it with "
            f"`{self.__name__}[grid](...)`, or call it in another kernel"
        )

    def __repr__(self):
        return f"JITFunction({self.__module__}:{self.__qualname__})"


def jit(fn=None, **options):
    """Marks a function as a kernel, or as one that kernels call."""
    if fn is None:
        return lambda fn: jit(fn, **options)
    if isinstance(fn, JITFunction):
        fn = fn.fn
    if not inspect.isfunction(fn):
        raise TypeError(f"`@triton.jit` takes a function, not {type(fn).__name__}")
    return JITFunction(fn, **options)


class ConstexprFunction:
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

    def __repr__(self):
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor, dtype):
    """The tensor with its bits taken for another dtype of the same width."""
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    if dtype == base.dtype:
        return base
    return TensorWrapper(base, dtype)


def set_allocator(allocator):
    """Accepted: kernels here need no scratch memory of the host's."""
