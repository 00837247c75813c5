"""``polyax.stages``: functions traced, lowered and compiled ahead of time. Re-exports only."""

from polyax.api.stages import ArgInfo as ArgInfo
from polyax.api.stages import Compiled as Compiled
from polyax.api.stages import CompilerOptions as CompilerOptions
from polyax.api.stages import Lowered as Lowered
from polyax.api.stages import Traced as Traced
from polyax.api.stages import Wrapped as Wrapped
