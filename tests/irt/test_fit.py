"""The record of a fit: verdict, flags, methods, planted faults."""

from __future__ import annotations

import numpy as np
import pytest

import irt
from irt.data import DataError, Responses
from irt.joint import cold_start
from irt.methods import METHODS


@pytest.fixture(scope="module")
def data(simulate):
    return simulate(31, 40, 120)


@pytest.fixture(scope="module")
def fit(data):
    return irt.fit(data.responses, method="joint")


def test_tables_name_their_columns(fit, data):
    (first, *_), (item, *_) = fit.models.to_dicts(), fit.items.to_dicts()
    assert first.keys() == {"model", "theta", "se", "n_items"}
    assert (first["model"], first["n_items"]) == ("m0000", 120)
    assert item.keys() == {
        "item", "a", "b", "d", "se_log_a", "se_b", "se_d", "n_models", "slope_z", "flags",
    }  # fmt: skip
    assert item["b"] == pytest.approx(-item["d"] / item["a"], rel=1e-14)
    assert (len(fit.models), len(fit.items)) == (40, 120)
    assert fit.data_hash == data.responses.data_hash
    assert "mean(theta) = 0" in fit.gauge
    assert fit.parameterisation == "logit p = a (theta - b) = a theta + d"


def test_the_log_loss_is_that_of_its_probabilities(fit, data):
    p = fit.probabilities()
    loss = -np.mean(data.k * np.log(p) + (1 - data.k) * np.log(1 - p))
    assert fit.log_loss == pytest.approx(loss, rel=1e-12)


def test_the_verdict_speaks(fit):
    text = str(fit.verdict)
    assert text.startswith(f"converged after {fit.verdict.iterations} iterations")
    assert fit.verdict.max_grad < 1e-9


def test_items_all_right_or_all_wrong_are_kept_and_flagged(data):
    k = data.k.copy()
    k[3], k[7] = 0, 1
    fit = irt.fit(Responses(data.responses.models, data.responses.items, k, data.n), method="joint")
    assert fit.verdict.prior_only == ("i00003", "i00007")
    assert fit.items.flags[3] == ("prior_only",)
    assert fit.items.b[3] > np.percentile(fit.items.b, 95)
    assert fit.items.b[7] < np.percentile(fit.items.b, 5)
    assert np.isnan(fit.items.slope_z[[3, 7]]).all()


def test_a_flipped_key_is_found(data):
    """The planted fault: one discriminating item scored the wrong way round."""
    item = int(np.argmax(data.a * (np.abs(data.b) < 0.7)))
    k = data.k.copy()
    k[item] = 1 - k[item]
    fit = irt.fit(Responses(data.responses.models, data.responses.items, k, data.n), method="joint")
    key = data.responses.items[item]
    assert key in fit.verdict.suspect_key
    assert "suspect_key" in fit.items.flags[item]
    assert int(np.nanargmin(fit.items.slope_z)) == item
    assert "key is suspect" in str(fit.verdict)
    clean = irt.fit(data.responses, method="joint")
    assert key not in clean.verdict.suspect_key


def test_the_sign_of_slope_z_is_that_of_the_free_slope(data, fit):
    """Each item's slope by scipy, unconstrained, θ fixed."""
    from scipy.optimize import minimize
    from scipy.special import expit, log_expit

    theta = fit.models.theta
    for item in range(0, 120, 9):
        k = data.k[item]
        if k.sum() in (0, len(k)):
            continue

        def loss(x, k=k):
            z = x[0] * theta + x[1]
            value = -np.sum(k * log_expit(z) + (1 - k) * log_expit(-z))
            e = expit(z) - k
            return value, np.array([e @ theta, e.sum()])

        free = minimize(loss, [0.0, 0.0], jac=True, method="BFGS")
        assert np.sign(free.x[0]) == np.sign(fit.items.slope_z[item])


def test_auto_takes_mml_for_short_tests_of_many_models(simulate, data, monkeypatch):
    short = simulate(32, 80, 20).responses
    assert irt.fit(data.responses).method == "joint"
    assert irt.fit(short).method == "mml"
    assert "prefer method='mml'" in str(irt.fit(short, method="joint").verdict)
    assert "biased" not in str(irt.fit(data.responses, method="joint").verdict)
    monkeypatch.delitem(METHODS, "mml")
    fit = irt.fit(short)
    assert fit.method == "joint"
    assert "mml is not there" in str(fit.verdict)


