"""What is set aside and what is refused before a fit."""

from __future__ import annotations

import numpy as np
import pytest

import irt
from irt.data import DataError, Responses
from irt.prepare import prepare


def _blocks():
    """Four models on three items, five on two others, nothing in common."""
    k = np.full((9, 5), np.nan)
    k[:4, :3] = [[1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 1, 0]]
    k[4:, 3:] = [[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]]
    return Responses.from_matrix(k)


def test_blocks_without_a_link_are_refused_and_named():
    with pytest.raises(DataError, match="2 blocks") as caught:
        prepare(_blocks())
    text = str(caught.value)
    assert "m0000, m0001, m0002, ... (4) with 3 items" in text
    assert "m0004, m0005, m0006, ... (5) with 2 items" in text
    assert "largest_block=True" in text


def test_the_largest_block_can_be_fitted_and_the_rest_is_stated():
    fit = irt.fit(_blocks(), method="joint", largest_block=True)
    assert fit.models.model == tuple(f"m{j:04d}" for j in range(4))  # 12 cells against 10
    assert [name for name, _ in fit.verdict.excluded.models] == [f"m{j:04d}" for j in range(4, 9)]
    assert fit.verdict.excluded.items == (
        ("i0003", "not connected with the largest block"),
        ("i0004", "not connected with the largest block"),
    )
    assert "5 models left out" in str(fit.verdict)


def test_one_shared_item_is_a_link():
    data = _blocks()
    data.n[0] = 1  # everyone gets the first item
    assert prepare(data)[0] is data


def test_a_long_chain_is_one_block():
    """Each model shares one item with the next: more rounds than the quick test takes."""
    n = np.eye(40) + np.eye(40, k=1)
    k = n * (np.arange(40) % 2)
    data = Responses(tuple(map(str, range(40))), tuple(map(str, range(40))), k, n)
    assert prepare(data)[0] is data
    n[20, 21] = n[20, 20] = 0  # item 20 linked models 20 and 21
    k[20, 20:22] = 0
    with pytest.raises(DataError, match="2 blocks"):
        prepare(data)


def test_empty_models_and_items_are_listed_and_change_nothing(simulate, rows_of):
    data = simulate(1, 8, 20, missing=0.3).responses
    rows = rows_of(data)
    more = [*rows, {"model": "empty", "item": data.items[0], "k": 0, "n": 0},
            {"model": data.models[0], "item": "nobody", "k": 0, "n": 0}]  # fmt: skip
    one, two = irt.fit(rows, method="joint"), irt.fit(more, method="joint")
    assert two.verdict.excluded.models == (("empty", "no answers"),)
    assert two.verdict.excluded.items == (("nobody", "no answers"),)
    assert two.data_hash == one.data_hash
    assert two.models.theta.tobytes() == one.models.theta.tobytes()
    assert two.items.se_b.tobytes() == one.items.se_b.tobytes()


@pytest.mark.parametrize("n_models", [1, 3])
def test_fewer_than_four_models_have_no_scale_of_their_own(simulate, n_models):
    with pytest.raises(DataError, match=f"{n_models} models are too few.*score_model"):
        irt.fit(simulate(1, n_models, 20).responses)


def test_no_variation_and_no_answers():
    ones = np.ones((5, 6))
    names = (tuple("abcdef"), tuple("vwxyz"))
    with pytest.raises(DataError, match="every answer is right"):
        irt.fit(Responses(*names, ones, ones))
    with pytest.raises(DataError, match="every answer is wrong"):
        irt.fit(Responses(*names, 0 * ones, ones))
    with pytest.raises(DataError, match="no answer at all"):
        irt.fit(Responses(*names, 0 * ones, 0 * ones))
