"""Settings. Those that steer another compiler are accepted and not read."""


class _Knobs:
    def __init__(self, **values):
        self.__dict__.update(values)


autotuning = _Knobs(print=False, cache=False)
compilation = _Knobs(always_compile=False, listener=None)
cache = _Knobs(dir=None)
runtime = _Knobs(
    interpret=False,
    debug=False,
    launch_enter_hook=None,
    launch_exit_hook=None,
    jit_cache_hook=None,
    jit_post_compile_hook=None,
)
nvidia = _Knobs()
amd = _Knobs()
