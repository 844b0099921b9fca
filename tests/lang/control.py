# Control flow: what a variable is after branches and loops.
import triton
import triton.language as tl

LIMIT = tl.constexpr(4)
PLAIN = 4
SHAPE = tl.constexpr((4, 8))


@triton.jit
def pick(x, flag: tl.constexpr):
    if flag:
        return x
    else:
        return 2 * x


@triton.jit
def early(x, n):
    if n > 3:
        return x
    if n > 2:
        if n > 1:
            return x + 1
    return x + 2


@triton.jit
def early_in_chosen(x, n, side: tl.constexpr):
    if side == "left":
        if n > 3:
            return x
        half: tl.constexpr = 16
        y = x + 2
        if n > 2:
            return y
        z = y + 1
    elif side == "right":
        z = x
        half: tl.constexpr = 32
    return z + half


# kernel(x: *i32, n: i32)
@triton.jit
def variables_behind_a_return(x, n):
    if LIMIT == 4:
        if n < 3:
            return
        p = n + 1
        width: tl.constexpr = 8
    tl.store(x + tl.arange(0, width), p)
    tl.store(x, early_in_chosen(n, 1, "left") + early_in_chosen(n, 1, "right"))


@triton.jit
def same_constexpr(n):
    if n > 3:
        return 16
    else:
        return 16


# kernel(x: *i32, n: i32)
@triton.jit
def calls(x, n):
    v = pick(tl.load(x), True)
    w = pick(v, flag=False)
    e = early(w, n)
    tl.store(x, e)
    tl.store(x + tl.arange(0, same_constexpr(n)), v)  # ir: arange start=0 end=16


# kernel(x: *i32, n: i32)
@triton.jit
def globals_and_tuples(x, n):
    a, (b, c) = 1, (LIMIT, n)
    a, b = b, a
    t = tl.zeros(SHAPE, tl.int32)  # ir: splat
    for i in tl.static_range(LIMIT):
        a += i
    tl.store(x, a + b + c + SHAPE[1] + t.shape[0])


# kernel(x: *i32)
@triton.jit
def plain_global(x):
    tl.store(x, PLAIN)  # error: [bad-global] Cannot access global variable `PLAIN`


# kernel(x: *i32, n: i32)
@triton.jit
def defined_on_one_path(x, n):
    if n > 3:
        y = 1
    tl.store(x, y)  # error: [undefined-name] `y` is not defined here: it is assigned in one branch


# kernel(x: *i32, n: i32)
@triton.jit
def loop_variable_afterwards(x, n):
    for i in range(n):
        tl.store(x + i, i)
    tl.store(x, i)  # error: [undefined-name] `i` is not defined here: a loop's variable


# kernel(x: *fp32, n: i32)
@triton.jit
def carried_type(x, n):
    s = 0
    for i in range(n):
        s += tl.load(x + i)  # error: [loop-type-change] `s` is int32 before the loop and float32 after
    tl.store(x, s)


# kernel(x: *fp32, n: i32)
@triton.jit
def carried_tile(x, n):
    s = 0.0
    for i in range(n):
        s += tl.load(x + i + tl.arange(0, 8))  # error: [loop-type-change] `s` is float32 before the loop
    tl.store(x, tl.sum(s, 0))


# kernel(x: *fp32, n: i32)
@triton.jit
def branch_types(x, n):
    if n > 3:
        y = 1  # error: [branch-type-mismatch] `y` is int32 in one branch and float32 in the other
    else:
        y = 2.0
    tl.store(x, y)


# kernel(x: *fp32, n: i32)
@triton.jit
def conditional_types(x, n):
    y = tl.load(x) if n > 3 else 0  # error: [branch-type-mismatch] `the conditional expression` is float32
    tl.store(x, y)


# kernel(x: *fp32, n: i32)
@triton.jit
def loops(x, n):
    i = 0
    while i < n and tl.load(x + i) > 0:
        i += 1
    for j in range(n, 0, -1):  # ir: const value=-1:i32
        tl.store(x + j, j.to(tl.float32))
    for k in tl.range(0, n, 2, num_stages=3):  # ir: hints=stages(3)
        i += k
    tl.store(x, i.to(tl.float32))


# kernel(x: *fp32, n: i32)
@triton.jit
def endless(x, n):
    while True:  # error: [unsupported-python] this loop never ends
        tl.store(x, 1.0)


# kernel(x: *fp32, n: i32)
@triton.jit
def return_in_loop(x, n):
    for i in range(n):
        return  # error: [bad-return] Cannot have `return` statements inside a loop


# kernel(x: *fp32, n: i32)
@triton.jit
def ambiguous(x, n):
    if tl.arange(0, 8) < n:  # error: [ambiguous-condition] Boolean value of Tensor with more than one value is ambiguous
        tl.store(x, 1.0)


# kernel(x: *fp32, n=None, MODE="fast")
@triton.jit
def dead_branches(x, n, MODE: tl.constexpr):
    if n is not None:
        undefined_name(n)
    if MODE == "slow":
        tl.static_assert(False)
    elif MODE == "fast":
        y: tl.constexpr = 8
    tl.store(x + tl.arange(0, y), 1.0)  # ir: end=8
    tl.static_assert(MODE in ("fast", "slow"), f"mode {MODE}")


# kernel(x: *fp32, n: i32)
@triton.jit
def static_assertion(x, n):
    tl.static_assert(x.dtype.element_ty == tl.float16, "half only")  # error: [static-assert] static assertion failed: half only


@triton.jit
def forever(x):
    return forever(x)  # error: [too-large] calls are nested 64 deep


# kernel(x: *fp32, n: i32)
@triton.jit
def unsupported(x, n):
    y = [i for i in range(3)]  # error: [type-mismatch] a comprehension in a kernel runs over a tuple


# kernel(x: *fp32, n: i32)
@triton.jit
def walrus(x, n):
    if (y := tl.load(x)) > 0:
        tl.store(x, y)


# kernel(x: *i32)
@triton.jit
def condition_on_a_string(x):
    if "a":  # error: [type-mismatch] a condition at compile time is a bool, an integer or None
        tl.store(x, 1)


# kernel(x: *i32)
@triton.jit
def assumed_false(x):
    tl.assume(1 > 2)  # error: [static-assert] this assumption never holds


# kernel(x: *i32, n: i32)
@triton.jit
def constexpr_in_name_only(x, n):
    half: tl.constexpr = n // 2
    tl.store(x + half, 1)
    tl.arange(0, half)  # error: [not-constexpr] the end of `tl.arange` must be known at compile time
