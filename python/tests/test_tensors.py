"""Memory of NumPy and torch: which bytes a kernel sees, and that nothing is copied."""

import pytest

import naiad as triton
import naiad.language as tl

np = pytest.importorskip("numpy")


@triton.jit
def add_one(ptr, rows, cols, row_stride, col_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    at = ptr + i * row_stride + j * col_stride
    tl.store(at, tl.load(at, mask=j < cols) + 1, mask=j < cols)


@triton.jit
def store_at(ptr, index):
    tl.store(ptr + index, 9.0)


def run(view):
    rows, cols = view.shape
    strides = [s // view.itemsize for s in view.strides]
    add_one[(rows,)](view, rows, cols, *strides, BLOCK=triton.next_power_of_2(cols))


VIEWS = {
    "whole": lambda x: x,
    "slice": lambda x: x[2:5, 3:7],
    "steps": lambda x: x[::2, 1::3],
    "transposed": lambda x: x.T,
    "backwards": lambda x: x[::-1, ::-1],
    "a column": lambda x: x[:, 2:3],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "uint16", "int64", "float16"])
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_changed_in_place(view, dtype):
    x = np.arange(60).reshape(6, 10).astype(dtype)
    expected = x.copy()
    VIEWS[view](expected)[...] += 1
    run(VIEWS[view](x))
    np.testing.assert_array_equal(x, expected)


def test_reads_beside_a_slice_stay_in_its_storage():
    x = np.zeros(10, np.float32)
    store_at[(1,)](x[2:4], 5)
    assert x[7] == 9


@pytest.mark.parametrize("index", [10, -1, 1 << 20])
def test_accesses_outside_the_storage_are_errors(index):
    with pytest.raises(triton.OutOfBoundsError):
        store_at[(1,)](np.zeros(10, np.float32), index)


def test_read_only_memory_is_not_written():
    x = np.zeros(4, np.float32)
    x.flags.writeable = False
    with pytest.raises(triton.TritonError):
        store_at[(1,)](x, 0)
    assert x[0] == 0


def test_arrays_over_other_memory():
    x = np.frombuffer(bytearray(16), np.float32)
    store_at[(1,)](x, 2)
    assert x[2] == 9


class Storage:
    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def nbytes(self):
        return self.array.nbytes


class TorchLike:
    """What a kernel needs of a torch tensor, over NumPy memory."""

    class device:
        type = "cpu"

    def __init__(self, array, dtype):
        self.array, self.dtype, self.shape = array, dtype, array.shape

    def data_ptr(self):
        return self.array.ctypes.data

    def stride(self):
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def untyped_storage(self):
        return Storage(self.array if self.array.base is None else self.array.base)


def test_objects_with_data_ptr():
    x = np.zeros(10, np.float32)
    store_at[(1,)](TorchLike(x[4:], "torch.float32"), -1)
    assert x[3] == 9
    with pytest.raises(triton.OutOfBoundsError):
        store_at[(1,)](TorchLike(x[4:], "torch.float32"), -5)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_dtypes_that_numpy_lacks(name):
    bits = np.zeros(4, np.uint16 if name == "bfloat16" else np.uint8)
    store_at[(1,)](TorchLike(bits, f"torch.{name}"), 1)
    nine = {"bfloat16": 0x4110, "float8_e5m2": 0x48, "float8_e4m3fn": 0x51}[name]
    assert list(bits) == [0, nine, 0, 0]


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    # The first tensor of a process is read in another way than those that follow.
    for _ in range(3):
        x = torch.zeros(3, 4)
        store_at[(1,)](x.T[1:], 0)
        assert x[0, 1] == 9
        # Beside the view, inside the storage, and past its end.
        store_at[(1,)](x[1], -1)
        assert x[0, 3] == 9
        with pytest.raises(triton.OutOfBoundsError, match=r"elements -4 to 7"):
            store_at[(1,)](x[1], 8)


def test_all_dtypes_of_torch():
    torch = pytest.importorskip("torch")
    names = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
    for name in (*names.split(), "float8_e4m3fn", "float8_e5m2"):
        x = torch.zeros(5, dtype=getattr(torch, name))
        store_at[(1,)](x[1:], 2)
        # 9 lies between two numbers of the narrowest of them.
        nine = 8 if name == "float8_e5m2" else 9
        assert x.to(torch.float64).tolist() == [0, 0, 0, nine, 0], name


def test_tensors_of_every_making():
    torch = pytest.importorskip("torch")

    @triton.jit
    def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

    class Sub(torch.Tensor):
        pass

    base = torch.arange(6.0)
    for x in base, torch.nn.Parameter(base), base.clone().requires_grad_() * 1, base.as_subclass(Sub), base.detach():
        y = torch.zeros(6)
        copy[(1,)](x, y, 6, BLOCK=8)
        assert torch.equal(y, base)
    copy[(1,)](torch.empty(0, 3), torch.empty(0), 0, BLOCK=8)
    scalar = torch.tensor(7.0)
    copy[(1,)](scalar, scalar, 1, BLOCK=8)
    assert scalar == 7


def test_torch_tensors_that_kernels_cannot_take():
    torch = pytest.importorskip("torch")
    complex = torch.zeros(4, dtype=torch.complex64)
    for _ in range(2):
        for x, message in [
            (complex, "complex64"),
            (complex.conj().imag, "negates its memory"),
            (torch.zeros(4, device="meta"), "lies on the device"),
        ]:
            with pytest.raises(triton.LaunchError, match=message):
                store_at[(1,)](x, 0)
        for sparse in torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr():
            with pytest.raises(triton.LaunchError, match="is a sparse tensor"):
                store_at[(1,)](sparse, 0)


def test_tensors_on_other_devices_are_refused():
    class Elsewhere(TorchLike):
        class device:
            type = "xpu"

    with pytest.raises(triton.LaunchError, match="lies on the device"):
        store_at[(1,)](Elsewhere(np.zeros(1, np.float32), "torch.float32"), 0)
