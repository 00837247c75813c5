"""Small kernels, each against what it means: what is wrong is shown with its inputs and the values expected."""

from polyax_conformance.parts import check_emitter


def test_kernels():
    found = check_emitter("newcomer")
    assert not found.wrong, str(found)
