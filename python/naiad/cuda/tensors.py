"""Tensors "on cuda": CPU tensors that say so.

A device belongs to memory, and all views of a tensor share its storage; so the mark stands on the
storage's Python object, which torch keeps for as long as the storage lives. Views, `detach`, `.data`
and parameters need nothing more. What asks for a device puts the mark: factories, `to`, `cuda`,
`cpu`, `torch.load`.

Results of operators, made in C++, bear no mark. They are taken to be on cuda once anything of the
process has been, since that is where scripts for GPUs compute. Where the mark is missing moves copy,
which is right whichever it was.
"""

import functools

import torch
import torch.utils._device

from ..exposed import expose_while_alive

CPU = torch.device("cpu")
CUDA = torch.device("cuda", 0)

_Base = torch._C.TensorBase
_without_overrides = torch._C.DisableTorchFunction
_modes = torch._C._len_torch_function_stack
_PLAIN = {torch.Tensor, torch.nn.Parameter}
_real_device = _Base.device.__get__
_real_to = _Base.to
_SPARSE_ROWS = {torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc}


def _is_cpu(tensor, *, real=_Base.is_cpu.__get__):
    """Whether the memory is the CPU's. Overrides would be told the name, and so call what we put there."""
    if type(tensor) in _PLAIN and not _modes():
        return real(tensor)
    with _without_overrides():
        return real(tensor)


def _storage(tensor, *, real=_Base.untyped_storage):
    """The memory that bears the mark. A sparse tensor has none of its own: its values' does."""
    try:
        return real(tensor)
    except NotImplementedError:
        with _without_overrides():
            if tensor.layout is torch.sparse_coo:
                return real(tensor._values())
            if tensor.layout in _SPARSE_ROWS:
                return real(tensor.values())
        raise


class _State:
    # Whether anything of this process has been on cuda.
    used = False
    # Called before the first time.
    on_first_use = staticmethod(lambda: None)


def asked(device):
    """``CUDA`` where the device means that, else None."""
    if device is None or device is CPU:
        return None
    if isinstance(device, str):
        if not device.startswith("cuda"):
            return None
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != "cuda":
            return None
        index = device.index
    elif type(device) is int:
        index = device
    else:
        return None
    if index:
        raise RuntimeError(f"CUDA error: invalid device ordinal {index}: Naiad serves one GPU, `cuda:0`")
    return CUDA


def index(device):
    """The index of a device as `torch.cuda` takes it; only 0 exists."""
    if device is not None and not (type(device) is int and device < 0):
        asked(device)
    return 0


def use():
    """Notes that cuda is in use."""
    if not _State.used:
        _State.used = True
        _State.on_first_use()


def mark(tensor, device):
    """Notes the device of the tensor's memory."""
    if device is CUDA:
        use()
    try:
        _storage(tensor)._naiad_device = device
    except (NotImplementedError, RuntimeError):
        # Wrappers of other tensors have no memory of their own.
        pass
    return tensor


def marked(tensor):
    """The device that is noted for the tensor's memory, if any."""
    try:
        return _storage(tensor)._naiad_device
    except (NotImplementedError, RuntimeError):
        return None


def _mark_new(tensor, device):
    """Notes the device unless one is noted."""
    try:
        storage = _storage(tensor)
        if storage._naiad_device is None:
            storage._naiad_device = device
    except (NotImplementedError, RuntimeError):
        pass
    return tensor


def _inherit(result, origin):
    """Gives a result the mark of the tensor that it was made from."""
    device = marked(origin)
    return result if device is None else _mark_new(result, device)


def is_cuda(tensor):
    if not _is_cpu(tensor):
        return False
    device = marked(tensor)
    return _State.used if device is None else device is CUDA


def is_cpu(tensor):
    return _is_cpu(tensor) and not is_cuda(tensor)


def device_of(tensor):
    if not _is_cpu(tensor):
        return _real_device(tensor)
    device = marked(tensor)
    if device is None:
        return CUDA if _State.used else CPU
    return device


def get_device(tensor):
    return 0 if is_cuda(tensor) else _Base.get_device(tensor)


def data_ptr(self, *, real=_Base.data_ptr):
    """The address; a kernel that is given it as a number may follow it from here on."""
    address = real(self)
    if address and is_cuda(self):
        expose_while_alive(self)
    return address


def _pin(kwargs):
    """Takes `pin_memory` out: without a GPU there is nothing to pin for."""
    return kwargs.pop("pin_memory", False)


def _set_pinned(tensor, pinned=True):
    if pinned:
        _storage(tensor)._naiad_pinned = True
    return tensor


