"""Both forms of upstream's data are read alike, and what does not fit together is refused by name."""

from __future__ import annotations

import base64
import json

import pytest

pytest.importorskip("yaml", reason="needs the extra drc")
pytest.importorskip("klayout.db", reason="needs the extra drc")

import klayout.db as db

from harness.core.errors import UsageError
from harness.core.task import TaskRequest, make_task
from tasks.rule2drc.loader import load, read_labels

SPEC = """\
id: p1
title: "width of M1"
nl_description: "M1 is at least 0.14 um wide."
layers: {m1: [8, 0]}
rules:
  - {text: "width", category: "M1.W.1"}
  - {text: "space", category: "M1.S.1"}
deck: gold/p1.drc
data_dir: data/p1
"""
LABELS = "filename,M1.S.1,M1.W.1\npass/a.gds,0,0\nfail/a.gds,0,1\n"
GOLD = "source($input)\n"


def drawn(width, dbu=0.001, tops=1):
    """Draw a box of a width, in so many top cells."""
    layout = db.Layout()
    layout.dbu = dbu
    cells = [layout.create_cell(f"TOP{k}") for k in range(tops)]
    cells[0].shapes(layout.layer(8, 0)).insert(db.Box(0, 0, width, 999)) if cells else None
    options = db.SaveLayoutOptions()
    options.format, options.gds2_write_timestamps = "GDS2", False
    return layout.write_bytes(options)


PASS, FAIL = drawn(140), drawn(139)


@pytest.fixture
def rows():
    """Write one task in the data set's form; what is given changes the rows."""

    def made(folder, labels=LABELS, spec=SPEC, cases=(), task=None):
        folder.mkdir(exist_ok=True)
        row = {
            "problem_id": "p1",
            "prompt": "",
            "spec_yaml": spec,
            "gold_drc": GOLD,
            "labels_csv": labels,
        }
        files = cases or [
            {"gds_path": "pass/a.gds", "gds": b64(PASS)},
            {
                "gds_path": "fail/a.gds",
                "gds_bytes": b64(FAIL),
                "labels_json": '{"M1.W.1": 1, "M1.S.1": 0}',
            },
        ]
        lines = [json.dumps(row | (task or {}))]
        (folder / "tasks.jsonl").write_text("\n".join(lines))
        (folder / "testcases.jsonl").write_text(
            "\n".join(json.dumps({"problem_id": "p1", **case}) for case in files)
        )
        return folder

    return made


@pytest.fixture
def repository(tmp_path):
    """Write the same task as upstream's repository has it."""
    root = tmp_path / "repository"
    for name, text in (
        ("problems/p1/spec.yaml", SPEC), ("gold/p1.drc", GOLD), ("data/p1/labels.csv", LABELS),
        ("data/p1/pass/a.gds", PASS), ("data/p1/fail/a.gds", FAIL),
    ):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def b64(data):
    return base64.b64encode(data).decode()


def problem_of(root):
    (problem,) = load(
        TaskRequest(data_root=root), {"benchmark": "own"}, {"benchmark": "theirs"}
    ).problems
    return problem


def test_both_forms_give_the_same_task(rows, repository, tmp_path):
    one, other = problem_of(rows(tmp_path / "set")), problem_of(repository)
    assert one.categories == other.categories == ("M1.W.1", "M1.S.1")
    # Files of one name in two folders are two layouts; labels stand in the order of the categories.
    expected = {"pass/a.gds": (PASS, (0, 0)), "fail/a.gds": (FAIL, (1, 0))}
    for problem in (one, other):
        assert {x.name: (x.gds, x.labels) for x in problem.layouts} == expected
    assert (one.layers, one.gold, one.text) == (other.layers, other.gold, other.text)


