"""``polyax.experimental.sparse``: arrays of which only some elements are stored. Re-exports only."""

from typing import Any as _Any

from polyax import late as _late
from polyax.experimental.sparse.ad import grad as grad
from polyax.experimental.sparse.ad import jacfwd as jacfwd
from polyax.experimental.sparse.ad import jacobian as jacobian
from polyax.experimental.sparse.ad import jacrev as jacrev
from polyax.experimental.sparse.ad import value_and_grad as value_and_grad
from polyax.experimental.sparse.arithmetic import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from polyax.experimental.sparse.arithmetic import bcoo_multiply_dense as bcoo_multiply_dense
from polyax.experimental.sparse.arithmetic import bcoo_multiply_sparse as bcoo_multiply_sparse
from polyax.experimental.sparse.arithmetic import bcoo_reduce_sum as bcoo_reduce_sum
from polyax.experimental.sparse.base import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from polyax.experimental.sparse.base import JAXSparse as JAXSparse
from polyax.experimental.sparse.base import SparseEfficiencyError as SparseEfficiencyError
from polyax.experimental.sparse.base import SparseEfficiencyWarning as SparseEfficiencyWarning
from polyax.experimental.sparse.bcoo import bcoo_extract as bcoo_extract
from polyax.experimental.sparse.bcoo import bcoo_fromdense as bcoo_fromdense
from polyax.experimental.sparse.bcoo import bcoo_sort_indices as bcoo_sort_indices
from polyax.experimental.sparse.bcoo import bcoo_sum_duplicates as bcoo_sum_duplicates
from polyax.experimental.sparse.bcoo import bcoo_todense as bcoo_todense
from polyax.experimental.sparse.bcoo import bcoo_transpose as bcoo_transpose
from polyax.experimental.sparse.bcoo import bcoo_update_layout as bcoo_update_layout
from polyax.experimental.sparse.bcsr import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from polyax.experimental.sparse.bcsr import bcsr_concatenate as bcsr_concatenate
from polyax.experimental.sparse.bcsr import bcsr_dot_general as bcsr_dot_general
from polyax.experimental.sparse.bcsr import bcsr_dot_general_p as bcsr_dot_general_p
from polyax.experimental.sparse.bcsr import bcsr_extract as bcsr_extract
from polyax.experimental.sparse.bcsr import bcsr_extract_p as bcsr_extract_p
from polyax.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from polyax.experimental.sparse.bcsr import bcsr_fromdense_p as bcsr_fromdense_p
from polyax.experimental.sparse.bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from polyax.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from polyax.experimental.sparse.bcsr import bcsr_todense_p as bcsr_todense_p
from polyax.experimental.sparse.coo import COO as COO
from polyax.experimental.sparse.coo import coo_fromdense as coo_fromdense
from polyax.experimental.sparse.coo import coo_fromdense_p as coo_fromdense_p
from polyax.experimental.sparse.coo import coo_matmat as coo_matmat
from polyax.experimental.sparse.coo import coo_matmat_p as coo_matmat_p
from polyax.experimental.sparse.coo import coo_matvec as coo_matvec
from polyax.experimental.sparse.coo import coo_matvec_p as coo_matvec_p
from polyax.experimental.sparse.coo import coo_todense as coo_todense
from polyax.experimental.sparse.coo import coo_todense_p as coo_todense_p
from polyax.experimental.sparse.csr import CSC as CSC
from polyax.experimental.sparse.csr import CSR as CSR
from polyax.experimental.sparse.csr import csr_fromdense as csr_fromdense
from polyax.experimental.sparse.csr import csr_fromdense_p as csr_fromdense_p
from polyax.experimental.sparse.csr import csr_matmat as csr_matmat
from polyax.experimental.sparse.csr import csr_matmat_p as csr_matmat_p
from polyax.experimental.sparse.csr import csr_matvec as csr_matvec
from polyax.experimental.sparse.csr import csr_matvec_p as csr_matvec_p
from polyax.experimental.sparse.csr import csr_todense as csr_todense
from polyax.experimental.sparse.csr import csr_todense_p as csr_todense_p
from polyax.experimental.sparse.dense import bcoo_extract_p as bcoo_extract_p
from polyax.experimental.sparse.dense import bcoo_fromdense_p as bcoo_fromdense_p
from polyax.experimental.sparse.dense import bcoo_todense_p as bcoo_todense_p
from polyax.experimental.sparse.dots import bcoo_dot_general as bcoo_dot_general
from polyax.experimental.sparse.dots import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from polyax.experimental.sparse.formats import empty as empty
from polyax.experimental.sparse.formats import eye as eye
from polyax.experimental.sparse.formats import todense as todense
from polyax.experimental.sparse.formats import todense_p as todense_p
from polyax.experimental.sparse.operators import BCOO as BCOO
from polyax.experimental.sparse.operators import BCSR as BCSR
from polyax.experimental.sparse.order import bcoo_sort_indices_p as bcoo_sort_indices_p
from polyax.experimental.sparse.order import bcoo_sum_duplicates_p as bcoo_sum_duplicates_p
from polyax.experimental.sparse.pieces import bcoo_concatenate as bcoo_concatenate
from polyax.experimental.sparse.pieces import bcoo_dynamic_slice as bcoo_dynamic_slice
from polyax.experimental.sparse.pieces import bcoo_gather as bcoo_gather
from polyax.experimental.sparse.pieces import bcoo_slice as bcoo_slice
from polyax.experimental.sparse.products import bcoo_dot_general_p as bcoo_dot_general_p
from polyax.experimental.sparse.products import bcoo_dot_general_sampled_p as bcoo_dot_general_sampled_p
from polyax.experimental.sparse.products import bcoo_spdot_general_p as bcoo_spdot_general_p
from polyax.experimental.sparse.random import random_bcoo as random_bcoo
from polyax.experimental.sparse.relayout import bcoo_transpose_p as bcoo_transpose_p
from polyax.experimental.sparse.shapes import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from polyax.experimental.sparse.shapes import bcoo_reshape as bcoo_reshape
from polyax.experimental.sparse.shapes import bcoo_rev as bcoo_rev
from polyax.experimental.sparse.shapes import bcoo_squeeze as bcoo_squeeze
from polyax.experimental.sparse.sparsifying.sparsify import sparsify as sparsify
from polyax.experimental.sparse.sparsifying.tracer import SparseTracer as SparseTracer

_LATE = _late.submodules(__name__, "linalg")


def __getattr__(name: str) -> _Any:
    return _late.load(__name__, _LATE, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
