"""Flags: environment, process values, thread-local overrides, cache keys."""

import os
import subprocess
import sys
import threading

import pytest

from polyax.ir.config import Config


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
    assert config.jax_enable_x64


def test_listeners_hear_of_updates():
    config, heard = Config(), []
    config.on_update(heard.append)
    config.update("platforms", "cpu")
    assert heard == ["platforms"]


def test_unknown_option_is_named():
    with pytest.raises(AttributeError, match="Unrecognized config option: enable_warp"):
        Config().update("enable_warp", True)


def test_bad_environment_value_names_the_variable():
    code = "import polyax.ir.config"
    env = {**os.environ, "POLYAX_ENABLE_X64": "perhaps"}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.returncode != 0
    assert "environment variable POLYAX_ENABLE_X64: expected 0 or 1, got 'perhaps'" in run.stderr
