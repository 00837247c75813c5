"""Settings under JAX's names: what they accept, where they come from, and what they do."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from support import process

CASES = Path(__file__).with_name("guard_cases.py")


# --- values


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("jax_numpy_rank_promotion", "yes", r"must be in \['allow', 'warn', 'raise'\], got yes of type <class 'str'>"),
        ("jax_default_matmul_precision", 3, r"must be None or in \['default', .*\], got 3 of type <class 'int'>"),
        ("jax_transfer_guard", "no", r"must be None or in \['allow', 'log', 'disallow', 'log_explicit', 'disallow_"),
    ],
)
def test_values_that_a_setting_cannot_have(name, value, text):
    with pytest.raises(ValueError, match=f"new enum value {text}"):
        polyax.config.update(name, value)
    with pytest.raises(ValueError, match=f"new enum value {text}"):
        getattr(polyax, name.removeprefix("jax_"))(value).__enter__()


def test_settings_that_need_a_value():
    with pytest.raises(TypeError, match="manager for numpy_rank_promotion config option requires an argument"):
        polyax.numpy_rank_promotion()
    with polyax.default_matmul_precision("highest"), polyax.default_matmul_precision(None):
        assert polyax.config.jax_default_matmul_precision is None
    with polyax.debug_nans():
        assert polyax.debug_nans.value is polyax.config.jax_debug_nans is True


def test_settings_are_set_by_calls():
    with pytest.raises(AttributeError, match=r"config.update\('jax_enable_x64', True\)"):
        polyax.config.jax_enable_x64 = True
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_warp"):
        polyax.config.read("jax_warp")
    assert not hasattr(polyax.config, "jax_warp")


def test_settings_of_jax_that_mean_nothing_here():
    config = polyax.config
    assert config.jax_use_shardy_partitioner is True and config.read("jax_persistent_cache_min_compile_time_secs") == 1
    config.update("jax_persistent_cache_min_compile_time_secs", 0)
    assert config.jax_persistent_cache_min_compile_time_secs == 0
    with pytest.raises(AttributeError, match="Unrecognized"):
        config.update("jax_experimental_unsafe_xla_runtime_errors", True)  # it would change what programs do


def test_the_environment_and_the_command_line():
    code = """
    import sys, polyax
    sys.argv += ["--jax_numpy_rank_promotion=raise", "--jax_debug_nans", "--other", "--", "--jax_disable_jit"]
    polyax.config.parse_flags_with_absl()
    c = polyax.config
    print(c.enable_x64, c.log_compiles, c.checks, c.numpy_rank_promotion, c.debug_nans, c.disable_jit)
    """
    own = {"POLYAX_LOG_COMPILES": "0", "POLYAX_CHECKS": "1"}
    jax = {"JAX_ENABLE_X64": "1", "JAX_LOG_COMPILES": "1", "JAX_TRACEBACK_FILTERING": "auto"}
    assert process.output(code, **own, **jax) == "True False True raise True False"


def test_flags_of_absl_count_as_parsed_where_they_are_parsed():
    code = """
    import sys, types, polyax

    class Flags(dict):  # as absl.flags.FLAGS
        given = None
        def is_parsed(self): return self.given is not None
        def __call__(self, argv, known_only): self.given = argv[1:]

    FLAGS = Flags()
    flags = types.SimpleNamespace(FLAGS=FLAGS, DEFINE_string=lambda name, *_, short_name: FLAGS.update({name: None}))
    sys.modules["absl"] = types.SimpleNamespace(flags=flags)
    sys.argv += ["--jax_numpy_rank_promotion=raise", "--other=1"]
    polyax.config.config_with_absl()
    print("jax_numpy_rank_promotion" in FLAGS, FLAGS.is_parsed(), end=" ")
    polyax.config.parse_flags_with_absl()
    print(FLAGS.given, polyax.config.numpy_rank_promotion)
    """
    assert process.output(code) == "True False ['--jax_numpy_rank_promotion=raise'] raise"


# --- what they do


def test_no_tracing():
    f = polyax.jit(lambda x: x + 1)
    f(1.0)
    with polyax.no_tracing(True):
        assert f(1.0) == 2
        with pytest.raises(RuntimeError, match=r"re-tracing function <lambda> at .*:\d+ for `jit`, but"):
            f(np.int32(1))


def test_no_execution():
    f = polyax.jit(lambda x: x + 1)
    x = jnp.ones(3)
    f(x)
    with polyax.no_execution():
        for run in (lambda: f(x), lambda: x + x, lambda: lax.scan(lambda c, _: (c, c), x, None, length=2)):
            with pytest.raises(RuntimeError, match=r"tried to execute function .* the no_execution config option"):
                run()
        compiled = f.lower(x).compile()
        assert polyax.device_put(np.ones(2)).shape == (2,)
    assert compiled is not None and f(x).tolist() == [2, 2, 2]


def test_sums_in_sixteen_bits():
    x = jnp.ones(3, jnp.bfloat16)
    assert lax.reduce_sum(x, (0,)) == 3
    with polyax.allow_f16_reductions(False):
        assert jnp.sum(x) == 3  # which is made in 32 bits
        with pytest.raises(ValueError, match=r"reduce_sum on operand bf16\[3\] is not allowed when jax_allow_f16"):
            lax.reduce_sum(x, (0,))
        with pytest.raises(ValueError, match="reduce_sum on operand"):
            polyax.jit(lambda x: lax.reduce_sum(x, (0,)))(x)


def test_keys_in_words():
    key = polyax.random.PRNGKey(0)
    with polyax.legacy_prng_key("error"), pytest.raises(ValueError, match="Legacy uint32 key array passed as key"):
        polyax.random.normal(key)
    with polyax.legacy_prng_key("warn"):
        with pytest.warns(UserWarning, match="Legacy uint32 key array") as caught:
            polyax.random.split(key)
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            polyax.random.normal(polyax.random.key(0))


def test_an_offset_of_seeds():
    expected = [polyax.random.key_data(polyax.random.key(7)).tolist(), polyax.random.PRNGKey(7).tolist()]
    with polyax.config.override(random_seed_offset=4):
        assert polyax.random.key_data(polyax.random.key(3)).tolist() == expected[0]
        assert polyax.random.PRNGKey(jnp.int32(3)).tolist() == expected[1]


def test_gumbel_noise_of_a_wide_range():
    key = polyax.random.key(0)
    with polyax.config.override(high_dynamic_range_gumbel=True):
        assert polyax.random.gumbel(key, (3,)).tolist() == polyax.random.gumbel(key, (3,), mode="high").tolist()
    assert polyax.random.gumbel(key, (3,)).tolist() == polyax.random.gumbel(key, (3,), mode="low").tolist()


def test_meshes_that_are_not_to_be_entered():
    mesh = polyax.sharding.Mesh(np.array(polyax.devices()[:1]), "x")
    no_entering = polyax.config.override(disallow_mesh_context_manager=True)
    with no_entering, pytest.raises(RuntimeError, match="Mesh context manager is disabled. Use `with polyax.set_mesh"):
        mesh.__enter__()


def test_static_indices():
    x = jnp.zeros((3, 4))
    with polyax.config.override(check_static_indices=True):
        for read in (lambda: x[5], lambda: x[-4], lambda: polyax.jit(lambda x: x[:, 9])(x)):
            with pytest.raises(IndexError, match=r"index -?\d out of bounds for axis [01] with size [34] \(normalize"):
                read()
        assert x[2, -4] == 0 and x.at[5].get(mode="fill").shape == (4,)


def test_contexts_of_users():
    context, runs = polyax.make_user_context(), []

    @polyax.jit
    def f(x):
        runs.append(context.value)
        return x

    for value in (None, 1, 2, 1, None):
        if value is None:
            f(1.0)
        else:
            with context(value):
                f(1.0)
    assert runs == [None, 1, 2] and context.value is None
    other = polyax.make_user_context("default")
    with context(1), other("changed"):
        assert (context.value, other.value) == (1, "changed")
    with pytest.raises(TypeError, match="unhashable"):
        context([]).__enter__()


# --- copies


def copies(x):
    """By name, whether it was asked for, and from where to where."""
    host = np.ones(3, np.float32)
    f = polyax.jit(lambda x: x)
    return {
        "array in a call": (False, "host_to_device", lambda: f(host)),
        "number in a call": (False, "host_to_device", lambda: f(1.0)),
        "number beside an array": (False, "host_to_device", lambda: x + 1),
        "ones": (False, "host_to_device", lambda: jnp.ones(3)),
        "array": (False, "host_to_device", lambda: jnp.array([1, 2])),
        "device_put": (True, "host_to_device", lambda: polyax.device_put(host)),
        "asarray": (False, "device_to_host", lambda: np.asarray(x)),
        "str": (False, "device_to_host", lambda: str(x)),
        "device_get": (True, "device_to_host", lambda: polyax.device_get(x)),
    }


@pytest.mark.parametrize("level", ["allow", "disallow", "disallow_explicit"])
@pytest.mark.parametrize("name", list(copies(None)))
def test_guards_of_copies(name, level, platform):
    with polyax.default_device(device := polyax.devices(platform)[0]):
        x = polyax.device_put(np.ones(3, np.float32))
        asked, way, copy = copies(x)[name]
        shared = way == "device_to_host" and device.backend.in_host_memory
        refused = not shared and (level == "disallow_explicit" or (level == "disallow" and not asked))
        for guard in (polyax.transfer_guard, getattr(polyax, f"transfer_guard_{way}")):
            with guard(level):
                if refused:
                    with pytest.raises(
                        polyax.errors.JaxRuntimeError, match=f"Disallowed {way.replace('_', '-')} transfer"
                    ):
                        copy()
                else:
                    copy()
        others = {"host_to_device", "device_to_host", "device_to_device"} - {way}
        with getattr(polyax, f"transfer_guard_{others.pop()}")(level):
            copy()


def test_copies_that_are_logged(caplog):
    with caplog.at_level(logging.WARNING), polyax.transfer_guard("log"):
        polyax.device_put(np.ones(3))
        jnp.array([1, 2])
    (record,) = caplog.records
    assert record.getMessage().startswith("host-to-device transfer: aval=ShapedArray(int32[2])")


def test_copies_among_devices():
    process.cases(CASES, POLYAX_DEVICE="cpu", POLYAX_NUM_CPU_DEVICES="2")


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
def test_what_programs_hold_is_no_copy(level: str) -> None:
    x, held = jnp.ones(3), np.ones(3, np.float32)
    with polyax.transfer_guard(level):
        assert polyax.jit(lambda: jnp.asarray(held) + 1)().shape == (3,)
        assert polyax.jit(lambda x: x + held)(x).shape == (3,)
        with pytest.raises(polyax.errors.JaxRuntimeError, match="Disallowed host-to-device transfer"):
            jnp.asarray(held)
        with pytest.raises(polyax.errors.JaxRuntimeError, match="Disallowed host-to-device transfer"):
            polyax.jit(lambda x: x + 1)(held)
