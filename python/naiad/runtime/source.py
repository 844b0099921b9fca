"""What is known of a function: where its text stands, what its annotations mean, what it depends on."""

import ast
import bisect
import builtins
import hashlib
import inspect
import io
import itertools
import linecache
import re
import sys

from .. import _naiad
from ..errors import TritonError


def find(fn):
    """Name, file, the file's text, and the bytes of it that the function takes.

    The lines are those that the code object names, so a function that was redefined under the same
    name, in a file, a notebook or by `exec`, is still itself.
    """
    code = fn.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    if not lines:
        raise TritonError(
            f"the source of `{fn.__name__}` cannot be found in `{code.co_filename}`: kernels are "
            "compiled from their text, so define it in a file or a notebook's cell"
        )
    file = _File.of(code.co_filename, lines)
    first = code.co_firstlineno - 1
    block = file.block(first)
    if block is None:
        raise TritonError(
            f"`{code.co_filename}` has changed since `{fn.__name__}` was defined at line {first + 1}"
        )
    return fn.__name__, code.co_filename, file.text, *block


def lines_of(found):
    """The lines of what `find` found, as `inspect` has them: with comments behind the body that belong to it."""
    _, _, text, start, _ = found
    rest = text[start:] if text.isascii() else text.encode()[start:].decode()
    return inspect.getblock(list(io.StringIO(rest)))


class _File:
    """The lines of a file as `linecache` has them, and what was made of them.

    Test suites define kernels within their tests, one after another in files of thousands of lines.
    """

    MOST = 64
    known = {}

    def __init__(self, lines):
        self.lines = lines
        self.text = "".join(lines)
        # The byte at which each line starts; one more, which is where the last ends.
        sizes = map(len, lines) if self.text.isascii() else (len(line.encode()) for line in lines)
        self.starts = [0, *itertools.accumulate(sizes)]
        self.blocks = {}

    @classmethod
    def of(cls, name, lines):
        file = cls.known.get(name)
        # A file that was read again has other lines, even if they are equal.
        if file is None or file.lines is not lines:
            if len(cls.known) >= cls.MOST:
                cls.known.clear()
            file = cls.known[name] = cls(lines)
        return file

    def block(self, first):
        """The bytes of the function whose first line this is; None where none is."""
        if first not in self.blocks:
            self.blocks[first] = self._block(first)
        return self.blocks[first]

    def _block(self, first):
        end = self._end(first)
        if end is not None:
            return self.starts[first], end
        # Of a decorator in brackets Python names a line behind the one with its `@`.
        for at in range(min(first, len(self.lines)) - 1, -1, -1):
            line = self.lines[at].lstrip()
            if line.startswith("@"):
                end = self._end(at)
                return (self.starts[at], end) if end is not None and end > self.starts[first] else None
            if re.match(r"(async\s+)?(def|class)\b", line):
                return None
        return None

    def _end(self, first):
        start = self.starts[min(first, len(self.lines))]
        end = _naiad.function_end(self.text, start)
        if end is None or not _TEXTS_IN_TEXTS:
            return end
        last = bisect.bisect_left(self.starts, end)
        if not _TEXTS_IN_TEXTS.search("".join(self.lines[first:last])):
            return end
        return self.starts[first + len(inspect.getblock(self.lines[first:]))]


# What begins a formatted text. From Python 3.12 on it may hold others with the same quotes, whose ends are
# left to Python's tokenizer.
_TEXTS_IN_TEXTS = re.compile(r"[fFtT][rR]?['\"]") if sys.version_info >= (3, 12) else None


def parameter_names(fn):
    """The names of a function's parameters in their order, `*args` before those that only a keyword
    gives. Read from the code, like the text; `inspect.signature` takes twenty times as long."""
    code = fn.__code__
    by_position = code.co_argcount
    by_keyword = by_position + code.co_kwonlyargcount
    names = list(code.co_varnames[:by_position])
    rest = list(code.co_varnames[by_keyword:])
    if code.co_flags & inspect.CO_VARARGS:
        names.append(rest.pop(0))
    names += code.co_varnames[by_position:by_keyword]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        names.append(rest[0])
    return names


