"""A dry run sees that another Kueue decides, or none, or one of another release."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.api_server import RefusedError
from kueuecore.errors import ManifestError
from kueuecore.kubernetes.dry_run.kueue_watch import KueueWatch, lease_path


class Leases:
    """An API server that has only a Lease."""

    def __init__(self) -> None:
        self.spec: dict[str, Any] | None = {"holderIdentity": "one", "renewTime": "1"}
        self.asked: list[str] = []

    def send(self, verb: str, path: str, *, seconds: float) -> dict[str, Any]:
        self.asked.append(f"{verb} {path}")
        if self.spec is None:
            raise RefusedError(403, "leases is forbidden")
        return {"spec": self.spec}


class Watched:
    def __init__(self) -> None:
        self.leases = Leases()
        self.found: Configuration | ManifestError = Configuration(release="0.19.1")
        self.changed: list[tuple[str, str]] = []
        self.paused: list[str] = []
        self.watch = KueueWatch(
            self.leases,  # type: ignore[arg-type]
            Configuration(release="0.19.1"),
            configure=self._configure,
            changed=lambda found, why: self.changed.append((found.release.name, why)),
            paused=self.paused.append,
        )

    def _configure(self) -> Configuration:
        if isinstance(self.found, ManifestError):
            raise self.found
        return self.found


def test_a_kueue_that_goes_on_is_nothing_to_report() -> None:
    watched = Watched()
    for number in range(10):
        watched.leases.spec = {"holderIdentity": "one", "renewTime": str(number)}
        watched.watch.look()
    assert (watched.changed, watched.paused) == ([], [])
    path = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases/c1f6bfd2.kueue.x-k8s.io"
    assert set(watched.leases.asked) == {f"GET {path}"}


def test_another_holder_is_a_restart() -> None:
    watched = Watched()
    watched.watch.look()
    watched.leases.spec = {"holderIdentity": "two", "renewTime": "2"}
    watched.watch.look()
    watched.watch.look()
    assert watched.changed == [("0.19.1", "another Kueue process decides")]


@pytest.mark.parametrize("spec", [{"holderIdentity": "one", "renewTime": "1"}, {"holderIdentity": ""}, {}])
def test_a_lease_that_nobody_renews_pauses_until_one_does(spec: dict[str, Any]) -> None:
    watched = Watched()
    watched.leases.spec = spec
    for _ in range(6):
        watched.watch.look()
    assert watched.paused == ["no Kueue holds its Lease"]
    watched.leases.spec = {"holderIdentity": "one", "renewTime": "9"}
    watched.watch.look()
    assert watched.paused == ["no Kueue holds its Lease", ""]


def test_without_the_right_to_read_the_lease_it_goes_on() -> None:
    watched = Watched()
    watched.leases.spec = None
    for _ in range(6):
        watched.watch.look()
    assert (watched.changed, watched.paused) == ([], [])


def test_a_change_of_the_release_is_followed_and_one_that_is_unknown_pauses() -> None:
    watched = Watched()
    watched.found = Configuration(release="0.19.2")
    watched.watch.look()
    watched.found = ManifestError.of("kueuecore does not know the release 0.99.0 of Kueue")
    watched.watch.look()
    assert watched.changed == [("0.19.2", "Kueue has changed from 0.19.1 to 0.19.2")]
    [why] = watched.paused
    assert why.startswith("Kueue has changed to what this version of kueuecore does not know: kueuecore does not know")


def test_without_an_election_no_lease_is_read() -> None:
    text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, leaderElection: {leaderElect: false}}"
    assert lease_path(Configuration.parse(text)) == ""
