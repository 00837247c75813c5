"""The pages of the API reference, as Markdown, from the names of the snapshot and their docstrings.

Signatures come from the objects, not from the sources: many functions are made by tables, where no reader of sources
finds them.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ForwardRef

NAMES = Path(__file__).resolve().parents[2] / "tests/architecture/public_names.txt"
JAX = "https://docs.jax.dev/en/latest/{}.html"
OF_MODULES = {"polyax.errors": "errors", "polyax.monitoring": "jax.monitoring", "polyax.stages": "jax.stages"}
"""Modules all of whose names are on one page of JAX's."""
OWN = (
    "polyax_",
    *(f"polyax.{name}" for name in ("ad_checkpoint", "backend", "custom_derivatives", "example_libraries")),
    *(f"polyax.{name}" for name in ("memory", "ref", "test_util")),
)
"""How modules begin of which JAX has no pages."""
NO_PAGES = Path(__file__).with_name("not_in_jax.txt")
"""Names that JAX hasn't."""
SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes):[ ]*$", re.MULTILINE)
ITEM = re.compile(r"^  (\S[^:\n]*): ", re.MULTILINE)
CODE = re.compile(r"^>>> .*?(?=\n\n|\Z)|^=+(?: +=+)+$.*^=+(?: +=+)+$", re.MULTILINE | re.DOTALL)
"""Examples, and tables as reStructuredText has them."""
CLASS = re.compile(r"<class '(?:\w+\.)*(\w+)'>")
POWER = re.compile(r"(`[^`]*`)|\*\*")
ROLE = re.compile(r":\w+:(?=`)")
WIDTH = 88


@cache
def modules() -> dict[str, list[str]]:
    """Names by module, in the snapshot's order."""
    made: dict[str, list[str]] = {}
    for line in NAMES.read_text(encoding="utf-8").split():
        module, _, name = line.rpartition(".")
        made.setdefault(module, []).append(name)
    known = set(made)
    own = {module: [n for n in names if f"{module}.{n}" not in known] for module, names in made.items()}
    return {module: names for module, names in own.items() if names}


@cache
def without_page() -> frozenset[str]:
    return frozenset(NO_PAGES.read_text(encoding="utf-8").split())


def jax_page(module: str, name: str, value: Any) -> str | None:
    """The address of JAX's page of the same name, for functions and classes that have one."""
    whole = f"{module}.{name}"
    if module.startswith(OWN) or not callable(value) or name.endswith("_p") or whole in without_page():
        return None
    return JAX.format(OF_MODULES.get(module) or f"_autosummary/{whole.replace('polyax', 'jax', 1)}")


def signature(name: str, value: Any) -> str:
    """As a user would write the call: types that say nothing are left out, and long ones take a line per parameter."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return name  # its members are told, not how it finds them
    said = [p.replace(annotation=_type(p.annotation), default=_default(p.default)) for p in found.parameters.values()]
    result = found.empty if inspect.isclass(value) else _type(found.return_annotation)
    text = _plain(found.replace(parameters=said, return_annotation=result))
    if len(name + text) <= WIDTH:
        return name + text
    inner = [_plain(p) for p in _with_marks(said)]
    result = text[text.rindex(")") :] if ") ->" in text else ")"
    return f"{name}(\n" + "".join(f"    {p},\n" for p in inner) + result


def _plain(signature: object) -> str:
    """Annotations that are texts, without their quotes; classes in defaults by their names."""
    return CLASS.sub(r"\1", re.sub(r"(?<=[:>] )'([^']*)'", r"\1", str(signature)))


def _type(annotation: Any) -> Any:
    """Those of named tuples are references."""
    found = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
    return inspect.Signature.empty if found in ("Any", Any, "None", None) else found


class _Default:
    """Is shown as a name, where Python would show an address."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def _default(value: Any) -> Any:
    """What a parameter is if nobody says: a function by its name, others without one as dots."""
    if value is inspect.Parameter.empty or not repr(value).startswith("<"):
        return value
    name = getattr(value, "__qualname__", "...").split(".<locals>")[0]
    return _Default("..." if "<" in name else name)


def _with_marks(parameters: list[inspect.Parameter]) -> Iterator[Any]:
    """Parameters, with ``/`` and ``*`` where they stand in a signature."""
    kinds = [p.kind for p in parameters]
    for n, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and p.KEYWORD_ONLY not in kinds[:n] and p.VAR_POSITIONAL not in kinds:
            yield "*"
        yield p
        if p.kind is p.POSITIONAL_ONLY and (n + 1 == len(kinds) or kinds[n + 1] is not p.kind):
            yield "/"


def prose(doc: str) -> str:
    """A docstring as Markdown: double backticks become single ones, sections lists, examples and tables code."""
    doc = ROLE.sub("", doc)
    parts, end = [], 0
    for code in CODE.finditer(doc):
        language, text = ("pycon", code[0]) if code[0].startswith(">") else ("text", code[0].replace("``", "  "))
        parts += [_sections(doc[end : code.start()]), f"```{language}\n{text.rstrip()}\n```\n"]
        end = code.end()
    return "\n\n".join(p for p in (*parts, _sections(doc[end:])) if p.strip())


