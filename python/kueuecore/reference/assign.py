"""Which flavors a workload gets, and whether that needs borrowing or preemption (rules/03)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from kueuecore.reference import amount, conditions, experiments, quantity, variants
from kueuecore.reference.assignment import (
    SEVERITY,
    Assignment,
    Attempt,
    FlavorChoice,
    Mode,
    NoFitReason,
    PodSetAssignment,
    Way,
    severest,
)
from kueuecore.reference.cache import Snapshot
from kueuecore.reference.objects import Amounts, ClusterQueue, FlavorResource, ResourceGroup
from kueuecore.reference.selectors import matches_node, untolerated_taint
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.topology.phase import mismatch, settle
from kueuecore.reference.topology.request import request_of
from kueuecore.reference.totals import Info, PodSetTotals, Progress, resource_order

Oracle = Callable[[FlavorResource, int], tuple[Way, int]]
"""Returns what preemption could do for an amount, and at which borrowing level (rules/04 §6)."""

Probe = tuple[Mapping[str, int], Amounts]
"""What one pod of each pod set requests, and what earlier pod sets request."""

_Granular = tuple[Way, float]
_Found = TypeVar("_Found", bound=tuple[bool, object, object])


def is_preferred(a: _Granular, b: _Granular, queue: ClusterQueue, settings: Settings) -> bool:
    """Return whether a, a pair of way and borrowing level, is better than b (rules/03 §2.1)."""
    if Way.NO_FIT in (a[0], b[0]):
        return a[0] != Way.NO_FIT
    if settings.has("FitBeatsNoCandidates") and (a[0] == Way.NO_CANDIDATES) != (b[0] == Way.NO_CANDIDATES):
        return b[0] == Way.NO_CANDIDATES
    return (-a[1], a[0]) > (-b[1], b[0]) if _prefers_to_preempt(queue, settings) else (a[0], -a[1]) > (b[0], -b[1])


def _prefers_to_preempt(queue: ClusterQueue, settings: Settings) -> bool:
    """Return whether less borrowing counts more than less preemption (rules/03 §2.1)."""
    if not queue.preference:
        is_implied = settings.on("FlavorFungibilityImplicitPreferenceDefault")
        return is_implied and queue.when_can_borrow == "TryNextFlavor"
    return (queue.preference == "PreemptionOverBorrowing") is settings.has("PreferencesAreNotSwapped")


def tries_next(found: _Granular, queue: ClusterQueue) -> bool:
    """Return whether the scan continues with the next flavor (rules/03 §2.2)."""
    way, level = found
    return (
        way in (Way.NO_FIT, Way.NO_CANDIDATES)
        or (way in (Way.PREEMPT, Way.RECLAIM) and queue.when_can_preempt == "TryNextFlavor")
        or (level != 0 and queue.when_can_borrow == "TryNextFlavor")
    )


class Assigner:
    """Assigns flavors to one workload (rules/03).

    Args:
        replaced: The slice that it replaces (rules/09 §2.3).
        nominated: For each pod set, the flavors allowed when it is assigned again in a cycle (rules/04 §7).
    """

    def __init__(
        self,
        info: Info,
        snapshot: Snapshot,
        oracle: Oracle,
        *,
        cycle: int = 0,
        replaced: Info | None = None,
        nominated: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.info, self.snapshot, self.oracle, self.cycle = info, snapshot, oracle, cycle
        self.replaced, self.nominated = replaced, nominated
        self.settings = snapshot.settings
        self.queue, self.node = snapshot.spec(info.cluster_queue), snapshot.nodes[info.cluster_queue]

    def assign(self, counts: list[int] | None = None) -> Assignment:
        """Assign all pod sets, group by group (rules/03 §3)."""
        totals = self._in_spec_order(self.info.totals)
        if counts:
            totals = [pod_set.scaled(count) for pod_set, count in zip(totals, counts, strict=True)]
        if self.queue.group_of("pods") is not None:
            totals = [replace(total, requests={**total.requests, "pods": total.count}) for total in totals]
            if not counts and not self.settings.has("PodsAreNotInTotals"):
                # rules/03 §8: R holds the pods from now on, and so does what the status and penalties say.
                self.info.totals = totals
        assignment = Assignment(Progress([], self.node.generation, self.cycle, self.info.shape))
        groups: dict[str, list[int]] = {}
        for index, pod_set in enumerate(self.info.pod_sets[: len(totals)]):
            name = request_of(pod_set).group
            groups.setdefault(str(index) if name is None else name, []).append(index)
        is_whole = all(self._assign_group(assignment, totals, members) for members in groups.values())
        if is_whole and assignment.mode != Mode.NO_FIT:
            settle(self.snapshot, self.info, assignment, self.replaced)
        if assignment.mode == Mode.NO_FIT and self.settings.on("UnadmittedWorkloadsObservability"):
            assignment.no_fit = self._no_fit_reason(assignment)
        return assignment

    def _in_spec_order(self, totals: list[PodSetTotals]) -> list[PodSetTotals]:
        """Return totals in the order of the spec; those of a second pass come in that of groups (rules/03 §3)."""
        by_name = {total.name: total for total in totals}
        names = [pod_set["name"] for pod_set in self.info.pod_sets]
        if not self.settings.has("GroupMembersMayBeApart") or by_name.keys() != set(names):
            return totals
        return [by_name[name] for name in names]

    def _held(self, index: int) -> PodSetTotals | None:
        """Return the pod set of the replaced slice that a pod set continues (rules/09 §2.3)."""
        held = [] if self.replaced is None else self.replaced.totals
        if not self.settings.has("GroupMembersMayBeApart"):
            return held[index] if index < len(held) else None
        return next((each for each in held if each.name == self.info.pod_sets[index]["name"]), None)

    def _assign_group(self, assignment: Assignment, totals: list[PodSetTotals], members: list[int]) -> bool:
        """Assign pod sets that belong together (rules/03 §3 4 to 7). Returns whether to continue."""
        requests: dict[str, int] = {}
        for index in members:
            for resource, asked in totals[index].requests.items():
                requests[resource] = amount.add(requests.get(resource, 0), asked)
        flavors: dict[str, FlavorChoice] = {}
        reasons: list[str] = []
        attempts: dict[str, Attempt] = {}
        no_fit = NoFitReason.NONE
        probe = self._probe(assignment, totals, members)
        has_topology = self.settings.on("TopologyAwareScheduling")
        for total in (totals[index] for index in members if has_topology):
            # A second pass keeps its flavors (rules/08 §11.10).
            flavors |= {name: FlavorChoice(flavor, Mode.FIT, 0) for name, flavor in total.flavors.items()}
        for resource in sorted(requests, key=resource_order):
            group = self.queue.group_of(resource)
            if resource in flavors or (group is None and (not requests[resource] or self.settings.ignores_undeclared)):
                continue
            if group is None:
                flavors, reasons = {}, [f"resource {resource} unavailable in ClusterQueue"]
                if self.settings.has("UncoveredResourceHasAReason"):
                    no_fit = NoFitReason.FLAVOR
                break
            found, why, tried = self._scan(members, requests, resource, group, assignment.usage, probe)
            if not found and probe is not None:
                # rules/03 §4 3d: room for a pod is only preferred.
                found, why, tried = self._scan(members, requests, resource, group, assignment.usage)
            attempts |= {flavor: attempt.merged(attempts.get(flavor, attempt)) for flavor, attempt in tried.items()}
            for flavor in [name for name in group.flavors if name in attempts and name not in tried] if tried else ():
                missing = Attempt(Mode.NO_FIT, 0, None, (f"flavor {flavor} does not provide resource {resource}",))
                attempts[flavor] = replace(attempts[flavor].merged(missing), no_fit=NoFitReason.FLAVOR)
            if not found:
                flavors, reasons = {}, why
                break
            flavors |= found
            reasons += why
        goes_on = True
        for index in members:
            total = totals[index]
            own = self._own_flavors(index, total, flavors)
            pod_set = PodSetAssignment(total.name, total.count, total.requests, own, list(reasons), attempts)
            pod_set.topology = None if total.topology is None else total.topology.assignment
            pod_set.delayed, pod_set.no_fit = total.delayed, no_fit
            assignment.pod_sets.append(pod_set)
            tried_last = {name: choice.tried for name, choice in own.items()}
            if self.settings.has("GroupMembersMayBeApart"):
                n_missing = index + 1 - len(assignment.progress.tried)
                assignment.progress.tried += [{} for _ in range(n_missing)]
                assignment.progress.tried[index] = tried_last
            else:
                assignment.progress.tried.append(tried_last)
            held = self.replaced.totals if self.replaced is not None else []
            before = next((each.requests for each in held if each.name == total.name), {})
            for name, choice in own.items():
                assignment.borrowing = max(assignment.borrowing, choice.borrow)
                fr, more = (choice.flavor, name), total.requests.get(name, 0) - before.get(name, 0)
                assignment.usage[fr] = amount.add(assignment.usage.get(fr, 0), more)
            goes_on &= not total.requests or bool(own)
        return goes_on

    def _probe(self, assignment: Assignment, totals: list[PodSetTotals], members: list[int]) -> Probe | None:
        """Return what one pod of each member needs, if none has pods (rules/03 §4 3d)."""
        is_asked = self.settings.has("ZeroPodsNeedRoomForOne")
        if not is_asked or any(totals[index].count != 0 for index in members):
            return None
        requests: dict[str, int] = {}
        for index in members:
            for resource, asked in totals[index].of_one_pod.items():
                requests[resource] = amount.add(requests.get(resource, 0), asked)
        if self.queue.group_of("pods") is not None:
            requests["pods"] = len(members)
        earlier: dict[FlavorResource, int] = {}
        for pod_set in assignment.pod_sets:
            for name, choice in pod_set.flavors.items():
                fr = (choice.flavor, name)
                earlier[fr] = amount.add(earlier.get(fr, 0), pod_set.requests.get(name, 0))
        return requests, earlier

    def _exceeds(self, probe: Probe, flavor: str, group: ResourceGroup) -> tuple[str, ...]:
        """Return why a flavor could not hold these pods even if nothing else used it (rules/03 §4 3d)."""
        requests, earlier = probe
        found = []
        for resource in sorted(requests, key=resource_order):
            fr = (flavor, resource)
            used, most = earlier.get(fr, 0), self.node.potential.get(fr, 0)
            if resource in group.resources and amount.add(used, requests[resource]) > most:
                found.append(_exceeding(fr, used, requests[resource], most))
        return tuple(found)

    def _scan(
        self,
        members: list[int],
        requests: Mapping[str, int],
        lead: str,
        group: ResourceGroup,
        used: Amounts,
        probe: Probe | None = None,
    ) -> tuple[dict[str, FlavorChoice], list[str], dict[str, Attempt]]:
        """Try the flavors of a resource group in order (rules/03 §4)."""
        is_fungible = self.settings.on("FlavorFungibility")
        progress = self.info.progress if is_fungible else None
        covered = {name: asked for name, asked in requests.items() if name in group.resources}
        best: dict[str, FlavorChoice] = {}
        best_found: _Granular = (Way.NO_FIT, float("inf"))
        reasons: list[str] = []
        attempts: dict[str, Attempt] = {}
        last = -1
        for index in range(progress.start(members[0], lead) if progress else 0, len(group.flavors)):
            last, flavor = index, group.flavors[index]
            if why := self._not_asked(members, flavor, lead):
                reasons.append(why)
                continue
            if why := self._ineligible(members, flavor, group):
                reasons.append(why)
                attempts[flavor] = Attempt(Mode.NO_FIT, 0, None, (why,), NoFitReason.FLAVOR)
                continue
            if probe is not None and (exceeds := self._exceeds(probe, flavor, group)):
                reasons += exceeds
                attempts[flavor] = Attempt(Mode.NO_FIT, 0, None, tuple(sorted(exceeds)), NoFitReason.MAXIMUM)
                continue
            choices, found, attempts[flavor] = self._try(members, covered, flavor, used)
            reasons += attempts[flavor].reasons
            stops = not tries_next(found, self.queue) if is_fungible else found[0] == Way.FIT
            is_better = self._prefers(found, best_found) if is_fungible else found[0] > best_found[0]
            if stops or is_better:
                best, best_found = choices, found
            if stops:
                break
        if is_fungible:
            for choice in best.values():
                choice.tried = -1 if last == len(group.flavors) - 1 else last
        return best, [] if best_found[0] == Way.FIT else reasons, attempts

    def _prefers(self, a: _Granular, b: _Granular) -> bool:
        return is_preferred(a, b, self.queue, self.settings)

    def _not_asked(self, members: list[int], flavor: str, lead: str) -> str:
        """Return why a flavor is skipped without a look; empty if it is not (rules/04 §7, 09 §4.2)."""
        names = [self.info.pod_sets[index]["name"] for index in members]
        if self.nominated and all(self.nominated.get(name, {}).get(lead) != flavor for name in names):
            return f"skipping flavor {flavor} as it is not found in the nomination mapping for resource {lead}"
        allowed = variants.allowed_flavors(self.info.workload)
        if self.settings.on("ConcurrentAdmission") and allowed is not None and flavor not in allowed:
            return f"skipping flavor {flavor} due to WorkloadAllowedResourceFlavorAnnotation annotation"
        return ""

    def _own_flavors(
        self, index: int, total: PodSetTotals, flavors: Mapping[str, FlavorChoice]
    ) -> dict[str, FlavorChoice]:
        """Return the flavors that a pod set of a group gets; one without requests follows the others (rules/08 §3)."""
        if total.requests:
            return {name: choice for name, choice in flavors.items() if name in total.requests}
        if not self.settings.has("GroupGivesItsFlavor"):
            return {}
        known = self.snapshot.flavor_nodes(self.queue.name)
        is_grouped = request_of(self.info.pod_sets[index]).group is not None
        return {name: choice for name, choice in flavors.items() if is_grouped and choice.flavor in known}

    def _ineligible(self, members: list[int], name: str, group: ResourceGroup) -> str:
        """Return why pods cannot use a flavor; empty if they can (rules/03 §5)."""
        flavor = self.snapshot.flavors.get(name)
        if flavor is None:
            return f"flavor {name} not found"
        spec = flavor["spec"]
        for pod_set in (self.info.pod_sets[index] for index in members):
            if self.settings.on("TopologyAwareScheduling"):
                why = mismatch(self.snapshot, self.queue.name, pod_set, flavor, group)
                if why:
                    return why
            pod = pod_set["template"]["spec"]
            tolerations = [*(pod.get("tolerations") or ()), *(spec.get("tolerations") or ())]
            if taint := untolerated_taint(spec.get("nodeTaints") or [], tolerations):
                words = f"{taint.get('key', '')} {taint.get('value', '')} {taint['effect']} <nil>"
                return f"untolerated taint {{{words}}} in flavor {name}"
            labels = spec.get("nodeLabels") or {}
            if not matches_node(pod, labels, self._keys_that_matter(labels, group)):
                return f"flavor {name} doesn't match node affinity"
        return ""

    def _keys_that_matter(self, labels: Mapping[str, str], group: ResourceGroup) -> set[str]:
        """Return the keys of nodes that a flavor is matched by (rules/03 §5 4)."""
        if self.settings.has("FlavorsAreMatchedByTheirOwnLabels"):
            return set(labels)
        known = (self.snapshot.flavors[name]["spec"] for name in group.flavors if name in self.snapshot.flavors)
        return {name for spec in known for name in spec.get("nodeLabels") or ()}

    def _try(
        self, members: list[int], requests: Mapping[str, int], flavor: str, used: Amounts
    ) -> tuple[dict[str, FlavorChoice], _Granular, Attempt]:
        """Return what one flavor can do for all resources of a group (rules/03 §4 3d and e)."""
        found: _Granular = (Way.FIT, 0)
        choices: dict[str, FlavorChoice] = {}
        reasons: list[str] = []
        no_fits: list[NoFitReason] = []
        levels = [0]
        for resource in sorted(requests, key=resource_order):
            asked = requests[resource]
            for held in filter(None, map(self._held, members)):
                if self.settings.on("ElasticJobsViaWorkloadSlicesFlavorChangeFromZero") and held.count == 0:
                    continue
                other = held.flavors.get(resource, "")
                if other != flavor:
                    found = (Way.NO_FIT, float("inf"))
                    why = f"could not assign {flavor} flavor since the original workload is assigned: {other}"
                    reasons.append(why)
                    no_fits.append(NoFitReason.FLAVOR)
                    break
                asked -= held.requests.get(resource, 0)
            way, level, why, no_fit = self._fits((flavor, resource), used.get((flavor, resource), 0), asked)
            reasons += [why] if why else []
            no_fits.append(no_fit)
            levels.append(level)
            if self._prefers(found, (way, level)):
                found = (way, level)
            if found[0] != Way.NO_FIT:
                choices[resource] = FlavorChoice(flavor, way.mode, level)
            elif not self.settings.has("EveryMisfitIsNamed"):
                # rules/03 §4 3d: Kueue left open which resource comes first.
                break
        reported = severest(no_fits if self.settings.on("UnadmittedWorkloadsObservability") else ())
        possible = found[0] if found[0].possibility else None
        return choices, found, Attempt(found[0].mode, max(levels), possible, tuple(reasons), reported)

    def _fits(self, fr: FlavorResource, used: int, asked: int) -> tuple[Way, int, str, NoFitReason]:
        """Return what one flavor can do for one resource, unless it must not be borrowed yet (rules/13 §3)."""
        way, level, why, no_fit = self._fits_quota(fr, used, asked)
        waits = (self.queue.name, fr) in self.snapshot.backoffs and not conditions.has_reservation(self.info.workload)
        if waits and level > 0 and way != Way.NO_FIT:
            return Way.NO_FIT, level, experiments.borrowing_waits(fr), NoFitReason.QUOTA
        return way, level, why, no_fit

    def _fits_quota(self, fr: FlavorResource, used: int, asked: int) -> tuple[Way, int, str, NoFitReason]:
        """Return what one flavor can do for one resource (rules/03 §4.1)."""
        flavor, resource = fr
        usage, node = self.snapshot.usage, self.node
        total, most = amount.add(used, asked), node.potential.get(fr, 0)
        if total > most:
            return Way.NO_FIT, 0, _exceeding(fr, used, asked, most), NoFitReason.MAXIMUM
        level, may_reclaim = usage.level(node, fr, total)
        available = usage.available(node, fr)
        if total <= available:
            return Way.FIT, level, "", NoFitReason.NONE
        lacking = _amount_text(resource, amount.subtract(total, available))
        why = f"insufficient unused quota for {resource} in flavor {flavor}, {lacking} more needed"
        reclaims_fairly = self.settings.fair_sharing is not None and self.queue.reclaim_within_cohort != "Never"
        preempts_while_borrowing = self.queue.borrows_to_preempt or reclaims_fairly
        if node.quota(fr).nominal >= total or may_reclaim or preempts_while_borrowing:
            way, level = self.oracle(fr, total)
            return way, level, why, NoFitReason.NONE
        return Way.NO_FIT, level, why, NoFitReason.QUOTA

    def _no_fit_reason(self, assignment: Assignment) -> NoFitReason:
        """Return the reason to report to administrators: the mildest of each resource group (rules/03 §7.1)."""
        overall = NoFitReason.NONE
        for pod_set in (p for p in assignment.pod_sets if p.mode == Mode.NO_FIT):
            if not pod_set.attempts:
                overall = NoFitReason.FLAVOR
            mildest: dict[str, NoFitReason] = {}
            for flavor, attempt in pod_set.attempts.items():
                groups = [str(index) for index, group in enumerate(self.queue.groups) if flavor in group.flavors]
                for place in groups or [flavor] if attempt.mode == Mode.NO_FIT else ():
                    reasons = (mildest.get(place, NoFitReason.FLAVOR), attempt.no_fit)
                    mildest[place] = min(reasons, key=SEVERITY.index)
            overall = severest((overall, pod_set.no_fit, *mildest.values()))
        return overall


def _amount_text(resource: str, number: int) -> str:
    return "<unlimited>" if number == amount.UNLIMITED else quantity.text(resource, number)


def _exceeding(fr: FlavorResource, used: int, asked: int, most: int) -> str:
    flavor, resource = fr
    return (
        f"insufficient quota for {resource} in flavor {flavor}, "
        f"previously considered podsets requests ({_amount_text(resource, used)}) + current podset request "
        f"({quantity.text(resource, asked)}) > maximum capacity ({_amount_text(resource, most)})"
    )


def _requests_by_name(assignment: Assignment, info: Info, replaced: Info | None) -> dict[FlavorResource, int]:
    """Return R as Kueue does since 0.20.0: for the counts of the assignment, and with pods (rules/03 §8)."""
    total: dict[FlavorResource, int] = {}
    held = {each.name: each.count for each in replaced.totals} if replaced is not None else {}
    given = {each.name: each for each in assignment.pod_sets}
    for pod_set in info.totals:
        assigned = given.get(pod_set.name)
        if assigned is None:
            continue
        count = assigned.count - held.get(pod_set.name, 0)
        asked = {name: value for name, value in pod_set.scaled(count).requests.items() if name != "pods"}
        for resource, value in [*asked.items(), ("pods", count)]:
            choice = assigned.flavors.get(resource)
            if value != 0 and choice is not None:
                fr = (choice.flavor, resource)
                total[fr] = amount.add(total.get(fr, 0), value)
    return total


def requests_of(
    assignment: Assignment, info: Info, replaced: Info | None, settings: Settings
) -> dict[FlavorResource, int]:
    """Return R: all that must fit once room is made (rules/03 §8)."""
    if settings.has("PreemptionIsSizedByAssignment"):
        return _requests_by_name(assignment, info, replaced)
    total: dict[FlavorResource, int] = {}
    given = {each.name: each for each in assignment.pod_sets}
    for index, pod_set in enumerate(info.totals):
        assigned = given.get(pod_set.name)
        if assigned is None:
            continue
        count = assigned.count if replaced is None else pod_set.count - replaced.totals[index].count
        for resource, asked in pod_set.scaled(count).requests.items():
            choice = assigned.flavors.get(resource)
            if asked != 0 and choice is not None:
                fr = (choice.flavor, resource)
                total[fr] = amount.add(total.get(fr, 0), asked)
    return total


def search_fewer_pods(pod_sets: list[Json], tried: Callable[[list[int]], _Found]) -> _Found | None:
    """Find the largest number of pods, below the full count, that fits (rules/03 §9.1); return its assignment."""
    counts = [pod_set["count"] for pod_set in pod_sets]
    most = [n - (n if p.get("minCount") is None else p["minCount"]) for n, p in zip(counts, pod_sets, strict=True)]
    total, found = sum(most), None
    low, high = 0, total + 1 if total > 0 else 0
    while low < high:
        middle = (low + high) // 2
        attempt = tried([n - int(amount.divide(d * middle, total)) for n, d in zip(counts, most, strict=True)])
        if attempt[0]:
            found, high = attempt, middle
        else:
            low = middle + 1
    return found
