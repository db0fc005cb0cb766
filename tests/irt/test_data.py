"""Reading answers: what is taken, what is refused, and that the order of rows does not matter."""

from __future__ import annotations

import numpy as np
import pytest

from irt.data import DataError, Responses

TABLE = {
    "model": ["y", "x", "x", "y"],
    "item": ["1", "2", "1", "2"],
    "k": [1, 0, 2, 3],
    "n": [1, 1, 2, 4],
}


def _same(one, two):
    assert (one.models, one.items, one.data_hash) == (two.models, two.items, two.data_hash)
    assert one.k.tobytes() == two.k.tobytes()
    assert one.n.tobytes() == two.n.tobytes()


def test_a_long_table_becomes_items_by_models_sorted():
    data = Responses.from_table(TABLE)
    assert (data.models, data.items) == (("x", "y"), ("1", "2"))
    assert data.k.tolist() == [[2, 1], [0, 3]]
    assert data.n.tolist() == [[2, 1], [1, 4]]
    assert data.n_cells == 4


def test_every_form_of_a_table_gives_the_same():
    import pandas as pd  # comes with statsmodels
    import pyarrow as pa

    data = Responses.from_table(TABLE)
    rows = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    structured = np.array(
        [tuple(row.values()) for row in rows],
        dtype=[("model", "U1"), ("item", "U1"), ("k", "i4"), ("n", "i4")],
    )
    for form in (
        rows, rows[::-1], pa.table(TABLE), pd.DataFrame(TABLE), structured, iter(rows),
    ):  # fmt: skip
        _same(Responses.from_table(form), data)
    # models are rows of a matrix
    matrix = Responses.from_matrix(
        [[3, 1], [0, 2]], [[4, 1], [1, 2]], models=["y", "x"], items=["2", "1"]
    )
    _same(matrix, data)


def test_what_is_no_table_is_refused():
    with pytest.raises(DataError, match="a table is a mapping of columns"):
        Responses.from_table([[1, 2, 3]])


def test_n_is_one_where_it_is_not_given():
    data = Responses.from_table(
        [{"model": "x", "item": 1, "k": 1}, {"model": "y", "item": 1, "k": 0}]
    )
    assert data.n.tolist() == [[1, 1]]
    mixed = Responses.from_table(
        [{"model": "x", "item": 1, "k": 1}, {"model": "y", "item": 1, "k": 2, "n": 3}]
    )
    assert mixed.n.tolist() == [[1, 3]]


def test_keys_may_be_tuples_and_lists_are_taken_for_them():
    one = Responses.from_table(
        {"model": ["x", "x"], "item": [("t", 1, "b"), ("t", 1, "a")], "k": [0, 1]}
    )
    two = Responses.from_table(
        {"model": ["x", "x"], "item": [["t", 1, "a"], ["t", 1, "b"]], "k": [1, 0]}
    )
    assert one.items == (("t", 1, "a"), ("t", 1, "b"))
    _same(one, two)


def test_lists_in_lists_are_keys_too():
    nested = Responses.from_table({"model": ["x"], "item": [["t", ["a", 1]]], "k": [1]})
    assert nested.items == (("t", ("a", 1)),)


@pytest.mark.parametrize("grid", [[[10**400]], [[1], [1, 2]], [["x"]], [[{}]]])
def test_what_is_no_matrix_of_numbers_is_refused(grid):
    with pytest.raises(DataError, match="the matrix k holds something that is not a number"):
        Responses.from_matrix(grid)


def test_nan_in_a_matrix_is_a_cell_that_was_not_tried():
    data = Responses.from_matrix([[1, np.nan], [0, 1]])
    assert data.n.tolist() == [[1, 1], [0, 1]]
    assert (data.models, data.items) == (("m0000", "m0001"), ("i0000", "i0001"))


