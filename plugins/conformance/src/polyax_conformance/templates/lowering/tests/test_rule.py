"""The rule on all cases of its primitive: what is wrong is shown with its inputs and the values expected."""

from polyax.lax import logistic_p
from polyax_conformance.parts import check_lowering

from polyax_newcomer.plugin import rule


def test_rule():
    found = check_lowering(rule(), logistic_p)
    assert not found.wrong, str(found)
