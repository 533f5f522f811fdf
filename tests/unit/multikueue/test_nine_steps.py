"""A job's way through MultiKueue, step by step, as the documents describe it (docs/sources.md G2, rules/06 §4)."""

from textwrap import dedent

from kueuecore.fleet import Fleet, table
from tests.unit.multikueue.worlds import fleet_of, job, workload_of


def kubectl(fleet: Fleet, what: str) -> str:
    """What is shown for `kubectl --context CLUSTER get KIND`."""
    cluster, kind = what.split()
    return table(fleet, kind, cluster="" if cluster == "manager" else cluster)


def text(shown: str) -> str:
    return dedent(shown).strip()


def test_the_nine_steps_of_a_job() -> None:
    # A manager with a queue of 8 cpus, and two workers: in the west there is room for one pod, in the east for four.
    fleet = fleet_of(8, {"west": 1, "east": 4})

    # 1. A user creates a Job on the manager. It is suspended, and MultiKueue is to manage it.
    # 2. Its Workload gets quota on the manager; it is not admitted, for the check waits.
    fleet.submit(job(cpu=3), run_seconds=60)
    created = fleet.get("Job", "job", namespace="ns")
    assert created is not None
    assert (created["spec"]["suspend"], created["spec"]["managedBy"]) == (True, "kueue.x-k8s.io/multikueue")
    assert kubectl(fleet, "manager Workload") == text("""
        NAME            QUEUE   RESERVED IN     ADMITTED   FINISHED
        job-job-9d671   lq      cluster-queue   False
    """)
    assert kubectl(fleet, "west Workload") == "No resources found"

    # 3. Both workers are nominated, and get a copy of the Workload.
    workload = workload_of(fleet)
    assert workload is not None
    assert workload["status"]["nominatedClusterNames"] == ["east", "west"]
    fleet.wait(0.1)
    # 4. In the east there is room: it admits its copy at once, the west waits.
    assert kubectl(fleet, "east Workload") == text("""
        NAME            QUEUE   RESERVED IN     ADMITTED   FINISHED
        job-job-9d671   lq      cluster-queue   True
    """)
    assert kubectl(fleet, "west Workload") == text("""
        NAME            QUEUE   RESERVED IN   ADMITTED   FINISHED
        job-job-9d671   lq                    False
    """)
    assert kubectl(fleet, "east Job") == "No resources found"

    # 5. The manager hears of it, waits a moment for more, and takes the copy of the west away.
    fleet.wait(1.2)
    assert kubectl(fleet, "west Workload") == "No resources found"

    # 6. Now the Job is created in the east. It names its Workload, and nobody else manages it there.
    fleet.wait(0.2)
    copy = fleet.get("Job", "job", namespace="ns", cluster="east")
    assert copy is not None
    assert copy["metadata"]["annotations"]["kueue.x-k8s.io/prebuilt-workload-name"] == "job-job-9d671"
    assert copy["metadata"]["labels"]["kueue.x-k8s.io/multikueue-origin"] == "multikueue"
    assert "managedBy" not in copy["spec"]
    assert kubectl(fleet, "east Job") == text("""
        NAME   STATUS    COMPLETIONS
        job    Running   0/3
    """)

    # 7. The check is ready, the Workload of the manager is admitted, and the status of the Job flows back.
    fleet.wait(3)
    assert fleet.running(namespace="ns", name="job") == ["east"]
    assert kubectl(fleet, "manager Workload") == text("""
        NAME            QUEUE   RESERVED IN     ADMITTED   FINISHED
        job-job-9d671   lq      cluster-queue   True
    """)
    admitted = workload_of(fleet)
    assert admitted is not None
    (check,) = admitted["status"]["admissionChecks"]
    assert (check["state"], check["message"]) == ("Ready", 'The workload was admitted on "east"')
    assert admitted["status"]["clusterName"] == "east"
    assert "nominatedClusterNames" not in admitted["status"]
    shown = fleet.get("Job", "job", namespace="ns")
    assert shown is not None
    assert shown["status"]["active"] == 3

    # 8. The pods have ended: the last status comes to the manager, and its Workload has finished.
    fleet.wait(60)
    assert kubectl(fleet, "manager Job") == text("""
        NAME   STATUS     COMPLETIONS
        job    Complete   3/3
    """)
    assert kubectl(fleet, "manager Workload") == text("""
        NAME            QUEUE   RESERVED IN     ADMITTED   FINISHED
        job-job-9d671   lq      cluster-queue   True       True
    """)

    # 9. Nothing is left on the workers.
    for worker in ("west", "east"):
        assert kubectl(fleet, f"{worker} Workload") == "No resources found"
        assert kubectl(fleet, f"{worker} Job") == "No resources found"
    assert fleet.problems == []
