"""The static site: the same numbers, nothing from outside, and no trust in what models say."""

import csv
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import msgspec
import pyarrow.parquet as pq
import pytest

from harness.cli.main import main
from harness.core.errors import StoreError, UsageError
from harness.core.records import EventRecord, RunFinished, encoder
from harness.store import snapshot, sync
from leaderboard.columns import interval_text, rank_text, text
from leaderboard.rows.board import board, task_versions
from leaderboard.rows.horizon import published
from leaderboard.rows.reference import bridge_hash
from leaderboard.rows.runs import run_list, status_counts
from leaderboard.rows.scale import fit_choices, scale
from leaderboard.site import builder, fits, models, runs, standings
from leaderboard.site.export import MANIFEST, export_site
from leaderboard.site.names import file_name

HOSTILE = """</pre></style></script><script>alert(1)</script>"'><img src=x onerror=alert(2)>"""
STORES = ["missing", "empty", "one", "partial", "ties", "many", "fit", "unscored"]


class Parsed(HTMLParser):
    """A page: its elements with attributes, the cells of its tables, and its text by element."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.tables, self.said, self.open = [], [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "source", "br", "rect", "input"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag in ("pre", "p", "h1", "summary", "dd"):
            self.said.append("")

    def handle_endtag(self, tag):
        while tag in self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data
        if self.open and {"pre", "p", "h1", "summary", "dd"} & set(self.open):
            self.said[-1] += data

    def targets(self):
        for _, attributes in self.elements:
            yield from (attributes[n] for n in ("href", "src", "srcset") if n in attributes)


def pages(site):
    return [path for path in sorted(site.rglob("*.html")) if path.parent.name != "charts"]


def strict(path):
    def refuse(word):
        raise AssertionError(f"{word} in {path}")

    return json.loads(path.read_bytes(), parse_constant=refuse)


def table(page, n=0):
    head, *rows = Parsed(page).tables[n]
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.fixture
def blank_charts(monkeypatch):
    """Draw no chart: for tests of what stands around them."""
    monkeypatch.setattr(builder, "to_svg", lambda _: '<svg width="9" height="9"></svg>')


@pytest.fixture(scope="session")
def site_of(tmp_path_factory, request):
    """Export a store by its fixture's name, once; the largest without charts."""
    made = {}

    def site(name):
        if name not in made:
            store = request.getfixturevalue(f"{name}_store")
            out = tmp_path_factory.mktemp(f"site-{name}") / "site"
            with pytest.MonkeyPatch.context() as patch:
                if name == "many":
                    patch.setattr(builder, "to_svg", lambda _: '<svg width="9" height="9"></svg>')
                export_site(store, out)
            made[name] = out, store
        return made[name]

    return site


@pytest.mark.parametrize("name", STORES)
def test_every_store_gives_a_whole_site(site_of, name):
    site, _ = site_of(name)
    manifest = strict(site / MANIFEST)
    there = {p.relative_to(site).as_posix() for p in site.rglob("*") if p.is_file()}
    assert there == {*manifest["files"], MANIFEST}
    for path, said in manifest["files"].items():
        content = (site / path).read_bytes()
        assert said == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    for path in site.rglob("*.json"):
        strict(path)
    assert "Disallow: /samples/" in (site / "robots.txt").read_text()
    for path in pages(site):
        page = Parsed(path)
        policies = [a["content"] for t, a in page.elements if a.get("http-equiv")]
        assert len(policies) == 1
        assert policies[0].startswith("default-src 'none'; ")
        assert "unsafe" not in policies[0]
        assert "http" not in policies[0]
        for target in page.targets():
            file, anchor = urldefrag(unquote(target))
            # relative, so nothing from outside: no scheme, no host, no path from the root
            assert not re.match(r"[a-z]+:|/", file, re.IGNORECASE), target
            found = (path.parent / file).resolve() if file else path
            assert found.is_file(), target
            assert found.is_relative_to(site.resolve())
            if anchor:
                assert f'id="{anchor}"' in found.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["one", "partial", "ties", "many", "fit", "unscored"])
