"""What a model can do wrong, and what then happens: through the real loop and box."""

from __future__ import annotations

import msgspec
import pytest

from harness.core.types import Sample, ToolCall
from harness.runner.config import make_config
from harness.runner.plan import make_plan
from tasks.dsgym.kernel import Kernel
from tasks.dsgym.task import limits

TOTAL = "[['total', '5.10']]"
SUM = "import pandas as pd\nd = pd.read_csv('/data/daeval/shop.csv')\n"


def test_state_stays_from_cell_to_cell_and_the_answer_ends_it(layout):
    item = layout.ask(TOTAL)
    samples, scores, calls = layout.play({
        item: [
            f"<python>\n{SUM}total = d.price.sum()\n</python>",
            "<python>\nprint(f'{total:.2f}')\n</python>",
            "<answer>@total[5.10]</answer>",
        ]
    })  # fmt: skip
    assert calls[item][1]["text"].strip() == "5.10"
    assert scores[item].metrics == {"accuracy_upstream": 1.0, "accuracy_strict": 1.0}
    assert samples[item].output == "@total[5.10]"


def test_tags_in_tags_and_replies_that_run_on(layout):
    in_code, twice, nested, on = (layout.ask(TOTAL) for _ in range(4))
    _, scores, calls = layout.play({
        # An answer's tag inside a string of the code is code.
        in_code: [
            "<python>\ntext = '<answer>@total[1]</answer>'\nprint(text)\n</python>",
            "<answer>@total[5.10]</answer>",
        ],
        # The first of two answers counts.
        twice: ["<answer>@total[5.10]</answer> or <answer>@total[9.99]</answer>"],
        # Upstream's value ends at the first bracket; strict brackets nest.
        nested: ["<answer>@total[[5.10]]</answer>"],
        # What a model invents behind its code is never read.
        on: [
            (f"<python>\n{SUM}print(d.price.sum())\n</python>\n<information>\n7\n</information>\n"
            "<answer>@total[7]</answer>"),
            "<answer>@total[5.10]</answer>",
        ],
    })  # fmt: skip
    assert calls[in_code][0]["text"].strip() == "<answer>@total[1]</answer>"
    assert [scores[i].value for i in (in_code, twice, on)] == [1.0, 1.0, 1.0]
    assert scores[nested].metrics["accuracy_strict"] == 1.0
    assert len(calls[on]) == 2


@pytest.mark.parametrize("said", ["nan", "inf", "-Infinity", "1e9999", ""])
def test_what_is_no_number_is_wrong(layout, said):
    item = layout.ask(TOTAL)
    _, scores, _ = layout.play({item: [f"<answer>@total[{said}]</answer>"]})
    assert scores[item].metrics == {"accuracy_upstream": 0.0, "accuracy_strict": 0.0}


def test_a_missing_column_and_another_encoding_are_the_models_to_handle(layout):
    layout.put("daeval/latin.csv", "item,preis_\xa3\nB\xfcro,5.10\n".encode("latin-1"))
    item = layout.ask(TOTAL, data="/data/daeval/latin.csv")
    _, scores, calls = layout.play({
        item: [
            "<python>\nimport pandas as pd\nd = pd.read_csv('/data/daeval/latin.csv')\n</python>",
            "<python>\nd = pd.read_csv('/data/daeval/latin.csv', encoding='latin-1')\nd['price']\n</python>",
            "<python>\nprint(f\"{d['preis_\xa3'].sum():.2f}\")\n</python>",
            "<answer>@total[5.10]</answer>",
        ]
    })  # fmt: skip
    encoding, column, right, _ = calls[item]
    assert (encoding["status"], column["status"], right["status"]) == ("error", "error", "ok")
    assert "UnicodeDecodeError" in encoding["text"]
    assert "KeyError: 'price'" in column["text"]
    assert scores[item].value == 1.0


def test_a_cell_that_prints_a_hundred_megabytes_is_cut_and_the_work_goes_on(layout):
    item = layout.ask(TOTAL)
    _, scores, calls = layout.play({
        item: ["<python>\nfor _ in range(100):\n    print('x' * 1_000_000)\n</python>",
               "<answer>@total[5.10]</answer>"]
    })  # fmt: skip
    first = calls[item][0]
    assert first["status"] in ("ok", "output_limit")
    assert len(first["text"]) < 20_000
    assert "bytes cut" in first["text"]
    assert scores[item].value == 1.0


def test_the_data_cannot_be_changed_and_there_is_no_network(layout):
    item = layout.ask(TOTAL)
    code = (
        "import socket\n"
        "for attempt in (lambda: open('/data/daeval/shop.csv', 'a'),\n"
        "                lambda: open('/data/daeval/new.csv', 'w'),\n"
        "                lambda: socket.create_connection(('1.1.1.1', 53), timeout=5)):\n"
        "    try:\n        attempt()\n        print('done')\n"
        "    except OSError as error:\n        print('refused')\n"
    )
    _, _, calls = layout.play({item: [f"<python>\n{code}</python>", "<answer>x</answer>"]})
    assert calls[item][0]["text"].split() == ["refused"] * 3
    assert (layout.root / "data/data/daeval/shop.csv").read_text() == (
        "item,price\npen,1.20\nink,3.40\nnib,0.50\n"
    )


