"""Kueue's scheduler as a library: objects in, decisions out, no side effects.

Make an `Engine`, `apply` objects, run a `cycle`, read the `Decision`. Three things stand on that loop: `Controller`
takes watched objects and returns writes, `simulate` lets time pass until all work is done, and `settle` runs cycles at
one moment until nothing changes. `run` simulates a scenario from its file. None of them talks to a cluster or reads a
clock; only the command `kueuecore serve` does.

An `Engine` takes Kueue's objects as API servers store them. A `World` takes what people write (jobs, charts, objects
without defaults) and prepares it for an engine.

This package has the names that most programs need, each imported on first use. Submodules such as `kueuecore.states`
and `kueuecore.errors` have the rest.
"""

from __future__ import annotations

from importlib import import_module

# Type checkers know this name. Importing `typing` would take most of the startup time, before Ctrl-C is handled.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from kueuecore import objects as objects
    from kueuecore.configuration import Configuration as Configuration
    from kueuecore.controller import Controller as Controller
    from kueuecore.decisions import Decision as Decision
    from kueuecore.decisions import Event as Event
    from kueuecore.decisions import Outcome as Outcome
    from kueuecore.decisions import Pending as Pending
    from kueuecore.decisions import Preemption as Preemption
    from kueuecore.decisions import WorkloadAdmission as WorkloadAdmission
    from kueuecore.engine import Applied as Applied
    from kueuecore.engine import Engine as Engine
    from kueuecore.errors import KueuecoreError as KueuecoreError
    from kueuecore.errors import ManifestError as ManifestError
    from kueuecore.manifests import Manifest as Manifest
    from kueuecore.manifests import parse_manifests as parse_manifests
    from kueuecore.manifests import read_manifests as read_manifests
    from kueuecore.scenarios import run as run
    from kueuecore.simulation import Run as Run
    from kueuecore.simulation import VirtualCluster as VirtualCluster
    from kueuecore.simulation import simulate as simulate
    from kueuecore.steady_state import settle as settle
    from kueuecore.world import World as World

    __version__: str

# In reading order: the module that each public name comes from.
_MODULES = {
    "kueuecore.engine": ("Engine", "Applied"),
    "kueuecore.decisions": ("Decision", "WorkloadAdmission", "Preemption", "Pending", "Event", "Outcome"),
    "kueuecore.configuration": ("Configuration",),
    "kueuecore.manifests": ("Manifest", "read_manifests", "parse_manifests"),
    "kueuecore.world": ("World",),
    "kueuecore.steady_state": ("settle",),
    "kueuecore.controller": ("Controller",),
    "kueuecore.scenarios": ("run",),
    "kueuecore.simulation": ("simulate", "Run", "VirtualCluster"),
    "kueuecore.errors": ("KueuecoreError", "ManifestError"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*_HOMES, "__version__", "objects"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("kueuecore.version").version()
    if name == "objects":
        return import_module("kueuecore.objects")
    if name not in _HOMES:
        raise AttributeError(f"module 'kueuecore' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