def test_the_numbers_are_those_of_the_site(site_of, name):
    site, store = site_of(name)
    con = snapshot(store)
    newest = [t for t in task_versions(con) if t.newest]
    chosen = [t for t in newest if t.n_models] or newest
    rows = board(con, tuple((t.task, t.version) for t in chosen)).rows
    found = strict(site / "data/leaderboard.json")
    generation = strict(site / MANIFEST)["generation"]
    assert [{k: v for k, v in row.items() if k != "code_version"} for row in found] == [
        json.loads(msgspec.json.encode(row)) | {"generation": generation} for row in rows
    ]
    again = pq.read_table(site / "data/leaderboard.parquet").to_pylist()
    assert [row["value"] for row in again] == [row.value for row in rows]
    assert [row["lo"] for row in again] == [row.lo for row in rows]
    shown = table(site / "index.html")
    assert [row["Model"] for row in shown] == [row.model for row in rows]
    for one, row in zip(shown, rows, strict=True):
        fields = msgspec.structs.asdict(row)
        assert one.get("Rank", "–") == rank_text(fields)
        assert one.get("Score", "–") == text(row.value, "score")
        assert one.get("95 % interval", "–") == interval_text(fields)
    assert [r["run_id"] for r in strict(site / "data/runs.json")] == [
        r.run_id for r in run_list(con)
    ]


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_store_without_results_says_what_to_run(site_of, name):
    site, _ = site_of(name)
    for path in pages(site):
        assert any("harness run --task" in said for said in Parsed(path).said)
    assert strict(site / MANIFEST)["generation"] is None


def test_ties_have_no_order(site_of):
    site, _ = site_of("ties")
    assert [row["Rank"] for row in table(site / "index.html")] == ["1–6"] * 6
    assert {row["Tier"] for row in table(site / "index.html")} == {"1"}
    assert any("tell none of these 6 models apart" in s for s in Parsed(site / "index.html").said)


def test_statuses_sum_to_the_plan_and_marks_show(site_of):
    site, store = site_of("partial")
    by_model = {row["Model"]: row for row in table(site / "index.html")}
    assert "partial" in by_model["hf:a"]["Marks"]
    assert (by_model["mock:gold"]["Rank"], by_model["mock:gold"]["Tier"]) == ("–", "–")
    assert "baseline" in by_model["mock:gold"]["Marks"]
    assert by_model["hf:a"]["Refused"] == "10.0 %"
    counts = strict(site / "data/statuses.json")
    for run in run_list(snapshot(store)):
        of_run = {row["status"]: row["n"] for row in counts if row["run_id"] == run.run_id}
        assert sum(of_run.values()) == run.n_planned
        assert of_run == {count.status: count.n for count in status_counts(run)}


def test_a_simulated_quantisation_has_no_memory_and_no_speed(tmp_path, store, write, blank_charts):
    write(store, [1.0, 0.0] * 5, model="hf:a")
    write(store, [1.0] * 10, model="hf:a", quantisation="nf4", simulated=True)
    sync(store)
    export_site(store, tmp_path / "site")
    page = next((tmp_path / "site/model").glob("hf-a-*.html"))
    assert any("no memory, no speed" in said for said in Parsed(page).said)
    scores = strict(tmp_path / "site/data/model_scores.json")
    simulated, full = sorted(scores, key=lambda row: "simulated" not in row["flags"])
    assert "simulated" in simulated["flags"]
    assert full["tokens_per_s"] > 0
    assert (simulated["tokens_per_s"], simulated["memory_gib"]) == (None, None)
    assert (tmp_path / "site/data/quantised.json").is_file()
    assert len(list((tmp_path / "site/compare").iterdir())) == 1


def test_what_others_wrote_is_text(tmp_path, store, write):
    run_id = f"20260301T100000000000-{HOSTILE}".replace("/", "")
    write(store, [1.0, 0.0], model=f"hf:{HOSTILE}", text=lambda i: (HOSTILE, f"{HOSTILE}\x00{i}"))
    write(store, [0.0, 1.0], model="hf:../../../escape", run_id=run_id)
    sync(store)
    site = tmp_path / "out" / "site"
    export_site(store, site)
    assert list((tmp_path / "out").iterdir()) == [site]
    for path in site.rglob("*"):
        assert re.fullmatch(r"[a-z0-9._-]+", path.name), path
    for path in pages(site):
        page = Parsed(path)
        tags = [tag for tag, _ in page.elements]
        assert tags.count("script") == 1
        assert tags.count("style") == 1
        assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
        assert not [a for tag, a in page.elements if tag == "img" and a["src"] == "x"]
    for path in site.rglob("*.svg"):
        assert "<script" not in path.read_text(encoding="utf-8")
        assert "<img" not in path.read_text(encoding="utf-8")
    said = [s for p in (site / "samples").iterdir() for s in Parsed(p).said]
    assert f"{HOSTILE}\\x000" in [s.strip("\n") for s in said]
    assert f"hf:{HOSTILE}" in [row["Model"] for row in table(site / "index.html")]
    outputs = [
        sample["output"]
        for path in (site / "data/samples").iterdir()
        for sample in strict(path)["samples"]
    ]
    assert f"{HOSTILE}\x000" in outputs


