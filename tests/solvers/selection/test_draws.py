"""SplitTester on random candidates with planted behaviours, against what the pool allows."""

from random import Random

import numpy as np
from scipy import stats

N, INPUTS, BASE, DRAWS = 10, 16, 6, 200


def _pool(kit, draw):
    """Candidates near the truth, some of them right; about one pool in four has no right one."""
    rng = Random(f"split/{draw}")
    truth = [rng.randrange(2) for _ in range(INPUTS)]
    wrong = [rng.sample(range(INPUTS), rng.choice((1, 1, 2, 5))) for _ in range(N)]
    for k in rng.sample(range(N), rng.choice((0, 1, 2, 3))):
        wrong[k] = []
    behaviours = [[bit ^ (t in bad) for t, bit in enumerate(truth)] for bad in wrong]
    return kit.FakeBench(behaviours, truth)


def _model(kit, bench):
    """Make inputs that separate whatever can be separated, and judge right."""

    def same(k, other):
        return all(bench.behaviours[k][t] == bench.behaviours[other][t] for t in bench.used)

    def layout(text):
        first = kit.shown_in(text)[0]
        cluster = [k for k in range(N) if same(k, first)]
        free = [t for t in range(INPUTS) if len({bench.behaviours[k][t] for k in cluster}) > 1]
        number = free[0] if free else 0
        return f"# EXPECTED: {'VIOLATION' if bench.truth[number] else 'PASS'}\nlayout {number}"

    def model(text):
        if "make 8" in text:
            return "suite " + " ".join(map(str, range(BASE)))
        if "make 1" in text:
            return layout(text)
        places = [p for p, k in enumerate(kit.shown_in(text)) if bench.behaviours[k] == bench.truth]
        return str(places[0]) if places else "0"

    return model


def test_split_tester_beats_random_and_reaches_the_oracle(kit):
    chosen, random, oracle = [], [], []
    for draw in range(DRAWS):
        bench = _pool(kit, draw)
        right = [candidate == bench.truth for candidate in bench.behaviours]
        found = kit.choose("split_tester", bench, _model(kit, bench), key=f"draw {draw}")
        chosen.append(float(right[found.choice.index]))
        random.append(sum(right) / N)
        oracle.append(float(any(right)))
    assert chosen == oracle
    assert 0.5 < np.mean(oracle) < 1  # both kinds of pool are there
    interval = stats.ttest_rel(chosen, random).confidence_interval(0.95)
    assert interval.low > 0


def test_a_judge_that_says_nothing_readable_is_worse_than_the_oracle(kit):
    """The planted fault: without the judge and without splitting, right ones are missed."""
    chosen, oracle, unreadable = [], [], 0
    for draw in range(50):
        bench = _pool(kit, draw)
        right = [candidate == bench.truth for candidate in bench.behaviours]
        found = kit.choose(
            "split_tester", bench, lambda text: "suite 0 1" if "make 8" in text else "prose"
        )
        unreadable += found.facts["selector_unreadable"]
        chosen.append(right[found.choice.index])
        oracle.append(any(right))
    assert sum(chosen) < sum(oracle)
    assert unreadable == 50