def start_of_def(text):
    """Where ``def`` stands in a function's text, behind its decorators."""
    found = re.search(r"^(async\s+)?def\s", text, re.MULTILINE)
    return found.start() if found else 0


def declared_constexpr(namespace, name):
    """Whether the module of this namespace declares ``name: tl.constexpr``."""
    annotations = namespace.get("__annotations__")
    if annotations is None:
        # From Python 3.14 on they are made when the module is asked for them.
        module = sys.modules.get(namespace.get("__name__"))
        if getattr(module, "__dict__", None) is not namespace:
            return False
        annotations = getattr(module, "__annotations__", {})
    return _meaning(annotations.get(name), namespace.get) == "constexpr"


def annotations(function):
    """For each parameter what its annotation says, in the names of Triton; None if it says nothing
    that is known here, and then its text may."""
    given = function._annotations
    lookup = _scope(function.fn)
    return [_meaning(given[name], lookup) if name in given else None for name in function.arg_names]


def _meaning(annotation, lookup):
    from ..language import core

    if isinstance(annotation, str):
        text = annotation.strip().strip("\"'").strip()
        if not re.fullmatch(r"[A-Za-z_][\w.]*", text):
            return text
        # Under an alias a name says nothing, so it is what it stands for that counts.
        found = _resolve(text, lookup)
        return _meaning(found, lookup) if isinstance(found, (type, core.dtype)) else text
    if isinstance(annotation, core.dtype):
        return annotation.mangled
    if isinstance(annotation, type):
        if issubclass(annotation, core.constexpr):
            return "constexpr"
        if annotation is core.const:
            return "const"
        if annotation in (int, float, bool):
            return annotation.__name__
        # A class that is nothing to a kernel, whatever its name.
        return ""
    return None


def _resolve(path, lookup):
    name, *attributes = path.split(".")
    found = lookup(name)
    for attribute in attributes:
        found = getattr(found, attribute, None)
    return found


def _scope(fn):
    """Looks names up as the function does."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))

    def lookup(name):
        try:
            return cells[name].cell_contents
        except (KeyError, ValueError):
            return fn.__globals__.get(name, getattr(builtins, name, None))

    return lookup


def digest(function):
    """A digest of a jit function and of all that its code depends on."""
    facts = [_naiad.__version__]
    _collect(function, facts, set())
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def _collect(function, facts, seen):
    """Appends the texts of the functions that are reached, and the constants that they read."""
    if id(function) in seen:
        return
    seen.add(id(function))
    from .jit import JITFunction

    fn = function.fn
    try:
        text = function.src
    except TritonError:
        if isinstance(function, JITFunction):
            raise
        text = f"{fn.__module__}.{fn.__qualname__}"
    facts.append(text)
    facts.append(repr((fn.__defaults__, fn.__kwdefaults__)))
    lookup = _scope(fn)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    paths = {path for node in ast.walk(tree) if (path := _path(node))}
    for path in sorted(paths):
        _fact(path, _resolve(path, lookup), facts, seen)


def _fact(path, value, facts, seen):
    from ..language.core import constexpr, dtype
    from .jit import ConstexprFunction, JITFunction

    if isinstance(value, (JITFunction, ConstexprFunction)):
        facts.append(path)
        _collect(value, facts, seen)
    elif isinstance(value, (constexpr, dtype, bool, int, float, str, bytes, tuple)):
        facts.append(f"{path}={value!r}")


def _path(node):
    """`a.b.c` of an expression that reads it; None for others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _path(node.value)
        return inner and f"{inner}.{node.attr}"
    return None


def text_of(fn):
    try:
        return inspect.cleandoc("\n" + inspect.getsource(fn))
    except (OSError, TypeError):
        return f"{fn.__module__}.{fn.__qualname__}"
