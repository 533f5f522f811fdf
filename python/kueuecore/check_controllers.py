"""Several check controllers: which of them decides an AdmissionCheck, and what each one sees."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kueuecore._arguments import each
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.checks import Activity, CheckController, Review, WorkloadKey, check_states
from kueuecore.errors import ObjectRef
from kueuecore.manifests import object_ref
from kueuecore.writes import Answer, Write

__all__ = ["CheckControllers", "with_activity"]


class CheckControllers:
    """Routes each AdmissionCheck to the controller that decides it.

    Args:
        controllers: The check controllers.

    Raises:
        TypeError: One of them is not a check controller.
        ValueError: Two have the same name.
    """

    def __init__(self, controllers: Sequence[CheckController]) -> None:
        found = []
        for controller in each("checks", controllers):
            if isinstance(controller, type) or not isinstance(controller, CheckController):
                raise TypeError(f"checks must hold check controllers, not {type(controller).__name__}")
            found.append(controller)
        self.controllers = tuple(found)
        names = [controller.controller_name for controller in self.controllers]
        if len(set(names)) < len(names):
            raise ValueError(f"checks has two controllers of the same name: {', '.join(names)}")
        self._by_name = dict(zip(names, self.controllers, strict=True))
        # The controller of each AdmissionCheck.
        self._decides: dict[str, CheckController] = {}
        self._asked: dict[WorkloadKey, None] = {}

    @property
    def has_asked(self) -> bool:
        """Whether any controller has something new to say."""
        return bool(self._asked)

    def take_asked(self) -> tuple[WorkloadKey, ...]:
        """Return the workloads about which a controller may have something new to say."""
        asked = tuple(self._asked)
        self._asked.clear()
        return asked

    def observe(self, manifest: JsonObject, *, now: int) -> bool:
        """Pass on an object that appeared or changed; return whether any controller reads it."""
        kind, is_seen = text_at(manifest, "kind"), False
        if kind == "AdmissionCheck":
            name = text_at(manifest, "metadata", "name")
            self._decides.pop(name, None)
            if controller := self._by_name.get(text_at(manifest, "spec", "controllerName")):
                self._decides[name] = controller
        for controller in self.controllers:
            if kind == "AdmissionCheck" or kind in controller.kinds:
                self.ask(controller.observe(manifest, now=now))
                is_seen = True
        return is_seen

    def forget(self, ref: ObjectRef, *, now: int) -> bool:
        """Pass on that an object is gone; return whether any controller reads it."""
        is_seen = False
        if ref.kind == "AdmissionCheck":
            self._decides.pop(ref.name, None)
        for controller in self.controllers:
            if ref.kind in ("AdmissionCheck", "Workload") or ref.kind in controller.kinds:
                self.ask(controller.forget(ref, now=now))
                is_seen = True
        return is_seen

    def activity(self, check: JsonObject, *, now: int) -> Activity | None:
        """Return the condition Active that an AdmissionCheck should have, if a controller sets one that differs."""
        controller = self._decides.get(object_ref(check).name)
        return None if controller is None else controller.activity(check, now=now)

    def review(self, workload: JsonObject, *, now: int) -> Review | None:
        """Return the review of the first controller that has one, or `None`."""
        states = check_states(workload)
        for controller in self.controllers:
            own = [name for name in states if self._decides.get(name) is controller]
            if review := controller.review(workload, own, now=now):
                return review
        return None

    def refused(self, write: Write, answer: Answer, *, now: int) -> Review:
        """Return what the controller of a refused write says about it."""
        controller = self._decides.get(write.check)
        return Review() if controller is None else controller.refused(write, answer, now=now)

    def next_wake(self, *, after: int) -> int | None:
        """Return when time alone will give a controller something to say."""
        times = (controller.next_wake(after=after) for controller in self.controllers)
        return min((time for time in times if time is not None), default=None)

    def wake(self, now: int) -> None:
        """Advance the controllers to `now`."""
        for controller in self.controllers:
            self.ask(controller.due(now))

    def ask(self, keys: Collection[WorkloadKey]) -> None:
        """Note that there may be something new to say about these workloads."""
        self._asked |= dict.fromkeys(keys)


def with_activity(check: JsonObject, activity: Activity, *, now: str) -> JsonObject | None:
    """Return an AdmissionCheck with its condition Active set; `None` if it is set already.

    Args:
        check: The AdmissionCheck.
        activity: What the condition should say.
        now: The time in RFC 3339.
    """
    wanted = "True" if activity.is_active else "False"
    conditions = [condition for condition in list_at(check, "status", "conditions") if isinstance(condition, dict)]
    old = next((condition for condition in conditions if text_at(condition, "type") == "Active"), {})
    said = {"status": wanted, "reason": activity.reason, "message": activity.message}
    if all(old.get(name) == value for name, value in said.items()):
        return None
    since = old.get("lastTransitionTime") if old.get("status") == wanted else now
    new: JsonObject = {"type": "Active", **said, "lastTransitionTime": since}
    if (generation := object_at(check, "metadata").get("generation")) is not None:
        new["observedGeneration"] = generation
    rest: list[JsonValue] = [condition for condition in conditions if condition is not old]
    return {**check, "status": {**object_at(check, "status"), "conditions": [*rest, new]}}
