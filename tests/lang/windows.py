# Block pointers and tensor descriptors.
import triton
import triton.language as tl


# kernel(x: *fp16, n: i32, s: i32)
@triton.jit
def copied(x, n, s):
    p = tl.make_block_ptr(x, (n, 64), (s, 1), (0, 0), (16, 32), (1, 0))
    for i in range(0, n, 16):
        t = tl.load(p, boundary_check=(0,), padding_option="zero")  # ir: load
        tl.store(p, (t * 2).to(p.dtype.element_ty), boundary_check=(0, 1))  # ir: store
        p = tl.advance(p, (16, 0))
    tl.static_assert(p.type.element_ty == tl.float16)


# kernel(x: *fp32, n: i32)
@triton.jit
def chosen(x, n):
    p = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    if n > 16:
        p = tl.advance(p, [16])
    tl.store(p, tl.load(p), boundary_check=[0])


# kernel(x: *fp32, n: i32)
@triton.jit
def masked(x, n):
    p = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    tl.load(p, mask=n > 3)  # error: [bad-argument] `mask` cannot be given with a block pointer


# kernel(x: *fp32, n: i32)
@triton.jit
def check_without_block(x, n):
    tl.load(x + tl.arange(0, 8), boundary_check=(0,))  # error: [bad-argument] `boundary_check` is for block pointers


# kernel(x: *fp32, n: i32)
@triton.jit
def wrong_rank(x, n):
    tl.make_block_ptr(x, (n, n), (n, 1), (0, 0), (16,), (1, 0))  # error: [bad-argument] the tensor has 2 axes, 1 extents of a block are given


# kernel(x: *fp32, n: i32)
@triton.jit
def wrong_order(x, n):
    tl.make_block_ptr(x, (n, n), (n, 1), (0, 0), (4, 4), (1, 1))  # error: [bad-argument] the order [1, 1] is no permutation


# kernel(x: *i32, n: i32)
@triton.jit
def padded_integers(x, n):
    p = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    tl.load(p, boundary_check=(0,), padding_option="nan")  # error: [bad-argument] int32 has no NaN to pad with


# kernel(x: *fp32, n: i32)
@triton.jit
def moved_as_a_pointer(x, n):
    p = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    tl.load(p + 1)  # error: [type-mismatch] `+` is not defined


# kernel(x: *fp32, n: i32)
@triton.jit
def described(x, n):
    d = tl.make_tensor_descriptor(x, shape=[n, n], strides=[n, 1], block_shape=[8, 16])
    t = d.load([0, 16])  # ir: load
    d.atomic_add([0, 0], t)  # ir: atomic.add
    d.store([8, 0], t + d.shape[0])  # ir: store
    r = tl.make_tensor_descriptor(x, [n, n], [n, 1], [1, 16])
    rows = r.gather(tl.arange(0, 8), 4)
    r.scatter(rows, tl.arange(0, 8), 0)
    tl.store_tensor_descriptor(d, [0, 0], tl.load_tensor_descriptor(d, [8, 8]))


# kernel(x: *fp32, n: i32)
@triton.jit
def last_stride(x, n):
    tl.make_tensor_descriptor(x, [n, n], [1, n], [8, 16])  # error: [bad-argument] the last stride of a tensor descriptor must be the constexpr 1


# kernel(x: *i8, n: i32)
@triton.jit
def narrow_block(x, n):
    tl.make_tensor_descriptor(x, [n, n], [n, 1], [8, 8])  # error: [bad-shape] the last axis of a descriptor's block must hold at least 16 bytes, not 8


# kernel(x: *fp32, n: i32)
@triton.jit
def stored_shape(x, n):
    d = tl.make_tensor_descriptor(x, [n, n], [n, 1], [8, 16])
    d.store([0, 0], tl.zeros((16, 8), tl.float32))  # error: [shape-mismatch] the value has shape (16, 8), the descriptor's block (8, 16)


# kernel(x: *i16, n: i32)
@triton.jit
def atomic_type(x, n):
    d = tl.make_tensor_descriptor(x, [n, n], [n, 1], [8, 16])
    d.atomic_add([0, 0], d.load([0, 0]))  # error: [type-mismatch] `.atomic_add` of a descriptor is not defined for int16


# kernel(x: *fp32, n: i32)
@triton.jit
def misspelled(x, n):
    d = tl.make_tensor_descriptor(x, [n, n], [n, 1], [8, 16])
    d.lod([0, 0])  # error: [unknown-attribute] a tensor descriptor of blocks (8, 16) of float32 has no attribute `lod`
