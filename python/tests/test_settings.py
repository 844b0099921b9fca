"""`triton.knobs`: what settings are, and which of them steer something."""

import os

import pytest

import naiad as triton
import naiad.language as tl
from naiad import knobs

np = pytest.importorskip("numpy")

X = np.zeros(4, np.float32)


class Mine(knobs.base_knobs):
    name = knobs.env_str("MY_NAME", "nobody")
    count = knobs.env_int("MY_COUNT", 3)
    loud = knobs.env_bool("MY_LOUD")
    maybe = knobs.env_opt_bool("MY_MAYBE")
    place = knobs.env_opt_str("MY_PLACE")
    listener = None


@pytest.fixture
def mine(monkeypatch):
    for knob in Mine().knob_descriptors.values():
        monkeypatch.delenv(knob.key, raising=False)
    settings = Mine()
    yield settings
    settings.reset()


def test_settings_are_read_from_the_environment(mine, monkeypatch):
    assert mine.knobs == {"name": "nobody", "count": 3, "loud": False, "maybe": None, "place": None}
    for key, text in {"NAME": "me", "COUNT": "7", "LOUD": "Yes", "MAYBE": "off", "PLACE": "here"}.items():
        monkeypatch.setenv(f"MY_{key}", text)
    assert mine.knobs == {"name": "me", "count": 7, "loud": True, "maybe": False, "place": "here"}
    monkeypatch.setenv("MY_COUNT", "many")
    with pytest.raises(RuntimeError, match="MY_COUNT must be an integer, and is 'many'"):
        mine.count


def test_what_is_assigned_counts_and_is_told_to_other_processes(mine, monkeypatch):
    mine.loud = True
    assert os.environ["MY_LOUD"] == "1"
    monkeypatch.setenv("MY_LOUD", "0")
    assert mine.loud is True
    del mine.loud
    # Another has set the variable meanwhile, and that stays.
    assert mine.loud is False and os.environ["MY_LOUD"] == "0"


@pytest.mark.parametrize("back", [knobs.env, None])
def test_the_environment_comes_back(mine, monkeypatch, back):
    monkeypatch.setenv("MY_NAME", "before")
    mine.name = "between"
    assert os.environ["MY_NAME"] == "between"
    mine.name = back
    assert mine.name == os.environ["MY_NAME"] == "before"


def test_settings_may_be_kept_to_oneself(mine, monkeypatch):
    monkeypatch.setattr(knobs, "propagate_env", False)
    mine.name = "secret"
    assert mine.name == "secret" and "MY_NAME" not in os.environ


def test_copies_have_values_of_their_own(mine, monkeypatch):
    monkeypatch.setattr(knobs, "propagate_env", False)
    mine.name = "first"
    copy = mine.copy()
    copy.name = "second"
    assert (mine.name, copy.name) == ("first", "second")
    assert copy.reset() is copy and (mine.name, copy.name) == ("first", "nobody")


def test_a_scope_leaves_nothing_behind(mine):
    mine.name = "first"
    with mine.scope():
        mine.name, mine.count, mine.listener = "inner", 1, print
    assert (mine.name, mine.count, mine.listener) == ("first", 3, None)
    assert os.environ["MY_NAME"] == "first" and "MY_COUNT" not in os.environ


def test_folders_lie_below_home(monkeypatch):
    for key in ("TRITON_CACHE_DIR", "TRITON_DUMP_DIR"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("TRITON_HOME", "/home/of/mine")
    assert knobs.cache.dir == "/home/of/mine/.triton/cache"
    assert knobs.cache.dump_dir == "/home/of/mine/.triton/dump"


def test_where_results_are_kept(monkeypatch, tmp_path):
    from naiad.runtime import cache

    monkeypatch.delenv("NAIAD_CACHE_DIR", raising=False)
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    # Not among Triton's own unless that is said.
    assert cache.directory().name == "naiad"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    assert cache.directory() == tmp_path / "triton"
    monkeypatch.setenv("NAIAD_CACHE_DIR", str(tmp_path / "naiad"))
    assert cache.directory() == tmp_path / "naiad"


def test_classes_are_named_by_module(monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "naiad.runtime.cache:FileCacheManager")
    from naiad.runtime.cache import FileCacheManager

    assert knobs.cache.manager_class is FileCacheManager
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "naiad.nothing:Nobody")
    with pytest.raises(RuntimeError, match="cannot be had"):
        knobs.cache.manager_class


def test_files_are_kept_by_key(monkeypatch, tmp_path):
    from naiad.runtime.cache import get_cache_manager

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("NAIAD_CACHE_DIR", raising=False)
    manager = get_cache_manager("key")
    assert manager.get_file("a.txt") is None
    path = manager.put("text", "a.txt")
    assert get_cache_manager("key").get_file("a.txt") == path
    manager.put_group("all", {"a.txt": path})
    assert manager.get_group("all") == {"a.txt": path}
    os.unlink(path)
    assert manager.get_group("all") is None


def test_debug_is_asked_for_by_the_environment(monkeypatch):
    @triton.jit
    def kernel(x):
        tl.device_assert(tl.load(x) > 0, "positive")

    kernel[(1,)](X)
    monkeypatch.setenv("TRITON_DEBUG", "1")
    knobs.refresh_knobs()
    try:
        with pytest.raises(triton.DeviceAssertError):
            kernel[(1,)](X)
    finally:
        monkeypatch.delenv("TRITON_DEBUG")
        knobs.refresh_knobs()


def test_chains_of_hooks():
    heard = []
    first, second = (lambda x: heard.append((1, x))), (lambda x: heard.append((2, x)))
    for backwards, order in (False, [1, 2]), (True, [2, 1]):
        chain = knobs.HookChain(reversed=backwards)
        assert not chain
        chain.add(first), chain.add(second), chain.add(first)
        chain("x")
        assert [n for n, _ in heard] == order
        chain.remove(first), chain.remove(first)
        assert list(chain.calls) == [second]
        heard.clear()