def test_without_data_the_folders_are_there_and_empty_and_the_prompt_is_the_same(layout):
    item = layout.ask(TOTAL)
    look = "<python>\nimport os\nprint(os.listdir('/data'), os.listdir('/data/daeval'))\n</python>"
    turns = {item: [look, "<answer>@total[0]</answer>"]}
    with_data = layout.play(turns)
    without = layout.play(turns, no_data=True)
    assert with_data[2][item][0]["text"].strip() == "['daeval'] ['shop.csv']"
    assert without[2][item][0]["text"].strip() == "['daeval'] []"
    assert with_data[0][item].prompt == without[0][item].prompt
    assert with_data[0][item].key != without[0][item].key


def test_no_answer_is_wrong_and_a_missing_file_is_unavailable(layout):
    silent, lost = layout.ask(TOTAL), layout.ask(TOTAL, data="/data/daeval/lost.csv")
    samples, scores, _ = layout.play(
        {silent: ["<python>\n1\n</python>"], lost: ["<answer>x</answer>"]}, args={"turns": "2"}
    )
    assert (scores[silent].status, scores[silent].reason) == ("error", "no_answer")
    assert samples[lost].status == "unavailable"
    assert "data/data/daeval/lost.csv is missing" in samples[lost].error
    # What is stored names no folder of this machine.
    assert str(layout.root) not in samples[lost].error


def test_the_last_cell_is_run_but_not_in_upstreams_profile(layout):
    item = layout.ask(TOTAL)
    turns = {item: ["<python>\nprint(1)\n</python>"]}
    own = layout.play(turns, args={"turns": "1"})
    upstream = layout.play(turns, args={"turns": "1", "profile": "upstream"})
    assert (own[2][item][0]["status"], upstream[2][item][0]["status"]) == ("ok", "denied")


def test_after_a_timeout_nothing_of_the_old_kernel_is_taken(layout, monkeypatch):
    monkeypatch.setattr("tasks.dsgym.task.CELL_S", 2.0)
    item = layout.ask(TOTAL)
    slow = "import time\ntotal = 41\nwhile True:\n    time.sleep(0.1)\n"
    _, _, calls = layout.play({
        item: [f"<python>\n{slow}</python>", "<python>\nprint(total)\n</python>", "<answer>x</answer>"]
    })  # fmt: skip
    first, second, _ = calls[item]
    assert first["status"] == "timeout"
    assert "NameError" in second["text"]
    assert "The earlier process is gone" in second["text"]


WRITE = "with open('submission.csv', 'w') as file:\n    file.write('{}')\n"
DIES = "import os\nos._exit(1)\n"
KILLED = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"


@pytest.fixture
def work(monkeypatch):
    """Run cells in a small box and give (what is judged, the cells' statuses)."""
    monkeypatch.setattr("tasks.dsgym.kernel.PRELOAD", ())  # which is slow, and another test's
    small = msgspec.structs.replace(limits(), memory_mib=256)

    def run(*cells, wall_s=60.0):
        with Kernel(level="auto", limits=small, data={}, submission=True) as box:
            made = [ToolCall(id="1", name="python", arguments={"code": code}) for code in cells]
            statuses = [box.call(call, wall_s).status for call in made]
            return box.finish("done"), statuses

    return run


def test_a_submission_outlives_the_process_that_wrote_it(work):
    one, two = WRITE.format("one"), WRITE.format("two")
    assert work(one, DIES)[0] == "one"
    assert work(one, two, KILLED)[0] == "two"  # the newest
    assert work(one + DIES)[0] == "one"  # written by the very cell that ends it
    assert work(one, DIES, "1", DIES)[0] == "one"  # a process without the file takes nothing away
    assert work(one, DIES, two)[0] == "two"
    assert work(one, "import os\nos.remove('submission.csv')")[0] == ""  # taken back by the model
    assert work(DIES)[0] == work()[0] == ""


@pytest.mark.parametrize(
    ("code", "wall_s", "statuses"),
    [
        ("import time\nwhile True:\n    time.sleep(0.1)\n", 2.0, ("timeout",)),
        # Without a cgroup the interpreter is refused the memory and lives on.
        ("x = bytearray(5 * 2**30)\nfor i in range(0, len(x), 4096):\n    x[i] = 1\n", 60.0,
         ("memory", "error")),
    ],
    ids=["endless", "memory"],
)  # fmt: skip
def test_a_submission_outlives_a_cell_without_end_or_bounds(work, code, wall_s, statuses):
    judged, (first, second) = work(WRITE.format("one"), code, wall_s=wall_s)
    assert (judged, first) == ("one", "ok")
    assert second in statuses


def test_what_is_asked_and_what_stays_hidden(layout):
    from harness.backends.base import load

    item = layout.ask(TOTAL, question="What do all things cost?")
    config = make_config(task="dsgym/daeval", model="mock:gold", data_root=str(layout.root))
    plan = make_plan(config, load("mock:gold", config.load_options()))
    text = plan.messages[0][-1].content
    sample: Sample = plan.samples[0]
    assert sample.item_id == item
    for part in (
        "What do all things cost?",
        "Two decimals.",
        "@total[value]",
        "/data/daeval/shop.csv",
    ):
        assert part in text
    assert "5.10" not in str(plan.messages[0])
    assert plan.item(plan.attempts[0]).sample.target == ()


def test_other_data_are_another_attempt(layout):
    item = layout.ask(TOTAL)
    turns = {item: ["<answer>@total[5.10]</answer>"]}
    first = layout.play(turns)[0][item].key
    assert layout.play(turns)[0][item].key == first
    layout.put("daeval/shop.csv", "item,price\npen,9.99\n")
    assert layout.play(turns)[0][item].key != first
