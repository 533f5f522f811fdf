"""Four training jobs, and a cloud that can provide eight GPUs, some of the time."""

from pathlib import Path

from kueuecore import simulate
from kueuecore.manifests import JsonObject
from kueuecore.provisioning import QueuedCapacity, Stock, VirtualProvisioning
from kueuecore.simulation import Happening, JobPlan, Operation


def training(name: str, at: float) -> Happening:
    """Make a training job on 4 GPUs that takes ten minutes."""
    container: JsonObject = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": 4}}}
    workload: JsonObject = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": "research", "name": name},
        "spec": {"queueName": "training", "podSets": [{"count": 1, "template": {"spec": {"containers": [container]}}}]},
    }
    return Happening(at=at, op=Operation.CREATE, object=workload, plan=JobPlan(run_seconds=600))


# The cloud has eight GPUs, which take one to three minutes to arrive; it refuses a third of the orders.
tokyo = Stock(amounts={"nvidia.com/gpu": 8}, delay_seconds=(60, 180), refused=0.33, patience_seconds=600)
provisioning = VirtualProvisioning(QueuedCapacity({"tokyo": tokyo}, seed=13))
run = simulate(
    (Path(__file__).parent / "cluster.yaml").read_text(encoding="utf-8"),
    [training(name, 60 * index) for index, name in enumerate(("amber", "birch", "cedar", "daisy"))],
    now="2026-01-01T00:00:00Z",
    checks=[provisioning],
)
steps = [(step.time, step.key, step.kind.value, "") for step in run.steps]
orders = [(step.time, step.name, step.what, step.message) for step in provisioning.steps if step.what != "Accepted"]
for time, name, what, message in sorted(steps + orders, key=lambda step: (step[0], step[2] == "Admitted")):
    seconds = (time - run.start) // 10**9
    print(f"{seconds // 60:3}:{seconds % 60:02} {name.removeprefix('research/'):13} {what}{message and f': {message}'}")