def test_a_data_set_is_read_by_its_two_configs(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the extra data")
    folder = tmp_path / "hub"
    tasks = {"problem_id": ["p1"], "prompt": [""], "spec_yaml": [SPEC], "gold_drc": [GOLD],
             "labels_csv": [LABELS], "metadata": ["{}"]}  # fmt: skip
    cases = {"problem_id": ["p1", "p1"], "gds_path": ["pass/a.gds", "fail/a.gds"], "label": ["pass", "fail"],
             "labels_json": ["", ""], "gds": [PASS, FAIL]}  # fmt: skip
    for config, columns in (("tasks", tasks), ("testcases", cases)):
        (folder / config).mkdir(parents=True)
        datasets.Dataset.from_dict(columns).to_parquet(str(folder / config / "test.parquet"))
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: tasks\n  data_files:\n  - {split: test, path: tasks/test.parquet}\n"
        "- config_name: testcases\n  data_files:\n  - {split: test, path: testcases/test.parquet}\n---\n"
    )
    task = make_task("rule2drc/script", TaskRequest(data=f"hub:{folder}"))
    assert [row["gds"] for row in task.samples[0].metadata["layouts"]] == [PASS, FAIL]
    assert task.info["license"] == "the data set's own"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"labels": LABELS.replace("fail/a.gds", "fail/b.gds")},
            "line 3 of the labels: 'fail/b.gds' is no layout",
        ),
        ({"labels": "filename,M1.S.1,M1.W.1\npass/a.gds,0,0\n"}, "layout 'fail/a.gds' has no row"),
        ({"labels": LABELS.replace(",M1.W.1", "")}, "columns of the labels"),
        ({"labels": LABELS.replace(",M1.W.1", ",M1.W.1,X")}, "columns of the labels"),
        ({"labels": LABELS.replace("0,1", "0,2")}, "line 3 of the labels does not hold 0 or 1"),
        ({"labels": LABELS + "pass/a.gds,0,0\n"}, "stands twice"),
        ({"labels": LABELS.replace("0,1", "1,1")}, "labels_json of 'fail/a.gds'"),
        ({"labels": ""}, "columns of the labels"),
        ({"spec": "title: x"}, "has no layers"),
        ({"spec": SPEC.replace("[8, 0]", "[8]")}, "must be \\[layer, datatype\\]"),
        ({"spec": SPEC.replace("nl_description", "other")}, "has no nl_description"),
        ({"spec": "a: ["}, "is no YAML"),
        ({"spec": "layers: {a: [1, 0]}\nnl_description: x\n"}, "names no category"),
        ({"cases": [{"gds_path": "pass/a.gds"}]}, "neither gds nor gds_bytes"),
        ({"task": {"problem_id": "p2"}}, "p2"),
    ],
)
def test_what_does_not_fit_together_is_refused(rows, tmp_path, change, why):
    with pytest.raises(UsageError, match=why):
        problem_of(rows(tmp_path / "set", **change))


@pytest.mark.parametrize(
    ("data", "dbu", "why"),
    [
        (b"no layout", None, "the layout fail/a.gds cannot be read"),
        (drawn(139, tops=2), None, "the layout fail/a.gds has 2 top cells"),
        (drawn(139, dbu=0.005), 0.001, "fail/a.gds has a database unit of 0.005"),
    ],
)
def test_a_layout_that_no_deck_could_be_run_on_is_refused_by_name(rows, tmp_path, data, dbu, why):
    cases = [
        {"gds_path": "pass/a.gds", "gds": b64(PASS)},
        {"gds_path": "fail/a.gds", "gds": b64(data)},
    ]
    task = {"metadata": json.dumps({"dbu": dbu} if dbu else {})}
    with pytest.raises(UsageError, match=why):
        problem_of(rows(tmp_path / "set", cases=cases, task=task))


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no tasks of Rule2DRC"):
        problem_of(tmp_path)


@pytest.mark.parametrize(
    "said", ["fail/a.gds", "problems/p1/data/fail/a.gds", "/somewhere/fail/a.gds"]
)
def test_a_file_may_be_named_by_a_longer_path(said):
    text = f"filename,W\n{said},1\npass/a.gds,0\n"
    assert read_labels(text, ["W"], ["pass/a.gds", "fail/a.gds"], "x")["fail/a.gds"] == (1,)


def test_a_bare_name_must_be_the_only_one():
    assert read_labels("filename,W\na.gds,1\n", ["W"], ["fail/a.gds"], "x") == {"fail/a.gds": (1,)}
    with pytest.raises(UsageError, match="is no layout"):
        read_labels("filename,W\na.gds,1\n", ["W"], ["pass/a.gds", "fail/a.gds"], "x")


def test_own_layouts_are_the_bytes_that_are_in_the_file():
    task = make_task("rule2drc/script", TaskRequest())
    from harness.core.resources import data

    lines = data("rule2drc/testcases.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    assert task.samples[0].metadata["layouts"][0]["gds"] == base64.b64decode(first["gds"])
