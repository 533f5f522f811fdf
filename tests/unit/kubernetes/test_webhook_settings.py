"""Where webhooks are served, and with which certificate."""

from __future__ import annotations

import json
import signal
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kueuecore import Configuration
from kueuecore.cli import main
from kueuecore.kubernetes import Address
from kueuecore.kubernetes.settings import WebhookSettings
from tests.unit.kubernetes.clusters import served
from tests.unit.kubernetes.deployed import deployed
from tests.unit.kubernetes.https import ask, authority, trusting
from tests.unit.kubernetes.test_serve_command import serving

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
metrics: {{bindAddress: "0"}}
health: {{healthProbeBindAddress: "0"}}
webhook: {{host: 127.0.0.1, port: {port}, certDir: {folder}}}
internalCertManagement: {{enable: false}}
"""
FOLDER = Path("/tmp/k8s-webhook-server/serving-certs")


def test_without_a_configuration_they_are_kueues() -> None:
    assert WebhookSettings.of(None) == WebhookSettings(
        Address("", 9443), "kueue-system", "kueue-webhook-service", "kueue-webhook-server-cert", FOLDER
    )


def test_those_of_deploy_are_of_our_own() -> None:
    assert WebhookSettings.of(Configuration.parse(deployed()[1])) == WebhookSettings(
        Address("", 9443), "kueue-system", "kueuecore-webhooks", "kueuecore-webhook-server-cert", FOLDER
    )


def test_a_certificate_of_others_is_read_from_its_folder() -> None:
    configuration = Configuration.trusted(
        {
            "webhook": {"host": "127.0.0.1", "port": 9444, "certDir": "/certs"},
            "internalCertManagement": {"enable": False},
        }
    )
    settings = WebhookSettings.of(configuration)
    assert (settings.address, settings.secret, settings.folder) == (Address("127.0.0.1", 9444), "", Path("/certs"))


def test_what_writes_nothing_serves_no_webhooks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--webhooks", "--dry-run", "--server", "http://127.0.0.1:1"]) == 2
    assert "webhooks change and refuse objects" in capsys.readouterr().err


def test_the_command_serves_them_with_a_certificate_from_a_folder(tmp_path: Path) -> None:
    ca = authority()
    pair = ca.sign(["localhost"], now=datetime.now(UTC))
    (tmp_path / "tls.crt").write_text(pair.certificate)
    (tmp_path / "tls.key").write_text(pair.key)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    configuration = tmp_path / "configuration.yaml"
    configuration.write_text(CONFIGURATION.format(port=port, folder=tmp_path))
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}).encode()
    headers = {"Content-Type": "application/json"}
    with served() as server:
        arguments = ("--webhooks", "--server", server.url, "--config", str(configuration))
        with serving(*arguments) as (process, log):
            assert json.loads(log.readline())["webhooks"] == port
            answer = ask(
                port, "/mutate-batch-v1-job", trusting(ca.certificate), method="POST", headers=headers, body=body
            )
            assert answer.json["response"]["status"]["message"] == "the review has no request"
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
    (tmp_path / "tls.key").unlink()
    assert main(["serve", *arguments]) == 2
