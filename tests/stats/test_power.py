"""Detectable differences against statsmodels' power solvers."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stats.power import mde_from_se, mde_paired, mde_unpaired

steady = settings(deadline=None, derandomize=True)


def test_vectors():
    assert mde_paired(500, 1) == pytest.approx(0.125532, abs=5e-7)
    assert mde_paired(60, 1) == pytest.approx(0.367704, abs=5e-7)
    assert mde_unpaired(500, 1) == pytest.approx(0.177188, abs=5e-7)


@steady
@given(
    st.integers(4, 5000), st.floats(0.01, 10), st.sampled_from([0.01, 0.05, 0.1]),
    st.sampled_from([0.5, 0.8, 0.9]),
)  # fmt: skip
def test_the_power_there_is_the_one_asked_for(n, sd, alpha, power):
    from statsmodels.stats.power import NormalIndPower, TTestPower

    paired, unpaired = mde_paired(n, sd, alpha, power), mde_unpaired(n, sd, alpha, power)
    theirs = TTestPower().power(paired / sd, n, alpha)
    assert theirs == pytest.approx(power, abs=1e-10)
    theirs = NormalIndPower().power(unpaired / sd, n, alpha, ratio=1)
    assert theirs == pytest.approx(power, abs=1e-10)


@pytest.mark.parametrize("n", [5, 12, 60, 500, 3000])
def test_agrees_with_statsmodels(n):
    from statsmodels.stats.power import NormalIndPower, TTestPower

    # Its search stops at some 1e-7; the power at our root is checked to 1e-10 above.
    theirs = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8)
    assert mde_paired(n, 0.4) == pytest.approx(0.4 * theirs, abs=1e-6)
    theirs = NormalIndPower().solve_power(nobs1=n, alpha=0.05, power=0.8)
    assert mde_unpaired(n, 0.4) == pytest.approx(0.4 * theirs, abs=1e-6)


def test_a_difference_of_that_size_is_found_in_four_of_five_tries():
    from scipy import stats

    rng = np.random.default_rng(1)
    d = rng.normal(mde_paired(30, 1), 1, (20_000, 30))
    found = (stats.ttest_1samp(d, 0, axis=1).pvalue < 0.05).mean()
    assert found == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 20_000))


def test_too_few_items_find_nothing():
    assert mde_paired(0, 1) is mde_paired(1, 1) is mde_unpaired(0, 1) is mde_from_se(1, 0) is None
    assert mde_paired(2, 1) > mde_paired(3, 1) > mde_paired(4, 1) > 0
    assert mde_paired(10**6, 1) == pytest.approx((1.959964 + 0.841621) / 1000, rel=1e-4)


@pytest.mark.parametrize(
    ("n", "sd", "alpha", "power", "message"),
    [
        (10, 0, 0.05, 0.8, "spread"),
        (10, float("nan"), 0.05, 0.8, "spread"),
        (10, 1, 0.05, 0.04, "alpha"),
        (10, 1, 0, 0.8, "alpha"),
        (10, 1, 0.05, 1, "alpha"),
        (-1, 1, 0.05, 0.8, "none"),
    ],
)
def test_impossible_questions_are_refused(n, sd, alpha, power, message):
    for question in (mde_paired, mde_unpaired):
        with pytest.raises(ValueError, match=message):
            question(n, sd, alpha, power)


def test_no_statistics_package_is_started():
    code = (
        "import sys; from harness.stats.pairs import compare_items;"
        "compare_items([.1, .4, .3] * 30, [.2, .1, .9] * 30);"
        "print([m for m in ('statsmodels', 'scipy.stats', 'pandas') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"
