"""Looks at each page of the built site in Chromium, wide and narrow, light and dark: says what doesn't fit or can't be
read, and takes pictures to look at.

    python docs/_site/browse.py [--pictures FOLDER] [--only WORD]

What is measured: nothing stands out of the page or of a box that doesn't scroll, each picture is there, and no text has
less contrast with what is behind it than ``CONTRAST`` (the ratio of WCAG 2.1,
1.4.3, which asks for 4.5; the colours of the theme have a little less in the dark).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path

from built import SITE
from links import ROOT

CONTRAST = 4.0
SIZES = {"wide": (1280, 2000), "narrow": (390, 2000)}
SCHEMES = {"dark": 0, "light": 1}
"""Blink's numbers."""
MEASURE = Path(__file__).with_name("measure.js")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars",
    "--mute-audio", "--allow-file-access-from-files", "--disable-web-security",
)  # fmt: skip
"""The last two let one page look into another, both files."""


def chromium(scheme: str, size: tuple[int, int], *words: str) -> str:
    """What Chromium prints."""
    program = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    if program is None:
        raise SystemExit("browse: Chromium isn't installed (Debian: apt-get install chromium)")
    look = [f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", f"--window-size={size[0]},{size[1]}"]
    with tempfile.TemporaryDirectory() as profile:
        command = [program, *OPTIONS, *look, f"--user-data-dir={profile}", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout


def complaints(site: Path, pages: Sequence[str], scheme: str, size: tuple[int, int]) -> Iterator[str]:
    """What is wrong with pages. One of ours loads each of them in a frame and measures it."""
    setting = json.dumps({"pages": pages, "width": size[0], "contrast": CONTRAST})
    text = f"<!DOCTYPE html><body><script>const setting = {setting};\n{MEASURE.read_text()}</script></body>"
    harness = site / "browse.html"
    harness.write_text(text, encoding="utf-8")
    try:
        shown = chromium(scheme, size, "--virtual-time-budget=600000", "--dump-dom", harness.as_uri())
    finally:
        harness.unlink()
    found = re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    if found is None:
        raise SystemExit(f"browse: Chromium didn't finish:\n{shown[-2000:]}")
    yield from filter(None, unescape(found[1]).splitlines())


def pictures(site: Path, pages: Sequence[str], scheme: str, name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages:
        path = folder / f"{page.removesuffix('.html').replace('/', '.')}-{name}-{scheme}.png"
        chromium(scheme, SIZES[name], f"--screenshot={path}", (site / page).as_uri())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="also take pictures")
    parser.add_argument("--only", default="", metavar="WORD", help="pages whose path has it")
    options = parser.parse_args()
    pages = [p.relative_to(SITE).as_posix() for p in sorted(SITE.rglob("*.html"))]
    pages = [p for p in pages if options.only in p]
    count = 0
    for name, size in SIZES.items():
        for scheme in SCHEMES:
            for text in complaints(SITE, pages, scheme, size):
                print(f"{name}, {scheme}: {text}")
                count += 1
            if options.pictures:
                pictures(SITE, pages, scheme, name, options.pictures)
    print(f"{len(pages)} pages of {SITE.relative_to(ROOT)}: {count} complaints")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
