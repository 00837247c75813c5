"""Each hook is documented, and used by a plugin of this repository."""

from __future__ import annotations

import ast

import pytest

from support.sources import PACKAGES, ROOT, all_modules, functions, modules

SPECIFICATIONS = "polyax.runtime.contract.hooks"


def hooks() -> list[str]:
    (module,) = (m for m in modules("polyax") if m.name == SPECIFICATIONS)
    return sorted({f.name for f in functions(module) if f.name.startswith("polyax_")})


def test_there_are_hooks() -> None:
    assert {"polyax_backends", "polyax_lowerings", "polyax_fusers", "polyax_compiled"} <= set(hooks())


@pytest.mark.parametrize("hook", hooks())
def test_hook_is_documented(hook: str) -> None:
    assert f"`{hook}`" in (ROOT / "docs/plugins.md").read_text(), f"docs/plugins.md doesn't describe {hook}"


@pytest.mark.parametrize("hook", hooks())
def test_hook_is_documented_with_its_signature(hook: str) -> None:
    (module,) = (m for m in modules("polyax") if m.name == SPECIFICATIONS)
    (spec,) = (f for f in functions(module) if f.name == hook)
    assert spec.returns is not None
    signature = f"`{hook}({', '.join(a.arg for a in spec.args.args)}) -> {ast.unparse(spec.returns)}`"
    assert signature in (ROOT / "docs/plugins.md").read_text()


@pytest.mark.parametrize("hook", hooks())
def test_hook_is_used(hook: str) -> None:
    users = [m.name for m in all_modules() if m.name != SPECIFICATIONS and hook in {f.name for f in functions(m)}]
    assert users, f"no plugin in this repository implements {hook}; a hook comes with a plugin that uses it"


@pytest.mark.parametrize("package", [p for p in PACKAGES if p not in ("polyax", "polyax_kernels")])
def test_plugins_are_modules_of_that_name(package: str) -> None:
    (plugin,) = (m for m in modules(package) if m.name == f"{package}.plugin")
    assert any(f.name in hooks() for f in functions(plugin))
