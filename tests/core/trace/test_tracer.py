"""How tracers are printed."""

import numpy as np

import polyax
import polyax.numpy as jnp


def shown(transform, *args):
    seen = []
    transform(lambda x: seen.append((repr(x), str(x), f"{x}")) or x * 2)(*args)
    (texts,) = seen
    assert len({*texts}) == 1
    return texts[0]


def test_recorded_values_show_their_types():
    assert shown(polyax.jit, 1.0) == "JitTracer(~float32[])"
    assert shown(polyax.make_jaxpr, np.ones((2, 3), bool)) == "JitTracer(bool[2,3])"
    assert shown(polyax.checkpoint, jnp.int8(1)) == "JitTracer(int8[])"


def test_examples_show_the_type_of_all():
    assert shown(polyax.vmap, jnp.ones(3)) == "VmapTracer(aval=float32[], batched=float32[3])"


def test_differentiated_values_show_what_they_are_made_of():
    assert shown(polyax.grad, 1.0) == "GradTracer(primal=1.0, typeof(tangent)=f32[])"
    assert shown(lambda f: lambda x: polyax.jvp(f, (x,), (2.0,)), 1.0) == "JVPTracer(primal=1.0, tangent=2.0)"
    both = "GradTracer(primal=VmapTracer(aval=float32[], batched=float32[3]), typeof(tangent)=f32[])"
    assert shown(lambda f: polyax.vmap(polyax.grad(f)), jnp.ones(3)) == both
    assert (
        shown(lambda f: polyax.jit(polyax.grad(f)), 1.0)
        == "GradTracer(primal=JitTracer(~float32[]), typeof(tangent)=f32[])"
    )
