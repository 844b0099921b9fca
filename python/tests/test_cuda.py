"""``device="cuda"`` served by the CPU. Each script runs in a process of its own, as a user's would."""

import importlib.util
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from naiad import cuda

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")

HEAD = """
    import copy, io, os, pickle, sys, threading
    import numpy as np
    import torch, triton
    import triton.language as tl
    from torch import nn

    @triton.jit
    def double(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

    def twice(x):
        assert x.is_cuda
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
        return out

    CUDA = torch.device("cuda", 0)
    """


@pytest.fixture(scope="module", autouse=True)
def without_a_gpu():
    ask = [sys.executable, "-c", "import torch; print(torch.cuda.is_available())"]
    if subprocess.run(ask, capture_output=True, text=True).stdout == "True\n":
        pytest.skip("a GPU is left alone")


@pytest.fixture
def script(naiad_command):
    """Runs a script that must succeed; returns what it printed, and to stderr but for the notice."""

    def run(body, *options):
        text = textwrap.dedent(HEAD) + textwrap.dedent(body)
        done = naiad_command("run", *options, "script.py", script=text)
        assert done.returncode == 0, done.stderr
        lines = done.stderr.splitlines(True)
        return done.stdout, [line for line in lines if line.startswith("naiad: ")]

    return run


def test_tensors_are_where_they_were_asked_to_be(script):
    body = """
        assert torch.zeros(2).device.type == "cpu" and not (torch.zeros(2) + 1).is_cuda
        n, c = (2, 3), "cuda"
        made = [
            torch.empty(n, device=c), torch.zeros(n, device=CUDA), torch.ones(*n, device="cuda:0"),
            torch.full(n, 1.0, device=0), torch.rand(n, device=c), torch.randn(2, 3, device=c),
            torch.randint(0, 5, n, device=c), torch.arange(6, device=c), torch.linspace(0, 1, 6, device=c),
            torch.eye(3, device=c), torch.tensor([1, 2], device=c), torch.as_tensor([1, 2], device=c),
            torch.asarray([1.0], device=c), torch.randperm(5, device=c), torch.empty_strided(n, (3, 1), device=c),
            torch.normal(0.0, 1.0, n, device=c), torch.tril_indices(3, 3, device=c), torch.hann_window(4, device=c),
        ]
        x, host = made[5], torch.randn(2, 3)
        assert host.device == torch.device("cpu") and not host.is_cuda and host.get_device() == -1
        made += [f(x) for f in (torch.empty_like, torch.zeros_like, torch.ones_like, torch.rand_like, torch.randn_like)]
        made += [torch.full_like(x, 2), torch.zeros_like(host, device=c), x.new_zeros(2), x.new_empty(n), x.new_ones(n)]
        made += [x.new_full(n, 1), x.new_tensor([1]), host.new_zeros(2, device=c), host.cuda(), host.to(c), host.to(x)]
        made += [host.to(device=CUDA, dtype=torch.float16), host.to("cuda:0", non_blocking=True), host.cuda(0)]
        made += [x[0], x.t(), x.detach(), x.view(-1), x.data, x + 1, x.half(), torch.cat([x, x]), nn.Parameter(x)]
        for i, t in enumerate(made):
            assert t.is_cuda and t.device == CUDA and t.device.type == "cuda" and t.get_device() == 0, i
        hosts = [host, host[0], host.clone(), host.double(), x.cpu(), x.to("cpu"), x.cpu()[0], x.cpu().float()]
        hosts += [torch.from_numpy(np.zeros(2)), torch.as_tensor(np.zeros(2)), torch.zeros_like(x, device="cpu")]
        hosts += [host.new_zeros(2), torch.empty_like(host), torch.zeros(2, device="cpu"), x.to(host)]
        for i, t in enumerate(hosts):
            assert not t.is_cuda and t.device.type == "cpu", i
        assert torch.empty(2, device="meta").device.type == x.to("meta").device.type == "meta"
        assert repr(torch.ones(1, device=c)) == "tensor([1.], device='cuda:0')"
        assert repr(torch.ones(1)) == "tensor([1.])"

        # Moves copy, and staying does not.
        moved = host.cuda()
        moved += 1
        assert (host != moved).all() and moved.cuda() is moved and host.cpu() is host and x.to(x.device) is x
        back = x.cpu()
        back += 1
        assert (back != x.cpu()).all()
        array = np.zeros(3)
        torch.as_tensor(array, device=c).add_(1)
        torch.as_tensor(array).add_(2)
        assert (array == 2).all()
        try:
            torch.zeros(2, device="cuda:1")
        except RuntimeError as e:
            assert "invalid device ordinal" in str(e)
        assert torch.zeros(2, pin_memory=True).is_pinned() and host.pin_memory().is_pinned() and not host.is_pinned()
        assert (twice(x) == 2 * x).all() and twice(x).is_cuda
        """
    _, told = script(body)
    assert told == [
        "naiad: `cuda` is served by this machine's CPU, as one NVIDIA H100 80GB HBM3 "
        "(`--gpu NAME` or NAIAD_GPU names another)\n"
    ]