def test_mml_orders_models_as_the_joint_fit_does(simulate):
    data = simulate(33, 60, 60)
    one, two = (irt.fit(data.responses, method=m) for m in ("joint", "mml"))
    assert abs(two.models.theta.mean()) < 1e-12
    assert abs(two.models.theta.std() - 1) < 1e-12
    assert np.corrcoef(one.models.theta, two.models.theta)[0, 1] > 0.995
    assert np.corrcoef(one.items.d, two.items.d)[0, 1] > 0.98
    with pytest.raises(ValueError, match="no joint draws"):
        two.draws(10)
    # posterior means are shrunk, so a model scored anew has its own mean again
    scored = two.score_model(data.responses)
    assert np.abs(scored.eap - two.models.theta).max() < 0.02


def test_a_method_that_is_not_there(data):
    with pytest.raises(ValueError, match="no method 'wishes'; there are auto, joint,"):
        irt.fit(data.responses, method="wishes")


def test_a_method_plugs_in_by_name(data, monkeypatch):
    monkeypatch.setitem(METHODS, "late", "irt.methods:joint")
    assert irt.fit(data.responses, method="late").method == "late"


def test_not_converged_is_said(data, monkeypatch):
    from irt import joint

    monkeypatch.setattr(joint, "CAP", 3)
    verdict = irt.fit(data.responses, method="joint").verdict
    assert not verdict.converged
    assert str(verdict).startswith("NOT CONVERGED after 3 iterations")


@pytest.fixture(scope="module")
def second(simulate):
    """A second population, one SD abler, on half of the items of a first one and on new items."""
    first, rng = simulate(34, 60, 200), np.random.default_rng(35)
    theta = 1 + 0.8 * rng.normal(size=150)
    a = np.concatenate([first.a[:100], np.exp(0.4 * rng.normal(size=60))])
    b = np.concatenate([first.b[:100], 1 + rng.normal(size=60)])
    p = 1 / (1 + np.exp(-a[:, None] * (theta - b[:, None])))
    items = (*first.responses.items[:100], *(f"n{i:03d}" for i in range(60)))
    models = tuple(f"p{j:03d}" for j in range(150))
    k = (rng.random(p.shape) < p).astype(float)
    return first, Responses(models, items, k, np.ones_like(k)), theta, b


def test_true_anchors_give_the_new_population_and_the_new_items(second):
    first, new, theta, b = second
    anchors = dict(
        zip(new.items[:100], zip(first.a[:100], first.b[:100], strict=True), strict=True)
    )
    fit = irt.fit(new, anchors=anchors)
    assert fit.verdict.converged
    assert fit.gauge == "the anchors' scale"
    assert np.allclose(fit.items.b[:100], first.b[:100], rtol=1e-12)
    assert not fit.items.se_b[:100].any()
    assert fit.items.flags[0][-1] == "anchor"
    mean, sd = fit.population
    assert mean == pytest.approx(theta.mean(), abs=0.05)
    assert sd == pytest.approx(theta.std(), abs=0.1)
    known = irt.fit(new.subset(np.arange(160) < 100, np.ones(150, dtype=bool)), anchors=anchors)
    assert known.population == pytest.approx((theta.mean(), theta.std()), abs=0.05)
    assert abs(np.mean(np.abs(fit.models.theta - theta) < 1.96 * fit.models.se) - 0.95) < 0.05
    assert np.corrcoef(fit.items.b[100:], b[100:])[0, 1] > 0.95
    assert (
        abs(np.mean(np.abs(fit.items.b[100:] - b[100:]) < 1.96 * fit.items.se_b[100:]) - 0.95)
        < 0.06
    )
    draws = fit.draws(500)
    assert np.allclose(draws.a[:, 0], first.a[0])
    assert (
        np.abs(draws.theta.mean(axis=0) - fit.models.theta).max()
        < 6 * fit.models.se.max() / 500**0.5
    )


def test_a_fit_is_a_set_of_anchors(second):
    """With the error of its 60 models: the level is known to about the SE of a mean difficulty."""
    first, new, theta, _ = second
    bank = irt.fit(first.responses, method="joint")
    fit = irt.fit(new, anchors=bank)
    assert np.array_equal(fit.items.b[:100], bank.items.b[:100])
    assert fit.population[0] == pytest.approx(theta.mean(), abs=0.25)
    assert np.corrcoef(fit.models.theta, theta)[0, 1] > 0.97


