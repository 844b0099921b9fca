"""Compiling without a launch, the hooks around it, and compiled kernels as objects."""

import pytest

import naiad as triton
import naiad.language as tl
from naiad import knobs
from naiad.compiler import ASTSource
from naiad.runtime.jit import mangle_type
from naiad.runtime.types import str_to_ty

np = pytest.importorskip("numpy")

X = np.zeros(64, np.float32)


@triton.jit
def scale(x, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) * factor, i < n)


@triton.jit
def pair(x, both):
    tl.static_assert(both[1] == 2)
    tl.store(x, both[0])


@triton.jit
def described(d):
    d.store([0, 0], d.load([0, 0]) + 1)


TYPES = {"x": "*fp16", "factor": "fp32", "n": "i64", "BLOCK": "constexpr"}


@pytest.mark.parametrize("constants", [{"BLOCK": 16}, {3: 16}, {(3,): 16}])
def test_a_source_is_a_function_with_types(constants):
    compiled = triton.compile(ASTSource(scale, TYPES, constants))
    text = compiled.asm["tile"]
    assert "*fp16" in text and "i64" in text and "fp32" in text
    assert compiled.metadata.name == "scale" and compiled.metadata.num_warps == 4
    assert len(compiled.hash) == 64


def test_types_may_be_one_text_and_options_are_told():
    source = ASTSource(scale, "*fp32, fp32, i32, constexpr", {"BLOCK": 16})
    compiled = triton.compile(source, target=triton.backends.compiler.GPUTarget("cuda", 90, 32), options={"num_warps": 8})
    assert compiled.metadata.num_warps == 8
    assert source.hash() == ASTSource(scale, "*fp32, fp32, i32, constexpr", {"BLOCK": 16}).hash()
    assert source.hash() != ASTSource(scale, "*fp32, fp32, i64, constexpr", {"BLOCK": 16}).hash()


@pytest.mark.parametrize("ty", ["i1", "i8", "u8", "i16", "u32", "i64", "u64", "fp16", "bf16", "fp64"])
def test_scalars_have_the_type_that_is_said(ty):
    @triton.jit
    def kernel(x, TY: tl.constexpr):
        tl.static_assert(x.dtype == TY)

    triton.compile(ASTSource(kernel, {"x": ty, "TY": "constexpr"}, {"TY": str_to_ty(ty)}))


def test_tuples_and_descriptors_in_signatures():
    source = ASTSource(pair, {"x": "*fp32", "both": ("fp32", "constexpr")}, {(1, 1): 2})
    triton.compile(source)
    triton.compile(ASTSource(described, {"d": "tensordesc<fp16[16, 16]>"}))


def test_sources_that_are_none():
    with pytest.raises(triton.LaunchError, match="there is no parameter `y`: they are x, factor, n, BLOCK"):
        ASTSource(scale, {"y": "*fp32"})
    with pytest.raises(triton.LaunchError, match="`BLOCK` of `scale` is constexpr and `constexprs` has no value"):
        triton.compile(ASTSource(scale, TYPES))
    with pytest.raises(triton.LaunchError, match="a signature has no type '\\*fp33'"):
        triton.compile(ASTSource(scale, {**TYPES, "x": "*fp33"}, {"BLOCK": 16}))
    with pytest.raises(triton.CompilationError, match="give `triton.compile` an `ASTSource`"):
        triton.compile("kernel.ttir")


def test_types_of_arguments_in_words():
    assert mangle_type((1, 2.5, None, True, 2**40, 2**63)) == ("i32", "fp32", "constexpr", "u1", "i64", "u64")
    assert mangle_type(1, specialize=True) == "constexpr" and mangle_type(2, specialize=True) == "i32"
    assert mangle_type(triton.MockTensor(tl.float16)) == "*fp16"
    assert str_to_ty("*kfp32") == tl.pointer_type(tl.float32, const=True)
    assert tl.str_to_ty("u1") == tl.int1 and tl.str_to_ty("bf16") == tl.bfloat16
    with pytest.raises(TypeError, match="str is no type of an argument"):
        mangle_type("text")


@pytest.fixture
def hooks(monkeypatch):
    heard = []
    for name in ("jit_cache_hook", "jit_post_compile_hook"):
        monkeypatch.setattr(knobs.runtime, name, lambda name=name, **about: heard.append((name, about)))
    return heard


