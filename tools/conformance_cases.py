"""Which of Triton's tests are run, and which cases of those are not."""

# What needs only the public interface, by the path below python/test/unit.
FILES = """
    language/test_core.py language/test_standard.py language/test_random.py language/test_tuple.py
    language/test_conversions.py language/test_tensor_descriptor.py language/test_block_pointer.py
    language/test_libdevice.py language/test_annotations.py language/test_subprocess.py
    language/test_decorator.py language/test_pipeliner.py language/test_matmul.py test_debug.py
    test_knobs.py runtime/test_autotuner.py runtime/test_autotune_listener.py runtime/test_launch.py
    runtime/test_compilation_listener.py runtime/test_driver.py
""".split()

# File, name of the case (both as regular expressions of the whole) and why it is not run. The first
# that fits counts.
EXCLUDED = [
]
