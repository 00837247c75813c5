"""The contract for plugins of backends that are made of kernels; kept as ``polyax.backend`` is, by the same version.

One module for each kind of plugin: ``lowerings``, ``fusers``, ``emitters``, ``host`` for backends on the host's memory,
``gpu`` for devices with memory and a queue of their own, ``plans`` for those that run plans in a way of their own.
"""

from polyax_kernels import settings as settings  # which are declared by this
