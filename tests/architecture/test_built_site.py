"""The check of the built site finds what leads nowhere. (Whether pages can be read is looked at in a browser.)"""

from __future__ import annotations

from pathlib import Path

from built import broken

PAGE = """<html><body><h1 id="top">a</h1>
<a href="#top">1</a> <a href="#missing">2</a> <a href="b.html">3</a> <a href="c.html">4</a>
<a href="d/e.html#here">5</a> <a href="d/e.html#there">6</a> <a href="https://x.y/z.html#q">7</a>
<a href="/b.html">8</a> <img src="f%20g.svg"></body></html>
"""


def test_links_anchors_and_pictures_are_followed(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "a.html").write_text(PAGE)
    (tmp_path / "b.html").write_text('<a href="a.html#">back</a>')
    (tmp_path / "d/e.html").write_text('<p id="here"></p><a href="../a.html#top">up</a><link href="../gone.css">')
    (tmp_path / "f g.svg").write_text("<svg/>")
    assert list(broken(tmp_path)) == [
        "a.html links to a.html#missing",
        "a.html links to c.html",
        "a.html links to d/e.html#there",
        "a.html links to /b.html",
        "d/e.html links to gone.css",
    ]
