"""With the alias torch believes that Triton is installed. It must find what it asks for, and do without
a GPU as before."""

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch")

KERNEL = """
    import naiad.alias
    naiad.alias.install()
    import torch, triton, triton.language as tl

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

    x, y = torch.rand(100), torch.rand(100)
"""


@pytest.fixture
def run(tmp_path):
    def run(text, kernel=KERNEL):
        script = tmp_path / "script.py"
        # Kernels are compiled from the text of their file.
        script.write_text(textwrap.dedent(kernel) + textwrap.dedent(text))
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_torch_finds_what_it_imports_of_triton(run):
    run(
        """
        import torch._inductor.runtime.triton_compat as compat
        import torch._inductor.runtime.triton_helpers
        import torch._inductor.runtime.triton_heuristics
        import torch._higher_order_ops.triton_kernel_wrap
        from torch.utils import _triton
        assert compat.HAS_TRITON and compat.JITFunction is triton.JITFunction
        assert _triton.has_triton_package()
        # A GPU is what it does not find.
        assert not _triton.has_triton() and not _triton.has_triton_cpu_backend()
        assert len(_triton.triton_hash_with_backend()) == 64
        """
    )


def test_torch_compile_makes_code_for_the_cpu(run):
    run(
        """
        def f(a, b):
            return torch.nn.functional.gelu(a @ b.T).sum(-1)

        a, b = torch.rand(8, 16), torch.rand(4, 16)
        for backend in "eager", "aot_eager", "inductor":
            torch._dynamo.reset()
            torch.testing.assert_close(torch.compile(f, backend=backend)(a, b), f(a, b))
        """
    )


def test_a_kernel_as_an_operator(run):
    run(
        """
        from torch.library import triton_op, wrap_triton

        @triton_op("naiad_test::add", mutates_args={})
        def add_op(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            wrap_triton(add)[(triton.cdiv(out.numel(), 64),)](x, y, out, out.numel(), BLOCK=64)
            return out

        torch.testing.assert_close(add_op(x, y), x + y)
        for backend in "eager", "aot_eager":
            torch._dynamo.reset()
            compiled = torch.compile(lambda x, y: add_op(x, y) * 2, backend=backend)
            torch.testing.assert_close(compiled(x, y), 2 * (x + y))
        """
    )


def test_a_launch_within_compiled_code(run):
    run(
        """
        def f(x, y):
            out = torch.empty_like(x)
            add[(2,)](x, y, out, out.numel(), BLOCK=64)
            return out + 1

        torch.testing.assert_close(torch.compile(f, backend="eager")(x, y), x + y + 1)
        """
    )


def test_reinterpreted_tensors(run):
    run(
        """
        from triton.runtime.jit import TensorWrapper

        bits = torch.arange(100, dtype=torch.int32)
        as_float = triton.reinterpret(bits, tl.float32)
        assert isinstance(as_float, TensorWrapper) and triton.reinterpret(as_float, tl.int32).dtype == tl.int32
        add[(2,)](as_float, y, x, 100, BLOCK=64)
        torch.testing.assert_close(x, bits.view(torch.float32) + y)
        """
    )


def test_helpers_for_tests(run):
    out = run(
        """
        import numpy as np
        import triton._internal_testing as testing

        assert testing.is_cpu() and not testing.is_cuda() and not testing.is_interpreter()
        for name in testing.dtypes_with_bfloat16:
            array = testing.numpy_random((8,), name)
            tensor = testing.to_triton(array, "cpu", name)
            np.testing.assert_array_equal(testing.to_numpy(tensor), array)
            assert testing.str_to_triton_dtype(name) == getattr(tl, name)
        assert testing.torch_dtype_name(torch.bfloat16) == "bfloat16"

        def fails(text):
            raise ValueError(text)

        result = testing.run_in_process(fails, ("no",))
        assert isinstance(result.exc, ValueError), result
        fresh, back = testing._fresh_knobs_impl()
        before = triton.knobs.autotuning
        assert fresh() is triton.knobs and triton.knobs.autotuning is not before
        back()
        assert triton.knobs.autotuning is before
        print("done")
        """
    )
    assert out == "done\n"


def test_microscaled_tensors(run):
    run(
        """
        from triton.tools.mxfp import MXFP4Tensor, MXScaleTensor

        values = torch.tensor([0.0, -0.0, 0.25, 0.75, 2.5, 5.0, 5.1, -100.0])
        coded = MXFP4Tensor(values)
        # Ties go to the even code, and what is too large to 6.
        assert coded.to(torch.float32).tolist() == [0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 6.0, -6.0]
        packed = coded.to_packed_tensor(dim=0)
        assert packed.shape == (4,) and torch.equal(coded.unpack_packed_tensor(packed, 0, (8,)), coded.data)
        scale = MXScaleTensor(torch.tensor([1.0, 8.0, 0.25, -1.0]))
        assert scale.data.tolist() == [127, 130, 125, 255]
        drawn = MXScaleTensor(size=(100,)).random(low=0.5, high=4.0).to(torch.float32)
        assert set(drawn.tolist()) <= {0.5, 1.0, 2.0, 4.0}
        """
    )