def test_items_of_others_are_counted_and_not_shown(tmp_path, store, write, blank_charts):
    info = {"license": "MIT", "source": "github.com/example/questions", "benchmark": "theirs"}
    write(store, [1.0, 0.0], task_info=info, text=lambda i: ("PLANTED-Q", "PLANTED-A"))
    write(store, [1.0, 0.0], task="demo/own", text=lambda i: ("OWN-QUESTION", "OWN-ANSWER"))
    sync(store)
    site = tmp_path / "site"
    manifest = export_site(store, site)
    assert manifest.withheld == ["demo/add version 1"]
    contents = [path.read_bytes() for path in site.rglob("*") if path.is_file()]
    assert not [c for c in contents if b"PLANTED" in c]
    assert [c for c in contents if b"OWN-QUESTION" in c and b"OWN-ANSWER" in c]
    run = next(r for r in run_list(snapshot(store)) if r.task == "demo/add")
    page = Parsed(site / "run" / f"{file_name(run.run_id)}.html")
    assert any("not shown: only items of our own" in said for said in page.said)
    assert page.tables[0][1] == ["scored", "2", "100.0 %"]


def test_samples_are_cut_into_shards(tmp_path, store, write, blank_charts):
    write(store, [1.0] * 205)
    sync(store)
    site = tmp_path / "site"
    export_site(store, site)
    shards = sorted((site / "data/samples").iterdir())
    assert [len(strict(path)["samples"]) for path in shards] == [100, 100, 5]
    everything = [sample for path in shards for sample in strict(path)["samples"]]
    assert {s["item_id"]: s["output"] for s in everything} == {
        f"demo-{i}": f"It is {2 * i}." for i in range(205)
    }
    assert {s["explanation"] for s in everything} == {"compared as numbers"}


def test_a_table_that_is_cut_says_so_and_has_a_file_of_all(
    fit_store, changed, tmp_path, monkeypatch, blank_charts
):
    for module, name, most in (
        (standings, "MOST_ITEMS", 10), (fits, "MOST_ITEMS", 11), (models, "MOST_FLIPS", 2),
        (runs, "MOST_ROWS", 7),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, most)
    site = tmp_path / "site"
    store = changed(fit_store, f"UPDATE irt_fits SET data_hash = '{bridge_hash()}'")
    export_site(store, site)
    cut = 0
    for folder, name, most in (("task", "task_items", 10), ("scale", "scale_items", 11),
                               ("compare", "flips", 2), ("run", "samples", 7)):  # fmt: skip
        for path in (site / folder).iterdir():
            page = Parsed(path)
            said = re.findall(r"Shown are the first (\d+) of (\d+) ", "".join(page.said))
            if not said:
                continue
            cut += 1
            ((shown, n),) = said
            assert int(shown) == most
            assert most in [len(rows) - 1 for rows in page.tables]
            (file,) = [
                t for t in page.targets() if t.startswith(f"../data/{name}/") and t.endswith(".csv")
            ]
            with (path.parent / file).open(newline="", encoding="utf-8") as lines:
                rows = list(csv.DictReader(lines))
            assert len(rows) == int(n)
            if name == "scale_items":  # whose answers they are goes with them
                assert {row["license"] for row in rows} == {"CC BY 4.0"}
                whole = strict(site / "data/scale_items.json")
                assert [r["item_name"] for r in rows] == [r["item_name"] for r in whole]
                assert [float(r["difficulty_b"]) for r in rows] == [
                    r["difficulty_b"] for r in whole
                ]
    # One task, one fit, eleven pairs of neighbours, twelve runs.
    assert cut == 1 + 1 + 11 + 12


def test_every_table_is_there_as_csv_json_and_parquet(site_of):
    site, _ = site_of("partial")
    for path in (site / "data").glob("*.json"):
        rows = strict(path)
        with path.with_suffix(".csv").open(newline="", encoding="utf-8") as lines:
            flat = list(csv.DictReader(lines))
        assert len(flat) == len(rows) == pq.read_table(path.with_suffix(".parquet")).num_rows
        for one, row in zip(flat, rows, strict=True):
            assert set(one) == set(row)
            assert {k: v for k, v in one.items() if isinstance(row[k], str)} == {
                k: v for k, v in row.items() if isinstance(v, str)
            }