def _sections(text: str) -> str:
    plain = POWER.sub(lambda found: found[1] or r"\*\*", text.replace("``", "`"))  # powers make nothing bold
    pieces = SECTION.split(plain)
    made = [pieces[0].strip()]
    for title, body in zip(pieces[1::2], pieces[2::2]):
        listed, _, rest = body.strip("\n").partition("\n\n")
        items = re.sub(r"\n {3,}", " ", listed)
        made += [f"**{title}**", inspect.cleandoc(items) if title == "Returns" else ITEM.sub(_item, items)]
        made += [inspect.cleandoc(rest)]
    return "\n\n".join(part for part in made if part)


def _item(found: re.Match[str]) -> str:
    """The names of parameters, or of an error, as code."""
    text = found[1]
    plain = "`" in text or " " in text.replace(", ", "")
    return f"- {text if plain else ', '.join(f'`{name}`' for name in text.split(', '))}: "


def documented(value: Any) -> str:
    """The docstring, if it is the object's own: not that of the class of a constant, or of what an alias stands for."""
    doc = inspect.getdoc(value) or ""
    own = inspect.isclass(value) or (callable(value) and doc != inspect.getdoc(type(value)))
    return doc if own and not is_alias(value) else ""


def is_alias(value: Any) -> bool:
    """Whether it is another name of a type, such as ``tuple[int, ...]``."""
    return value is Any or typing.get_origin(value) is not None or getattr(value, "__module__", "") == "builtins"


def _alias(value: Any) -> str:
    """What it stands for, in names without their modules."""
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", inspect.formatannotation(value))


def entry(module: str, name: str) -> str:
    value = getattr(importlib.import_module(module), name)
    head = f"### {name} {{ #{module}.{name} .name }}\n\n"
    address = jax_page(module, name, value)
    link = f"[JAX's {module.replace('polyax', 'jax', 1)}.{name}]({address}){{ .jax }}\n\n" if address else ""
    if not callable(value):
        return f"{head}`{type(value).__name__}`: `{_short(value)}`\n"
    said = f"{name} = {_alias(value)}" if is_alias(value) else signature(name, value)
    called = f"```python\n{said}\n```\n\n{prose(documented(value))}\n\n"
    return head + called + link + members(value)


def _short(value: Any) -> str:
    text = CLASS.sub(r"\1", " ".join(repr(value).split()))
    return text if len(text) < WIDTH and " at 0x" not in text else type(value).__name__


def members(value: Any) -> str:
    """Methods and properties of a class with a docstring of their own."""
    if not inspect.isclass(value) or is_alias(value) or issubclass(value, BaseException):
        return ""
    if issubclass(value, enum.Enum):
        return "\n".join(f"- `{member.name}`" for member in value) + "\n"
    made = [_member(n, m) for n, m in sorted(vars(value).items()) if not n.startswith("_")]
    return "\n".join(text for text in made if text) + "\n"


def _member(name: str, member: Any) -> str:
    called = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    doc = inspect.getdoc(called) if inspect.isfunction(called) else isinstance(called, property) and called.__doc__
    if not doc or not getattr(called, "__module__", "polyax").startswith("polyax"):  # dataclasses have some of Python's
        return ""
    written = " ".join(signature(name, called).split()).replace("( ", "(").replace(", )", ")")
    written = re.sub(
        r"^(\w+)\((self|cls)(?:: \w+)?(, (?:/, )?|\))", lambda m: m[1] + ("()" if m[3] == ")" else "("), written
    )
    body = prose(inspect.cleandoc(doc)).replace("\n", "\n    ")
    return f"- `{name if isinstance(called, property) else written}`\n\n    {body}\n"


def listing(module: str) -> str:
    """The page of a module."""
    made = importlib.import_module(module)
    kinds = {"Functions and classes": True, "Constants": False}
    parts = [f"# {module}\n\n{prose(about(made))}\n"]
    for title, wanted in kinds.items():
        chosen = [n for n in modules()[module] if callable(getattr(made, n)) == wanted]
        if chosen:
            parts += [f"## {title}\n", *(entry(module, n) for n in chosen)]
    return "\n".join(parts)


def about(module: ModuleType) -> str:
    """Its docstring, without what it says to those who read the source."""
    return re.sub(r"\s*Re-exports only\.", "", inspect.getdoc(module) or "")


def index() -> str:
    text = (
        "# API reference\n\nMade from docstrings. Names, parameters and defaults are JAX's; each entry links to JAX's "
        "page of the same name, if there is one. Examples are tests.\n\n"
    )
    listed = [f"- [{module}]({module}.md), {_count(names)}{_about(module)}" for module, names in modules().items()]
    return text + "\n".join(listed) + "\n"


def _count(names: list[str]) -> str:
    return f"{len(names)} name{'s' if len(names) > 1 else ''}"


def _about(module: str) -> str:
    """What its docstring says of a module, without its name."""
    doc = prose(about(importlib.import_module(module)))
    first = doc.split("\n\n")[0].replace("\n", " ").removeprefix(f"`{module}`: ").removeprefix(f"{module}: ")
    return first and f": {first}"


def pages() -> dict[str, str]:
    """Texts by place on the site."""
    made = {f"reference/{module}.md": listing(module) for module in modules()}
    return {"reference/index.md": index(), **made}
