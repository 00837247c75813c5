"""Makes the pictures of ``docs/gallery.md``: runs the code of that page, which says itself what it draws."""

from __future__ import annotations

import os
import re

from links import ROOT

PAGE = ROOT / "docs/gallery.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def main() -> None:
    folder = PAGE.with_suffix("")
    folder.mkdir(exist_ok=True)
    os.environ["GALLERY"] = str(folder)
    os.chdir(ROOT)
    exec(
        compile("\n".join(BLOCK.findall(PAGE.read_text(encoding="utf-8"))), str(PAGE), "exec"), {"__name__": "gallery"}
    )
    for picture in sorted(folder.glob("*.svg")):
        picture.write_text(picture.read_text(encoding="utf-8").replace(f"{ROOT}{os.sep}", ""), encoding="utf-8")
        print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
