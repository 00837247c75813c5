"""``polyax.ref``: references to arrays that change, as in ``jax.ref``."""

from polyax.control.refs.access import addupdate as addupdate
from polyax.control.refs.access import empty_ref as empty_ref
from polyax.control.refs.access import free_ref as free_ref
from polyax.control.refs.access import freeze as freeze
from polyax.control.refs.access import get as get
from polyax.control.refs.access import new_ref as new_ref
from polyax.control.refs.access import set as set
from polyax.control.refs.access import swap as swap
from polyax.control.refs.ref import Ref as Ref
from polyax.ir.refs import AbstractRef as AbstractRef
