"""Where errors leave polyax: every public function of the library shows the user's frames alone in tracebacks.

Packages that are loaded when they are first asked for guard themselves.
"""

from __future__ import annotations

from polyax import api, debug, lax, numpy
from polyax.runtime.contract.tracebacks import guard
from polyax.runtime.running.repeated import repeating

for _module in (api, debug):
    guard(_module)
for _module in (lax, numpy, numpy.fft, numpy.linalg):
    guard(_module, repeating)
