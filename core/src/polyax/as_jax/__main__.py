"""``python -m polyax.as_jax script.py``: runs a program to which ``import jax`` means polyax."""

import sys

from polyax.door.commands import main

sys.exit(main())
