"""Days of all kinds go on where deploy/admission-policies.yaml is applied: what `serve` writes breaks no policy."""

from __future__ import annotations

from pathlib import Path

from kueuecore.trials.http_replica import MortalApi
from kueuecore_apiserver import AccessRules
from tests.unit.apiserver.test_admission_policies import policies
from tests.unit.kubernetes.days_of_kinds import KindDays
from tests.unit.kubernetes.deployed import KUBECONFIG, USER, deployed


def test_no_write_is_refused_and_each_job_runs(tmp_path: Path) -> None:
    roles, configured = deployed()
    days = KindDays(configured, AccessRules(users={"secret": USER}, manifests=roles))
    days.server.load(policies())
    kubeconfig = tmp_path / "kubeconfig"
    with days.server.serve() as url:
        kubeconfig.write_text(KUBECONFIG.format(url=url))
        days.begin(MortalApi.connect(kubeconfig=kubeconfig))
        days.live_through_all()
    refused = [(request.verb, request.path) for request in days.server.requests if request.code in (403, 422)]
    assert not refused
