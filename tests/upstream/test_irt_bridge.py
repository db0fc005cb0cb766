"""The joint fit of BRIDGE's matrix, against what its authors published; skipped where it is not at hand."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

import irt
from irt.data import Responses

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "irt" / "bridge"


def _column(name, key, value):
    with (DATA / name).open(encoding="utf-8", newline="") as stream:
        return {row[key]: row[value] for row in csv.DictReader(stream)}


@pytest.fixture(scope="module")
def responses():
    if not (DATA / "all_a_pyirt.jsonl").is_file():
        pytest.skip("needs ../shared/upstream/irt/bridge")
    return irt.read(DATA / "all_a_pyirt.jsonl")


@pytest.fixture(scope="module")
def fit(responses):
    return irt.fit(responses)


def test_the_matrix_is_the_one_described(responses):
    assert (len(responses.models), len(responses.items)) == (176, 1019)
    assert responses.n_cells == 86_441
    assert responses.k.sum() == 43_026


def test_it_converges_to_a_stationary_point(fit):
    assert fit.method == "joint"
    assert fit.verdict.converged
    assert fit.verdict.cholesky_ok
    assert fit.verdict.iterations <= 35
    assert fit.verdict.max_grad <= 1e-10


def test_difficulties_and_abilities_agree_with_the_published_ones(fit):
    b = _column("published_item_params.csv", "", "b")
    theta = _column("published_abilities.csv", "subject_id", "ability")
    assert spearmanr(fit.items.b, [float(b[key]) for key in fit.items.item])[0] >= 0.98
    assert spearmanr(fit.models.theta, [float(theta[name]) for name in fit.models.model])[0] >= 0.99


def test_hyperparameters_and_loss_as_specified(fit):
    """Figures of an earlier implementation of the same method, apart from this one."""
    assert fit.hyper.mu_a == pytest.approx(0.70, abs=0.01)
    assert fit.hyper.sigma_a == pytest.approx(0.46, abs=0.01)
    assert fit.hyper.sigma_d == pytest.approx(2.98, abs=0.02)
    assert fit.log_loss == pytest.approx(0.2895, abs=2e-4)


def test_items_that_only_the_prior_places(fit):
    """165 items that all got right or wrong, by benchmark."""
    source = _column("items.csv", "item_id", "source")
    counts: dict[str, int] = {}
    for key in fit.verdict.prior_only:
        counts[source[key]] = counts.get(source[key], 0) + 1
    assert counts == {"mlebench": 67, "metr": 62, "swebench": 32, "gdpval": 4}


def test_suspect_keys_are_few(fit):
    """R mirt finds 20 negative slopes among the 854 items that vary."""
    assert 10 <= len(fit.verdict.suspect_key) <= 30


def test_human_minutes_follow_difficulty(fit):
    """Ordinary least squares of log minutes on b, METR's items: R² .83 (published parameters: .81)."""
    source = _column("items.csv", "item_id", "source")
    minutes = _column("items.csv", "item_id", "human_minutes")
    metr = np.array([source[key] == "metr" for key in fit.items.item])
    y = np.log(
        [float(minutes[key]) for key, is_metr in zip(fit.items.item, metr, strict=True) if is_metr]
    )
    r = np.corrcoef(fit.items.b[metr], y)[0, 1]
    assert metr.sum() == 170
    assert r**2 >= 0.80


def test_held_out_cells_are_predicted(responses):
    """A tenth of the cells left out: log-loss and area under the curve."""
    asked = responses.n > 0
    out = asked & (np.random.default_rng(20260601).random(asked.shape) < 0.1)
    train = Responses(
        responses.models,
        responses.items,
        np.where(out, 0, responses.k),
        np.where(out, 0, responses.n),
    )
    fit = irt.fit(train)
    # an item may have lost its only answers
    rows = np.array([responses.items.index(key) for key in fit.items.item])
    p, k, held = fit.probabilities(), responses.k[rows], out[rows]
    assert fit.models.model == responses.models
    p, k = p[held], k[held]
    assert len(p) > 8000
    assert -np.mean(k * np.log(p) + (1 - k) * np.log(1 - p)) <= 0.315
    ranks = rankdata(p)
    ones = k.sum()
    auc = (ranks[k == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(k) - ones))
    assert auc >= 0.935


def test_a_warm_refit_after_a_new_model_is_half_a_cold_one(responses, fit):
    everything = np.ones(1019, dtype=bool)
    before = irt.fit(responses.subset(everything, np.arange(176) != 30))
    warm = irt.fit(responses, warm=before)
    assert warm.verdict.converged
    assert warm.verdict.iterations <= fit.verdict.iterations / 2
    assert np.abs(warm.models.theta - fit.models.theta).max() < 5e-3


def test_every_calibration_model_scored_anew_has_its_ability(responses, fit):
    assert np.abs(fit.score_model(responses).theta - fit.models.theta).max() < 1e-7


def test_shuffled_rows_give_the_same_bits(responses, fit):
    cells = np.argwhere(responses.n > 0)
    np.random.default_rng(3).shuffle(cells)
    table = {
        "model": [responses.models[j] for _, j in cells],
        "item": [responses.items[i] for i, _ in cells],
        "k": responses.k[tuple(cells.T)],
    }
    again = irt.fit(table)
    assert again.data_hash == fit.data_hash
    assert again.models.theta.tobytes() == fit.models.theta.tobytes()
    assert again.models.se.tobytes() == fit.models.se.tobytes()
    assert again.items.b.tobytes() == fit.items.b.tobytes()
    assert again.items.se_b.tobytes() == fit.items.se_b.tobytes()
