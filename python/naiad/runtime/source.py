"""Where the text of a function stands."""

import inspect
import linecache
import sys


def find(fn):
    """Name, file, the file's text, and the bytes of it that the function takes.

    The lines are those that the code object names, so a function that was redefined under the same
    name, in a file, a notebook or by `exec`, is still itself.
    """
    code = fn.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    first = code.co_firstlineno - 1
    if not lines:
        raise OSError(
            f"the source of `{fn.__name__}` cannot be found in `{code.co_filename}`: kernels are "
            "compiled from their text, so define it in a file or a notebook's cell"
        )
    block = inspect.getblock(lines[first:])
    if not any(line.lstrip().startswith(("def ", "async def ")) for line in block):
        raise OSError(
            f"`{code.co_filename}` has changed since `{fn.__name__}` was defined at line {first + 1}"
        )
    start = sum(len(line.encode()) for line in lines[:first])
    end = start + sum(len(line.encode()) for line in block)
    return fn.__name__, code.co_filename, "".join(lines), start, end


def declared_constexpr(namespace, name):
    """Whether the module of this namespace declares ``name: tl.constexpr``."""
    annotations = namespace.get("__annotations__")
    if annotations is None:
        # From Python 3.14 on they are made when the module is asked for them.
        module = sys.modules.get(namespace.get("__name__"))
        if getattr(module, "__dict__", None) is not namespace:
            return False
        annotations = getattr(module, "__annotations__", {})
    annotation = annotations.get(name)
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rsplit(".", 1)[-1].strip() == "constexpr"