def factory(make):
    """A function of torch's that takes `device`, so that it takes cuda."""

    @functools.wraps(make)
    def made(*args, **kwargs):
        if not kwargs:
            return _mark_new(make(*args), CPU)
        device = kwargs.get("device")
        pinned = _pin(kwargs) if "pin_memory" in kwargs else False
        if device is None:
            result = make(*args, **kwargs)
            # Of this thread's default device where one is set: see `_patch_default`.
            _mark_new(result, CPU)
        elif asked(device):
            kwargs["device"] = CPU
            result = mark(make(*args, **kwargs), CUDA)
        else:
            result = make(*args, **kwargs)
            if _is_cpu(result):
                mark(result, CPU)
        return _set_pinned(result) if pinned else result

    return made


def like(make):
    """A function that makes a tensor after another one, its first argument."""

    @functools.wraps(make)
    def made(*args, **kwargs):
        device = kwargs.get("device")
        pinned = _pin(kwargs) if "pin_memory" in kwargs else False
        if device is None:
            result = make(*args, **kwargs)
            origin = args[0] if args else kwargs.get("input")
            # `normal` may be given plain numbers.
            _inherit(result, origin) if isinstance(origin, torch.Tensor) else _mark_new(result, CPU)
        elif asked(device):
            kwargs["device"] = CPU
            result = mark(make(*args, **kwargs), CUDA)
        else:
            result = make(*args, **kwargs)
            if _is_cpu(result):
                mark(result, CPU)
        return _set_pinned(result) if pinned else result

    return made


def sharing(make):
    """A function that gives a tensor over the argument's memory where it can: `as_tensor`."""

    @functools.wraps(make)
    def made(data, *args, **kwargs):
        device = kwargs.pop("device", None)
        result = make(data, *args, **kwargs)
        _inherit(result, data) if isinstance(data, torch.Tensor) else _mark_new(result, CPU)
        return result if device is None else to(result, device)

    return made


def inheriting(method):
    """A method whose result lies where its tensor does."""

    @functools.wraps(method)
    def run(self, *args, **kwargs):
        result = method(self, *args, **kwargs)
        # Without a mark it counts as cuda already.
        if result is not self and marked(self) is CPU:
            _mark_new(result, CPU)
        return result

    return run


@functools.wraps(_real_to)
def to(self, *args, **kwargs):
    wanted = None
    if "device" in kwargs:
        wanted = kwargs["device"]
        kwargs["device"] = CPU
    elif args:
        first = args[0]
        if isinstance(first, (str, torch.device, int)):
            wanted, args = first, (CPU, *args[1:])
        elif isinstance(first, torch.Tensor):
            wanted = device_of(first)
        elif first is None:
            args = args[1:]
    if "other" in kwargs:
        wanted = device_of(kwargs["other"])
    if wanted is None:
        if "device" in kwargs:
            del kwargs["device"]
        result = _real_to(self, *args, **kwargs)
        return result if result is self else _inherit(result, self)
    device = asked(wanted)
    if device is None:
        given = torch.device(wanted)
        if given.type != "cpu" or not _is_cpu(self):
            if "device" in kwargs:
                kwargs["device"] = given
            elif isinstance(args[0], torch.device):
                args = (given, *args[1:])
            return _real_to(self, *args, **kwargs)
        device = CPU
    have = marked(self)
    result = _real_to(self, *args, **kwargs)
    if result is not self:
        return mark(result, device)
    if have is device:
        return self
    if have is None and device is CUDA and self.is_leaf and self.requires_grad:
        # Most likely it is there, and a copy would be no leaf: its gradient would be lost.
        return mark(self, device)
    return mark(self.clone(), device)


def cuda(self, device=None, non_blocking=False, memory_format=torch.preserve_format):
    return to(self, CUDA if device is None else device, memory_format=memory_format)


def cpu(self, memory_format=torch.preserve_format):
    return to(self, CPU, memory_format=memory_format)


def pin_memory(self, device=None):
    return self if is_pinned(self) else _set_pinned(mark(self.clone(), CPU))


def is_pinned(self, device=None):
    return _storage(self)._naiad_pinned


class _Generators(type(torch._C.Generator)):
    """The generator that torch itself makes is one of these too."""

    def __instancecheck__(cls, generator):
        return isinstance(generator, torch._C.Generator)


class Generator(torch._C.Generator, metaclass=_Generators):
    """Random numbers "on cuda" are the CPU's."""

    def __new__(cls, device="cpu"):
        on = asked(device)
        generator = super().__new__(cls, CPU if on else device)
        generator._on = on
        return generator

    def __init__(self, device="cpu"):
        pass

    @property
    def device(self):
        return self._on or super().device

    def clone_state(self):
        generator = Generator(self.device)
        generator.set_state(self.get_state())
        return generator

    def __reduce__(self):
        return _restored, (str(self.device), self.get_state())


