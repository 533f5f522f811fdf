"""Queue a cluster's jobs by Kueue's rules, and start only those that someone has approved.

    kubectl proxy &
    python controller.py --server http://127.0.0.1:8001

`kueuecore serve` does the same without the approvals.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from kueuecore._json import JsonObject, text_at
from kueuecore.checks import Activity, CheckAnswer, CheckController, CheckState, Review, check_states
from kueuecore.kubernetes import Api, Process
from kueuecore.kubernetes.json_logs import log_to
from kueuecore.provisioning import ProvisioningController

ANNOTATION = "example.com/approved-by"


class Approval(CheckController):
    """Decides the checks of `example.com/approval`: Ready once the Workload's annotation names an approver."""

    controller_name = "example.com/approval"

    def activity(self, check: JsonObject, *, now: int) -> Activity:
        return Activity(True, "Open", "Approvals are read from Workloads")

    def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
        approver = text_at(workload, "metadata", "annotations", ANNOTATION)
        states = check_states(workload)
        waiting = [name for name in checks if approver and states.get(name, {}).get("state") != CheckState.READY]
        return Review(answers=tuple(CheckAnswer(name, CheckState.READY, f"approved by {approver}") for name in waiting))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="", help="URL of the API server; by default that of the pod or kubeconfig")
    log_to(sys.stderr, level="info")
    process = Process(Api.connect(server=parser.parse_args().server), checks=[ProvisioningController(), Approval()])
    signal.signal(signal.SIGTERM, lambda *_: process.stop())
    process.run()


if __name__ == "__main__":
    main()