def test_pyirt_records():
    records = [
        {"subject_id": "b", "responses": {"q": 1}},
        {"subject_id": "a", "responses": {"p": 0, "q": 0}},
    ]
    data = Responses.from_pyirt(records)
    assert (data.models, data.items) == (("a", "b"), ("p", "q"))
    assert (data.k.tolist(), data.n.tolist()) == ([[0, 0], [0, 1]], [[1, 0], [1, 1]])


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("k", [1, 0, 3, 3], r"k is more than n: row 3 \(model 'x', item '1'\): k = 3, n = 2"),
        ("n", [1, 1, 2, 0], "k is more than n: row 4"),
        ("k", [1, -1, 2, 3], "negative count: row 2"),
        ("n", [1, -1, 2, 4], "negative count: row 2"),
        ("k", [1, np.nan, 2, 3], "not a finite number.*row 2"),
        ("k", [1, None, 2, 3], "not a finite number.*row 2"),
        ("n", [1, np.inf, 2, 4], "not a finite number.*row 2"),
        ("k", [0.5, 0, 2, 3], r"not a whole number \(declare scores='fractional'\): row 1"),
        ("k", ["one", 0, 2, 3], "column k holds something that is not a number"),
        ("item", ["1", "1", "1", "2"], "a cell is given twice: row 3"),
        ("model", ["y", None, "x", "y"], "the model has no name in row 2"),
        ("item", ["1", "2", "", "2"], "the item has no name in row 3"),
        ("k", [1, 0, 2], "not of one length"),
        ("k", [1, 0, 10**400, 3], "column k holds .* too large for one, in row 3"),
        ("n", [1, 10**5000, 2, 4], "column n holds .* in row 2"),
        ("k", [1, 0, [1], 3], "column k holds .* in row 3"),
        ("item", ["1", {"a": 1}, "1", "2"], "the item in row 2 is no name: a dict"),
        ("model", ["y", "x", {1}, "y"], "the model in row 3 is no name: a set"),
        ("item", ["1", "2", (1, {}), "2"], "the item in row 3 is no name: a tuple"),
    ],
)
def test_faults_are_refused_and_named(column, values, message):
    with pytest.raises(DataError, match=message):
        Responses.from_table(TABLE | {column: values})


def test_more_than_five_faults_are_counted():
    table = {"model": list("abcdefg"), "item": ["i"] * 7, "k": [2] * 7}
    with pytest.raises(DataError, match="and 2 more"):
        Responses.from_table(table)


def test_cells_given_twice_are_named_in_the_order_of_rows():
    table = {"model": list("babab"), "item": ["i"] * 5, "k": [0, 1, 1, 0, 1]}
    with pytest.raises(DataError, match=r"given twice: row 3 .* row 4 .* row 5"):
        Responses.from_table(table)


def test_a_matrix_is_refused_by_cell():
    with pytest.raises(DataError, match=r"k is more than n: cell \(model 'x', item 'p'\)"):
        Responses.from_matrix([[0, 0], [1, 2]], models=["y", "x"], items=["q", "p"])
    with pytest.raises(DataError, match="model 'x' is given twice"):
        Responses.from_matrix([[0], [1]], models=["x", "x"])
    with pytest.raises(DataError, match="3 rows or columns, but 2 item names"):
        Responses.from_matrix([[0, 1, 1]], items=["p", "q"])
    with pytest.raises(DataError, match="two dimensions"):
        Responses.from_matrix([0, 1])


def test_missing_columns_are_named():
    with pytest.raises(DataError, match="no column item, k; it has model, score"):
        Responses.from_table({"model": ["x"], "score": [1]})


def test_fractions_are_taken_when_declared():
    data = Responses.from_table(TABLE | {"k": [0.25, 0, 2, 3]}, scores="fractional")
    assert data.fractional
    assert data.k[0, 1] == 0.25
    with pytest.raises(DataError, match="k is more than n"):
        Responses.from_table(TABLE | {"k": [1.25, 0, 2, 3]}, scores="fractional")
    with pytest.raises(DataError, match="scores is"):
        Responses.from_table(TABLE, scores="partial")


def test_the_hash_names_cells_and_names():
    data = Responses.from_table(TABLE)
    assert data.data_hash != Responses.from_table(TABLE | {"k": [0, 0, 2, 3]}).data_hash
    assert data.data_hash != Responses.from_table(TABLE | {"model": ["z", "x", "x", "z"]}).data_hash


def test_answers_are_laid_out_on_a_banks_items():
    data = Responses.from_table(TABLE)
    k, n = data.on_items(("0", "2", "1"))
    assert (k.tolist(), n.tolist()) == ([[0, 0], [0, 3], [2, 1]], [[0, 0], [1, 4], [2, 1]])
    with pytest.raises(DataError, match="1 items are not in the bank: '2'"):
        data.on_items(("1",))