def test_an_adaptive_run_is_an_estimate_and_no_score(store, write, tmp_path, blank_charts):
    write(store, [1.0, 0.0, 1.0], model="hf:plain")
    run_id = write(store, [1.0, 1.0], model="hf:chosen", config={"adaptive": True}, finish=False)
    outcome = {"score": 0.25, "lo": 0.125, "hi": 0.5, "level": 0.95, "n_asked": 2, "n_answered": 2}
    events = [
        EventRecord(seq=50, ts="2026-03-01T10:02:00.000000Z", run_id=run_id, schema=1,
                    kind="adaptive", data=outcome),
        RunFinished(seq=51, ts="2026-03-01T10:02:01.000000Z", run_id=run_id, schema=1,
                    status="done", seconds=2.5),
    ]  # fmt: skip
    with store.journal(run_id).open("ab") as file:
        file.writelines(encoder.encode(event) + b"\n" for event in events)
    sync(store)
    site = tmp_path / "site"
    export_site(store, site)
    # Two right answers to two chosen items are no score of 100 %.
    assert [row["Model"] for row in table(site / "index.html")] == ["hf:plain"]
    assert "hf:chosen" not in {row["model"] for row in strict(site / "data/leaderboard.json")}
    (run,) = [row for row in table(site / "runs.html") if row["Run"] == run_id]
    assert (run["Score"], run["95 % interval"]) == ("25.0 %", "12.5 – 50.0")
    assert "adaptive" in run["Marks"]
    page = Parsed(site / "run" / f"{file_name(run_id)}.html")
    assert "adaptive" in page.said
    for path in pages(site):
        assert not [row for rows in Parsed(path).tables for row in rows
                    if any("hf:chosen" in cell for cell in row) and "100.0 %" in row]  # fmt: skip


def test_the_same_snapshot_gives_the_same_bytes(site_of, tmp_path):
    site, store = site_of("fit")
    export_site(store, tmp_path / "again")
    assert strict(site / MANIFEST) == strict(tmp_path / "again" / MANIFEST)


def test_scale_and_horizon_carry_numbers_attribution_and_licence(site_of):
    site, store = site_of("fit")
    con = snapshot(store)
    found = scale(con, fit_choices(con)[0].fit_id)
    models = strict(site / "data/scale_models.json")
    assert [m["ability"] for m in models] == [m.ability for m in found.models]
    assert [m["h50"] for m in models] == [m.h50 for m in found.models]
    assert (site / f"charts/curves-{file_name(found.fit.fit_id)}.html").is_file()
    for path in [site / "horizon.html", *(site / "horizon").iterdir()]:
        page = path.read_text(encoding="utf-8")
        assert "Liu et al. 2026, arXiv 2602.07267" in page
        assert "CC BY 4.0" in page
    others = [h for h in strict(site / "data/horizons.json") if h["kind"] == "published"]
    assert {h["license"] for h in others} == {"CC BY 4.0"}
    assert all("arXiv 2602.07267" in h["source"] for h in others)
    assert {h["model"] for h in others} == {m.model for m in published().models}
    # published figures are in no table of measured models
    measured = {row["model"] for row in strict(site / "data/leaderboard.json")}
    assert not measured & {h["model"] for h in others}


def test_a_folder_with_anything_else_is_left_alone(one_store, tmp_path, blank_charts):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty and no earlier export"):
        export_site(one_store, tmp_path / "notes")
    with pytest.raises(UsageError, match="not a folder"):
        export_site(one_store, tmp_path / "notes/mine.txt")
    export_site(one_store, tmp_path / "site")
    (tmp_path / "site/robots.txt").write_text("stale")
    export_site(one_store, tmp_path / "site")
    assert (tmp_path / "site/robots.txt").read_text() != "stale"
    (tmp_path / "site/CNAME").write_text("mine")
    with pytest.raises(UsageError, match="holds CNAME, which no export has written"):
        export_site(one_store, tmp_path / "site")
    assert {p.name for p in tmp_path.iterdir()} == {"notes", "site"}


