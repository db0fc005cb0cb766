"""The page Samples in a browser: from one sample to the next, the whole list as files, and no markup."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq
import pytest

from harness.store import snapshot
from leaderboard.rows.samples import PAGE

TOO_PALE = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")
ADDRESS = "([name, value]) => new URLSearchParams(location.search).get(name) === value"
TAKEN = ".taken, [onerror], a[href*=elsewhere], [src*=elsewhere], .katex"


def keys_of(store, task: str) -> list[str]:
    """Give the keys of a task's samples in the order of the list: newest run first, then by item."""
    rows = snapshot(store).execute(
        "SELECT run_id, item_id FROM samples WHERE task_id = ? ORDER BY run_id DESC, item_id",
        [task],
    )
    return [f"{run_id}:0:{item_id}" for run_id, item_id in rows.fetchall()]


def wait_for(visit, name: str, value: str | None) -> None:
    """Wait until the address says so, and the page is whole."""
    visit.page.wait_for_function(ADDRESS, arg=[name, value])
    visit.ready()


def pick(visit, row: int) -> None:
    """Click the box of a row: the grid is a canvas, so it is found by place."""
    grid = visit.page.get_by_test_id("stDataFrame").first
    grid.click(position={"x": 15, "y": 52 + 35 * row})


def close(visit) -> None:
    """Leave the sample."""
    visit.page.keyboard.press("Escape")
    visit.page.get_by_role("dialog").wait_for(state="detached")
    wait_for(visit, "key", None)


def test_from_one_sample_to_the_next(rich, rich_store, visit):
    keys = keys_of(rich_store, "demo/add")
    one = visit(rich)
    dialog, page = one.page.get_by_role("dialog"), one.page
    one.open("samples", task="demo/add")
    # The same row opens as often as it is clicked, and another one after it.
    for row in (0, 0, 3, 0):
        pick(one, row)
        wait_for(one, "key", keys[row])
        dialog.get_by_text("What is ").first.wait_for()
        close(one)
    pick(one, 1)
    wait_for(one, "key", keys[1])
    for press, row in (("ArrowRight", 2), ("ArrowLeft", 1), ("ArrowLeft", 0)):
        page.keyboard.press(press)
        wait_for(one, "key", keys[row])
        dialog.get_by_text(f"{row + 1} of the list").wait_for()
        dialog.get_by_text(keys[row].split(":")[2], exact=True).first.wait_for()
    assert dialog.get_by_role("button", name="Previous").is_disabled()


def test_the_list_follows_where_the_next_sample_is_on_another_page(rich, rich_store, visit):
    keys = keys_of(rich_store, "demo/add")
    one = visit(rich)
    dialog, main = one.page.get_by_role("dialog"), one.page.get_by_test_id("stMain")
    # Without a page in the address, as a link that somebody passes on.
    one.open("samples", task="demo/add", key=keys[PAGE - 1])
    dialog.get_by_text(f"{PAGE} of the list").wait_for()
    for press, at, number in (("Next", PAGE, "2"), ("Previous", PAGE - 1, None)):
        dialog.get_by_role("button", name=press).click()
        wait_for(one, "key", keys[at])
        wait_for(one, "page", number)
        dialog.get_by_text(f"{at + 1} of the list").wait_for()
        first = PAGE * (at // PAGE) + 1
        main.get_by_text(f"{first} – {first + PAGE - 1} of {len(keys)}").wait_for()
    close(one)
    # The list is that of the page where the last sample was: its own rows open.
    pick(one, 2)
    wait_for(one, "key", keys[2])


def test_the_whole_list_as_files_holds_what_was_looked_for(rich, rich_store, visit):
    one = visit(rich)
    one.open("samples", task="demo/add", verdict="right")
    right = snapshot(rich_store).execute(
        "SELECT run_id || ':0:' || item_id FROM scores WHERE task_id = 'demo/add' AND value >= 1 "
        "ORDER BY run_id DESC, item_id"
    )
    keys = [key for (key,) in right.fetchall()]
    assert len(keys) > 2 * PAGE
    one.page.get_by_role("button", name="Download the whole list").click()
    files = {}
    for form in ("CSV", "Parquet", "JSON"):
        with one.page.expect_download() as waiting:
            one.page.get_by_role("button", name=form, exact=True).click()
        assert waiting.value.suggested_filename == f"samples-all.{form.lower()}"
        files[form] = Path(waiting.value.path()).read_bytes()
    rows = json.loads(files["JSON"], parse_constant=pytest.fail)
    assert [row["key"] for row in rows] == keys
    assert {row["score"] for row in rows} == {1.0}
    table = pq.read_table(io.BytesIO(files["Parquet"])).to_pylist()
    lines = list(csv.DictReader(io.StringIO(files["CSV"].decode(), newline="")))
    for name in ("key", "model", "tokens_out", "latency_s"):
        values = [row[name] for row in rows]
        assert [row[name] for row in table] == values
        assert [line[name] for line in lines] == [str(value) for value in values]


def test_what_a_model_wrote_is_text(rich, rich_store, visit, evil):
    text, item = evil
    (key,) = [key for key in keys_of(rich_store, "demo/evil") if key.endswith(item)]
    one = visit(rich)
    page, dialog = one.page, one.page.get_by_role("dialog")
    one.open("samples", task="demo/evil")
    # The list of what can be opened names the item as well.
    page.get_by_role("combobox", name="Open").click()
    page.get_by_role("option").filter(has_text=item).click()
    wait_for(one, "key", key)
    dialog.get_by_text(item).first.wait_for()
    drawn = [code.strip() for code in dialog.locator("code").all_text_contents()]
    # As prompt, as output, and as the scorer's word on two tabs.
    assert drawn.count(text.strip()) == 4
    for tab in ("Scores", "Turns", "Facts", "Answer"):
        dialog.get_by_role("tab", name=tab).click()
        one.ready()
        assert page.locator(TAKEN).count() == 0
    assert page.evaluate("window.taken") is None
    assert page.locator("script:not([src])").filter(has_text="taken").count() == 0
    one.open("task", task="demo/evil")
    assert page.locator(TAKEN).count() == 0
    assert page.evaluate("window.taken") is None


def test_a_sample_light_and_dark_wide_and_narrow(rich_store, walk, evil):
    (key,) = [key for key in keys_of(rich_store, "demo/evil") if key.endswith(evil[1])]
    walk.page.set_viewport_size({"width": 1280, "height": 1200})
    walk.open("samples", key=key)
    walk.page.get_by_role("dialog").get_by_text("Verdict").first.wait_for()
    assert walk.page.evaluate(TOO_PALE) == []
    walk.picture(f"sample-{walk.look}-desktop")
    walk.resize(390, 1200)
    wide = walk.page.evaluate(
        "() => [document.body, ...document.querySelectorAll('[role=dialog]')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.tagName)"
    )
    assert wide == []
    walk.picture(f"sample-{walk.look}-phone")
    walk.fine()


def test_the_tests_see_what_is_taken_for_markup(rich, visit, evil):
    one = visit(rich)
    one.open("about")
    one.page.evaluate("text => document.querySelector('h1').innerHTML = text", evil[0])
    assert one.page.locator(TAKEN).count() > 0
    one.page.wait_for_function("window.taken === 2")
    one.complaints.clear()  # of the picture that is not there
    assert parse_qs(urlsplit(one.page.url).query) == {}
