"""Flags: environment, process values, thread-local overrides, cache keys."""

import threading

import pytest

from polyax.ir.config import FLAGS, Config, Flag, parse_bool
from support.process import run


def test_values_by_the_names_of_jax():
    config = Config()
    with config.override(enable_x64=True):
        values = config.values
    assert values["jax_enable_x64"] is True and config.values["jax_enable_x64"] is False
    assert values["jax_use_shardy_partitioner"] is True and "jax_device" not in values and "jax_no_such" not in values


def test_override_is_local_to_the_thread_and_ends_with_the_block():
    config, seen = Config(), []
    with config.override(enable_x64=True):
        thread = threading.Thread(target=lambda: seen.append(config.enable_x64))
        thread.start()
        thread.join()
        assert config.enable_x64
    assert seen == [False]
    assert not config.enable_x64


def test_trace_key_tells_settings_apart_and_returns():
    config = Config()
    before = config.trace_key()
    with config.override(enable_x64=True):
        inside = config.trace_key()
    assert inside != before
    assert config.trace_key() == before


def test_jax_spellings_are_known():
    config = Config()
    config.update("jax_enable_x64", True)
    assert config.enable_x64
    assert config.jax_enable_x64 and config.read("jax_enable_x64")
    config.update("jax_compilation_cache_dir", "/tmp")
    assert config.cache_dir == config.read("compilation_cache_dir") == "/tmp"


def test_listeners_hear_of_updates():
    config, heard = Config(), []
    config.on_update(heard.append)
    config.update("platforms", "cpu")
    assert heard == ["platforms"]


def test_unknown_option_is_named():
    with pytest.raises(AttributeError, match="Unrecognized config option: enable_warp"):
        Config().update("enable_warp", True)


def test_bad_environment_value_names_the_variable():
    done = run("import polyax.ir.config", POLYAX_ENABLE_X64="perhaps")
    assert done.returncode != 0
    assert "environment variable POLYAX_ENABLE_X64: expected 0 or 1, got 'perhaps'" in done.stderr


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Flag:
    """A setting that a plugin brings."""
    flag = Flag("of_a_plugin", False, parse_bool, "what a plugin does")
    monkeypatch.setattr("polyax.ir.config.FLAGS", FLAGS.copy())
    return flag


def test_settings_of_plugins(late, monkeypatch):
    monkeypatch.setenv("POLYAX_OF_A_PLUGIN", "on")
    config, inside = Config(), []
    with config.override(checks=True):
        read = config.add_flag(late)
        assert read() is config.of_a_plugin is True
    with config.override(of_a_plugin=False):
        inside.append(read())
    config.update("of_a_plugin", "off")
    assert inside == [False] and config.of_a_plugin is False
    with pytest.raises(ValueError, match="there is a setting named 'of_a_plugin' already: what a plugin does"):
        config.add_flag(Flag("of_a_plugin", 1, int, "something else"))


def test_plugins_are_imported_before_a_setting_is_refused(late):
    config, searches = Config(), []
    config.on_unknown(lambda: (searches.append(1), config.add_flag(late)))
    config.update("of_a_plugin", True)
    assert config.of_a_plugin
    for _ in range(2):
        with pytest.raises(AttributeError, match="Unrecognized config option: enable_warp. Options: .*of_a_plugin"):
            config.update("enable_warp", True)
    assert searches == [1]


def test_a_bad_environment_value_of_a_plugins_setting_is_told_to_who_reads_it(late, monkeypatch):
    monkeypatch.setenv("POLYAX_OF_A_PLUGIN", "perhaps")
    config = Config()
    read = config.add_flag(late)
    with config.override(checks=True):
        pass
    with pytest.raises(ValueError, match="environment variable POLYAX_OF_A_PLUGIN: expected 0 or 1, got 'perhaps'"):
        read()


@pytest.mark.parametrize("enabled", (False, True))
def test_whether_64_bits_are_enabled_is_read_by_both_names(enabled: bool) -> None:
    config = Config()
    with config.override(enable_x64=enabled):
        assert config.x64_enabled is enabled
    with pytest.raises(AttributeError):
        setattr(config, "x64_enabled", True)  # noqa: B010


def test_values_by_their_names_in_jax():
    config = Config()
    values = config.values
    assert values["jax_enable_x64"] is config.enable_x64 and "jax_debug_nans" in values
    with config.override(enable_x64=not config.enable_x64):
        assert config.values["jax_enable_x64"] is not values["jax_enable_x64"]


@pytest.mark.parametrize("name", ["jax_platforms", "jax_compilation_cache_dir"])
def test_texts_are_texts(name: str) -> None:
    with pytest.raises(
        ValueError, match="new string config value must be None or of type str, got 3 of type <class 'i"
    ):
        Config().update(name, 3)