def test_hooks_hear_of_each_compilation_once(hooks):
    @triton.jit
    def kernel(x, n, BLOCK: tl.constexpr):
        tl.store(x, n)

    for _ in range(2):
        kernel[(1,)](X, 5, BLOCK=2)
    assert [name for name, _ in hooks] == ["jit_cache_hook", "jit_post_compile_hook"]
    about = hooks[0][1]
    assert about["fn"].jit_function is kernel and about["fn"].name.endswith("kernel")
    assert about["compile"]["signature"] == {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    assert about["compile"]["constants"] == {(2,): 2} and not about["compile"]["is_warmup"]
    assert about["repr"].startswith("kernel[num_warps=4")
    assert about["compile"]["key"] in kernel.device_caches[0][0]
    kernel.warmup(X, 1, BLOCK=2, grid=(1,))
    assert len(hooks) == 4 and hooks[2][1]["compile"]["is_warmup"]
    # The integer 1 is a constexpr.
    assert hooks[2][1]["compile"]["constants"] == {(1,): 1, (2,): 2}


def test_a_hook_prevents_a_compilation(monkeypatch):
    @triton.jit
    def kernel(x):
        tl.store(x, 7.0)

    out = np.zeros(1, np.float32)
    monkeypatch.setattr(knobs.runtime, "jit_cache_hook", lambda **about: True)
    assert kernel[(1,)](out) is None and kernel.warmup(out) is None
    assert out[0] == 0 and len(kernel.device_caches[0][0]) == 0


def test_what_a_hook_heard_compiles_elsewhere(hooks):
    compiled = pair.warmup(X, (3.0, tl.constexpr(2)), grid=(1,))
    data = hooks[0][1]["compile"]["specialization_data"]
    pair.device_caches[0][0].clear()
    assert pair.preload(data).hash == compiled.hash
    hooks.clear()
    pair[(1,)](X, (3.0, tl.constexpr(2)))
    assert not hooks
    with pytest.raises(RuntimeError, match="Specialization data is for"):
        scale.preload(data)


def test_hooks_for_loading(monkeypatch):
    @triton.jit
    def kernel(x):
        tl.store(x, 7.0)

    heard = []
    for name in ("kernel_load_start_hook", "kernel_load_end_hook"):
        chain = knobs.HookChain()
        chain.add(lambda module, function, name, metadata_group, hash: heard.append((name, hash)))
        monkeypatch.setattr(knobs.runtime, name, chain)
    kernel.warmup(X)
    assert not heard
    for _ in range(2):
        compiled = kernel[(1,)](X)
    assert heard == [("kernel", compiled.hash)] * 2


def test_a_listener_hears_how_long_it_took(monkeypatch):
    heard = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **about: heard.append(about))

    @triton.jit
    def kernel(x):
        tl.store(x, 7.0)

    kernel[(1,)](X)
    kernel[(1,)](X)
    (about,) = heard
    assert about["src"].fn is kernel and about["times"].total > 0 and not about["cache_hit"]


def test_variants_can_be_looked_at_and_forgotten():
    @triton.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x, N)

    first, second = (kernel.warmup(X, N=n) for n in (1, 2))
    variants = kernel.device_caches["cpu"][0]
    assert {c.hash for c in variants.values()} == {first.hash, second.hash}
    variants.clear()
    assert len(variants) == 0
    kernel[(1,)](X, N=3)
    assert X[0] == 3 and len(variants) == 1


def test_repr_names_the_variant():
    def name(spec):
        return f"fill_{spec.signature['x'].strip('*')}_{spec.constants['N']}"

    @triton.jit(repr=name)
    def kernel(x, N: tl.constexpr):
        tl.store(x, N)

    assert kernel.warmup(X, N=4).name == "fill_fp32_4"
    assert kernel[(1,)](X, N=2).metadata.name == "fill_fp32_2"


def test_a_parameter_that_is_named_as_an_option():
    @triton.jit
    def kernel(x, num_stages: tl.constexpr):
        tl.store(x, num_stages)

    compiled = kernel.warmup(X, num_stages=4)
    compiled[(1, 1, 1)](X, 4)
    assert X[0] == 4


def test_integers_beyond_all_types():
    @triton.jit
    def kernel(x, n):
        pass

    with pytest.raises(OverflowError, match="it has more than 64 bits"):
        kernel[(1,)](X, 2**64)


def test_the_message_alone():
    @triton.jit
    def kernel(x):
        x.nothing

    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](X)
    assert "`nothing`" in caught.value.error_message and "\n" not in caught.value.error_message
