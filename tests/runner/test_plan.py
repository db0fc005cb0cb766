"""A backend that could never answer an item says so in the plan."""

import pytest

from harness.core import registry
from harness.core.errors import UsageError


class Picky:
    """Refuses to compare one item's options."""

    def __init__(self, house, backend, item) -> None:
        self._backend = backend
        self._item = item
        self.seen = []
        house.pickies.append(self)

    def __getattr__(self, name):
        return getattr(self._backend, name)

    def check(self, requests):
        self.seen = list(requests)
        if found := [r for r in self.seen if r.item_id == self._item]:
            raise UsageError(f"{found[0].continuations[-1]!r} of {self._item}: use generate")


@pytest.fixture
def picky(house):
    house.pickies = []
    house.refused = None
    house.continuations = lambda sample: (" 1", f" {sample.target[0]}")
    registry.backend("count")(
        lambda spec, options: Picky(house, house.backend(spec, options), house.refused)
    )
    return house


def test_what_cannot_be_compared_is_refused_before_a_run_exists(picky):
    picky.refused = "i007"
    with pytest.raises(UsageError, match="' 7007' of i007: use generate"):
        picky.run(solver="choose")
    assert (picky.calls, list(picky.store.run_ids())) == ([], [])


def test_it_sees_what_will_be_asked(picky):
    plan = picky.plan(solver="choose", limit=5)
    wanted = [plan.item(planned) for planned in plan.attempts]
    (asked,) = picky.pickies
    assert [(r.item_id, r.messages, r.continuations) for r in asked.seen] == [
        (item.sample.item_id, item.messages, item.continuations) for item in wanted
    ]


def test_answers_in_words_are_not_looked_at(picky):
    picky.refused = "i007"
    assert picky.run().status == "done"
    assert picky.pickies[0].seen == []
