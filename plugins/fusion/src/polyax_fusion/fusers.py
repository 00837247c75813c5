"""All the fusers of this distribution, in the order in which they are meant to run."""

from __future__ import annotations

from polyax_fusion.instruction import instruction_fusion
from polyax_fusion.merger import fusion_merger
from polyax_fusion.producer_consumer import producer_consumer_fusion
from polyax_fusion.sibling import sibling_fusion

FUSERS = (instruction_fusion, fusion_merger, sibling_fusion, producer_consumer_fusion)
