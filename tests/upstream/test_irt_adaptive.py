"""Adaptive tests replayed on BRIDGE's models, the bank fitted without them; skipped where it is not at hand.

The table that is compared with was measured apart from this code, on one draw of 25 models that is not
known; θ's mean error at 25 items has an SD of .02 over draws, so that ours may differ by twice that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irt

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "irt" / "bridge"
POINTS = (5, 10, 25, 50)
# |θ error| adaptive, |score error| adaptive, and how far from them ours may be
TABLE = {
    5: (0.406, 0.062, 0.12, 0.02), 10: (0.284, 0.041, 0.09, 0.015),
    25: (0.136, 0.024, 0.05, 0.01), 50: (0.107, 0.018, 0.04, 0.01),
}  # fmt: skip


@pytest.fixture(scope="module")
def draws():
    """Three draws of 25 models with at least 480 answers: a bank without them, their answers."""
    if not (DATA / "all_a_pyirt.jsonl").is_file():
        pytest.skip("needs ../shared/upstream/irt/bridge")
    responses = irt.read(DATA / "all_a_pyirt.jsonl")
    able = np.flatnonzero((responses.n > 0).sum(axis=0) >= 480)
    found = []
    for seed in range(3):
        out = np.zeros(len(responses.models), dtype=bool)
        out[np.random.default_rng(seed).choice(able, 25, replace=False)] = True
        fit = irt.fit(responses.subset(np.ones(len(responses.items), dtype=bool), ~out))
        bank = irt.Bank.of(fit)
        answered = np.array([key in bank.place for key in responses.items])
        found.append((bank, responses.subset(answered, out)))
    return found


def _errors(trials):
    """Mean |θ error|, mean |score error|, mean SE."""
    return np.mean(
        [
            (
                abs(t.result.theta - t.theta_all), abs(t.result.score - t.score_all), t.result.se
            )
            for t in trials
        ], axis=0,
    )  # fmt: skip


def _random(bank, held, size, repeats=8):
    """Items drawn blindly: |θ error| and |score error| by the same estimate, |error| of the mean."""
    rng = np.random.default_rng(17)
    k, n = held.on_items(bank.item)
    whole = irt.simulate(bank, held, irt.CatRules(max_items=1))
    errors = []
    for column, model in enumerate(whole):
        keep = n[:, column] > 0
        part, right = bank.subset(keep), k[keep, column]
        for _ in range(repeats):
            session = irt.cat(part)
            for row in rng.choice(len(part), size, replace=False):
                session.record(part.item[row], right[row])
            r = session.result()
            errors.append(
                (r.theta - model.theta_all, r.score - model.score_all, r.observed - model.score_all)
            )
    return np.abs(errors).mean(axis=0)


def test_one_at_a_time_gives_the_table(draws):
    """First draw, always the best item: near the table, and better than random at every length."""
    bank, held = draws[0]
    for size in POINTS:
        rules = irt.CatRules(batch=1, aim="theta", max_items=size)
        theta, score, se = _errors(irt.simulate(bank, held, rules))
        blind_theta, blind_score, blind_mean = _random(bank, held, size)
        print(
            f"{size:2} items: θ {theta:.3f} / {blind_theta:.3f}, "
            f"score {score:.4f} / {blind_score:.4f} / {blind_mean:.4f}, SE {se:.3f}"
        )
        of_theta, of_score, near_theta, near_score = TABLE[size]
        assert theta == pytest.approx(of_theta, abs=near_theta)
        assert score == pytest.approx(of_score, abs=near_score)
        assert theta < blind_theta
        assert score < blind_score < blind_mean
        if size == 25:
            assert theta <= 0.15
            assert score <= 0.025


def test_batches_cost_little(draws):
    """All draws, the default rules (1, 1, 2, 4, 8, ... at once, for the score)."""
    for size in POINTS:
        found = [
            _errors(irt.simulate(bank, held, irt.CatRules(max_items=size))) for bank, held in draws
        ]
        theta, score, se = np.mean(found, axis=0)
        blind = np.mean([_random(bank, held, size, repeats=3) for bank, held in draws], axis=0)
        print(f"{size:2} items in batches: θ {theta:.3f}, score {score:.4f}, SE {se:.3f}; {blind}")
        assert theta < blind[0]
        assert score < blind[1] < blind[2]
        if size == 25:
            assert theta <= 0.18
            assert score <= 0.030


def test_the_scores_error_is_measured_by_a_replay_and_carried_over(draws):
    """Real answers hang together beyond ability: intervals cover too little until they are widened.

    The factor comes from the first two draws, the coverage from the third.
    """
    rules = irt.CatRules(max_items=50)
    z = [t.score_z for bank, held in draws[:2] for t in irt.simulate(bank, held, rules)]
    widen = float(np.sqrt(np.mean(np.square(z))))

    def cover(rules):
        trials = irt.simulate(*draws[2], rules)
        return np.mean([t.result.score_lo <= t.score_all <= t.result.score_hi for t in trials])

    plain, widened = cover(rules), cover(irt.CatRules(max_items=50, widen=widen))
    print(f"widen {widen:.2f}: cover {plain:.2f} → {widened:.2f}")
    assert 1.1 < widen < 2
    assert plain < widened
    assert widened >= 0.88
