"""How every chart looks, in both themes: contrast, orders, no network, files that open."""

from __future__ import annotations

import json
import re
import struct
import xml.etree.ElementTree as ET
from datetime import date

import altair as alt
import pytest

from harness.core.errors import UsageError
from leaderboard.charts import common, flips, horizon, items, link, saving, scale, scores, tradeoff

ORDER = ["m-10b", "m-2b", "m-9b"]  # neither by name nor by score

SCORES = [
    scores.ScoreRow(label="m-2b", score=0.4, lo=0.3, hi=0.5, n=90),
    scores.ScoreRow(label="m-9b", score=0.6, lo=0.5, hi=0.7, n=90, is_partial=True),
    scores.ScoreRow(label="m-10b", score=0.5, lo=0.4, hi=0.6, n=90, is_baseline=True),
]
RANKS = [
    scores.RankRow(label=label, task=task, rank_lo=1, rank_hi=3)
    for label in ("m-2b", "m-9b", "m-10b")
    for task in ("gsm8k", "ifeval")
]
ABILITIES = [
    scale.AbilityRow(label="m-2b", theta=-0.4, lo=-0.6, hi=-0.2),
    scale.AbilityRow(label="m-9b", theta=0.9, lo=0.6, hi=1.2, is_baseline=True),
    scale.AbilityRow(label="m-10b", theta=0.3, lo=0.1, hi=0.5),
]
CATEGORIES = [
    items.CategoryRow(category=name, score=0.5, lo=0.2, hi=0.8, n=9)
    for name in ("m-2b", "m-9b", "m-10b")
]
FLIPS = [
    flips.FlipRow(label=name, gained=3, lost=8, unchanged=89) for name in ("m-2b", "m-9b", "m-10b")
]
ITEMS = [scale.ItemRow(item=f"i{k}", a=1.0 + k / 9, b=k / 3 - 1.5) for k in range(10)]
DIFFICULTIES = [items.DifficultyRow(item=r.item, b=r.b, minutes=2.0**r.b) for r in ITEMS]
HORIZONS = [
    horizon.HorizonRow(
        label=f"{kind}-{k}", released=date(2024, 1 + 3 * k, 5), minutes=2.0**k, lo=2.0**k / 2,
        hi=2.0**k * 3, kind=kind,
    )
    for k in range(4) for kind in ("own", "fitted", "published")
]  # fmt: skip
TREND = horizon.TrendRow(
    frontier=[f"fitted-{k}" for k in range(4)], months=3.0, lo=2.5, hi=4.0, kind="fitted"
)
LINKED = [link.LinkRow(item=f"i{k}", b=k / 3, minutes=3.0**k, source="ab"[k % 2]) for k in range(6)]
BAND = [link.BandRow(b=float(k), minutes=9.0**k, lo=9.0**k / 4, hi=9.0**k * 4) for k in range(3)]
TRADES = [
    tradeoff.TradeRow(label="q2", score=0.4, lo=0.3, hi=0.5, bits=2.0, memory_gib=1.0),
    tradeoff.TradeRow(label="q4", score=0.6, lo=0.5, hi=0.7, bits=4.0, memory_gib=2.0),
    tradeoff.TradeRow(label="sim", score=0.5, lo=0.4, hi=0.6, bits=3.0, is_simulated=True),
    tradeoff.TradeRow(label="mock", score=0.1, bits=8.0, memory_gib=4.0, is_baseline=True),
]
HUMAN = scale.MinutesLink(intercept=2.6, slope=1.5)

BY_NAME = {
    "scores": lambda dark: scores.score_plot(SCORES, sort=ORDER, dark=dark),
    "ranks": lambda dark: scores.rank_plot(RANKS, sort=ORDER, dark=dark),
    "abilities": lambda dark: scale.ability_plot(ABILITIES, sort=ORDER, link=HUMAN, dark=dark),
    "categories": lambda dark: items.category_bars(CATEGORIES, sort=ORDER, dark=dark),
    "flips": lambda dark: flips.flip_plot(FLIPS, sort=ORDER, dark=dark),
    "curves": lambda dark: scale.item_curves(ITEMS, highlight=["i2", "i5"], link=HUMAN, dark=dark),
    "information": lambda dark: scale.information_plot(ITEMS, abilities=ABILITIES, dark=dark),
    "difficulty": lambda dark: items.difficulty_histogram(DIFFICULTIES, dark=dark),
    "minutes": lambda dark: items.difficulty_histogram(DIFFICULTIES, in_minutes=True, dark=dark),
    "horizon": lambda dark: horizon.horizon_plot(HORIZONS, TREND, notes=["A note."], dark=dark),
    "link": lambda dark: link.link_plot(LINKED, BAND, dark=dark),
    "tradeoff": lambda dark: tradeoff.tradeoff_plot(TRADES, "bits", dark=dark),
    "nothing": lambda dark: scores.score_plot([], dark=dark),
}
IN_ROWS = ["scores", "ranks", "abilities", "categories", "flips"]
BACKGROUND = {False: "#ffffff", True: "#0e1117"}  # those of the site's two themes

