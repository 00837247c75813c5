"""The engine: programs as sessions of ONNX Runtime, and what it is asked before a program is cut.

What it takes isn't listed: an equation is taken if there is a rule, and a session of that equation alone can be made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import onnxruntime

from polyax.backend import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, blame
from polyax_onnx.rules.all import RULES
from polyax_onnx.writer import Model, NotInOnnx, Tensor

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES = ("bool", *INTEGERS, "float16", "float32", "float64")

_answers: dict[Any, str | None] = {}


def why_no_dtype(dtype: Any) -> str | None:
    if str(dtype) in DTYPES:
        return None
    return f"ONNX Runtime has no operators on {dtype} for processors; cast to one of {', '.join(DTYPES)}"


def why_not(eqn: Eqn) -> str | None:
    """The reason why the engine doesn't take an equation, if so."""
    if eqn.primitive.name not in RULES or eqn.effects:
        return "ONNX has no operator for it"
    key = (eqn.primitive, *((a.aval, isinstance(a, Literal)) for a in eqn.invars), *eqn.params.items())
    try:
        hash(key)
    except TypeError:
        return _ask(eqn)
    if key not in _answers:
        _answers[key] = _ask(eqn)
    return _answers[key]


def _ask(eqn: Eqn) -> str | None:
    values = [a.aval for a in (*eqn.invars, *eqn.outvars)]
    if reason := next((r for a in values if (r := why_no_dtype(a.dtype))), None):
        return reason
    inputs = list(dict.fromkeys(a for a in eqn.invars if isinstance(a, Var)))
    try:
        session(Jaxpr([], inputs, eqn.outvars, [eqn]), "question")
    except (NotInOnnx, *FAILURES) as e:
        return str(e).splitlines()[0]
    return None


FAILURES = tuple(
    getattr(import_module("onnxruntime.capi.onnxruntime_pybind11_state"), name)
    for name in ("Fail", "InvalidArgument", "InvalidGraph", "NotImplemented", "RuntimeException")
)


def model(jaxpr: Jaxpr, name: str) -> tuple[bytes, list[str], list[str]]:
    """A program without constants as ONNX, with the names of its inputs and outputs.

    Raises:
      NotInOnnx: a rule doesn't know how to say something.
    """
    made = Model()
    env = {v: Tensor(made, made.name(), v.aval.dtype, v.aval.shape) for v in jaxpr.invars}
    inputs = list(env.values())
    for eqn in jaxpr.eqns:
        args = [made.constant(a.val, a.aval.dtype) if isinstance(a, Literal) else env[a] for a in eqn.invars]
        env.update(zip(eqn.outvars, _written(made, eqn, args), strict=True))
    outs = [env[v] for v in jaxpr.outvars if isinstance(v, Var)]
    outs = [o.op("Identity", shape=o.shape) for o in outs]  # an output has one name, and is no input
    return made.finished(inputs, outs, name), [i.name for i in inputs], [o.name for o in outs]


def _written(made: Model, eqn: Eqn, args: Sequence[Tensor]) -> list[Tensor]:
    result: Any = RULES[eqn.primitive.name](eqn, *args) if args else RULES[eqn.primitive.name](eqn, made)
    tensors: list[Tensor] = list(result) if isinstance(result, (list, tuple)) else [result]
    for tensor, out in zip(tensors, eqn.outvars, strict=True):
        if (tensor.shape, tensor.dtype) != (out.aval.shape, out.aval.dtype):
            raise NotInOnnx(f"its rule gives {tensor.aval}, not {out.aval}")
    return tensors


def session(jaxpr: Jaxpr, name: str) -> Run:
    """A function from the arrays of a program's inputs to those of its outputs.

    Raises:
      NotInOnnx: a rule doesn't know how to say something.
      onnxruntime's own errors: it doesn't take the model.
    """
    text, inputs, outputs = model(jaxpr, name)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised as well
    try:
        made = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
    except FAILURES as e:
        blame(e, kernel=name, primitives=_primitives(jaxpr))
        raise

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        try:
            found: Any = made.run(outputs, dict(zip(inputs, arrays, strict=True))) if outputs else []
            return found
        except Exception as e:
            blame(e, kernel=name, primitives=_primitives(jaxpr), source=jaxpr.eqns[-1].source)
            raise

    return run


def _primitives(jaxpr: Jaxpr) -> str:
    return ", ".join(dict.fromkeys(e.primitive.name for e in jaxpr.eqns))


def closed(eqn: Eqn) -> ClosedJaxpr:
    """A program of one equation."""
    inputs = list(dict.fromkeys(a for a in eqn.invars if isinstance(a, Var)))
    return ClosedJaxpr(Jaxpr([], inputs, eqn.outvars, [eqn]), [])