def test_types_that_name_a_device(script):
    body = """
        made = torch.cuda.FloatTensor([1.0, 2.0])
        assert made.device == CUDA and made.dtype == torch.float32 and made.type() == "torch.cuda.FloatTensor"
        assert torch.cuda.LongTensor(2, 3).shape == (2, 3) and torch.cuda.ByteTensor(2).dtype == torch.uint8
        host = torch.ones(2)
        assert host.type() == "torch.FloatTensor" and isinstance(host, torch.FloatTensor)
        assert isinstance(made, torch.cuda.FloatTensor) and not isinstance(host, torch.cuda.FloatTensor)
        assert not isinstance(made, torch.cuda.HalfTensor)
        for kind in torch.cuda.HalfTensor, "torch.cuda.HalfTensor":
            assert (host.type(kind).device, host.type(kind).dtype) == (CUDA, torch.float16)
        for kind in torch.DoubleTensor, "torch.DoubleTensor":
            assert (made.type(kind).device.type, made.type(kind).dtype) == ("cpu", torch.float64)
        assert made.type(torch.int8).device == CUDA and host.type(torch.int8).device.type == "cpu"
        for wrong in (lambda: torch.Tensor(2, device="cuda"), lambda: torch.cuda.FloatTensor(2, device="cpu")):
            try:
                wrong()
                assert False
            except RuntimeError:
                pass  # As with a GPU.
        assert (twice(made) == 2 * made).all()
        torch.set_default_tensor_type("torch.cuda.HalfTensor")
        assert torch.zeros(2).device == CUDA and torch.zeros(2).dtype == torch.float16
        torch.set_default_tensor_type(torch.FloatTensor)
        assert torch.zeros(2).device.type == "cpu" and torch.zeros(2).dtype == torch.float32
        """
    script(body)


def test_sparse_tensors(script):
    body = """
        index, values = torch.tensor([[0, 1], [1, 2]]), torch.tensor([3.0, 4.0])
        dense = torch.zeros(2, 3)
        dense[0, 1], dense[1, 2] = 3, 4
        on = torch.sparse_coo_tensor(index, values, (2, 3), device="cuda")
        rows = torch.sparse_csr_tensor([0, 1, 2], [1, 2], [3.0, 4.0], (2, 3), device="cuda")
        for x in on, rows, dense.cuda().to_sparse(), dense.to_sparse().cuda(), dense.to_sparse().to("cuda"):
            assert x.is_cuda and x.device == CUDA and x.is_sparse in (True, x.layout is torch.sparse_coo)
            assert x.to_dense().is_cuda and (x.to_dense() == dense.cuda()).all()
            assert x.cpu().device.type == "cpu" and x.cpu().to_dense().device.type == "cpu"
            assert (x.cpu().to_dense() == dense).all()
        for x in dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse().coalesce(), on.cpu(), on.cpu().coalesce():
            assert x.device.type == "cpu" and not x.is_cuda and x.cpu() is x
        assert "device='cuda:0'" in repr(on) and on._values().is_cuda and on.cuda() is on and rows.cuda() is rows
        product = torch.sparse.mm(on, torch.ones(3, 2, device="cuda"))
        assert product.is_cuda and (product == dense.cuda() @ torch.ones(3, 2, device="cuda")).all()
        assert (twice(on._values()) == 2 * on._values()).all()
        """
    script(body)


