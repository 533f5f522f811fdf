"""The commands that a preflight prints mend what it has found, in a real kube-apiserver."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore.cli import main
from tests.unit.kubernetes.preflight_clusters import configuration, converted_crds, deployment, visibility
from tests.unit.kubernetes.real_servers import needs_real_server, real_server

pytestmark = [
    needs_real_server,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl"),
]
SYSTEM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}}
USED = "kueue.x-k8s.io/resource-in-use"


def run(kubeconfig: Path, command: str, *, given: str = "", code: int = 0) -> str:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    done = subprocess.run(
        ["/bin/sh", "-ec", command], env=environment, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def errors(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    code = main(["serve", "--preflight", "--kubeconfig", str(kubeconfig), "-o", "json", "--kueue", "0.19.2"])
    found = [row for row in json.loads(capsys.readouterr().out)["obstacles"] if row["level"] == "error"]
    assert code == bool(found)
    return found


def test_what_a_kueue_without_pods_leaves_is_found_mended_and_restored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kueue = [SYSTEM, *converted_crds(), deployment("v0.19.2"), visibility()]
    kueue += [configuration(f"{kind}WebhookConfiguration", "kueue") for kind in ("Validating", "Mutating")]
    for manifest in kueue:
        manifest.pop("status", None)
    apply = "kubectl apply --server-side --force-conflicts -f -"
    old = {"metadata": {"name": "old", "finalizers": [USED]}, "kind": "WorkloadPriorityClass", "value": 1}
    with real_server(tmp_path) as kubeconfig:
        run(kubeconfig, apply, given=yaml.safe_dump_all(kueue))
        run(kubeconfig, "kubectl wait --for=condition=established crd --all --timeout=30s")
        run(kubeconfig, apply, given=yaml.safe_dump({"apiVersion": "kueue.x-k8s.io/v1beta2", **old}))
        run(kubeconfig, "kubectl delete workloadpriorityclasses.v1beta2.kueue.x-k8s.io old --wait=false")
        found = errors(kubeconfig, capsys)
        checks = [row["check"] for row in found]
        assert checks == ["webhooks", "webhooks", "conversion", "visibility", "finalizers"]
        # They are right.
        get = "kubectl get workloadpriorityclasses.v1beta1.kueue.x-k8s.io old"
        assert "conversion webhook" in run(kubeconfig, get, code=1)
        for row in found:
            for mend in row["mends"]:
                run(kubeconfig, mend)
        assert errors(kubeconfig, capsys) == []
        run(kubeconfig, "kubectl wait --for=delete workloadpriorityclasses.v1beta2.kueue.x-k8s.io/old --timeout=10s")
        # And can be undone.
        run(kubeconfig, apply, given=yaml.safe_dump_all(kueue))
        assert [row["check"] for row in errors(kubeconfig, capsys)] == checks[:-1]
