# Functions of whole tiles, and what they refuse.
import triton
import triton.language as tl


@triton.jit
def swap(a, b):
    return b, a


@triton.jit
def mixed(a, b):
    return a, b > 0


# kernel(x: *fp32, i: *i32)
@triton.jit
def moves(x, i):
    rows = tl.arange(0, 4)[:, None]
    cols = tl.arange(0, 8)[None, :]
    t = tl.load(x + rows * 8 + cols)
    t = tl.flip(t)  # ir: flip %14 axis=1
    t = t.flip(0)  # ir: flip %15 axis=0
    t = tl.sort(t, descending=True)  # ir: sort
    t = tl.sort(t, dim=0)  # ir: permute
    top = tl.topk(t, 2)  # ir: topk
    g = tl.gather(t, tl.zeros((4, 16), tl.int32), axis=-1)  # ir: gather
    h = tl.histogram(tl.load(i + tl.arange(0, 16)), 8)  # ir: histogram
    a, b = tl.map_elementwise(swap, t, t, pack=1)  # ir: map
    tl.store(x, tl.sum(top) + tl.sum(g) + tl.sum(h) + tl.sum(a + b))


# kernel(x: *fp16)
@triton.jit
def topk_promotes(x):
    t = tl.load(x + tl.arange(0, 8))
    tl.static_assert(tl.topk(t, 8).dtype == tl.float16)
    tl.static_assert(tl.topk(t, 4).dtype == tl.float32)
    tl.static_assert(tl.sort(t).dtype == tl.float16)


# kernel(x: *fp32)
@triton.jit
def topk_count(x):
    tl.topk(tl.load(x + tl.arange(0, 8)), 3)  # error: [bad-shape] `k` must be a power of 2 of at most 8


# kernel(x: *fp32)
@triton.jit
def gather_by_floats(x):
    t = tl.load(x + tl.arange(0, 8))
    tl.gather(t, t, 0)  # error: [type-mismatch] the indices of `tl.gather` must be integers, not float32


# kernel(x: *fp32)
@triton.jit
def gather_ranks(x):
    t = tl.load(x + tl.arange(0, 8))
    tl.gather(t, tl.zeros((2, 2), tl.int32), 0)  # error: [shape-mismatch] `tl.gather` wants a source and indices of one rank


# kernel(x: *fp32)
@triton.jit
def histogram_of_floats(x):
    tl.histogram(tl.load(x + tl.arange(0, 8)), 4)  # error: [type-mismatch] `tl.histogram` wants a tile of integers


# kernel(x: *i32)
@triton.jit
def histogram_bins(x):
    tl.histogram(tl.load(x + tl.arange(0, 8)), 5)  # error: [bad-shape] the number of bins must be a power of 2 and an extent of a tile, 5 is not


# kernel(x: *i32)
@triton.jit
def map_pack(x):
    t = tl.load(x + tl.arange(0, 8))
    tl.map_elementwise(swap, t, pack=3)  # error: [bad-argument] `pack` must divide the 8 elements


# kernel(x: *i32)
@triton.jit
def map_results(x):
    t = tl.load(x + tl.arange(0, 8))
    tl.map_elementwise(mixed, t, pack=2)  # error: [bad-return] the elements of one result have the types


# kernel(x: *i32)
@triton.jit
def poll_a_tile(x):
    tl.atomic_poll(x + tl.arange(0, 8), 1)  # error: [type-mismatch] `tl.atomic_poll` waits for one integer


# kernel(x: *i32)
@triton.jit
def waits(x):
    tl.atomic_store(x, 1, sem="relaxed")  # ir: atomic_store %0, %1 sem=relaxed
    tl.atomic_poll(x, 2, timeout_ns=1000)  # ir: machine.globaltimer
    tl.atomic_load(x)  # ir: atomic_load %0 sem=acquire


# kernel(x: *i32)
@triton.jit
def order_of_a_load(x):
    tl.atomic_load(x, sem="release")  # error: [bad-argument] "release" is no memory order for this


# kernel(x: *i32)
@triton.jit
def prints(x):
    tl.device_print("x", tl.load(x), hex=True)  # ir: print prefix="x" args=[%1] hex=true
    print("a", 3.5, x)  # ir: print prefix="a"
    print(tl.load(x))  # ir: print prefix=""


# kernel(x: *i32)
@triton.jit
def print_prefix(x):
    tl.device_print(tl.load(x))  # error: [bad-argument] the prefix of `tl.device_print` must be a string


# kernel(x: *fp32)
@triton.jit
def assembly(x):
    t = tl.load(x + tl.arange(0, 8))
    y = tl.inline_asm_elementwise(  # ir: inline_asm text="rsqrt.approx.f32 $0, $1;" constraints="=f,f"
        "rsqrt.approx.f32 $0, $1;", "=f,f", [t], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(x + tl.arange(0, 8), y)


# kernel(x: *fp32)
@triton.jit
def assembly_without_results(x):
    tl.inline_asm_elementwise("nop;", "", [], dtype=(), is_pure=False, pack=1)  # error: [bad-argument] inline assembly must give at least one result


# kernel(x: *i32)
@triton.jit
def of_the_machine(x):
    tl.static_assert(tl.extra.cuda.num_threads() == 128)
    tl.static_assert(not tl.target_info.is_hip())
    tl.extra.cuda.gdc_wait()
    tl.store(x, tl.extra.cuda.smid())  # ir: machine.smid


# kernel(x: *i32)
@triton.jit
def never_there(x):
    tl.target_info.current_target()  # error: [unknown-tl-name] `tl.target_info.current_target` is not supported by Naiad yet


@triton.jit
def widened(a):
    return a + tl.arange(0, 4)


# kernel(x: *i32)
@triton.jit
def map_to_tiles(x):
    tl.map_elementwise(widened, tl.load(x + tl.arange(0, 4)))  # error: [bad-return] the function returns int32 tile of shape (4,)


# kernel(x: *i32)
@triton.jit
def logic_of_pointers(x):
    (x + tl.arange(0, 4)).logical_and(1)  # error: [type-mismatch] numbers are wanted here


# kernel(x: *i32)
@triton.jit
def stored_address(x):
    tl.store(x, x)  # error: [type-mismatch] pointer to int32 cannot be stored as int32


# kernel(x: *i32)
@triton.jit
def formatted(x):
    tl.static_print(f"{3=} {x.dtype!s}")
    tl.static_print(f"{3:05d}")  # error: [unsupported-python] formats in f-strings are not supported
