"""The registry: which plugins are loaded and what their hooks gave, frozen into dictionaries.

Plugins are imported when a platform that they serve is first asked for, never by ``import polyax``. Must not know which
platform is chosen (``platforms`` does) nor what a lowering or a fuser is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from polyax.ir import blame
from polyax.ir.config import config
from polyax.ir.errors import PluginError
from polyax.ir.forks import UncutLock
from polyax.ir.garbage import collection_paused
from polyax.ir.primitive import Primitive
from polyax.reference import plugin as reference
from polyax.runtime.contract.backend import Backend, BackendSpec
from polyax.runtime.contract.hooks import Chosen, FusionPass, Offer
from polyax.runtime.contract.tracebacks import warn_user
from polyax.runtime.plugins import compile_log
from polyax.runtime.plugins.advice import (
    cannot_use,
    conflict,
    unknown_backend,
    unknown_fuser,
    warn_failed,
    warn_unfused,
)
from polyax.runtime.plugins.claims import merge_fusers, merge_lowerings
from polyax.runtime.plugins.closing import close_at_exit
from polyax.runtime.plugins.loader import THIS_PROGRAM, Plugin, guarded, names, scan, unknown_distributions
from polyax.runtime.plugins.rules import (
    check_version,
    checked,
    checked_priority,
    checked_specs,
    hooks_of,
    opened,
    probed,
)

BUILT_IN = {"reference": reference, "any.log": compile_log}
_DISTRIBUTION = "polyax"


class Claim(NamedTuple):
    """A plugin brings a backend."""

    spec: BackendSpec
    plugin: Plugin


class Registry:
    """All plugins of the process. Safe to use from several threads."""

    def __init__(self, discover: Callable[[], list[Plugin]] = scan) -> None:
        self._lock = UncutLock()
        self._discover = discover
        self._plugins: list[Plugin] | None = None
        self._claims: dict[str, list[Claim]] = {}  # of a backend's name; more than one is a conflict
        self._probed: dict[str, str | None] = {}
        self._priorities: dict[str, int] = {}
        self._backends: dict[str, Backend] = {}
        self._lowerings: dict[str, Mapping[Primitive, tuple[Offer, ...]]] = {}
        self._fusers: dict[str, Mapping[str, tuple[Plugin, FusionPass]]] = {}

    def plugins(self) -> list[Plugin]:
        """Every plugin that is installed or was registered, loaded or not."""
        with self._lock:
            if self._plugins is None:
                self._plugins = []
                for entry, module in BUILT_IN.items():
                    self.register(module, entry, distribution=_DISTRIBUTION)
                found = self._discover()
                self._plugins += found
                self._warn_unknown(found)
            return self._plugins

    def _warn_unknown(self, found: list[Plugin]) -> None:
        for name in unknown_distributions(found):
            warn_user(f"POLYAX_PLUGINS names {name!r}: no plugin of that distribution is installed")

    def load(self, platform: str | None = None) -> None:
        """Imports the plugins that serve ``platform``; all plugins, if None."""
        with self._lock:
            for plugin in self.plugins():
                if plugin.status == "not loaded" and (platform is None or plugin.serves(platform)):
                    self._load(plugin)

    def _load(self, plugin: Plugin) -> None:
        assert plugin.load is not None
        module = guarded(plugin, "importing", plugin.load)
        if plugin.status != "failed":
            self._admit(plugin, module)
        if plugin.status == "failed" and not plugin.doing.actions:
            warn_failed(plugin)

    def register(self, plugin: Any, entry: str, *, distribution: str = THIS_PROGRAM, version: str = "") -> Plugin:
        """Registers ``plugin`` as if it had been found under the entry-point name ``entry``.

        Raises:
          PluginError: it can't be used; the text says why.
        """
        record = Plugin(entry, getattr(plugin, "__name__", repr(plugin)), distribution, version)
        with self._lock:
            known = self.plugins()
            self._admit(record, plugin)
            if record.status == "failed":
                raise PluginError(f"{record.title} can't be used: {record.cause}")
            known.append(record)
        return record

    def unregister(self, record: Plugin) -> None:
        """Forgets a plugin and the backends that it brought; arrays and executables of theirs live on."""
        with self._lock:
            self.plugins().remove(record)
            for name, claims in list(self._claims.items()):
                self._claims[name] = [c for c in claims if c.plugin is not record]
                if not self._claims[name]:
                    del self._claims[name]
                    self._probed.pop(name, None)
                    self._priorities.pop(name, None)
                    self._backends.pop(name, None)
            self._forget_results()

    def _admit(self, plugin: Plugin, module: Any) -> None:
        """Takes a plugin in unless it breaks a rule, which its record tells then."""
        specs = guarded(plugin, "examining it", lambda: self._examine(plugin, module))
        if plugin.status == "failed":
            return
        plugin.status = "loaded"
        for spec in specs:
            self._claims.setdefault(spec.name, []).append(Claim(spec, plugin))
        self._forget_results()

    def _examine(self, plugin: Plugin, module: Any) -> list[BackendSpec]:
        plugin.requires = getattr(module, "polyax_requires", None)
        check_version(plugin.requires, "it")
        plugin.hooks = hooks_of(module)
        return [spec for answer in plugin.hooks.polyax_backends() for spec in checked_specs(answer, plugin)]

    def _forget_results(self) -> None:
        self._lowerings.clear()
        self._fusers.clear()

    def names(self) -> list[str]:
        """The names of all backends that loaded plugins bring, the highest priority first."""
        return sorted(self._claims, key=lambda name: (-self.priority(name), name))

    def priority(self, name: str) -> int:
        """By which the platform ``name`` is considered as the default; 0 where it has to be asked and can't be used."""
        claim = self._claims[name][0]
        if not callable(claim.spec.priority):
            return claim.spec.priority
        with self._lock:
            if name not in self._priorities and self.why_unusable(name) is None:
                self._ask_priority(name, claim, claim.spec.priority)
            return self._priorities.get(name, 0)

    def _ask_priority(self, name: str, claim: Claim, ask: Callable[[], int]) -> None:
        answer = _guarded(claim, "asking the priority of", lambda: checked_priority(claim.spec, ask()))
        if isinstance(answer, int):
            self._priorities[name] = answer
        else:
            self._probed[name] = str(answer)

    def is_known(self, name: str) -> bool:
        """Whether an installed plugin is for the platform ``name``."""
        return name in self._claims or any(p.platform == name for p in self.plugins())

    def known_names(self) -> list[str]:
        """The platforms that some plugin is for, loaded or not."""
        entries = {p.platform for p in self.plugins() if p.status == "not loaded"} - {"any"}
        return sorted(entries | set(self._claims))

    def note(self, name: str) -> str:
        """What the plugin that brings the platform ``name`` wants users to know; "" if there is nothing."""
        return "; ".join(claim.spec.note for claim in self._claims.get(name, ()) if claim.spec.note)

    def why_unusable(self, name: str) -> str | None:
        """None if the platform ``name`` can be used, else why not. Imports the plugins that serve it."""
        with self._lock:
            self.load(name)
            claims = self._claims.get(name, [])
            if len(claims) != 1:
                return conflict(name, [c.plugin for c in claims]) if claims else self._why_unknown(name)
            if name not in self._probed:
                self._probed[name] = _guarded(claims[0], "probing", lambda: probed(claims[0].spec))
            return self._probed[name]

    def _why_unknown(self, name: str) -> str:
        failed = [f"{p.title}: {p.cause}" for p in self.plugins() if p.platform == name and p.cause]
        empty = (
            f"its entry point is for {name!r}, and its polyax_backends gives no BackendSpec: return one of that name"
        )
        silent = [f"{p.title}: {empty}" for p in self.plugins() if p.entry == name and p.status == "loaded"]
        return "\n".join([*failed, *silent]) or "no plugin that brings it is installed"

    def backend(self, name: str) -> Backend:
        """The backend named ``name``, opened at its first use.

        Raises:
          RuntimeError: there is none, or it can't be used; the text says why, and what to do.
        """
        return self._backends.get(name) or self._open(name)

    def opened(self) -> list[Backend]:
        """The backends in use."""
        return list(self._backends.values())

    def _open(self, name: str) -> Backend:
        with self._lock:
            reason = self.why_unusable(name)
            if reason is None and name not in self._backends:
                claim = self._claims[name][0]
                with collection_paused():
                    found = _guarded(claim, "opening", lambda: opened(claim.spec, claim.plugin))
                if isinstance(found, Backend):
                    self._backends[name] = found
                    self._tell_opened(found, claim)
                else:
                    reason = self._probed[name] = str(found)
            if reason is not None:
                raise self._error(name, reason)
            return self._backends[name]

    def _tell_opened(self, backend: Backend, claim: Claim) -> None:
        try:
            backend.opened()
        except BaseException as e:
            del self._backends[backend.name]
            blame.about(e, hint=f"the remedy: {claim.plugin.remedy}")
            blame.tell(e, claim.plugin.title, f"backend {backend.name!r} was opened")
            if isinstance(e, SystemExit):  # Python would end without a word
                raise PluginError(f"{claim.plugin.title} raised SystemExit({e}) when it was opened") from e
            raise
        close_at_exit(backend)

    def _error(self, name: str, reason: str) -> RuntimeError:
        if len(self._claims.get(name, ())) > 1:
            return PluginError(reason)
        if self.is_known(name):
            details = "".join(p.traceback for p in self.plugins() if p.platform == name)
            return RuntimeError(cannot_use(name, self._whose(name, reason), details))
        return RuntimeError(unknown_backend(name, self.known_names(), reason))

    def _whose(self, name: str, reason: str) -> str:
        """The reason, with the plugin that is to blame for it, if it is a fault, and the remedy."""
        failed = [c.plugin for c in self._claims.get(name, ()) if c.plugin.status == "failed"]
        return f"{reason}. It is {failed[0].title}: {failed[0].remedy}" if failed else reason

    def lowerings(self, backend: Backend) -> Mapping[Primitive, tuple[Offer, ...]]:
        """What plugins say about running primitives on ``backend``, in the order in which they are to be asked.

        Raises:
          PluginError: two plugins claim one primitive with equal priority.
        """
        with self._lock:
            if backend.name not in self._lowerings:
                self._lowerings[backend.name] = merge_lowerings(self._ask(backend, "polyax_lowerings"))
            return self._lowerings[backend.name]

    def fusers(self, backend: Backend) -> Mapping[str, tuple[Plugin, FusionPass]]:
        """Fusion passes for ``backend`` by name, and the plugins that bring them.

        Raises:
          PluginError: two plugins bring a fuser of one name.
        """
        with self._lock:
            if backend.name not in self._fusers:
                self._fusers[backend.name] = merge_fusers(self._ask(backend, "polyax_fusers"))
            return self._fusers[backend.name]

    def chosen_fusers(self, backend: Backend, asked: str | None, usual: Sequence[str]) -> list[Chosen]:
        """The fusers that a setting names, in its order; those of ``usual`` that are installed, if it is None.

        Raises:
          ValueError: no plugin brings one that is asked for.
        """
        known = self.fusers(backend)
        wanted = usual if asked is None else names(asked)
        missing = tuple(name for name in wanted if name not in known)
        if missing and asked is not None:
            error = ValueError(unknown_fuser(missing[0], asked, {name: p.title for name, (p, _) in known.items()}))
            blame.excuse(error)  # the setting is the user's
            raise error
        if missing:
            warn_unfused(missing)
        return [Chosen(known[name][0].title, known[name][1]) for name in wanted if name in known]

    def _serving(self, platform: str, hook: str) -> list[Plugin]:
        """The loaded plugins for ``platform`` that implement ``hook``."""
        self.load(platform)
        loaded = [p for p in self.plugins() if p.status == "loaded" and p.serves(platform)]
        return [p for p in loaded if getattr(p.hooks, hook).get_hookimpls()]

    def _ask(self, backend: Backend, hook: str) -> Iterator[tuple[Plugin, Any]]:
        return self.ask(backend.name, hook, backend=backend)

    def ask(self, platform: str, hook: str, **arguments: Any) -> Iterator[tuple[Plugin, Any]]:
        """What each plugin for ``platform`` answers to ``hook``; None is no answer."""
        for plugin in self._serving(platform, hook):
            results = guarded(plugin, f"calling {hook}", functools.partial(_answers, plugin, hook, arguments))
            if plugin.status == "failed":
                warn_failed(plugin)
            for result in results or ():
                yield plugin, result


def _answers(plugin: Plugin, hook: str, arguments: dict[str, Any]) -> list[Any]:
    return checked(hook, getattr(plugin.hooks, hook)(**arguments))


def _guarded(claim: Claim, action: str, work: Callable[[], Any]) -> Any:
    """The result of probing or opening; the cause if that fails."""
    result = guarded(claim.plugin, f"{action} {claim.spec.name!r}", work)
    if claim.plugin.status != "failed":
        return result
    if not claim.plugin.doing.actions:  # else it asks for itself: it is told where it ends
        warn_failed(claim.plugin)
    return claim.plugin.cause


registry = Registry()
"""The one registry of the process."""
register = registry.register
config.on_unknown(registry.load)