FOLLOW = """
    @triton.jit
    def add_all(addresses, sizes, count, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for k in range(count):
            x = tl.load(addresses + k).to(tl.pointer_type(tl.float32))
            total += tl.load(x + i, mask=i < tl.load(sizes + k), other=0.0)
        tl.store(out + i, total, mask=i < n)

    def table(tensors):
        addresses = torch.tensor([x.data_ptr() for x in tensors], device="cuda")
        sizes = torch.tensor([x.numel() for x in tensors], device="cuda")
        return addresses, sizes
    """


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_kernels_follow_addresses_of_tensors_on_cuda(script, options):
    body = """
        xs = [torch.randn(n, device="cuda") for n in (5, 16, 1)]
        # What an operator made, and a view into the middle of one.
        xs += [xs[0] * 2, torch.arange(100.0, device="cuda")[40:50]]
        wanted = sum(nn.functional.pad(x, (0, 16 - x.numel())) for x in xs)
        out = torch.zeros(16, device="cuda")
        for _ in range(3):
            add_all[(1,)](*table(xs), len(xs), out, 16, BLOCK=16)
            assert torch.allclose(out, wanted)
        # They may be written, and by many programs on several threads.
        @triton.jit
        def fill(addresses, n, BLOCK: tl.constexpr):
            x = tl.load(addresses + tl.program_id(0)).to(tl.pointer_type(tl.float32))
            tl.store(x + tl.arange(0, BLOCK), tl.program_id(0), mask=tl.arange(0, BLOCK) < n)

        many = [torch.zeros(64, device="cuda") for _ in range(200)]
        fill[(200,)](table(many)[0], 64, BLOCK=64)
        assert all((x == i).all() for i, x in enumerate(many))
        """
    script(FOLLOW + body, *options)


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_addresses_that_lead_nowhere_are_errors(script, options):
    body = """
        import gc
        out = torch.zeros(16, device="cuda")

        def fails(addresses, sizes, what):
            try:
                add_all[(1,)](addresses, sizes, addresses.numel(), out, 16, BLOCK=16)
            except triton.OutOfBoundsError as e:
                assert "which is in no argument's memory" in str(e), e
            else:
                raise AssertionError(what)

        alive, dead = torch.ones(16, device="cuda"), torch.ones(1 << 20, device="cuda")
        addresses, sizes = table([alive, dead])
        del dead
        gc.collect()
        fails(addresses, torch.tensor([16, 16]), "dead")
        fails(table([alive])[0] + 4, torch.tensor([16]), "past its end")
        fails(torch.tensor([8]), torch.tensor([16]), "no address")
        if not triton.check.is_active():
            host = torch.ones(16)
            fails(*table([host]), "on the host")
        # A pointer that runs out of its argument finds nothing else either.
        @triton.jit
        def beyond(x, at):
            tl.store(x + at, 1.0)

        a, b = torch.zeros(8, device="cuda"), torch.zeros(8, device="cuda")
        distance = (b.data_ptr() - a.data_ptr()) // 4
        try:
            beyond[(1,)](a, distance)
            raise AssertionError("reached another tensor")
        except triton.OutOfBoundsError:
            assert not b.any()
        """
    script(FOLLOW + body, *options)


