"""What the dimension numbers of gathers and scatters must be, told in the words and the order of XLA's checks.

Knows shapes and numbers alone, neither primitive.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray

Dims = tuple[int, ...]


@dataclass(frozen=True)
class DimensionChecks:
    """Checks of one operation, which raise ``TypeError`` with its name: ``gather`` or ``scatter``."""

    op: str

    @property
    def title(self) -> str:
        return self.op.capitalize()

    def distinct(self, name: str, dims: Dims) -> None:
        if len(set(dims)) != len(dims):
            raise TypeError(f"{name} in {self.op} op must not repeat; got: {dims}.")

    def ordered(self, name: str, dims: Dims) -> None:
        if list(dims) != sorted(dims):
            raise TypeError(f"{name} in {self.op} op must be sorted; got {dims}")
        self.distinct(name, dims)

    def within(self, name: str, dims: Dims, rank: int) -> None:
        for dim in dims:
            if not 0 <= dim < rank:
                raise TypeError(f"Invalid {name} set in {self.op} op; valid range is [0, {rank}); got: {dim}.")

    def ordered_within(self, name: str, dims: Dims, rank: int) -> None:
        self.ordered(name, dims)
        self.within(name, dims, rank)

    def disjoint(self, names: tuple[str, str], these: Dims, those: Dims) -> None:
        if set(these) & set(those):
            raise TypeError(f"{names[0]} and {names[1]} in {self.op} op must be disjoint; got: {these} and {those}.")

    def integers(self, indices: ShapedArray) -> None:
        if not dtypes.is_integer(indices.dtype):
            raise ValueError("indices must have an integer type")

    def components(self, indices: ShapedArray, name: str, index_map: Dims, rank: int) -> None:
        """Index vectors have one component for each entry of the map, which leads to distinct dimensions."""
        found = indices.shape[-1] if indices.shape else None
        if found != len(index_map):
            raise TypeError(
                f"{self.title} op has {len(index_map)} elements in {name} and the bound of dimension "
                f"index_vector_dim={indices.ndim - 1} of indices is {found}. These two numbers must be equal."
            )
        for i, dim in enumerate(index_map):
            if not 0 <= dim < rank:
                mapping = name if self.op == "gather" else f"{name} mapping"
                raise TypeError(f"Invalid {mapping}; domain is [0, {rank}), got: {i}->{dim}.")
        self.distinct(name, index_map)

    def batching(
        self, operand: ShapedArray, indices: ShapedArray, name: str, operand_dims: Dims, index_dims: Dims
    ) -> None:
        """Batching dimensions come in pairs of one size; the one of index vectors is none of them."""
        self.distinct(name, index_dims)
        self.within(name, index_dims, indices.ndim)
        if indices.ndim - 1 in index_dims:
            raise TypeError(
                f"{self.title} op cannot have the index vector dimension as a batching dimension; got {index_dims}."
            )
        if len(operand_dims) != len(index_dims):
            raise TypeError(
                f"{self.title} op requires equal numbers of operand_batching_dims and {name}, "
                f"got {operand_dims} and {index_dims}."
            )
        of_operand, of_indices = ([a.shape[i] for i in d] for a, d in ((operand, operand_dims), (indices, index_dims)))
        if of_operand != of_indices:
            raise TypeError(
                f"{self.title} op requires operand batching dimensions and indices batching dimensions to have the "
                f"same shape, got {tuple(of_operand)} and {tuple(of_indices)}."
            )
