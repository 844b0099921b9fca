"""Arithmetic for grids and block sizes, on the host and on constexprs in kernels."""


def cdiv(x, y):
    """The quotient rounded up."""
    return (x + y - 1) // y


def next_power_of_2(n):
    """The least power of two that is not below ``n``; 0 for 0."""
    return 0 if n <= 0 else 1 << (n - 1).bit_length()


# What a kernel sees in them: see `Host` in the front end.
cdiv.__naiad_builtin__ = "triton.cdiv"
next_power_of_2.__naiad_builtin__ = "triton.next_power_of_2"
