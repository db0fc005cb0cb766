"""Pictures and figures of a verdict on the page: drawn where they are safe, never as markup."""

from __future__ import annotations

import msgspec
import pytest

from harness.core.records import EventRecord, encoder
from harness.core.types import Picture
from harness.store import snapshot, sync
from leaderboard.rows.attempt import attempt
from leaderboard.ui.picture import image_html, measured_html, spec_of

CHART = "application/vnd.vegalite+json"
BARS = {
    "data": {"values": [{"x": 1, "y": 2}, {"x": 2, "y": 3}]},
    "mark": "bar",
    "encoding": {"x": {"field": "x"}, "y": {"field": "y"}},
}
EVIL = '"><script>alert(1)</script>'


def shown(run_id, seq, kind, **data):
    return encoder.encode(
        EventRecord(
            seq=seq, ts="2026-03-01T10:02:00.000000Z", run_id=run_id, schema=1, kind=kind,
            item_id="demo-0", epoch=0, attempt=0, data={"score": 2, **data},
        )
    )  # fmt: skip


@pytest.fixture
def pictured(store, write):
    run_id = write(store, [1.0], finish=False)
    picture = {"name": EVIL, "caption": "c", "media_type": "image/svg+xml", "data": "PHN2Zy8+"}
    chart = {"name": "bars", "media_type": CHART, "data": msgspec.json.encode(BARS)}
    broken = {"name": "no picture", "media_type": "text/html", "data": "PHN2Zy8+"}
    lines = [
        shown(run_id, 3, "judged", facts={"engine": EVIL, "rows": [{"s": 0.125}, {"s": None}]}),
        shown(run_id, 4, "picture", **picture),
        shown(run_id, 5, "picture", **chart),
        shown(run_id, 6, "picture", **broken),
        shown(run_id, 7, "picture", **(picture | {"score": 1})),
    ]
    with store.journal(run_id).open("ab") as file:
        file.writelines(line + b"\n" for line in lines)
    sync(store)
    return run_id


def test_a_sample_page_shows_its_pictures_and_figures(store, pictured, open_page):
    whole = attempt(snapshot(store), store, pictured, 0, "demo-0")
    # What is no picture, and what belongs to another verdict, is left out.
    assert [p.name for p in whole.pictures] == [EVIL, "bars"]
    app = open_page("samples", store, address={"key": f"{pictured}:0:demo-0"})
    assert not app.exception
    bodies = [block.proto.body for block in app.get("html")]
    assert any("data:image/svg+xml;base64,PHN2Zy8+" in body for body in bodies)
    assert any("0.125" in body for body in bodies)
    assert not any("<script" in body for body in bodies)
    assert len(app.get("vega_lite_chart") or app.get("arrow_vega_lite_chart")) == 1


def test_nothing_of_a_picture_is_markup_of_the_page():
    made = image_html(Picture(name=EVIL, media_type="image/png", data=b"\x89PNG", caption=EVIL))
    assert "<script" not in made
    assert made.count("<") == 1
    assert "<script" not in measured_html({EVIL: [{EVIL: EVIL}], "b": EVIL})


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"url": "https://elsewhere.example/x.json"}},
        {"usermeta": {"embedOptions": {"loader": {}}}},
        {"encoding": {"href": {"value": "https://elsewhere.example"}}},
        {"layer": [{"mark": "image", "encoding": {"url": {"value": "https://elsewhere.example"}}}]},
    ],
)
def test_a_chart_that_loads_something_or_leads_away_is_not_drawn(change):
    def picture(spec):
        return Picture(name="a", media_type=CHART, data=msgspec.json.encode(spec))

    assert spec_of(picture(BARS)) == BARS
    assert spec_of(picture(BARS | change)) is None
    assert spec_of(Picture(name="a", media_type=CHART, data=b"[" * 9999)) is None
