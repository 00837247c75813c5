"""Checks of parts, for their authors: emitters, lowerings and fusers. Needs ``polyax-kernels``."""

from polyax_conformance.parts.emitter import check_emitter as check_emitter
from polyax_conformance.parts.findings import Findings as Findings
from polyax_conformance.parts.findings import Wrong as Wrong
from polyax_conformance.parts.fuser import check_fuser as check_fuser
from polyax_conformance.parts.lowering import check_lowering as check_lowering
