"""The settings that backends made of kernels share: ``config.NAME``, or ``POLYAX_NAME`` in the environment."""

from __future__ import annotations

from polyax.ir.config import Flag, config, parse_bool

fusers = config.add_flag(
    Flag("fusers", None, str, "fusers to run, in order: instruction,sibling; None: the backend's own")
)
num_threads = config.add_flag(
    Flag("num_threads", 0, int, "compute threads on the host; 0: one per core that this process may use")
)
tune = config.add_flag(
    Flag("tune", True, parse_bool, "search for the fastest tiles of matrix products; off: take the default ones")
)