def test_models_train(script):
    body = """
        class Twice(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cuda")
            def forward(ctx, x):
                return twice(x)

            @staticmethod
            @torch.amp.custom_bwd(device_type="cuda")
            def backward(ctx, dy):
                assert dy.is_cuda and torch.zeros(1, device="cuda").is_cuda
                return twice(dy.contiguous())

        torch.manual_seed(0)
        torch.cuda.manual_seed_all(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 1))
        assert model[0].weight.device.type == "cpu"
        model = model.to("cuda")
        assert all(p.is_cuda and p.is_leaf for p in model.parameters())
        twin = copy.deepcopy(model)
        assert twin[0].weight.is_cuda and not copy.deepcopy(nn.Linear(2, 2)).weight.is_cuda
        optimizers = [torch.optim.AdamW(model.parameters(), 0.05, fused=True), torch.optim.SGD(twin.parameters(), 0.05)]
        scaler = torch.amp.GradScaler("cuda")
        x, y = torch.randn(32, 4, device="cuda"), torch.randn(32, 1, device="cuda")
        for net, optimizer in zip([model, twin], optimizers):
            losses = []
            for _ in range(20):
                optimizer.zero_grad()
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    assert torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") == torch.bfloat16
                    h = net[0](x)
                    assert h.dtype == torch.bfloat16
                    loss = (Twice.apply(net(x).float()) - y).square().mean()
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                losses.append(loss.item())
            assert losses[-1] < losses[0], losses
        assert not torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu")
        with torch.cuda.amp.autocast(enabled=False):
            assert (x @ x.t()).dtype == torch.float32

        checkpoint = torch.utils.checkpoint.checkpoint
        assert checkpoint(model, x.requires_grad_(), use_reentrant=False).is_cuda

        # Gradients of weights are added up as a GPU adds them.
        norm = nn.LayerNorm(64, device="cuda", dtype=torch.bfloat16)
        h, dh = torch.randn(2, 2000, 64, device="cuda", dtype=torch.bfloat16)
        out = norm(h)
        out.backward(dh)
        assert out.dtype == norm.bias.grad.dtype == torch.bfloat16
        torch.testing.assert_close(norm.bias.grad.double(), dh.double().sum(0), rtol=4e-3, atol=1e-3)

        @torch.compile
        def compiled(x):
            return torch.nn.functional.relu(x) + 1

        assert compiled(x).is_cuda

        loader = torch.utils.data.DataLoader(list(torch.arange(8.0)), batch_size=4, num_workers=2, pin_memory=True)
        assert sum(b.to("cuda", non_blocking=True).sum().item() for b in loader) == 28.0
        """
    script(body)


def test_files_and_copies_keep_the_device(script):
    body = """
        x, host = torch.randn(3, device="cuda"), torch.randn(3)
        file = io.BytesIO()
        torch.save({"x": x, "host": host, "state": nn.Linear(2, 2).cuda().state_dict()}, file)

        def load(**options):
            file.seek(0)
            found = torch.load(file, **options)
            assert (found["x"] == x).all()
            return found["x"].is_cuda, found["host"].is_cuda, found["state"]["weight"].is_cuda

        assert load() == (True, False, True)
        assert load(map_location="cuda") == load(map_location=CUDA) == (True, True, True)
        assert load(map_location="cpu") == (False, False, False)
        assert load(map_location=lambda storage, location: storage.cuda() if location == "none" else storage)
        assert pickle.loads(pickle.dumps(x)).is_cuda and copy.deepcopy(x).is_cuda and not copy.deepcopy(host).is_cuda
        torch.testing.assert_close(x.cpu() * 2, (x * 2).cpu())
        """
    script(body)


def test_defaults_and_generators(script):
    body = """
        with torch.device("cuda"):
            assert torch.zeros(2).is_cuda and nn.Linear(2, 2).weight.is_cuda
            assert not torch.zeros(1, device="cpu").is_cuda
            assert torch.tensor([1]).is_cuda and torch.as_tensor([1]).is_cuda
        assert not torch.zeros(2).is_cuda
        torch.set_default_device("cuda")
        assert torch.arange(3).is_cuda and torch.get_default_device() == CUDA
        torch.set_default_device("cpu")
        assert not torch.arange(3).is_cuda

        generator = torch.Generator(device="cuda").manual_seed(7)
        a = torch.rand(3, device="cuda", generator=generator)
        assert generator.device == CUDA and isinstance(torch.default_generator, torch.Generator)
        assert (a == torch.rand(3, device="cuda", generator=torch.Generator("cuda").manual_seed(7))).all()
        assert torch.Generator().device.type == "cpu"
        torch.cuda.manual_seed(1)
        state = torch.cuda.get_rng_state()
        a = torch.rand(3, device="cuda")
        torch.cuda.set_rng_state(state)
        assert (a == torch.rand(3, device="cuda")).all()
        with torch.random.fork_rng():
            torch.rand(3)

        seen = []
        def work():
            seen.append((twice(torch.ones(20, device="cuda")) == 2).all().item())
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads], [t.join() for t in threads]
        assert seen == [True] * 4
        """
    script(body)