_SVG: dict[tuple[str, bool], str] = {}


def svg_of(name, dark):
    if (name, dark) not in _SVG:
        _SVG[name, dark] = saving.to_svg(BY_NAME[name](dark))
    return _SVG[name, dark]


def luminance(colour):
    """WCAG 2.2's relative luminance of #rrggbb."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def blend(colour, background, opacity):
    mixed = (
        round(int(colour[i : i + 2], 16) * opacity + int(background[i : i + 2], 16) * (1 - opacity))
        for i in (1, 3, 5)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)


def too_pale(svg, background):
    """Every mark and text of a drawing whose contrast is too low."""
    found = []

    def walk(node, classes):
        classes = f"{classes} {node.get('class', '')}"
        if "role-axis-grid" in classes or "mark-area" in classes or "background" in classes:
            return  # decoration; the edges of an area are lines, see test_the_band_has_edges
        tag = node.tag.rpartition("}")[2]
        least = 4.5 if tag == "text" else 3.0
        for paint in ("fill", "stroke"):
            colour = (node.get(paint) or "").lower()
            if colour == "black":
                colour = "#000000"
            if not re.fullmatch(r"#[0-9a-f]{6}", colour) or colour == background:
                continue
            opacity = float(node.get("opacity") or 1) * float(node.get(f"{paint}-opacity") or 1)
            if opacity and contrast(blend(colour, background, opacity), background) < least:
                found.append((classes.strip(), tag, paint, colour, opacity))
        for child in node:
            walk(child, classes)

    walk(ET.fromstring(svg), "")
    return found


def nodes(value):
    """Every object inside a specification."""
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from nodes(child)
    elif isinstance(value, list):
        for child in value:
            yield from nodes(child)


def without_sort(spec):
    """Every encoding of named rows or columns that leaves its order to the drawing library."""
    return [
        (channel, node[channel])
        for node in nodes(spec)
        for channel in ("x", "y", "row", "column")
        if isinstance(node.get(channel), dict)
        and node[channel].get("type") == "nominal"
        and not isinstance(node[channel].get("sort"), list)
    ]


def test_the_formula_gives_the_known_contrasts():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert contrast("#0072b2", "#ffffff") == pytest.approx(5.19, abs=0.01)
    assert blend("#000000", "#ffffff", 0.5) == "#808080"
    assert blend("#0072b2", "#ffffff", 1.0) == "#0072b2"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", BY_NAME)
def test_contrast(name, dark):
    svg = svg_of(name, dark)
    assert f'fill="{BACKGROUND[dark]}"' in svg.lower()
    assert too_pale(svg, BACKGROUND[dark]) == []


def test_an_interval_in_fixed_black_is_caught():
    chart = BY_NAME["scores"](True)
    chart.layer[0].mark.color = "black"
    found = too_pale(saving.to_svg(chart), BACKGROUND[True])
    assert {(tag, colour) for _, tag, _, colour, _ in found} == {("line", "#000000")}


def test_a_pale_colour_of_the_palette_is_caught_on_white():
    chart = BY_NAME["scores"](False)
    chart.layer[0].mark.color = "#56B4E9"
    assert too_pale(saving.to_svg(chart), BACKGROUND[False])


def test_the_band_has_edges():
    layers = BY_NAME["link"](False).to_dict()["layer"]
    edges = {(one["mark"]["type"], one["encoding"]["y"]["field"]) for one in layers[1:3]}
    assert edges == {("line", "lo"), ("line", "hi")}


@pytest.mark.parametrize("name", BY_NAME)
def test_every_chart_says_its_order(name):
    assert without_sort(BY_NAME[name](False).to_dict()) == []


@pytest.mark.parametrize("name", IN_ROWS)
def test_rows_stand_in_the_order_asked_for(name):
    spec = BY_NAME[name](False).to_dict()
    asked = [
        n["y"]["sort"] for n in nodes(spec) if isinstance(n.get("y"), dict) and "sort" in n["y"]
    ]
    assert asked
    assert all(order == ORDER for order in asked)
    heights = {}
    for group in ET.fromstring(svg_of(name, False)).iter("{http://www.w3.org/2000/svg}g"):
        if "role-axis-label" in group.get("class", ""):
            for text in group:
                label = (text.text or "").removesuffix(" *")
                if label in ORDER:
                    place = re.search(r"translate\(\S+?,(\S+?)\)", text.get("transform"))
                    heights[label] = float(place.group(1))
    assert sorted(heights, key=heights.get) == ORDER


def test_a_chart_without_an_order_is_caught():
    chart = BY_NAME["scores"](False)
    for layer in chart.layer:
        layer.encoding.y.sort = alt.Undefined
    assert len(without_sort(chart.to_dict())) == 2


def test_copies_of_a_chart_share_its_rows():
    # Building a chart copies it many times; of a thousand rows that is most of the time.
    rows = common.data([{"x": 1.0}])
    chart = alt.Chart(rows).mark_point().encode(x="x:Q").properties(title="a")
    assert chart.copy(deep=True).data is rows
    assert (chart + chart.mark_line()).to_dict()["datasets"].popitem()[1] == [{"x": 1.0}]


def test_a_long_name_is_cut_in_a_file_as_on_a_wide_page():
    row = scores.ScoreRow(label="m" * 99, score=0.5, n=3)
    (label,) = re.findall(r">(m+…?)<", saving.to_svg(scores.score_plot([row], sort=["m" * 99])))
    # 180 pixels, a letter m has 9 of them; and never less than 70 on a phone.
    assert 15 < len(label) < 25


@pytest.mark.parametrize("name", BY_NAME)
def test_nothing_is_fetched(name):
    spec = BY_NAME[name](False).to_dict()
    assert spec.pop("$schema").startswith("https://vega.github.io/schema/vega-lite/v6")
    text = json.dumps(spec)
    assert "://" not in text
    assert '"url"' not in text
    assert json.loads(text, parse_constant=pytest.fail) == spec  # strict JSON
    assert BY_NAME[name](False).to_dict() == BY_NAME[name](False).to_dict()


@pytest.mark.parametrize("name", BY_NAME)
def test_fonts_are_those_that_systems_have(name):
    fonts = set(re.findall(r'font-family="([^"]+)"', svg_of(name, False)))
    assert fonts == {"Liberation Sans, Arial, Helvetica, sans-serif"}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["horizon", "curves"])
def test_png_is_drawn(tmp_path, name, dark):
    path = saving.save(BY_NAME[name](dark), tmp_path / "new" / "chart.png")
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    # At double density, and at least the plot of 640 × 380.
    assert (width, height) > (1280, 760)
    assert len(content) > 20_000


def test_svg_and_html_are_written(tmp_path):
    chart = BY_NAME["tradeoff"](False)
    svg = saving.save(chart, tmp_path / "a.svg").read_text()
    assert ET.fromstring(svg).tag.endswith("svg")
    assert ">q4<" in svg
    page = saving.save(chart, tmp_path / "a.html").read_text()
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert "vega-lite" in page


def test_a_name_cannot_bring_a_script():
    name = "m</script><script>alert(1)</script><!--"
    row = scores.ScoreRow(label=name, score=0.5, n=3, is_partial=True)
    chart = scores.score_plot([row], metric=name, title=name)
    for text in (saving.to_html(chart), saving.to_svg(chart)):
        assert "alert(1)" in text
        assert "<script>alert" not in text


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"chart\.gif: end the name in \.png, \.svg or \.html"):
        saving.save(BY_NAME["nothing"](False), tmp_path / "chart.gif")


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        saving.save(BY_NAME["nothing"](False), tmp_path / "file" / "chart.svg")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        scores.score_plot, scores.rank_plot, items.difficulty_histogram, items.category_bars,
        scale.item_curves, scale.ability_plot, scale.information_plot, horizon.horizon_plot,
        link.link_plot, tradeoff.tradeoff_plot, flips.flip_plot,
    ],
)  # fmt: skip
def test_no_rows_give_a_sentence(function, dark):
    spec = function([], dark=dark).to_dict()
    assert spec["mark"]["type"] == "text"
    assert len(" ".join(spec["mark"]["text"])) > 15
    assert spec["background"].lower() == BACKGROUND[dark]
