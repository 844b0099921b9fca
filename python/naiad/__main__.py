"""The command `naiad`, as a console script and as `python -m naiad`."""

import builtins
import contextlib
import io
import os
import sys
import traceback
import types

from . import _naiad, alias, check as checking, cuda, spawn
from .errors import TritonError


def main(argv=None):
    """Runs the command; returns its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    return _naiad.cli_main(["naiad", *argv])


def run_script(script, args, check, gpu=None, name="__main__"):
    """Runs a script as Python would, with `triton` meaning Naiad. Called by the command."""
    try:
        cuda.install(gpu, always=check)
    except ValueError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    alias.install()
    spawn.inherit(check, gpu)
    _naiad.configure(check, 0)
    try:
        with io.open_code(script) as file:
            code = compile(file.read(), script, "exec")
    except OSError as e:
        print(f"error: `{script}` cannot be read: {e.strerror}", file=sys.stderr)
        return 2
    except SyntaxError as e:
        traceback.print_exception(None, e, None)
        return 1
    module = types.ModuleType(name)
    module.__file__ = script
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    sys.argv = [script, *args]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        exec(code, module.__dict__)
    except SystemExit:
        raise
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except TritonError as e:
        # The message has the kernel's line; the only line of Python that adds to it is the launch's.
        if not checking.collected(e):
            print(str(e).lstrip("\n"), file=sys.stderr)
        if checking.is_for_people():
            print(f"  = note: launched at {_launch_line(e)}", file=sys.stderr)
        return 1
    except BaseException as e:
        traceback.print_exception(type(e), e, _own_frames(e.__traceback__, script))
        return 1
    finally:
        sys.stdout.flush()
    return 0


def check_script(script, args, gpu, format, deny_warnings, sweep, output=None):
    """Runs a script with every launch checked, and reports. Called by the command."""
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(open(output, "w", encoding="utf-8")) if output is not None else None
        except OSError as e:
            print(f"error: `{output}` cannot be written: {e.strerror}", file=sys.stderr)
            return 2
        collector = checking.Printer(format, stream)
        before = checking.collect(collector)
        checking.watch_memory()
        try:
            if sweep:
                code = _sweep(script, args, gpu, collector)
            else:
                try:
                    code = run_script(script, args, True, gpu)
                except SystemExit as e:
                    # A script that says how it went is believed, and findings count besides.
                    code = e.code if isinstance(e.code, int) else int(e.code is not None)
                    if code and not isinstance(e.code, int):
                        print(e.code, file=sys.stderr)
        finally:
            checking.collect(before)
            collector.close()
    if format in ("human", "github"):
        print(collector.summary(), file=sys.stderr)
    return code or collector.exit_code(deny_warnings)


def _sweep(script, args, gpu, collector):
    from . import sweep

    registered = sweep.registered()
    registered.clear()
    code = run_script(script, args, True, gpu, name="__sweep__")
    if code:
        return code
    if not registered:
        print(f"error: `{script}` has no function for `naiad.testing.sweep`", file=sys.stderr)
        return 2
    failed = [s for s in registered if not s.run(collector)]
    return int(bool(failed))


def _launch_line(error):
    """The innermost line that is not of this package."""
    package = os.path.dirname(os.path.abspath(__file__)) + os.sep
    frames = traceback.extract_tb(error.__traceback__)
    outside = [f for f in frames if not os.path.abspath(f.filename).startswith(package)]
    return f"{outside[-1].filename}:{outside[-1].lineno}" if outside else "an unknown line"


def _own_frames(tb, script):
    """The traceback from the script's first frame on."""
    while tb is not None and tb.tb_frame.f_code.co_filename != script:
        tb = tb.tb_next
    return tb


if __name__ == "__main__":
    sys.exit(main())
