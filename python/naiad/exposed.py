"""Memory that kernels may reach by addresses which they read as numbers.

Kernels over groups of tensors, or over lists of them, are given one tensor of addresses. An address says
nothing of how far its memory goes, nor whether it is alive; so a launch may follow one only into what was
exposed. Only launches of kernels that make pointers of integers ask what that is.
"""

import functools
import weakref

# By address: what keeps the memory, its bytes, and no more than a weak reference where others keep it.
_known = {}


def expose(x):
    """Lets kernels reach a tensor that is no argument, by a pointer that was made of its address. It is
    kept alive from here on. Gives it."""
    storage = _storage(x)
    if storage is not None:
        _known[storage.data_ptr()] = lambda: storage
        return x
    owner = x
    while isinstance(getattr(owner, "base", None), type(owner)):
        owner = owner.base
    interface = owner.__array_interface__
    if interface.get("strides") is not None or interface["data"][1]:
        raise ValueError("only an array whose memory is contiguous, and may be written, can be exposed")
    array = _Array(owner)
    _known[array.data_ptr()] = lambda: array
    return x


def expose_while_alive(x):
    """The same for a tensor of torch's, for as long as its storage lives by itself."""
    storage = _storage(x)
    if storage is not None:
        address = storage.data_ptr()
        known = _known.get(address)
        # What is kept stays kept.
        if known is None or known() is not storage:
            _known[address] = weakref.ref(storage, functools.partial(_forget, address))


def _forget(address, keeper):
    # Another storage may have its address by now.
    if _known.get(address) is keeper:
        del _known[address]


def exposing(data_ptr):
    """`Tensor.data_ptr` of torch's, which exposes the tensors whose address is asked for."""

    def asked(tensor):
        address = data_ptr(tensor)
        if address:
            expose_while_alive(tensor)
        return address

    asked._naiad_makes = data_ptr
    return asked


def memory():
    """All that is exposed: what keeps it, its address, its bytes. Called by launches, which hold it until
    they have ended."""
    found = []
    for address, keeper in list(_known.items()):
        storage = keeper()
        # It may have moved as it was resized.
        if storage is not None and storage.data_ptr() == address:
            found.append((storage, address, storage.nbytes()))
    return found


class _Array:
    """An array of NumPy's as if it were a storage of torch's."""

    def __init__(self, array):
        self._array = array

    def data_ptr(self):
        return self._array.__array_interface__["data"][0]

    def nbytes(self):
        return self._array.nbytes


def _storage(x):
    """The memory that a tensor of torch's is part of; None for other objects."""
    return x.untyped_storage() if hasattr(x, "untyped_storage") else None