def _restored(device, state):
    generator = Generator(device)
    generator.set_state(state)
    return generator


def _constructors():
    """Every function of torch's that takes `device` and makes a tensor from nothing."""
    names = """
        arange bartlett_window blackman_window empty empty_permuted empty_quantized empty_strided eye
        from_file full hamming_window hann_window kaiser_window linspace logspace ones rand
        randint randn randperm range scalar_tensor sparse_bsc_tensor sparse_bsr_tensor
        sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor
        tril_indices triu_indices zeros
    """.split()
    found = [(torch, name) for name in names]
    found += [(torch.fft, name) for name in ("fftfreq", "rfftfreq")]
    found += [(torch.nested, name) for name in ("nested_tensor", "as_nested_tensor")]
    return [(module, name) for module, name in found if hasattr(module, name)]


_LIKE = "empty_like full_like normal ones_like rand_like randint_like randn_like zeros_like".split()
_NEW = "new_empty new_empty_strided new_full new_ones new_tensor new_zeros".split()
_RESULTS = """
    bfloat16 bool byte char clone coalesce contiguous double float half int long short to_dense
    to_sparse to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr
""".split()


def patch():
    """Puts all of it into torch."""
    # By torch's own function, the one that takes its place.
    makers = {}
    _patch_default(makers)
    for module, name in _constructors():
        original = getattr(module, name)
        makers[original] = factory(original)
        setattr(module, name, makers[original])
    for name in ("as_tensor", "asarray"):
        original = getattr(torch, name)
        makers[original] = sharing(original)
        setattr(torch, name, makers[original])
    for name in ("from_numpy", "frombuffer"):
        setattr(torch, name, sharing(getattr(torch, name)))
    for name in _LIKE:
        if hasattr(torch, name):
            setattr(torch, name, like(getattr(torch, name)))

    Tensor = torch.Tensor
    for name in _NEW:
        setattr(Tensor, name, like(getattr(Tensor, name)))
    for name in _RESULTS:
        setattr(Tensor, name, inheriting(getattr(Tensor, name)))
    Tensor.device = property(device_of)
    Tensor.is_cuda = property(is_cuda)
    Tensor.is_cpu = property(is_cpu)
    Tensor.get_device = get_device
    Tensor.data_ptr = data_ptr
    Tensor.to, Tensor.cuda, Tensor.cpu = to, cuda, cpu
    Tensor.pin_memory, Tensor.is_pinned = pin_memory, is_pinned
    Tensor.record_stream = lambda self, stream: None
    Tensor.__cuda_array_interface__ = property(_no_interface)
    Tensor.__dlpack_device__ = lambda self: (torch.utils.dlpack.DLDeviceType.kDLCPU, 0)
    torch.get_device = get_device
    torch.Generator = Generator
    _patch_storages()
    _patch_comparison()


def _no_interface(self):
    raise AttributeError("`__cuda_array_interface__`: this tensor's memory is the CPU's, under Naiad")


def _patch_default(makers):
    """Default devices are a mode of torch's, which sees the functions that we call."""
    Context = torch.utils._device.DeviceContext
    otherwise = Context.__torch_function__
    # What it takes for a constructor may have been computed from what stood there before.
    constructors = torch.utils._device._device_constructors()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        made = makers.get(func) if func in constructors else None
        if made is not None and kwargs.get("device") is None:
            return made(*args, **{**kwargs, "device": self.device})
        return otherwise(self, func, types, args, kwargs)

    Context.__torch_function__ = __torch_function__


def _patch_storages():
    """Copies and files of storages keep the device."""
    Storage = torch.storage._StorageBase
    # What there is without a mark.
    Storage._naiad_device, Storage._naiad_pinned = None, False
    clone = Storage.clone

    def cloned(self):
        copy = clone(self)
        device = self._naiad_device
        if device is not None:
            copy._naiad_device = device
        return copy

    Storage.clone = cloned

    def location(storage):
        on = storage._naiad_device
        return "cuda:0" if on is CUDA else None

    def restore(storage, location):
        if location == "cpu":
            storage._naiad_device = CPU
            return storage
        if location.startswith("cuda"):
            storage._naiad_device = asked(location)
            use()
            return storage
        return None

    # Before torch's own, which stand at 10 and above.
    torch.serialization.register_package(5, location, restore)


def _patch_comparison():
    """Where a tensor has no mark, a comparison of devices would compare a guess."""
    import torch.testing._comparison as comparison

    Pair = comparison.TensorLikePair
    compare = Pair._compare_attributes

    def _compare_attributes(self, actual, expected):
        if marked(actual) is None or marked(expected) is None:
            self.check_device = False
        compare(self, actual, expected)

    Pair._compare_attributes = _compare_attributes
