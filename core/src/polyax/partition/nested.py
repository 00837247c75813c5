"""Equations that hold programs: how variables inside and outside are the same, and how they run on blocks.

What a loop carries is cut alike before and after each step; what it scans isn't cut along the steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.remat import remat_p
from polyax.control.flow.cond import cond_p
from polyax.control.flow.scan import ScanParts, scan_p
from polyax.control.flow.while_loop import while_p
from polyax.control.inner.lists import cut
from polyax.control.inner.programs import hoisted, share_consts
from polyax.control.spmd import manual, shard_map_p
from polyax.ir.effects import of_one_device
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Var
from polyax.ir.primitive import Primitive
from polyax.meshes.spec import Cuts, summands, sums_of
from polyax.ops.resharding import reshard_p
from polyax.partition import reasons
from polyax.partition.emit import NESTED, BlockEmitter, Cut
from polyax.partition.propagate import Link

Found = list[tuple[ClosedJaxpr, Sequence[Link]]]
_LINKS: dict[Primitive, Callable[[Eqn], Found]] = {}


def programs_of(eqn: Eqn) -> Found:
    """The programs that an equation holds, and how their variables and those around it are the same."""
    found = _LINKS.get(eqn.primitive)
    return [] if found is None else found(eqn)


def _links(outer: Sequence[Atom], inner: Sequence[Atom], shift: int = 0) -> list[Link]:
    pairs = zip(outer, inner, strict=True)
    return [Link(o, i, shift) for o, i in pairs if type(o) is Var and type(i) is Var]


def _cuts(emitter: BlockEmitter, atoms: Sequence[Atom]) -> list[Cuts]:
    return [emitter.layout[a] for a in atoms]


def _brought(emitter: BlockEmitter, eqn: Eqn, first: int, cuts: Sequence[Cuts]) -> list[Any]:
    """Operands from number ``first`` on, cut so."""
    numbers = range(first, first + len(cuts))
    return [emitter.at(eqn.invars[n], c, reasons.of_inner(eqn, n)) for n, c in zip(numbers, cuts, strict=True)]


def _reshard(emitter: BlockEmitter, eqn: Eqn) -> list[Cut]:
    cuts = emitter.layout[eqn.outvars[0]]
    return [(emitter.at(eqn.invars[0], cuts, reasons.of_ends("a value is resharded to")), cuts)]


# --- scan -----------------------------------------------------------------------------------------------------------


def _scan_links(eqn: Eqn) -> Found:
    loop = ScanParts.of(eqn.params)
    body = loop.jaxpr.jaxpr
    consts, init, xs = loop.cut(eqn.invars)
    in_consts, in_carry, in_xs = loop.cut(body.invars)
    out_carry, out_ys = loop.cut_outs(body.outvars)
    carry, ys = loop.cut_outs(eqn.outvars)
    links = [*_links(consts, in_consts), *_links(init, in_carry), *_links(in_carry, out_carry)]
    links += [*_links(carry, in_carry), *_links(xs, in_xs, 1), *_links(ys, out_ys, 1)]
    return [(loop.jaxpr, links)]


def _scan(emitter: BlockEmitter, eqn: Eqn) -> list[Cut]:
    loop = ScanParts.of(eqn.params)
    ins, outs = _cuts(emitter, loop.jaxpr.jaxpr.invars), _cuts(emitter, loop.jaxpr.jaxpr.outvars)
    consts, carry, xs = loop.cut(ins)
    ys = loop.cut_outs(outs)[1]
    why = reasons.of_ends("what a step of the loop gives is carried or collected as")
    body = emitter.program(loop.jaxpr, ins, [*carry, *ys], why, loop.length)
    around = [*consts, *carry, *map(_stacked, xs)]
    blocks, init, scanned = loop.cut(_brought(emitter, eqn, 0, around))
    return list(zip(loop.bind(body, blocks, init, scanned), [*carry, *map(_stacked, ys)], strict=True))


def _stacked(cuts: Cuts) -> Cuts:
    """How arrays for all steps are cut, if those of a step are so."""
    return summands(((), *cuts), sums_of(cuts))


# --- while ----------------------------------------------------------------------------------------------------------


def _while_links(eqn: Eqn) -> Found:
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    of_test, of_body, init = cut(eqn.invars, eqn.params["cond_nconsts"], eqn.params["body_nconsts"])
    test_consts, test_carry = cut(test.jaxpr.invars, len(of_test))
    consts, carry = cut(body.jaxpr.invars, len(of_body))
    links = [*_links(of_body, consts), *_links(init, carry), *_links(carry, body.jaxpr.outvars)]
    links += _links(eqn.outvars, carry)
    return [(body, links), (test, [*_links(of_test, test_consts), *_links(carry, test_carry)])]


def _while(emitter: BlockEmitter, eqn: Eqn) -> list[Cut]:
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    num_test, num_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    consts, carry = cut(_cuts(emitter, body.jaxpr.invars), num_body)
    test_consts = _cuts(emitter, test.jaxpr.invars[:num_test])
    why = reasons.of_ends("what a step of the loop gives is carried as")
    on_blocks = emitter.program(body, [*consts, *carry], carry, why)
    tested = emitter.program(test, [*test_consts, *carry], [()], why)
    blocks = _brought(emitter, eqn, 0, [*test_consts, *consts, *carry])
    of_test, of_body, init = cut(blocks, num_test, num_body)
    (tested, of_tested), (on_blocks, of_blocks) = hoisted(tested), hoisted(on_blocks)
    more = {"cond_jaxpr": tested, "cond_nconsts": len(of_tested) + num_test}
    more |= {"body_jaxpr": on_blocks, "body_nconsts": len(of_blocks) + num_body}
    return list(zip(while_p.bind(*of_tested, *of_test, *of_blocks, *of_body, *init, **more), carry, strict=True))


# --- branches and calls ---------------------------------------------------------------------------------------------


def _cond_links(eqn: Eqn) -> Found:
    return [(b, _call_links(eqn, b, eqn.invars[1:])) for b in eqn.params["branches"]]


def _call_links(eqn: Eqn, program: ClosedJaxpr, args: Sequence[Atom]) -> list[Link]:
    return [*_links(args, program.jaxpr.invars), *_links(eqn.outvars, program.jaxpr.outvars)]


def _cond(emitter: BlockEmitter, eqn: Eqn) -> list[Cut]:
    """Each branch takes operands as they are, so that only the one that runs moves what it needs."""
    ins, outs = [*map(emitter.home, eqn.invars[1:])], _cuts(emitter, eqn.outvars)
    why = reasons.of_ends("all branches give this result as")
    branches, consts = share_consts([emitter.program(b, ins, outs, why) for b in eqn.params["branches"]])
    index, *blocks = _brought(emitter, eqn, 0, [(), *ins])
    return list(zip(cond_p.bind(index, *consts, *blocks, branches=tuple(branches)), outs, strict=True))


def _remat_links(eqn: Eqn) -> Found:
    return [(eqn.params["jaxpr"], _call_links(eqn, eqn.params["jaxpr"], eqn.invars))]


def _remat(emitter: BlockEmitter, eqn: Eqn) -> list[Cut]:
    ins, outs = [*map(emitter.home, eqn.invars)], _cuts(emitter, eqn.outvars)
    why = reasons.of_ends("what is computed again is used as")
    program, consts = hoisted(emitter.program(eqn.params["jaxpr"], ins, outs, why))
    blocks = _brought(emitter, eqn, 0, ins)
    return list(zip(remat_p.bind(*consts, *blocks, **{**eqn.params, "jaxpr": program}), outs, strict=True))


# --- regions --------------------------------------------------------------------------------------------------------


def _region_links(eqn: Eqn) -> Found:
    program = eqn.params["jaxpr"].jaxpr
    ends = zip((*eqn.invars, *eqn.outvars), (*program.invars, *program.outvars), strict=True)
    specs = (*eqn.params["in_specs"], *eqn.params["out_specs"])
    links = [
        Link(o, i, 0, spec, eqn.params["manual_axes"])
        for (o, i), spec in zip(ends, specs, strict=True)
        if type(o) is Var and type(i) is Var
    ]
    return [(eqn.params["jaxpr"], links)]


def _region(emitter: BlockEmitter, eqn: Eqn) -> list[Cut]:
    """Its equations stand here as they are: the user says what devices do along these axes."""
    program: ClosedJaxpr = eqn.params["jaxpr"]
    _check_effects(eqn)
    ins, outs = _cuts(emitter, program.jaxpr.invars), _cuts(emitter, program.jaxpr.outvars)

    def around(specs: Sequence[Cuts], cuts: Sequence[Cuts]) -> list[Cuts]:
        pairs = zip(specs, cuts, strict=True)
        return [
            summands([(*p, *q) for p, q in zip(spec, inner, strict=True)], sums_of(spec) | sums_of(inner))
            for spec, inner in pairs
        ]

    blocks = _brought(emitter, eqn, 0, around(eqn.params["in_specs"], ins))
    why = reasons.of_ends("the region gives it as")
    results = emitter.region(eqn.params["manual_axes"]).run(program, list(zip(blocks, ins, strict=True)), outs, why)
    return list(zip(results, around(eqn.params["out_specs"], outs), strict=True))


def _check_effects(eqn: Eqn) -> None:
    size = math.prod(n for _, n in manual(eqn.params["mesh"], eqn.params["manual_axes"]))
    ordered = of_one_device(eqn.effects)
    if ordered and size > 1:
        raise ValueError(
            f"{eqn.params['name']}: The following ordered effects are not supported for more than 1 device: {ordered}. "
            f"{size} devices run this region, asked for at {eqn.source}: call with ordered=False."
        )


_LINKS.update(
    {
        scan_p: _scan_links,
        while_p: _while_links,
        cond_p: _cond_links,
        remat_p: _remat_links,
        shard_map_p: _region_links,
    }
)
NESTED.update(
    {reshard_p: _reshard, scan_p: _scan, while_p: _while, cond_p: _cond, remat_p: _remat, shard_map_p: _region}
)
