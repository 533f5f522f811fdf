"""Changes objects that an engine holds: sets fields by path, and deletes objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._near_names import near_names
from kueuecore._text import quoted
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, Problem, UnknownObjectError
from kueuecore.held_objects import HELD_KINDS
from kueuecore.manifests import Manifest
from kueuecore.scenarios.edits import Edit
from kueuecore.states import Stage
from kueuecore.times import TimeLike

__all__ = ["Deletion", "change_state", "parse_deletion", "resubmit"]

_FORM = "write KIND/NAME or KIND/NAMESPACE/NAME, such as Workload/team-a/notebook"
_EDIT_FORM = "write KIND/NAME:PATH=VALUE, such as ClusterQueue/team-a:spec.cohortName=all"
_WITH_NAMESPACE = ("LocalQueue", "Workload")
_MAX_NAMES = 9


@dataclass(frozen=True, slots=True)
class Deletion:
    """An object to delete.

    Args:
        kind: Its kind.
        name: Its name.
        namespace: Its namespace; empty if it has none, or if the name is unique.
    """

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.kind, self.namespace, self.name)))


def parse_deletion(text: str) -> Deletion:
    """Parse a deletion, written as `KIND/NAME` or `KIND/NAMESPACE/NAME`.

    Raises:
        ManifestError: The text has another form.

    Example:
        >>> parse_deletion("Workload/team-a/notebook")
        Deletion(kind='Workload', name='notebook', namespace='team-a')
    """
    kind, *names = text.split("/")
    if not kind or not 1 <= len(names) <= 2 or not all(names):
        raise ManifestError.of(f"{quoted(text)} does not name an object", remedy=_FORM)
    return Deletion(kind, names[-1], names[0] if len(names) == 2 else "")


def change_state(
    engine: Engine,
    edits: Sequence[Edit] = (),
    deletions: Iterable[Deletion] = (),
    *,
    now: TimeLike,
    trusted: bool = False,
) -> None:
    """Change objects that an engine holds, all at the same time. Runs no cycle.

    A pending Workload is submitted again, as if its job had been deleted and recreated, but keeps its name and
    creation time. An error may leave some of the changes made: work on a fork.

    Args:
        engine: The engine.
        edits: The fields to change, in this order.
        deletions: The objects to delete afterwards.
        now: The time of the changes.
        trusted: Take the changed objects as they are, without validation.

    Raises:
        ManifestError: An object or path does not exist, or an API server with Kueue would reject the change.

    Example:
        >>> from kueuecore.scenarios import parse_edit
        >>> engine = Engine()
        >>> _ = engine.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: a}}")
        >>> change_state(engine, [parse_edit("Cohort/a:spec.parentName=all")], now=0)
        >>> engine.object("Cohort", "a")["spec"]
        {'parentName': 'all'}
    """
    changed: dict[ObjectRef, JsonObject] = {}
    for edit in edits:
        changed |= _edited(engine, edit, changed)
    again = [ref for ref in changed if ref.kind == "Workload" and _is_pending(engine, ref)]
    others = [plain for ref, plain in changed.items() if ref not in again]
    if others:
        engine.apply(others, now=now, trusted=trusted)
    for deletion in deletions:
        _delete(engine, deletion, now)
    for ref in again:
        resubmit(engine, changed[ref], now=now, trusted=trusted)


def resubmit(engine: Engine, workload: JsonObject, *, now: TimeLike, trusted: bool = False) -> None:
    """Delete a Workload, and submit it again with its name and creation time, but without its status.

    Args:
        engine: The engine.
        workload: The Workload to submit.
        now: The time of the submission.
        trusted: Take it as it is, without validation.

    Raises:
        ManifestError: An API server with Kueue would reject it.
    """
    metadata = {name: value for name, value in object_at(workload, "metadata").items() if name != "generation"}
    submitted: JsonObject = {**workload, "metadata": metadata}
    submitted.pop("status", None)
    engine.delete("Workload", text_at(metadata, "name"), namespace=text_at(metadata, "namespace"), now=now)
    engine.apply(submitted, now=now, trusted=trusted)


def _edited(engine: Engine, edit: Edit, before: dict[ObjectRef, JsonObject]) -> dict[ObjectRef, JsonObject]:
    if edit.kind not in HELD_KINDS:
        what = (
            f"{edit.target} is not a field of a state"
            if edit.kind == ""
            else f"a state has no objects of kind {edit.kind}"
        )
        raise ManifestError.of(what, remedy=f"{_EDIT_FORM}; the kind is one of {', '.join(HELD_KINDS)}")
    matching = [entry for entry in map(Manifest, _of_edit(engine, edit, before)) if edit.matches(entry)]
    if not matching:
        remedy = _near(engine, edit.kind, edit.name)
        raise ManifestError.of(f"no object matches {edit.kind}/{edit.name}", remedy=remedy)
    found: dict[ObjectRef, JsonObject] = {}
    problems: list[Problem] = []
    for manifest in matching:
        ref = _ref(manifest.object)
        try:
            found[ref] = edit.apply(before.get(ref, manifest.object))
        except ValueError as error:
            remedy = "`kubectl explain` shows the fields of a kind; [0] or [name=x] follows a list"
            problems.append(Problem(str(error), field=edit.path, object=ref, remedy=remedy))
    if problems:
        raise ManifestError(problems)
    return found


def _of_edit(engine: Engine, edit: Edit, before: dict[ObjectRef, JsonObject]) -> tuple[JsonObject, ...]:
    """Candidates for an edit: just the one object if it names one, else all of its kind."""
    namespace, _, name = edit.name.rpartition("/")
    is_one = not set("*?[") & set(edit.name) and bool(namespace) == (edit.kind in _WITH_NAMESPACE)
    if not is_one:
        return engine.objects(edit.kind)
    changed = before.get(ObjectRef(edit.kind, name, namespace))
    if changed is not None:
        return (changed,)
    try:
        return (engine.object(edit.kind, name, namespace=namespace),)
    except UnknownObjectError:
        return ()


def _is_pending(engine: Engine, ref: ObjectRef) -> bool:
    return engine.workload(ref.name, namespace=ref.namespace).stage is Stage.PENDING


def _ref(plain: JsonObject) -> ObjectRef:
    metadata = (text_at(plain, "metadata", "name"), text_at(plain, "metadata", "namespace"))
    return ObjectRef(text_at(plain, "kind"), *metadata)


def _delete(engine: Engine, deletion: Deletion, now: TimeLike) -> None:
    namespace = deletion.namespace
    if not namespace and deletion.kind in _WITH_NAMESPACE:
        refs = [_ref(object_) for object_ in engine.objects(deletion.kind)]
        places = [ref.namespace for ref in refs if ref.name == deletion.name]
        if len(places) > 1:
            remedy = f"give the namespace, such as {deletion.kind}/{places[0]}/{deletion.name}"
            raise ManifestError.of(f"{deletion} is in {len(places)} namespaces", remedy=remedy)
        namespace = places[0] if places else ""
    try:
        was_there = engine.delete(deletion.kind, deletion.name, namespace=namespace, now=now)
    except ValueError as error:
        raise ManifestError.of(f"{deletion} cannot be deleted: {error}", remedy=_FORM) from None
    if not was_there:
        remedy = _near(engine, deletion.kind, "/".join(filter(None, (deletion.namespace, deletion.name))))
        raise ManifestError.of(f"there is no {deletion}", remedy=remedy)


def _near(engine: Engine, kind: str, name: str) -> str:
    """Suggest names similar to one that does not exist, given with or without its namespace."""
    keys = [_ref(object_).key for object_ in engine.objects(kind)]
    if not keys:
        return f"the state has no {kind}"
    written = {entry: key for key in reversed(keys) for entry in (key, key.rpartition("/")[2])}
    near = dict.fromkeys(written[near_name] for near_name in near_names(name, written, n=3))
    if near:
        return f"write {' or '.join(f'{kind}/{fromkey}' for fromkey in near)}"
    return f"write one of {', '.join(keys[:_MAX_NAMES])}"
