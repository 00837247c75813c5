"""The edits that fusers are made of: pure functions from nodes to a node, each with the reasons why it can't be done.

They keep meaning; whether an edit pays is the fuser's business.
"""

from polyax_kernels.ir.edits.inline import Inliner as Inliner
from polyax_kernels.ir.edits.inline import at_point as at_point
from polyax_kernels.ir.edits.inline import inline as inline
from polyax_kernels.ir.edits.inline import why_not_inline as why_not_inline
from polyax_kernels.ir.edits.loops import with_loops_of as with_loops_of
from polyax_kernels.ir.edits.merge import merge as merge
from polyax_kernels.ir.edits.merge import why_not_merge as why_not_merge
from polyax_kernels.ir.edits.stack import common_rows as common_rows
from polyax_kernels.ir.edits.stack import shortest_loop as shortest_loop
from polyax_kernels.ir.edits.stack import stack as stack
from polyax_kernels.ir.edits.stack import why_not_stack as why_not_stack
