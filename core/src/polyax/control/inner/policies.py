"""Which values ``checkpoint`` saves: policies are functions of an equation's primitive, its types and parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.inner.answers import Offloadable
from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive
from polyax.ops.naming import name_p
from polyax.trace.flat import name_of
from polyax.trace.tree import tree_map

Policy = Callable[..., Any]
"""Answers are booleans, or those of ``control.inner.answers``."""


def answer_of(
    policy: Policy, primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]
) -> Offloadable | bool:
    """Whether ``policy`` lets results of a primitive be saved, or in which memory."""
    answer = policy(primitive, *avals, **params)
    return Offloadable(answer.src, answer.dst) if hasattr(answer, "dst") else bool(answer)


def checkpoint_name(x: Any, name: str) -> Any:
    """``x``, a pytree of arrays, whose values policies such as ``save_only_these_names`` refer to by ``name``."""
    return tree_map(lambda leaf: name_p.bind1(leaf, name=name), x)


class checkpoint_policies:
    """The policies, under JAX's names."""

    @staticmethod
    def everything_saveable(*_: Any, **__: Any) -> bool:
        """All values are saved, as without ``checkpoint``."""
        return True

    @staticmethod
    def nothing_saveable(*_: Any, **__: Any) -> bool:
        """Nothing is saved but the inputs."""
        return False

    @staticmethod
    def dots_saveable(primitive: Primitive, *_: Any, **__: Any) -> bool:
        """Results of matrix products and convolutions are saved."""
        return primitive.name in ("dot_general", "conv_general_dilated")

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(primitive: Primitive, *_: Any, **params: Any) -> bool:
        """Results of matrix products without batch dimensions are saved."""
        return primitive.name == "dot_general" and params["dimension_numbers"][1] == ((), ())

    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_only_these_names(*names: str) -> Policy:
        """Values that ``checkpoint_name`` gave one of these names are saved."""
        return lambda primitive, *_, **params: primitive is name_p and params["name"] in names

    @staticmethod
    def save_any_names_but_these(*names: str) -> Policy:
        """Values that ``checkpoint_name`` gave another name are saved."""
        return lambda primitive, *_, **params: primitive is name_p and params["name"] not in names

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Policy:
        """All values are saved but those with one of these names."""
        return lambda primitive, *_, **params: primitive is not name_p or params["name"] not in names

    @staticmethod
    def save_from_both_policies(first: Policy, second: Policy) -> Policy:
        """What either of the policies saves is saved."""

        def policy(*args: Any, **params: Any) -> bool:
            answers = first(*args, **params), second(*args, **params)
            if any(type(a) is not bool for a in answers):
                raise ValueError(
                    f"The return value of the policies should be a boolean. Got: {answers[0]} from "
                    f"{name_of(first)} and {answers[1]} from {name_of(second)}."
                )
            return any(answers)

        return policy

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
        """Results of matrix products without batch dimensions are saved in other memory."""

        def policy(*args: Any, **params: Any) -> Offloadable | bool:
            saved = checkpoint_policies.dots_with_no_batch_dims_saveable(*args, **params)
            return saved and Offloadable(offload_src, offload_dst)

        return policy

    @staticmethod
    def save_and_offload_only_these_names(
        *,
        names_which_can_be_saved: Sequence[str],
        names_which_can_be_offloaded: Sequence[str],
        offload_src: str,
        offload_dst: str,
    ) -> Policy:
        """Values that ``checkpoint_name`` gave one of these names are saved, some of them in other memory.

        That is where results of a program are put; within one program a value is saved where its device reaches it.

        Raises:
          ValueError: a name is in both lists.
        """
        saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
        if saved & offloaded:
            raise ValueError(
                "The names should be exclusive and should not intersect in `names_which_can_be_saved` and "
                f"`names_which_can_be_offloaded`. Got names_which_can_be_saved={saved}, "
                f"names_which_can_be_offloaded={offloaded} and the intersection={saved & offloaded}"
            )

        def policy(primitive: Primitive, *_: Any, **params: Any) -> Offloadable | bool:
            if primitive is not name_p:
                return False
            return Offloadable(offload_src, offload_dst) if params["name"] in offloaded else params["name"] in saved

        return policy
