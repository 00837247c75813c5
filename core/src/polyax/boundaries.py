"""Where errors leave polyax: every public function of the library shows the user's frames alone in tracebacks.

Packages that are loaded when they are first asked for guard themselves.
"""

from __future__ import annotations

import functools

from polyax import api, debug, lax, numpy
from polyax.lax import lenient
from polyax.runtime.contract.tracebacks import guard
from polyax.runtime.running.repeated import repeating

for _module in (api, debug):
    guard(_module)
for _module in (numpy, numpy.fft):
    guard(_module, repeating)

_once = functools.cache(repeating)  # the library's own calls share what they repeat with those of users
for _module in (lenient, lax):
    guard(_module, _once)