def test_anchors_without_answers_are_no_link(data):
    with pytest.raises(DataError, match="no link"):
        irt.fit(data.responses, anchors={"elsewhere": (1.0, 0.0)})
    with pytest.raises(DataError, match="positive a"):
        irt.fit(data.responses, anchors={"i00003": (-1.0, 0.0)})


def test_one_model_can_be_calibrated_on_anchors(data, fit):
    one = data.responses.subset(np.ones(120, dtype=bool), np.arange(40) == 5)
    placed = irt.fit(one, anchors=fit)
    assert placed.models.theta[0] == pytest.approx(fit.models.theta[5], abs=0.3)


def test_one_model_with_every_answer_wrong_is_no_fault_on_anchors(data, fit):
    one = data.responses.subset(np.ones(120, dtype=bool), np.arange(40) == 5)
    one.k[:] = 0
    placed = irt.fit(one, anchors=fit)
    assert placed.verdict.converged
    assert placed.models.theta[0] < fit.models.theta.min()


def test_a_cold_start_is_the_standardised_logit_of_the_rates():
    k, n = np.array([[1.0, 0, 2], [1, 1, 0]]), np.array([[1.0, 1, 2], [1, 1, 0]])
    start = cold_start(k, n)
    logits = np.log(np.array([2.5 / 0.5, 1.5 / 1.5, 2.5 / 0.5]))  # (k + ½)/(n − k + ½)
    assert np.allclose(start.theta, (logits - logits.mean()) / logits.std())
    assert np.allclose(start.d, np.log([3.5 / 1.5, 2.5 / 0.5]))


def test_a_broken_run_stands_out_by_its_person_fit(data):
    """A model that solves the hard items and misses the easy ones: l_z far below the others'."""
    k = data.responses.k.copy()
    worst = k.sum(axis=1).argsort()
    k[:, 5] = 0
    k[worst[:60], 5] = 1
    broken = irt.fit(Responses.from_matrix(k.T), method="joint")
    l_z = broken.person_fit().l_z
    assert l_z.argmin() == 5
    assert l_z[5] < -5 < np.sort(l_z)[1]


def test_an_item_that_is_noise_fits_worst(data):
    """Outfit: mean squared standardised residual, about 1 for items that follow the model."""
    k = data.responses.k.copy()
    k[7] = np.arange(40) % 2
    fitted = irt.fit(Responses.from_matrix(k.T), method="joint")
    outfit = fitted.item_fit().outfit
    assert outfit.shape == (120,)
    assert outfit[7] > np.median(outfit)
    assert abs(np.median(outfit) - 1) < 0.15


def test_an_item_that_one_group_finds_easy_is_found_by_dif(data):
    k = data.responses.k.copy()
    group = {name: "new" if j % 2 else "old" for j, name in enumerate(data.responses.models)}
    # All but two of each group: an item without variation in a group cannot be tested.
    k[11] = [float((group[name] == "new") != (j < 4)) for j, name in enumerate(group)]
    names = {"models": data.responses.models, "items": data.responses.items}
    found = irt.fit(Responses.from_matrix(k.T, **names), method="joint").dif(group)
    rows = {row["item"]: row for row in found.to_dicts()}
    flagged = [item for item, row in rows.items() if row["flags"]]
    assert data.responses.items[11] in flagged
    assert len(flagged) <= 3


@pytest.mark.parametrize("method", ["joint", "mml"])
def test_models_that_their_answers_do_not_tell_apart_have_no_scale(method):
    """All answers alike, and other answers of equal totals: what is left of theta is rounding."""
    item, model = np.mgrid[:6, :12]
    for k in (item % 2, (item + model) % 6 < 3):
        with pytest.raises(DataError, match="no variation between models"):
            irt.fit(Responses.from_matrix(k.T.astype(float)), method=method)


def test_without_an_anchor_there_is_no_anchored_scale(data):
    with pytest.raises(DataError, match="no anchors given"):
        irt.fit(data.responses, anchors={})


@pytest.mark.parametrize("link", ["joint", "cubic"])
def test_a_link_without_minutes_is_not_passed_over(data, link):
    with pytest.raises(DataError, match=f"link='{link}' is about human minutes"):
        irt.fit(data.responses, link=link)
