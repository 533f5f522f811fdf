"""Enough happens in the worlds that the other tests look at."""

from hypothesis import Phase, given, seed, settings

from kueuecore.testing import History, Play, histories
from kueuecore.trials.shares import Shares, Witness


def test_random_histories_are_not_trivial() -> None:
    shares = Shares()

    # Hypothesis draws constants that it finds in our code, so one seed gives other worlds after every change.
    @seed(1)
    @settings(max_examples=600, phases=[Phase.generate], derandomize=False)
    @given(histories())
    def play(history: History) -> None:
        witness = Witness(history)
        for _ in Play.of(history, watchers=[witness]).run(history.moves):
            pass
        shares.add(witness.seen)

    play()
    assert shares.of("preemption") >= 0.3, shares
    assert shares.of("borrowing") >= 0.3, shares
    assert shares.of("partial admission") >= 0.1, shares
    assert shares.of("fair sharing") >= 0.3, shares
