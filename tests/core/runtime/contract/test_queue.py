"""The queue of a host device: what its thread runs sees the settings of the thread that asked for it."""

import polyax
from polyax.ir.config import config
from polyax.runtime.contract.queue import INLINE_COST, HostQueue


def test_work_sees_the_settings_of_who_asks():
    queue, seen = HostQueue("test"), []
    for x64 in (True, False):
        with polyax.enable_x64(x64):
            queue.run(lambda: seen.append(config.enable_x64), [], INLINE_COST + 1)
    queue.synchronize()
    assert seen == [True, False]
