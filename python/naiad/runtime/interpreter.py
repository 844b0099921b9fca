"""Names of Triton's interpreter. Kernels here are always compiled, and run on the CPU as it did."""


class InterpretedFunction:
    """Kept for code that asks whether a kernel is one; none is."""