def test_a_failure_leaves_the_earlier_export(
    one_store, newer_store, tmp_path, monkeypatch, blank_charts
):
    site = tmp_path / "out" / "site"
    export_site(one_store, site)
    before = (site / MANIFEST).read_bytes()
    with pytest.raises(StoreError, match="999"):
        export_site(newer_store, site)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(standings, "tasks", full)
    with pytest.raises(StoreError, match="No space left"):
        export_site(one_store, site)
    assert (site / MANIFEST).read_bytes() == before
    assert list(site.parent.iterdir()) == [site]


def test_embedded_pages_have_no_header(one_store, tmp_path, blank_charts):
    export_site(one_store, tmp_path / "site", embed=True)
    assert "nav" not in [tag for tag, _ in Parsed(tmp_path / "site/index.html").elements]


def test_the_command(store, write, tmp_path, capsys, blank_charts):
    write(store, [1.0, 0.0, 1.0, 1.0])  # not published yet: the command does it
    site = tmp_path / "site"
    assert main(["export", "site", str(site), "--store", str(store.root)]) == 0
    assert f"written to {site}; open {site / 'index.html'}" in capsys.readouterr().err
    assert table(site / "index.html")[0]["Score"] == "75.0 %"
    everything = b"".join(p.read_bytes() for p in site.rglob("*") if p.suffix in (".html", ".json"))
    assert str(store.root).encode() not in everything
    assert main(["export", "site", "--store", str(store.root)]) == 2
    assert main(["export", "site", str(site), "--format", "csv"]) == 2
    assert main(["export", "site", str(site), "--store", str(tmp_path / "nowhere")]) == 1


def test_the_templates_are_part_of_the_package():
    from importlib.resources import files

    names = {path.name for path in (files("leaderboard.site") / "templates").iterdir()}
    assert names == {"page.html.jinja", "site.css", "site.js"}


@pytest.mark.parametrize("script", [True, False])
def test_in_a_browser_from_disk_without_the_network(site_of, browser, script):
    site, store = site_of("fit")
    con = snapshot(store)
    fit_id = fit_choices(con)[0].fit_id
    context = browser.new_context(
        offline=True, java_script_enabled=script, color_scheme="dark",
        viewport={"width": 390, "height": 844},
    )  # fmt: skip
    page = context.new_page()
    problems = []
    page.on("console", lambda m: problems.append(m.text) if m.type != "log" else None)
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.on("requestfailed", lambda r: problems.append(r.url))
    for path in [*site.glob("*.html"), *list((site / "samples").iterdir())[:1],
                 site / "scale" / f"{file_name(fit_id)}.html"]:  # fmt: skip
        page.goto(path.as_uri())
        assert page.locator("h1").is_visible()
    page.goto((site / "index.html").as_uri())
    # the dark chart is drawn, and what is wider than a phone scrolls by itself
    image = page.locator("figure img").first
    assert image.bounding_box()["width"] > 300
    models = [row["Model"] for row in table(site / "index.html")]
    first = page.locator("tbody").first.locator("tr td:nth-child(3)")
    assert first.all_inner_texts() == models
    heads = page.locator("table").first.locator("thead th")
    assert heads.nth(0).get_attribute("title").startswith("All ranks that the data leave open")
    if script:
        assert page.evaluate("document.querySelector('figure img').currentSrc").endswith(
            "-dark.svg"
        )
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.get_by_role("button", name="Model").first.click()
        assert first.all_inner_texts() == [f"hf:m{i}" for i in range(12)]
        page.get_by_role("button", name="Model").first.click()
        assert first.all_inner_texts() == [f"hf:m{i}" for i in reversed(range(12))]
        assert heads.nth(2).get_attribute("aria-sort") == "descending"
        page.goto((site / f"charts/curves-{file_name(fit_id)}.html").as_uri())
        page.wait_for_selector("#chart svg, #chart canvas")
    else:
        assert page.locator("th button").count() == 0
    context.close()
    assert problems == []


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "", ".", "..", "CON", "a/b\\c", "\x00", "ü" * 500, "<b>", "a b"]
)
def test_a_file_name_is_one_whatever_the_name(name):
    made = file_name(name)
    assert re.fullmatch(r"[a-z0-9]+([.-][a-z0-9]+)*-?[0-9a-f]{8}|[0-9a-f]{8}", made)
    assert len(made) < 80
    assert Path(made).name == made


def test_names_that_differ_have_files_that_differ():
    assert file_name("Model") != file_name("model")
    assert file_name("a/b") != file_name("a-b")
