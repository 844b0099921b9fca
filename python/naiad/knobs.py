"""Settings: each is what was assigned here, else what the environment says.

Those that steer another compiler are accepted and not read.
"""

import os


class _Env:
    """A setting that a variable of the environment gives, unless one is assigned."""

    def __init__(self, *variables, flag=False):
        self.variables = variables
        self.flag = flag

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, knobs, owner=None):
        if knobs is None:
            return self
        assigned = knobs.__dict__.get(self.name)
        if assigned is not None:
            return assigned
        found = next((os.environ[name] for name in self.variables if os.environ.get(name)), None)
        if self.flag:
            return found is not None and found.strip().lower() in ("1", "true", "on", "yes", "y")
        return found

    def __set__(self, knobs, value):
        # None goes back to the environment.
        knobs.__dict__[self.name] = value

    def __delete__(self, knobs):
        knobs.__dict__.pop(self.name, None)


class _Knobs:
    def __init__(self, **values):
        self.__dict__.update(values)


class _Autotuning(_Knobs):
    # Whether each tuning prints what it found.
    print = _Env("TRITON_PRINT_AUTOTUNING", flag=True)
    # Whether results are kept on disk even where `cache_results` does not ask for it.
    cache = _Env("TRITON_CACHE_AUTOTUNING", flag=True)
    # Called with keywords after each tuning.
    listener = None


class _Cache(_Knobs):
    # Where results are kept; None is the platform's folder for caches.
    dir = _Env("NAIAD_CACHE_DIR")


class HookChain(list):
    """Functions that are called one after another."""

    def add(self, hook):
        if hook not in self:
            self.append(hook)

    def remove(self, hook):
        if hook in self:
            super().remove(hook)

    def __call__(self, *args, **kwargs):
        for hook in list(self):
            hook(*args, **kwargs)


autotuning = _Autotuning()
compilation = _Knobs(always_compile=False, listener=None)
cache = _Cache()
runtime = _Knobs(
    interpret=False,
    debug=False,
    # Called around each launch with a dictionary about it. One function may take the chain's place.
    launch_enter_hook=HookChain(),
    launch_exit_hook=HookChain(),
    jit_cache_hook=None,
    jit_post_compile_hook=None,
)
nvidia = _Knobs()
amd = _Knobs()
