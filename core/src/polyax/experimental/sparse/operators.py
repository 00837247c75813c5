"""What the operators of sparse arrays do: what ``sparsify`` makes of those of dense ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.experimental.sparse.bcoo import BCOO as BCOO
from polyax.experimental.sparse.bcsr import BCSR as BCSR
from polyax.experimental.sparse.sparsifying.sparsify import sparsify


def _method(name: str) -> Callable[..., Any]:
    """The method of dense arrays of that name; only the array itself may be sparse."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return sparsify(lambda x: getattr(x, name)(*args, **kwargs))(self)

    method.__name__ = name
    return method


def _reflected(fun: Callable[..., Any]) -> Callable[..., Any]:
    found = sparsify(fun)
    return lambda self, other: found(other, self)


def _power(self: Any, other: Any) -> Any:
    return sparsify(lambda x: jnp.power(x, other))(self)


def _part(self: Any, index: Any) -> Any:
    found = sparsify(lambda x: x[index])(self)
    empty = isinstance(self, BCOO) and not isinstance(found, BCOO) and not np.size(found)
    return BCOO.fromdense(found) if empty else found


def _each(self: Any) -> Iterator[Any]:
    return iter([self[k] for k in range(self.shape[0])])


_BOTH_WAYS = {
    "matmul": jnp.matmul, "mul": jnp.multiply, "truediv": jnp.divide, "add": jnp.add, "sub": jnp.subtract,
}  # fmt: skip
_COMPARING = {
    "gt": jnp.greater, "ge": jnp.greater_equal, "lt": jnp.less, "le": jnp.less_equal, "eq": jnp.equal,
    "ne": jnp.not_equal,
}  # fmt: skip
_MEMBERS: dict[str, Any] = {
    **{name: _method(name) for name in ("astype", "reshape", "sum")},
    **{f"__{name}__": sparsify(fun) for name, fun in (_BOTH_WAYS | _COMPARING).items()},
    **{f"__r{name}__": _reflected(fun) for name, fun in _BOTH_WAYS.items()},
    "__abs__": sparsify(jnp.abs),
    "__neg__": sparsify(jnp.negative),
    "__pos__": sparsify(jnp.positive),
    "__pow__": _power,
    "__rpow__": _reflected(jnp.power),
    "__getitem__": _part,
    "__iter__": _each,
}

for _name, _member in _MEMBERS.items():
    setattr(BCOO, _name, _member)
for _name in ("__matmul__", "__rmatmul__", "__getitem__"):
    setattr(BCSR, _name, _MEMBERS[_name])
