"""What a Python function reads besides its arguments.

Kernels call functions under ``@triton.constexpr_function`` while they are compiled, and their code is good for
as long as such a function would give the same. Only names are followed, through modules, classes and objects: what
a function finds in other ways, as in a file or by an import of its own, is taken to stay.
"""

import dis
import functools
import sys
import types

_UNSEEN = object()


def of(called):
    """``(place, name, fact)`` for each name that is read: the place is a function's globals, a closure's cell or
    an object with attributes. The fact is a text for what may change while it stays one object, and for what
    may be equal though it is another; of the rest it is the object itself, or None for a name without meaning."""
    found = []
    fn = _function(called)
    if fn is not None:
        _follow(fn, _package(fn), found, set())
    return found


def _follow(fn, package, found, seen):
    if id(fn) in seen:
        return
    seen.add(id(fn))
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
    for is_global, name, *attributes in _paths(fn.__code__):
        if is_global:
            place, value = fn.__globals__, fn.__globals__.get(name, _UNSEEN)
        elif name in cells:
            place, value = cells[name], _content(cells[name])
        else:
            # A variable of an enclosing function that runs as part of this one.
            continue
        found.append((place, name, _fact(value)))
        for name in attributes:
            place, value = value, _own(value, name)
            if value is _UNSEEN:
                break
            found.append((place, name, _fact(value)))
        callee = _function(value)
        if callee is not None and (_package(callee) == package or not _is_installed(callee)):
            _follow(callee, package, found, seen)


@functools.lru_cache(maxsize=1024)
def _paths(code):
    """Whether it is a global, then ``a, b, c`` for each ``a.b.c`` that the code reads."""
    paths, path = [], None
    for instruction in dis.get_instructions(code):
        op = instruction.opname
        if op in ("LOAD_GLOBAL", "LOAD_NAME") or op.endswith("DEREF"):
            path = [not op.endswith("DEREF"), instruction.argval]
            paths.append(path)
        elif op in ("LOAD_ATTR", "LOAD_METHOD") and path is not None:
            path.append(instruction.argval)
        elif op not in ("CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL"):
            path = None
    inner = [_paths(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return tuple(dict.fromkeys([*map(tuple, paths), *(path for paths in inner for path in paths)]))


def _own(owner, name):
    """What an object itself has under a name, without running any of its code."""
    if isinstance(owner, types.ModuleType):
        ours = owner.__name__.partition(".")[0] in ("naiad", "triton")
        return _UNSEEN if ours else vars(owner).get(name, _UNSEEN)
    if isinstance(owner, type):
        value = next((vars(c)[name] for c in owner.__mro__ if name in vars(c)), _UNSEEN)
        # A method or property is another object each time that it is asked for.
        return _UNSEEN if hasattr(value, "__get__") else value
    if isinstance(vars(type(owner)).get(name), types.MemberDescriptorType):
        return getattr(owner, name, _UNSEEN)
    try:
        return object.__getattribute__(owner, "__dict__").get(name, _UNSEEN)
    except AttributeError:
        return _UNSEEN


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return _UNSEEN


def _fact(value):
    from ..language.core import constexpr

    if isinstance(value, (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, constexpr)):
        return repr(value)
    return None if value is _UNSEEN else value


def _function(value):
    """The Python function under what is called."""
    for _ in range(8):
        if isinstance(value, types.FunctionType):
            return value
        # Under `constexpr_function`, `tl.constexpr`, `functools.lru_cache` and the like.
        value = next((v for v in (_own(value, n) for n in ("fn", "value", "__wrapped__")) if v is not _UNSEEN), None)
    return None


def _package(fn):
    return (fn.__module__ or "").partition(".")[0]


def _is_installed(fn):
    """Whether it is of Python's library or of an installed one, which do not change while they are used."""
    file = fn.__code__.co_filename
    return _package(fn) in sys.stdlib_module_names or "site-packages" in file or "dist-packages" in file
