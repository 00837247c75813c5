"""Where errors leave polyax: every public function of the library shows the user's frames alone in tracebacks.

Packages that are loaded when they are first asked for guard themselves.
"""

from __future__ import annotations

from polyax import api, debug, lax, numpy
from polyax.runtime.contract.tracebacks import guard

for _module in (api, debug, lax, numpy):
    guard(_module)
