"""The site as people meet it: in a browser, light and dark, wide and narrow, by mouse and by key."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq
import pytest

from harness.store import Store, sync
from harness.store.publish import current
from leaderboard.app_pages import PAGES

TOO_PALE = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")
PALE_MARKS = Path(__file__).with_name("marks.js").read_text(encoding="utf-8")

TOO_WIDE = """() => [...document.querySelectorAll('[data-testid="stMain"], html, body')]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.tagName + e.scrollWidth)"""
FOCUSED = """() => {
    const element = document.activeElement;
    const words = element.tagName === "MAIN" ? "" : element.innerText;
    return element.ariaLabel || element.labels?.[0]?.innerText || words || "";
}"""


def query(visit) -> dict[str, list[str]]:
    """Give what stands in the address after the question mark."""
    return parse_qs(urlsplit(visit.page.url).query)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_light_and_dark_wide_and_narrow(walk, name):
    # As high as a page, for the pictures: making the window fit each page costs seconds.
    walk.page.set_viewport_size({"width": 1280, "height": 2400})
    # One visitor comes by addresses, the other one goes from page to page.
    (walk.open if walk.look == "light" else walk.follow)(name)
    assert walk.page.locator("h1").inner_text()
    assert walk.page.get_by_test_id("stException").count() == 0
    assert "Traceback" not in walk.words()
    assert walk.page.evaluate(TOO_PALE) == []
    drawn = walk.page.evaluate(PALE_MARKS)
    assert drawn["found"] == []
    assert (drawn["seen"] > 0) == (name not in ("samples", "runs", "about"))
    walk.picture(f"{name}-{walk.look}-desktop")
    walk.resize(390, 2400)
    # A busy browser takes a while to lay a page out anew.
    walk.page.wait_for_function(f"({TOO_WIDE})().length === 0", timeout=10_000)
    assert walk.page.evaluate(TOO_WIDE) == []
    walk.picture(f"{name}-{walk.look}-phone")
    walk.fine()


def test_marks_in_a_fixed_black_are_seen_on_a_dark_page(rich, visit):
    one = visit(rich, "dark")
    one.open("leaderboard")
    assert one.page.evaluate(PALE_MARKS)["found"] == []
    one.page.evaluate(
        "document.querySelectorAll('svg.marks .mark-rule line').forEach(e => e.style.stroke = '#000')"
    )
    (found,) = one.page.evaluate(PALE_MARKS)["found"]
    assert found.startswith("line stroke rgb(0, 0, 0)")


def test_from_a_run_by_its_table_to_one_sample(rich, visit):
    one = visit(rich)
    one.open("runs")
    one.page.get_by_role("link", name="Samples of this run").click()
    one.page.wait_for_url("**/samples?**run=**")
    one.page.get_by_role("heading", name="Samples", exact=True).wait_for()
    one.ready()
    (run,) = query(one)["run"]
    # The grid is a canvas: the box of its first row is found by place.
    one.page.get_by_test_id("stDataFrame").first.click(position={"x": 15, "y": 52})
    dialog = one.page.get_by_role("dialog")
    dialog.get_by_text("What is ").first.wait_for()
    dialog.get_by_text("It is ").first.wait_for()
    (key,) = query(one)["key"]
    # The address of the sample is enough to come back to it.
    other = visit(rich)
    other.open("samples", run=run, key=key)
    again = other.page.get_by_role("dialog")
    again.get_by_text("What is ").first.wait_for()
    assert again.inner_text() == dialog.inner_text()


def test_an_address_brings_back_what_was_chosen_and_holds_no_defaults(rich, visit):
    one = visit(rich)
    one.open()
    assert query(one) == {}
    one.page.get_by_role("combobox", name="Tasks").click()
    one.page.get_by_role("option", name="demo/add").click()
    one.page.keyboard.press("Escape")
    one.page.wait_for_url("**tasks=**")
    one.page.get_by_text("Plain table").first.click()
    one.page.wait_for_url("**leaderboard_plain=true**")
    one.page.locator("table.plain").wait_for()
    one.ready()
    assert query(one) == {"tasks": ["demo/add"], "leaderboard_plain": ["true"]}
    other = visit(rich)
    other.page.goto(one.page.url)
    other.ready()
    seen = [re.sub(r"Script time.*", "", visitor.words()) for visitor in (one, other)]
    assert "hf:m7" in seen[0]
    assert seen[0] == seen[1]
    assert query(other) == query(one)


def test_the_three_files_hold_the_same_rows(rich, visit):
    one = visit(rich)
    one.open("leaderboard", tasks="demo/add")
    one.page.get_by_role("button", name="Download").first.click()
    files = {}
    for form in ("CSV", "Parquet", "JSON"):
        with one.page.expect_download() as waiting:
            one.page.get_by_role("button", name=form, exact=True).click()
        assert waiting.value.suggested_filename == f"leaderboard.{form.lower()}"
        files[form] = Path(waiting.value.path()).read_bytes()
    rows = json.loads(files["JSON"], parse_constant=pytest.fail)
    assert len(rows) == 12
    assert pq.read_table(io.BytesIO(files["Parquet"])).to_pylist() == [
        {name: _moment(value, name) for name, value in row.items()} for row in rows
    ]
    lines = list(csv.DictReader(io.StringIO(files["CSV"].decode())))
    assert [list(line) for line in lines] == [list(row) for row in rows]
    for line, row in zip(lines, rows, strict=True):
        assert line["model"] == row["model"]
        for name in ("value", "lo", "hi", "n_items"):
            assert float(line[name]) == row[name]


def _moment(value, name):
    from datetime import datetime

    return datetime.fromisoformat(value) if name == "date" and isinstance(value, str) else value


def test_inside_another_page_there_is_no_frame_around_it(rich, visit):
    one = visit(rich)
    one.open("task", embed="true")
    assert one.page.get_by_role("link", name="Leaderboard").count() == 0
    assert one.page.get_by_text("Results").first.is_visible()


def test_filters_and_the_plain_table_are_reached_by_keys(rich, visit):
    one = visit(rich)
    one.open()
    reached = []
    for _ in range(60):
        one.page.keyboard.press("Tab")
        reached.append(one.page.evaluate(FOCUSED))
        if "Plain table" in reached[-1]:
            break
    # In the order in which they stand on the page.
    places = [
        next((i for i, name in enumerate(reached) if word in name), f"{word} not in {reached}")
        for word in ("Leaderboard", "About", "Tasks", "Filter", "Plain table")
    ]
    assert places == sorted(places)
    one.page.keyboard.press("Space")
    table = one.page.locator("table.plain").first
    table.wait_for()
    assert table.locator("th[scope=col]").first.inner_text() == "Rank"


def opened(server) -> set[str]:
    """Give the databases that the server holds open."""
    found = set()
    for link in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue
        if ".duckdb" in target:
            found.add(Path(target.removesuffix(" (deleted)")).name)
    return found


def test_a_store_comes_into_being_while_people_look(changing, visit, write):
    server, store = changing
    one, runs = visit(server), visit(server)
    one.open()
    assert "No store yet" in one.words()
    assert "harness run --task gsm8k" in one.words()
    Store.open(store.root)
    one.open()
    assert "No runs yet" in one.words()
    runs.open("runs")
    # Nobody touches the page: a run that begins shows within ten seconds.
    write(store, [1.0, 0.0, 1.0], n_planned=8, finish=False)
    runs.page.get_by_text("Running now: 1").wait_for(timeout=10_000)
    one.open()
    assert "Nothing published yet" in one.words()
    write(store, [1.0, 0.0], model="hf:first")
    sync(store)
    one.open(leaderboard_plain="true")
    assert "hf:first" in one.words()
    before = current(store).file
    assert opened(server) == {before}


def test_a_new_generation_shows_and_the_old_file_is_let_go(changing, visit, write):
    server, store = changing
    one = visit(server)
    one.open(leaderboard_plain="true")
    assert "hf:second" not in one.words()
    # The writer needs the database for itself: it would fail if the site held it.
    for name in ("second", "third", "fourth"):
        write(store, [1.0, 0.0], model=f"hf:{name}")
        sync(store)
        one.page.get_by_text("Zoom to the data").click()
        one.page.get_by_text(f"hf:{name}").first.wait_for()
        one.ready()
        assert opened(server) == {current(store).file}


def test_a_store_of_a_newer_package_is_said_not_shown(changing, visit, write):
    import duckdb

    server, store = changing
    write(store, [1.0], model="hf:newer")
    sync(store)
    # Nobody looks, so the server has not opened this one yet.
    with duckdb.connect(str(store.published / current(store).file)) as con:
        con.execute("UPDATE schema_meta SET version = 999")
    one = visit(server)
    one.open()
    assert "The store cannot be read" in one.words()
    assert "pip install -U bridge-harness" in one.words()
    assert one.page.get_by_test_id("stException").count() == 0
