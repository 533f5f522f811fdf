"""What a manager does about a Workload and its copies (rules/06 §4)."""

from tests.unit.multikueue.stage import MINUTE, SECOND, Stage


def test_every_connected_worker_gets_a_copy_once_there_is_quota() -> None:
    stage = Stage("west", "east")
    stage.job()
    stage.settle()
    assert stage.nominated() == ["east", "west"]
    assert stage.copies() == ["west", "east"]
    copy = stage.get("Workload", "job", cluster="west")
    assert copy is not None
    assert copy["metadata"]["labels"] == {"kueue.x-k8s.io/multikueue-origin": "multikueue"}


def test_the_first_worker_that_admits_wins_and_the_others_lose_their_copies() -> None:
    stage = Stage("west", "east")
    stage.job()
    stage.settle()
    stage.condition("east", "job", "QuotaReserved")
    stage.condition("east", "job", "Admitted")
    stage.settle()
    assert stage.copies() == ["east"]
    assert stage.copies(kind="Job") == ["east"]
    assert stage.check_of() == ("Ready", 'The workload was admitted on "east"')
    assert (stage.winner(), stage.nominated()) == ("east", [])


def test_a_worker_that_is_lost_is_waited_for_before_its_workloads_are_dispatched_anew() -> None:
    stage = Stage("west", "east")
    stage.job()
    stage.settle()
    stage.condition("west", "job", "Admitted")
    stage.settle()
    stage.cut("west")
    stage.wait(14 * MINUTE)
    assert stage.check_of()[0] == "Ready"
    stage.wait(MINUTE + SECOND)
    assert stage.check_of() == ("Retry", 'Admitting remote lost, Previously: "Ready"')
