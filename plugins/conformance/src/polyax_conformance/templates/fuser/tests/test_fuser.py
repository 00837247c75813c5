"""Programs with the fuser: graphs that can't run and results that are wrong are shown."""

from polyax_conformance.parts import check_fuser

from polyax_newcomer.plugin import fuser


def test_fuser():
    found = check_fuser(fuser())
    assert not found.wrong, str(found)
