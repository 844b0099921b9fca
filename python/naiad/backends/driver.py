"""What a driver is, for code that writes one."""


class DriverBase:
    """A kind of device at work."""

    @staticmethod
    def is_active():
        raise NotImplementedError

    def map_python_to_cpp_type(self, ty):
        """The type in C of a parameter's type in a signature."""
        return _C_TYPES.get(ty) or ("void*" if ty.startswith("*") else ty)

    def get_current_target(self):
        raise NotImplementedError

    def get_active_torch_device(self):
        raise NotImplementedError

    def get_benchmarker(self):
        raise NotImplementedError


class GPUDriver(DriverBase):
    """Kept for code that derives from it."""


_C_TYPES = {
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    "i1": "int8_t",
    "u1": "uint8_t",
    "fp16": "float",
    "bf16": "float",
    "fp32": "float",
    "f32": "float",
    "fp64": "double",
}