def test_the_cuda_module(script):
    body = """
        c = torch.cuda
        assert c.is_available() and c.device_count() == 1 and c.current_device() == 0 and c.is_initialized()
        assert c.get_device_capability() == (9, 0) and "H200" in c.get_device_name(0)
        p = c.get_device_properties("cuda")
        assert (p.multi_processor_count, p.major, p.minor, p.warp_size) == (132, 9, 0, 32)
        assert p.total_memory > 130e9 and p.shared_memory_per_block_optin == 232448 and p.L2_cache_size and p.name
        driver = triton.runtime.driver.active
        target = driver.get_current_target()
        assert (target.backend, target.arch, target.warp_size) == ("cuda", 90, 32)
        assert driver.utils.get_device_properties(0)["multiprocessor_count"] == 132
        assert driver.get_active_torch_device() == CUDA

        @triton.jit
        def told(out):
            tl.store(out, tl.target_info.is_cuda() + 2 * tl.target_info.cuda_capability_geq(9, 0))
            tl.store(out + 1, tl.target_info.cuda_capability_geq(10))

        out = torch.zeros(2, dtype=torch.int32, device="cuda")
        told[(1,)](out)
        assert out.tolist() == [3, 0]

        c.set_device(0), c.synchronize(), c.empty_cache(), c.reset_peak_memory_stats(), c.ipc_collect(), c.init()
        begin, end = c.Event(enable_timing=True), c.Event(enable_timing=True)
        begin.record()
        torch.zeros(1000).sum()
        end.record()
        end.synchronize()
        assert 0 < begin.elapsed_time(end) < 1e4 and end.query()
        s = c.Stream()
        with c.stream(s):
            assert c.current_stream() == s != c.default_stream()
        s.wait_stream(c.current_stream())
        assert c.current_stream() == c.default_stream() and c.current_stream().cuda_stream == 0
        torch.zeros(2, device="cuda").record_stream(s)
        with c.device(0), c.device(CUDA), c.device_of(out), c._DeviceGuard(0):
            pass
        assert c.memory_allocated() <= c.max_memory_allocated() and len(c.mem_get_info()) == 2
        assert c.memory.max_memory_allocated() == 0 and c.memory_stats()["allocated_bytes.all.peak"] == 0
        assert not c.is_current_stream_capturing() and c.is_bf16_supported() and torch.version.cuda
        c.nvtx.range_push("a"), c.nvtx.range_pop(), c.nvtx.mark("b")
        with c.nvtx.range("x"):
            pass
        a = torch.accelerator
        assert a.is_available() and a.current_accelerator().type == "cuda" and a.device_count() == 1
        a.synchronize(), a.set_device_index(0), a.current_stream()
        for refused in (lambda: c.CUDAGraph(), lambda: c.graph(None), lambda: c.make_graphed_callables(1, 2)):
            try:
                refused()
            except RuntimeError as e:
                assert "without a graph" in str(e)
            else:
                assert False

        @torch.library.custom_op("naiad_test::twice", mutates_args=(), device_types="cuda")
        def op(x: torch.Tensor) -> torch.Tensor:
            return twice(x)

        assert (op(torch.ones(3, device="cuda")) == 2).all()
        """
    script(body, "--gpu", "h200")


def test_what_uses_no_cuda_is_left_as_it_was(script):
    body = """
        x = torch.randn(3)
        assert x.device.type == "cpu" and (x + 1).device.type == "cpu" and not (x * x).is_cuda
        """
    assert script(body) == ("", [])


def test_an_unknown_gpu(naiad_command):
    done = naiad_command("run", "--gpu", "voodoo", "script.py", script="")
    assert done.returncode == 2 and "voodoo" in done.stderr and "rtx4090" in done.stderr


def test_the_table():
    assert cuda.gpus.chosen("A100").arch == 80
    for gpu in cuda.gpus.GPUS.values():
        assert gpu.shared_memory_per_block_optin + 1024 == gpu.shared_memory_per_multiprocessor
        assert gpu.arch in range(70, 130) and gpu.total_memory % cuda.gpus.GIB == 0


def test_the_example_of_the_documentation(naiad_command):
    text = (Path(__file__).resolve().parents[2] / "docs" / "scripts.md").read_text()
    script = re.search(r"```python\n(.*?)```", text, re.S)[1]
    shown = re.search(r"\$ naiad (run --gpu .*)\n(.*\n)```", text)
    done = naiad_command(*shown[1].split(), anywhere=script)
    assert done.stdout == shown[2], done.stderr
    table = re.search(r"stands for: (.*) \|", text)[1]
    assert set(re.findall(r"`(\w+)`", table)) == set(cuda.gpus.GPUS)


