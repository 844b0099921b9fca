"""`tl.program_id` and `tl.num_programs`: grids of one to three axes, empty grids, bad axes."""

import itertools

import numpy as np
import pytest

import naiad as triton
import naiad.language as tl

from ._common import refused, same, tiles

COVERS = ["program_id", "num_programs"]


@triton.jit
def place(out):
    x, y, z = tl.program_id(0), tl.program_id(axis=1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(axis=2)
    tl.static_assert(x.dtype == tl.int32)
    tl.static_assert(nz.dtype == tl.int32)
    tl.static_assert(len(x.shape) == 0)
    at = out + 6 * (x + nx * (y + ny * z))
    tl.store(at, x)
    tl.store(at + 1, y)
    tl.store(at + 2, z)
    tl.store(at + 3, nx)
    tl.store(at + 4, ny)
    tl.store(at + 5, nz)


@pytest.mark.parametrize(
    "grid", [(1,), (7,), (1021,), (3, 5), (1, 1), (2, 3, 4), (1, 1, 9), (5, 1, 2), [4, 2]]
)
def test_every_program_knows_its_place(grid):
    nx, ny, nz = (*grid, 1, 1)[:3]
    out = np.full((nz, ny, nx, 6), -1, np.int32)
    place[grid](out)
    want = [(x, y, z, nx, ny, nz) for z, y, x in itertools.product(*map(range, (nz, ny, nx)))]
    same(out, np.array(want, np.int32).reshape(out.shape))


@pytest.mark.parametrize("grid", [(0,), (0, 4), (4, 0), (2, 3, 0)])
def test_an_empty_grid_launches_nothing(grid):
    out = np.full(6, -1, np.int32)
    place[grid](out)
    assert (out == -1).all()


def test_a_grid_that_is_a_function_sees_the_arguments():
    out = np.full((1, 1, 5, 6), -1, np.int32)
    place[lambda args: (len(args["out"].reshape(-1)) // 6,)](out)
    assert out[0, 0, :, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["program_id", "num_programs"])
def test_axes(name):
    for axis in (-1, 3, 7):
        refused(f"tl.{name}({axis})", "bad-argument", "axes 0, 1 and 2")
    refused(f"a = 1\ntl.{name}(a)", "not-constexpr")
    refused(f"tl.{name}()", "bad-call")
    tiles(f"A: tl.constexpr = 1\nr = tl.{name}(A)", r="int32")


@pytest.mark.parametrize("grid", [5, (1, 2, 3, 4), (-1,), ("a",), (1.5,)])
def test_grids_that_are_refused(grid):
    with pytest.raises((triton.LaunchError, TypeError, ValueError)):
        place[grid](np.zeros(6, np.int32))
