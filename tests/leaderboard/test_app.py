"""The site's frame and the pages Leaderboard, Runs and About, as a visitor gets them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from harness.store import snapshot, sync
from leaderboard.app_pages import PAGES
from leaderboard.rows.board import board, task_versions
from leaderboard.rows.runs import run_list

ROOT = Path(__file__).resolve().parents[2]


def words(app) -> str:
    """Give all text of a page, tables included."""
    parts = [app.title, app.subheader, app.info, app.caption, app.markdown, app.code]
    tables = [frame.value.to_csv() for frame in app.dataframe]
    return "\n".join([element.value for part in parts for element in part] + tables)


@pytest.mark.parametrize("name", ["leaderboard", "runs", "about"])
def test_every_page_on_every_store(any_store, open_page, name):
    app = open_page(name, any_store)
    assert not app.exception
    assert app.title
    assert re.search(r"Script time \d+\.\d{3} s", app.caption[-1].value)


@pytest.mark.parametrize("name", sorted(PAGES))
@pytest.mark.parametrize("store", ["empty_store", "newer_store", "running_store"])
def test_without_results_every_page_says_what_to_do(request, open_page, store, name):
    app = open_page(name, request.getfixturevalue(store))
    assert not app.exception
    says = {
        "empty_store": "harness run --task", "newer_store": "pip install -U bridge-harness",
        "running_store": "harness store sync",
    }  # fmt: skip
    if (store, name) == ("running_store", "runs"):
        assert app.subheader[0].value == "Running now: 1"
    else:
        assert says[store] in words(app)


def test_an_address_names_a_run_by_its_id(partial_store, open_page):
    runs = [run.run_id for run in run_list(snapshot(partial_store))]
    first = open_page("runs", partial_store).selectbox(key="run").value
    other = next(run for run in runs if run != first)
    app = open_page("runs", partial_store, address={"run": other})
    assert app.selectbox(key="run").value == other
    app = app.selectbox(key="run").set_value(first).run()
    assert "run" not in app.query_params  # the default is left out
    app = app.selectbox(key="run").set_value(other).run()
    assert app.query_params["run"] == other
    app.query_params["run"] = first  # a link to the same page
    assert app.run().selectbox(key="run").value == first


def test_an_address_that_names_nothing_shows_the_default(partial_store, open_page):
    first = open_page("runs", partial_store).selectbox(key="run").value
    app = open_page("runs", partial_store, address={"run": "no-such-run"})
    assert not app.exception
    assert app.selectbox(key="run").value == first


def test_the_table_is_the_rows(partial_store, open_page):
    app = open_page("leaderboard", partial_store)
    frame = app.dataframe[0].value
    con = snapshot(partial_store)
    rows = board(con, tuple((t.task, t.version) for t in task_versions(con))).rows
    assert list(frame["model"]) == [row.model for row in rows]
    assert list(frame["value"]) == [row.value for row in rows]
    assert list(frame["rank"]) == ["1–2", "1–2", "–"]
    # every status that is not 0 somewhere has its column
    for name in ("error", "error_harness", "timeout", "truncated", "refused", "unscored",
                 "unavailable", "open"):  # fmt: skip
        assert f"{name}_rate" in frame.columns
    assert "partial" in frame["flags"][1]
    assert "baseline" in frame["flags"][2]


def test_columns_without_anything_are_left_out(one_store, open_page):
    frame = open_page("leaderboard", one_store).dataframe[0].value
    assert not [name for name in frame.columns if name.endswith("_rate")]
    assert next(iter(frame.columns)) == "rank"


def test_ties_are_said_and_nowhere_is_a_bare_order(ties_store, open_page):
    app = open_page("leaderboard", ties_store)
    assert "The data tell none of these 6 models apart" in words(app)
    ranks, by_task = (frame.value for frame in app.dataframe)
    assert set(ranks["rank"]) == {"1–6"}
    assert set(by_task["demo/add"]) == set(by_task["demo/mul"]) == {"1–6"}


def test_a_filter_hides_rows_and_changes_no_rank(fit_store, open_page):
    whole = open_page("leaderboard", fit_store).dataframe[0].value
    part = open_page("leaderboard", fit_store, models=["hf:m7", "hf:m0"]).dataframe[0].value
    assert list(part["model"]) == ["hf:m7", "hf:m0"]
    for model in part["model"]:
        ranks = [frame.loc[frame["model"] == model, "rank"].item() for frame in (whole, part)]
        assert ranks[0] == ranks[1]


def test_one_task_of_many(many_store, open_page):
    app = open_page("leaderboard", many_store, tasks=["many/task3"])
    assert set(app.dataframe[0].value["counted"]) == {"12 of 12"}
    assert "n_tasks" not in app.dataframe[0].value


def test_the_plain_table_is_html_with_everything(partial_store, open_page):
    app = open_page("leaderboard", partial_store, leaderboard_plain=True)
    assert not app.exception
    (html,) = (b.proto.body for b in app.get("html") if "<table" in b.proto.body)
    assert html.count("<tr") == 4
    assert html.count('scope="col"') == html.count("<th ")
    assert "<td>1–2</td>" in html
    assert "mock:gold" in html


def test_text_of_others_is_not_taken_for_html(store, write, open_page):
    write(store, [1.0], model="hf:<script>alert(1)</script>")
    sync(store)
    app = open_page("leaderboard", store, leaderboard_plain=True)
    (html,) = (b.proto.body for b in app.get("html") if "<table" in b.proto.body)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_new_generation_shows_at_the_next_interaction(store, write, open_page):
    write(store, [1.0, 0.0])
    sync(store)
    app = open_page("leaderboard", store)
    assert len(app.dataframe[0].value) == 1
    write(store, [1.0, 0.0], model="hf:b")
    sync(store)
    assert len(app.run().dataframe[0].value) == 2


def test_a_run_that_goes_on_shows_and_grows(running_store, open_page, write):
    app = open_page("runs", running_store)
    assert app.subheader[0].value == "Running now: 1"
    assert list(app.dataframe[0].value["made"]) == [3]
    write(running_store, [1.0, 1.0], n_planned=4, finish=False, model="hf:b")
    app.run()
    assert app.subheader[0].value == "Running now: 2"
    assert list(app.dataframe[0].value["made"]) == [2, 3]


def test_a_broken_pointer_hides_no_run_that_goes_on(running_store, open_page):
    running_store.current_file.write_bytes(b"{")
    app = open_page("runs", running_store)
    assert not app.exception
    assert app.subheader[0].value == "Running now: 1"
    assert "remove it and run `harness store sync`" in words(app)


def test_a_stopped_run_gives_the_command_that_goes_on(running_store, open_page):
    (run_id,) = running_store.run_ids()
    os.utime(running_store.journal(run_id), (0, 0))
    app = open_page("runs", running_store)
    assert app.subheader[0].value == "Running now: none"
    assert f"harness resume {run_id} --store" in words(app)


def test_one_run_whole_and_beside_another(partial_store, open_page):
    _, b, a = run_list(snapshot(partial_store))
    app = open_page("runs", partial_store, run=a.run_id, **{"with": b.run_id})
    assert not app.exception
    text = words(app)
    assert "model variant_id" in text
    assert f"harness resume {a.run_id}" in text
    assert "harness run --task demo/add --model hf:a" in text
    difference = next(f.value for f in app.dataframe if "group" in f.value.columns)
    assert {"shared items", "name"} <= set(difference["name"])


def test_about_names_methods_and_licences(one_store, open_page):
    app = open_page("about", one_store)
    assert {"Words", "Methods", "Data and licences"} <= {s.value for s in app.subheader}
    text = words(app)
    assert "CC BY 4.0" in text
    assert "arXiv 2602.07267" in text
    assert list(app.dataframe[0].value["license"]) == ["CC0-1.0"]


def test_settings_keep_the_site_to_itself():
    import tomllib

    path = ROOT / "leaderboard" / "script" / ".streamlit" / "config.toml"
    settings = tomllib.loads(path.read_text(encoding="utf-8"))
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["server"]["address"] == "127.0.0.1"
    # Beside a folder `pages` Streamlit would take its files for pages of its own older kind.
    assert not (path.parents[1] / "pages").exists()


def test_streamlit_is_imported_where_pages_are_drawn_only():
    code = "import sys, leaderboard.data, leaderboard.exports, leaderboard.rows.board, leaderboard.rows.runs, leaderboard.rows.live; print('streamlit' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_the_verb_serves_the_site_from_anywhere(one_store, tmp_path):
    (tmp_path / "tasks.py").write_text("raise SystemExit('the user has a module of that name')\n")
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "harness.cli.main", "board", "--store", str(one_store.root),
         "--port", "0", "--no-browser"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        first = server.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+", first).group()
        for line in server.stdout:
            if "URL: " in line:
                break
        assert "127.0.0.1" in line
        health = urllib.request.urlopen(f"{address}/_stcore/health", timeout=30)
        assert health.read() == b"ok"
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert server.returncode in (0, -15)


def test_a_port_that_is_taken_is_said_in_one_line(one_store, capsys):
    import socket

    from harness.cli.main import main

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code = main(["board", "--store", str(one_store.root), "--port", str(port), "--no-browser"])
    assert code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--port 0" in said
