"""What functions of single values are called for vectors, so that the loop vectoriser finds them."""

from __future__ import annotations


def variant(name: str, width: int) -> str:
    """What the function ``name`` is called for vectors."""
    return f"{name}_v{width}"


def with_variants(name: str, arity: int, widths: tuple[int, ...]) -> str:
    """The attribute by which the loop vectoriser finds the variants of ``name``."""
    known = (f"_ZGV_LLVM_N{w}{'v' * arity}_{name}({variant(name, w)})" for w in widths)
    return f'"vector-function-abi-variant"="{",".join(known)}"'
