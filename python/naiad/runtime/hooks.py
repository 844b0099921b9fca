"""Calls of the hooks that `knobs` has for compilation and launches.

Nothing of this is reached unless a hook is set: a launch without one goes straight to Rust.
"""

import importlib
import json
import time
from dataclasses import dataclass

from .. import knobs
from .._naiad import dtype
from ..compiler.compiler import ASTSource, LazyDict
from .types import str_to_ty


@dataclass
class JitFunctionInfo:
    """The function, to a hook."""

    module: str
    name: str
    jit_function: object


def compile(function, args, kwargs, is_warmup):
    """The compiled variant, with the hooks for compilation around its making; None where one of
    them prevented it."""
    settings = knobs.runtime
    kernel = function._kernel
    key, known, params, options = kernel.describe(args, kwargs)
    if known and not knobs.compilation.always_compile:
        return _loaded(function, key, kernel.compile(False, args, kwargs), is_warmup)
    about = _about(function, key, params, options, is_warmup)
    if settings.jit_cache_hook is not None and settings.jit_cache_hook(**about):
        return None
    start = time.perf_counter()
    compiled = kernel.compile(False, args, kwargs)
    if knobs.compilation.listener is not None:
        _tell_listener(about, compiled, time.perf_counter() - start)
    if settings.jit_post_compile_hook is not None:
        settings.jit_post_compile_hook(**about)
    return _loaded(function, key, compiled, is_warmup)


def _about(function, key, params, options, is_warmup):
    signature = {name: ty for name, ty, _ in params}
    constants = {}
    for index, (_, ty, value) in enumerate(params):
        _constants((index,), ty, value, constants)
    shown = ", ".join(f"{name}: {ty}" for name, ty in signature.items())
    # Attributes are no part of what code here depends on.
    info = {
        "key": key,
        "signature": signature,
        "device": 0,
        "constants": constants,
        "configs": [{}],
        "is_warmup": is_warmup,
        "extern_libs": (),
        "launch_cooperative_grid": False,
        **options,
    }
    info["specialization_data"] = _specialization_data(function, info, options)
    return {
        "key": key,
        "repr": f"{function.__name__}[num_warps={options['num_warps']}, num_ctas={options['num_ctas']}, "
        f"num_stages={options['num_stages']}]({shown})",
        "fn": JitFunctionInfo(function.__module__, function.__qualname__, function),
        "compile": info,
        "is_manual_warmup": is_warmup,
        "already_compiled": False,
    }


def _constants(path, ty, value, found):
    if isinstance(ty, tuple):
        for index, (item_type, item) in enumerate(zip(ty, value)):
            _constants((*path, index), item_type, item, found)
    elif ty == "constexpr":
        found[path] = value


def _target():
    from . import driver

    backend, arch, warp_size = driver.active.get_current_target()
    return {"backend": backend, "arch": arch, "warp_size": warp_size}


def _full_name(function):
    return f"{function.__module__}.{function.__qualname__}"


def _specialization_data(function, info, options):
    """All that is needed to compile this variant elsewhere, as text."""
    return json.dumps(
        {
            "name": _full_name(function),
            "target": _target(),
            "key": info["key"],
            "signature": info["signature"],
            "constants": [[list(path), _encode(value)] for path, value in info["constants"].items()],
            "options": options,
        }
    )


def from_specialization_data(function, text):
    """The source that such a text is of, and the launch options."""
    data = json.loads(text)
    for what, mine in ("name", _full_name(function)), ("target", _target()):
        if data[what] != mine:
            raise RuntimeError(f"Specialization data is for {data[what]}, and this is {mine}")
    constants = {tuple(path): _decode(value) for path, value in data["constants"]}
    signature = {name: _tuples(ty) for name, ty in data["signature"].items()}
    return ASTSource(function, signature, constants), data["options"]


def _tuples(ty):
    return tuple(map(_tuples, ty)) if isinstance(ty, list) else ty


def _encode(value):
    """A constexpr in terms of JSON. Of other objects there is only a name to look them up by."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):
        return [_encode(x) for x in value]
    if isinstance(value, dtype):
        return {"dtype": value.mangled}
    return {"module": value.__module__, "name": getattr(value, "__qualname__", repr(value))}


def _decode(value):
    if isinstance(value, list):
        return tuple(map(_decode, value))
    if not isinstance(value, dict):
        return value
    if "dtype" in value:
        return str_to_ty(value["dtype"])
    found = importlib.import_module(value["module"])
    for name in value["name"].split("."):
        found = getattr(found, name)
    return found


def _tell_listener(about, compiled, seconds):
    info, function = about["compile"], about["fn"].jit_function
    times = knobs.CompileTimes(1, [("tile", max(1, round(seconds * 1e6)))], 1)
    source = ASTSource(function, info["signature"], info["constants"])
    knobs.compilation.listener(
        src=source,
        metadata=compiled.metadata._asdict(),
        metadata_group={},
        times=times,
        cache_hit=False,
    )


def _loaded(function, key, compiled, is_warmup):
    """Calls the hooks for a variant's first use."""
    settings = knobs.runtime
    if is_warmup or not (settings.kernel_load_start_hook or settings.kernel_load_end_hook):
        return compiled
    loaded = function.__dict__.setdefault("_loaded", set())
    if key not in loaded:
        loaded.add(key)
        # There is no module of the device's that code is loaded into.
        facts = (None, compiled, compiled.name, {}, compiled.hash)
        if settings.kernel_load_start_hook:
            settings.kernel_load_start_hook(*facts)
        if settings.kernel_load_end_hook:
            settings.kernel_load_end_hook(*facts)
    return compiled


def launch(function, grid, args, kwargs):
    """Launches with all hooks around it; gives the compiled variant, or None if it was prevented."""
    compiled = compile(function, args, kwargs, False)
    if compiled is None:
        return None
    settings = knobs.runtime
    if not (settings.launch_enter_hook or settings.launch_exit_hook):
        return function._kernel.launch(grid, args, kwargs)
    about = LazyDict({"name": compiled.name, "function": function, "stream": 0})
    if function.launch_metadata is not None:
        named = function._kernel.bind(args, kwargs)[0]
        counts = grid(named) if callable(grid) else grid
        about.add(function.launch_metadata, (tuple(counts), compiled.metadata, named))
    if settings.launch_enter_hook:
        settings.launch_enter_hook(about)
    function._kernel.launch(grid, args, kwargs)
    if settings.launch_exit_hook:
        settings.launch_exit_hook(about)
    return compiled
