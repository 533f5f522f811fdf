"""Nominal quotas that grow and shrink together, in whole units, as `kueuecore plan` varies them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._quantities import number
from kueuecore._text import quoted
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest
from kueuecore.scenarios import ApplyObjects, Edit, PatchObject, ScaleQuota, Scenario

__all__ = ["Quota", "QuotaScale", "quota_scales", "unit_suffix"]

_KINDS = ("ClusterQueue", "Cohort")
# In the engine's own amounts: leaves room below 2^63 for everything added to it.
_MOST = 2**60


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One nominal quota in a scenario's objects.

    Args:
        kind: `ClusterQueue` or `Cohort`.
        name: The object's name.
        flavor: Its flavor.
        resource: Its resource.
        path: The field path of its entry.
        nominal: Its current value, in cores, bytes or the resource's own units.
        lending_limit: The lending limit in the same entry, if any.
    """

    kind: str
    name: str
    flavor: str
    resource: str
    path: str
    nominal: Fraction
    lending_limit: Fraction | None = None

    @property
    def units(self) -> Fraction:
        """Its current value in cores, GiB or pieces."""
        return self.nominal / _unit(self.resource)

    def edits(self, n_units: int) -> Iterator[Edit]:
        """Yield the edits that set it to a number of units.

        A lending limit may not exceed the quota (rules/01 §5), so it shrinks with it.
        """
        text = f"{n_units}{unit_suffix(self.resource)}"
        yield Edit(kind=self.kind, name=self.name, path=f"{self.path}.nominalQuota", value=text)
        if self.lending_limit is not None and self.lending_limit > n_units * _unit(self.resource):
            yield Edit(kind=self.kind, name=self.name, path=f"{self.path}.lendingLimit", value=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaScale:
    """Quotas that vary by one factor.

    Args:
        quotas: The quotas.
        flavor: The flavor whose total counts the steps.
        resource: Its resource.
    """

    quotas: tuple[Quota, ...]
    flavor: str
    resource: str

    @property
    def name(self) -> str:
        """The counted `FLAVOR/RESOURCE`."""
        return f"{self.flavor}/{self.resource}"

    @property
    def now(self) -> Fraction:
        """The current total, in units."""
        return _total(self._counted) / _unit(self.resource)

    @property
    def most(self) -> int:
        """A number of units that limits nothing."""
        most = []
        for flavor, resource in _pairs(self.quotas):
            # Thousandths of a core, bytes, or pieces.
            room = _MOST // (1000 if resource == "cpu" else int(_unit(resource)))
            own = _total(
                quota for quota in self.quotas if (quota.flavor, quota.resource) == (flavor, resource)
            ) / _unit(resource)
            most.append(room if not own or not self.now else floor(room * self.now / own))
        return max(min(most), ceil(self.now))

    def split(self, n_units: int) -> tuple[int, ...]:
        """Return the units of each quota for a total.

        Other resources and flavors follow by the same factor, rounded up. Every quota gets its share of each total in
        whole units; the remainder goes to the largest quotients (D'Hondt), so none shrinks as the total grows.

        Args:
            n_units: The total.
        """
        amounts: dict[str, int] = {}
        for flavor, resource in _pairs(self.quotas):
            members = [quota for quota in self.quotas if (quota.flavor, quota.resource) == (flavor, resource)]
            total = n_units
            if (flavor, resource) != (self.flavor, self.resource):
                total = ceil(_total(members) / _unit(resource) * n_units / self.now)
            shares = _shared([member.nominal for member in members], total)
            amounts |= {
                f"{member.kind}/{member.name}:{member.path}": n for member, n in zip(members, shares, strict=True)
            }
        return tuple(amounts[f"{quota.kind}/{quota.name}:{quota.path}"] for quota in self.quotas)

    def edits(self, n_units: int) -> list[Edit]:
        """Return the edits that set the total to a number of units."""
        return [edit for quota, n in zip(self.quotas, self.split(n_units), strict=True) for edit in quota.edits(n)]

    def is_now(self, n_units: int) -> bool:
        """Return whether a total leaves every quota as it is in the manifests."""
        return all(quota.units == n for quota, n in zip(self.quotas, self.split(n_units), strict=True))

    def warnings(self, scenario: Scenario) -> Iterator[str]:
        """Warn about timetable changes that overwrite the planned quotas."""
        for index, change in enumerate(scenario.timetable):
            for quota in self.quotas:
                if _sets(change.action, quota):
                    where = f"timetable[{index}] sets the quota of {quota.kind} {quota.name}"
                    yield f"{where}, which this plan varies: from then on the timetable's value holds"
                    break

    @property
    def _counted(self) -> Iterator[Quota]:
        return (quota for quota in self.quotas if (quota.flavor, quota.resource) == (self.flavor, self.resource))


def quota_scales(
    scenario: Scenario,
    *,
    cluster_queues: Collection[str] = (),
    flavors: Collection[str] = (),
    resources: Collection[str] = (),
    together: bool = False,
) -> tuple[QuotaScale, ...]:
    """Return what a plan can vary in a scenario: for each flavor, all nominal quotas by one factor.

    Quotas of 0 stay 0, unless there is only one. The plan counts the resource with the fewest units: GPUs, if a flavor
    has GPUs, cores and memory.

    Args:
        scenario: The scenario.
        cluster_queues: Only the quotas of these ClusterQueues; by default of all, and of Cohorts.
        flavors: Only these flavors.
        resources: Only these resources.
        together: Vary all flavors by one factor, rather than each by its own.

    Raises:
        ManifestError: There is no such quota, or the scenario has several clusters.

    Example:
        >>> from kueuecore.scenarios import read_scenario
        >>> (scale,) = quota_scales(read_scenario("examples/scenario/scenario.yaml"))
        >>> scale.name, scale.now, scale.split(11)
        ('default/cpu', Fraction(8, 1), (6, 5))
    """
    if scenario.fleet is not None:
        remedy = (
            "plan each cluster in its own scenario, with cluster instead of fleet; or vary the fleet's quotas with "
            "`kueuecore sweep SCENARIO --grid 'ClusterQueue/NAME:PATH=[4, 8]'`"
        )
        raise ManifestError.of(
            "this scenario has a fleet, but a plan varies the quota of one cluster",
            field="fleet",
            remedy=remedy,
        )
    found = _quotas(scenario)
    _check(cluster_queues, {quota.name for quota in found if quota.kind == "ClusterQueue"}, "ClusterQueue")
    _check(flavors, {quota.flavor for quota in found}, "flavor")
    _check(resources, {quota.resource for quota in found}, "resource")
    chosen = [
        quota
        for quota in found
        if (not cluster_queues or (quota.kind == "ClusterQueue" and quota.name in cluster_queues))
        and (not flavors or quota.flavor in flavors)
        and (not resources or quota.resource in resources)
    ]
    if not chosen:
        raise ManifestError.of("no ClusterQueue has such a quota", remedy="choose less narrowly, or other names")
    groups = {quota.flavor: [other for other in chosen if together or other.flavor == quota.flavor] for quota in chosen}
    return tuple(_scale(group) for group in ([chosen] if together else groups.values()))


def unit_suffix(resource: str) -> str:
    """Return the suffix of a resource's number of units.

    Example:
        >>> unit_suffix("cpu"), unit_suffix("memory"), unit_suffix("nvidia.com/gpu")
        ('', 'Gi', '')
    """
    return "Gi" if _unit(resource) > 1 else ""


def _unit(resource: str) -> int:
    """Return a unit: a core, a GiB, or a piece."""
    is_bytes = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return 2**30 if is_bytes else 1


def _scale(quotas: Sequence[Quota]) -> QuotaScale:
    used = [quota for quota in quotas if quota.nominal] or (list(quotas) if len(quotas) == 1 else [])
    if not used:
        whose = ", ".join(sorted({quota.name for quota in quotas}))
        remedy = "choose one quota with --cluster-queue, --flavor and --resource, or set quotas in proportion"
        raise ManifestError.of(f"the nominal quotas of {whose} are all 0, so they have no proportions", remedy=remedy)
    totals = {
        pair: _total(quota for quota in used if (quota.flavor, quota.resource) == pair) / _unit(pair[1])
        for pair in _pairs(used)
    }
    flavor, resource = min(totals, key=lambda pair: (totals[pair], pair))
    return QuotaScale(quotas=tuple(used), flavor=flavor, resource=resource)


def _check(given: Collection[str], names: Collection[str], what: str) -> None:
    for name in given:
        if name not in names:
            remedy = f"write one of {', '.join(sorted(names)[:9])}" if names else "give the scenario one"
            raise ManifestError.of(f"no {what} {quoted(name)} has quota", remedy=remedy)


def _quotas(scenario: Scenario) -> list[Quota]:
    """Return all nominal quotas, in the order of their objects."""
    generated = () if scenario.generated is None else scenario.generated.objects
    objects: dict[tuple[str, str], JsonObject] = {}
    for manifest in (*scenario.cluster.objects, *map(Manifest, generated)):
        plain = manifest.object
        if text_at(plain, "kind") in _KINDS:
            # Of duplicate objects, the last one counts.
            objects[text_at(plain, "kind"), text_at(plain, "metadata", "name")] = plain
    return [quota for (kind, name), plain in objects.items() for quota in _quotas_of(kind, name, plain)]


def _quotas_of(kind: str, name: str, plain: JsonObject) -> Iterator[Quota]:
    for group, in_group in enumerate(list_at(plain, "spec", "resourceGroups")):
        for place, flavor in enumerate(list_at(in_group, "flavors")):
            for index, resource in enumerate(list_at(flavor, "resources")):
                entry = object_at(resource)
                nominal = number(entry.get("nominalQuota"))
                if nominal is not None and nominal >= 0:
                    yield Quota(
                        kind=kind,
                        name=name,
                        flavor=text_at(flavor, "name"),
                        resource=text_at(resource, "name"),
                        path=f"spec.resourceGroups[{group}].flavors[{place}].resources[{index}]",
                        nominal=nominal,
                        lending_limit=number(entry.get("lendingLimit")),
                    )


def _sets(action: object, quota: Quota) -> bool:
    """Return whether a timetable change sets this quota."""
    match action:
        case ScaleQuota(target=target, flavor=flavor, resource=resource, amounts=amounts):
            is_it = (flavor, resource) == (quota.flavor, quota.resource) and "nominalQuota" in amounts
            return is_it and (target.kind, target.name) == (quota.kind, quota.name)
        case PatchObject(target=target, patch=patch):
            has_quota = "resourceGroups" in object_at(patch, "spec")
            return has_quota and (target.kind, target.name) == (quota.kind, quota.name)
        case ApplyObjects(objects=objects):
            names = [
                (text_at(object_.object, "kind"), text_at(object_.object, "metadata", "name")) for object_ in objects
            ]
            return (quota.kind, quota.name) in names
    return False


def _pairs(quotas: Sequence[Quota]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((quota.flavor, quota.resource) for quota in quotas))


def _total(quotas: Iterator[Quota] | Sequence[Quota]) -> Fraction:
    return sum((quota.nominal for quota in quotas), Fraction())


def _shared(weights: Sequence[Fraction], n: int) -> list[int]:
    """Divide units in proportion to weights, by D'Hondt: no share is below its whole part."""
    total = sum(weights)
    if not total:
        return [n]
    shares = [floor(weight * n / total) for weight in weights]
    for _ in range(n - sum(shares)):
        place = max(range(len(shares)), key=lambda index: (weights[index] / (shares[index] + 1), -index))
        shares[place] += 1
    return shares