def test_products_of_half_precision_are_made_in_single(script):
    body = """
        import time
        from torch.nn import functional

        a, b = (torch.randn(n, dtype=torch.float16, device="cuda") for n in ((64, 512), (512, 32)))
        c, v = torch.randn(64, 32, device="cuda").half(), torch.randn(512, device="cuda").half()
        A, B, C, V = (x.double() for x in (a, b, c, v))
        for found, wanted in [
            (a @ b, A @ B), (a.matmul(b), A @ B), (torch.matmul(a, other=b), A @ B), (a.mm(b), A @ B),
            (torch.bmm(a[None], b[None])[0], A @ B), (torch.einsum("ik,kj->ij", a, b), A @ B),
            (torch.einsum("ik,kj->ij", [a, b]), A @ B), (functional.linear(a, b.T), A @ B),
            (functional.linear(a, b.T, c[0]), A @ B + C[0]), (torch.addmm(c, a, b, beta=2, alpha=0.5), 2 * C + A @ B / 2),
            (torch.baddbmm(c[None], a[None], b[None])[0], C + A @ B), (a @ v, A @ V), (torch.mv(a, v), A @ V),
            (torch.matmul(a, b, out=torch.empty_like(c)), A @ B), (v @ b, V @ B),
        ]:
            assert found.dtype == torch.float16 and found.is_cuda
            torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=1e-2)
        kept = torch.empty_like(c)
        assert torch.mm(a, b, out=kept) is kept

        layer = nn.Linear(512, 32, device="cuda", dtype=torch.float16)
        x = a.clone().requires_grad_()
        layer(x).sum().backward()
        assert x.grad.dtype == layer.weight.grad.dtype == torch.float16
        torch.testing.assert_close(x.grad.double(), layer.weight.double().sum(0).expand(64, -1), rtol=1e-3, atol=1e-3)

        for wrong in lambda: a @ b.float(), lambda: a @ a, lambda: a @ 3, lambda: torch.mm(a, None):
            try:
                wrong()
            except (RuntimeError, TypeError):
                continue
            raise AssertionError("torch refuses it")

        graph = torch.fx.symbolic_trace(layer)
        torch.testing.assert_close(graph(a), layer(a))
        assert torch.func.vmap(torch.mv, (None, 1))(a, b).shape == (32, 64)

        n = torch.randn(1024, 1024, device="cuda").half()
        n @ n
        start = time.perf_counter()
        n @ n
        assert time.perf_counter() - start < 1
        """
    script(body)


def test_the_compiler_of_torch_may_be_asked_for(script, monkeypatch):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "0")
    body = """
        f = torch.compile(lambda a: (a * 2 + 1).sin(), backend=BACKEND)
        for x in torch.randn(10), torch.randn(10, device="cuda"):
            torch.testing.assert_close(f(x), (x * 2 + 1).sin())
        """
    for backend in "eager", "inductor":
        script(body.replace("BACKEND", repr(backend)))


def test_who_asks_where_torch_is_may_import_it_later(naiad_command):
    text = """
        import copy, importlib.util
        import numpy
        for _ in range(2):
            spec = importlib.util.find_spec("torch")
            assert spec.origin == copy.copy(spec.loader).get_filename("torch")
        import torch
        assert torch.zeros(2, device="cuda").is_cuda and torch.__spec__.loader is torch.__loader__
        """
    for command in "run", "check":
        done = naiad_command(command, "script.py", script=text)
        assert done.returncode == 0, done.stderr


def test_uninitialized_memory_is_seen_whoever_asked_where_the_library_is(naiad_command):
    for library, name in ("numpy", "numpy.empty(4, numpy.float32)"), ("torch", "torch.empty(4)"):
        text = f"""
            import importlib.util
            assert importlib.util.find_spec("{library}")
            import {library}
            import naiad as triton, naiad.language as tl

            @triton.jit
            def copy(x, y):
                i = tl.arange(0, 4)
                tl.store(y + i, tl.load(x + i))

            copy[(1,)]({name}, {name})
            """
        done = naiad_command("check", "script.py", script=text)
        assert "uninitialized" in done.stdout + done.stderr, done.stdout + done.stderr
