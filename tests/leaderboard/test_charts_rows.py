"""What charts show is what their rows say."""

from __future__ import annotations

import json
import math
import re
from datetime import date

import msgspec
import numpy as np
import pytest
from scipy.special import expit

from leaderboard.charts import common, flips, horizon, items, link, minutes, scale, scores, tradeoff


def data_of(chart):
    """All rows of a specification, whichever layer they belong to."""
    found = []

    def walk(value):
        if isinstance(value, dict):
            found.extend(value.get("values", []) if isinstance(value.get("values"), list) else [])
            for child in value.values():
                walk(child)
        elif isinstance(value, list):
            for child in value:
                walk(child)

    spec = chart.to_dict()
    walk(spec)
    for rows in spec.get("datasets", {}).values():
        found.extend(rows)
    return [row for row in found if isinstance(row, dict)]


def holds(rows, wanted):
    """Whether some row has all these values, exactly."""
    return any(all(row.get(k) == v for k, v in wanted.items()) for row in rows)


def subtitle(chart):
    return " ".join(chart.to_dict()["title"].get("subtitle", []))


SCORE = scores.ScoreRow(label="a", score=0.123456789, lo=0.1, hi=0.2, n=71)
CASES = [
    (scores.score_plot, SCORE),
    (scores.rank_plot, scores.RankRow(label="a", task="t", rank_lo=2, rank_hi=5)),
    (items.category_bars, items.CategoryRow(category="c", score=1 / 3, lo=0.2, hi=0.7, n=3)),
    (scale.ability_plot, scale.AbilityRow(label="a", theta=-1 / 7, lo=-0.5, hi=0.25)),
    (scale.item_curves, scale.ItemRow(item="i", a=1 / 7, b=-2 / 7)),
    (link.link_plot, link.LinkRow(item="i", b=0.1 + 0.2, minutes=17.3)),
    (flips.flip_plot, flips.FlipRow(label="a", gained=3, lost=8, unchanged=89)),
    (tradeoff.tradeoff_plot, tradeoff.TradeRow(label="a", score=0.1 + 0.2, bits=4.5)),
    (
        horizon.horizon_plot,
        horizon.HorizonRow(label="a", released=date(2024, 2, 29), minutes=1 / 3, lo=0.2, hi=0.7),
    ),
]


@pytest.mark.parametrize(("function", "row"), CASES)
def test_values_are_those_of_the_row(function, row):
    wanted = msgspec.structs.asdict(row)
    if "released" in wanted:
        wanted["released"] = "2024-02-29"
    assert holds(data_of(function([row])), wanted)


def test_what_is_no_number_becomes_null():
    rows = data_of(scores.score_plot([msgspec.structs.replace(SCORE, lo=math.nan, hi=math.inf)]))
    assert holds(rows, {"lo": None, "hi": None, "score": SCORE.score})


@pytest.mark.parametrize(
    ("function", "row"),
    [c for c in CASES if c[0] not in (scale.item_curves, link.link_plot, tradeoff.tradeoff_plot, horizon.horizon_plot)],
)  # fmt: skip
def test_two_rows_of_one_name_are_refused(function, row):
    with pytest.raises(ValueError, match="names of their own"):
        function([row, row])


def test_names_sort_as_people_sort_them():
    names = ["qwen3-14b", "Qwen3-4b", "qwen3-0.6b", "llama", "qwen3-1.7b", "7b"]
    assert common.natural_sorted(names) == [
        "7b", "llama", "qwen3-0.6b", "qwen3-1.7b", "Qwen3-4b", "qwen3-14b",
    ]  # fmt: skip


def test_names_that_an_order_leaves_out_follow_by_name():
    assert common.row_order(["m-10", "m-9", "z"], [], ["z", "gone"]) == ["z", "m-9", "m-10"]


def test_the_score_axis_is_whole_unless_asked():
    def domain(**options):
        return scores.score_plot([SCORE], **options).to_dict()["layer"][1]["encoding"]["x"]["scale"]

    assert domain()["domain"] == [0, 1]
    low, high = domain(zoom=True)["domain"]
    assert 0 < low < SCORE.lo
    assert SCORE.hi < high < 1


def test_a_score_above_one_is_not_cut_off():
    row = scores.ScoreRow(label="severity", score=3.5, lo=3.0, hi=4.0, n=9)
    spec = scores.score_plot([row]).to_dict()
    assert spec["layer"][1]["encoding"]["x"]["scale"]["domain"] == [0, 4.0]


# Human minutes


def test_a_day_has_the_nine_names():
    chart = horizon.horizon_plot(
        [
            horizon.HorizonRow(label="a", released=date(2024, 1, 1), minutes=1 / 60),
            horizon.HorizonRow(label="b", released=date(2025, 1, 1), minutes=1440.0),
        ]
    )
    axis = chart.to_dict()["encoding"]["y"]["axis"]
    seconds = [round(60 * value, 6) for value in axis["values"]]
    assert seconds == [1, 15, 60, 240, 900, 3600, 14_400, 57_600, 86_400]
    names = ["1 s", "15 s", "1 min", "4 min", "15 min", "1 h", "4 h", "16 h", "1 d"]
    assert re.findall(r"'([^']+)'", axis["labelExpr"]) == names
    scale_ = chart.to_dict()["encoding"]["y"]["scale"]
    assert (scale_["type"], scale_["base"]) == ("log", 2)


@pytest.mark.parametrize("span", [(0.001, 0.01), (1 / 60, 60.0), (1.0, 1e7), (30.0, 40.0)])
@pytest.mark.parametrize("gap", [12, 40])
def test_names_on_the_axis_do_not_meet(span, gap):
    domain = minutes.minutes_domain(span)
    ticks = list(minutes.minute_ticks(domain, 380, gap).values())
    places = [380 * math.log(t / domain[0]) / math.log(domain[1] / domain[0]) for t in ticks]
    assert len(ticks) >= 2
    assert min(np.diff(places)) >= gap


def test_the_second_axis_reads_abilities_in_minutes():
    chart = scale.item_curves(
        [scale.ItemRow(item="i", a=1.0, b=0.0)],
        link=scale.MinutesLink(intercept=2.57, slope=1.521),
    )
    axis = chart.to_dict()["layer"][1]["encoding"]["x"]["axis"]
    named = dict(zip(re.findall(r"'([^']+)'", axis["labelExpr"]), axis["values"], strict=True))
    assert axis["orient"] == "top"
    for name, length in (("1 min", 1), ("15 min", 15), ("1 h", 60), ("1 d", 1440)):
        assert math.exp(2.57 + 1.521 * named[name]) == pytest.approx(length)


@pytest.mark.parametrize("slope", [0.0, -1.0, math.nan])
def test_without_a_rising_link_there_is_no_second_axis(slope):
    found = scale.item_curves(
        [scale.ItemRow(item="i", a=1.0, b=0.0)],
        link=scale.MinutesLink(intercept=1.0, slope=slope),
    )
    assert "human time" not in json.dumps(found.to_dict())


# Horizon


def trend_chart(months, **options):
    front = [(date(2023, 3, 14), 4.0), (date(2024, 5, 13), 9.0), (date(2025, 2, 1), 60.0)]
    rows = [
        horizon.HorizonRow(label=f"m{i}", released=day, minutes=length, kind="fitted")
        for i, (day, length) in enumerate(front)
    ]
    rows.append(
        horizon.HorizonRow(label="m1", released=date(2024, 5, 13), minutes=2.0, kind="published")
    )
    labels = ["m0", "m1", "m2"]
    trend = horizon.TrendRow(frontier=labels, months=months, kind="fitted", **options)
    return front, horizon.horizon_plot(rows, trend)


def layer_with(chart, key):
    spec = chart.to_dict()
    (found,) = [layer for layer in spec["layer"] if key in layer["mark"]]
    return (
        spec["datasets"][found["data"]["name"]]
        if "name" in found["data"]
        else found["data"]["values"]
    )


def test_the_doubling_line_is_the_least_squares_line():
    front = [(2023 * 12 + 2, 4.0), (2024 * 12 + 4, 9.0), (2025 * 12 + 1, 60.0)]
    slope, height = np.polyfit([m for m, _ in front], np.log([v for _, v in front]), 1)
    _, chart = trend_chart(math.log(2) / slope, lo=3.0, hi=9.0)
    ends = layer_with(chart, "strokeDash")
    assert [end["released"][:7] for end in ends] == ["2023-03", "2025-02"]
    drawn = [math.log(end["minutes"]) for end in ends]
    assert drawn == pytest.approx([height + slope * m for m in (front[0][0], front[-1][0])])


def test_the_frontier_is_of_one_kind():
    front, chart = trend_chart(5.0, lo=4.0, hi=6.0)
    corners = [(row["released"], row["minutes"]) for row in layer_with(chart, "interpolate")]
    wanted = [(day.isoformat(), length) for day, length in front]
    assert corners == [*wanted, wanted[-1]]


def test_the_doubling_time_and_its_interval_are_said():
    _, chart = trend_chart(5.83, lo=5.2, hi=6.5, level=0.9)
    assert "5.8 months [5.2, 6.5] (90 % interval)" in subtitle(chart)


@pytest.mark.parametrize("months", [None, math.inf])
def test_no_growth_draws_no_line(months):
    _, chart = trend_chart(months)
    assert "none found" in subtitle(chart)
    assert not any("strokeDash" in layer["mark"] for layer in chart.to_dict()["layer"])


def test_kinds_differ_in_colour_shape_and_filling():
    rows = [
        horizon.HorizonRow(label="m", released=date(2024, 1, 1), minutes=3.0, kind=kind)
        for kind in ("published", "own", "fitted")
    ]
    spec = horizon.horizon_plot(rows).to_dict()
    (points,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "point"]
    channels = {c: points["encoding"][c]["scale"] for c in ("stroke", "fill", "shape")}
    for one in channels.values():
        assert one["domain"] == ["own runs", "published answers, fitted here", "published figures"]
        assert len(set(one["range"])) == 3
    # Published figures are hollow, the others are not.
    assert channels["fill"]["range"][2] == spec["background"]
    assert channels["fill"]["range"][:2] == channels["stroke"]["range"][:2]


def test_a_horizon_of_zero_is_left_out_and_said():
    row = horizon.HorizonRow(label="m", released=date(2024, 1, 1), minutes=3.0)
    nothing = msgspec.structs.replace(row, label="davinci", minutes=0.0)
    chart = horizon.horizon_plot([row, nothing])
    assert "1 without a horizon above zero" in subtitle(chart)
    assert not holds(data_of(chart), {"label": "davinci"})


def test_an_interval_down_to_zero_ends_at_the_axis():
    row = horizon.HorizonRow(label="m", released=date(2024, 1, 1), minutes=3.0, lo=0.0, hi=9.0)
    chart = horizon.horizon_plot([row])
    lowest = chart.to_dict()["encoding"]["y"]["scale"]["domain"][0]
    assert holds(data_of(chart), {"lo": 0.0, "lo_drawn": lowest})


def test_days_are_days_in_every_time_zone():
    spec = horizon.horizon_plot(
        [horizon.HorizonRow(label="m", released=date(2024, 1, 1), minutes=3.0)]
    ).to_dict()
    assert spec["encoding"]["x"]["scale"]["type"] == "utc"


# Items and information


@pytest.mark.parametrize("spread", [0.3, 2.0, 60.0])
def test_bins_count_as_numpy_counts(spread):
    values = np.random.default_rng(3).normal(0, spread, 500).tolist()
    found = items.bins(values)
    edges = [*(one.lo for one in found), found[-1].hi]
    assert [one.n for one in found] == np.histogram(values, edges)[0].tolist()
    assert len(found) <= 30
    assert sum(one.n for one in found) == 500


def test_minutes_are_binned_by_octaves():
    rows = [items.DifficultyRow(item=f"i{k}", b=None, minutes=m) for k, m in enumerate((1, 1, 33))]
    rows.append(items.DifficultyRow(item="unknown", b=0.0))
    chart = items.difficulty_histogram(rows, in_minutes=True)
    assert "1 without human minutes left out" in subtitle(chart)
    assert holds(data_of(chart), {"lo": 1.0, "n": 2})
    assert sum(row["n"] for row in data_of(chart)) == 3


def test_information_is_that_of_the_two_parameter_model():
    rng = np.random.default_rng(5)
    a, b = rng.lognormal(0, 0.4, 50), rng.normal(0, 1.5, 50)
    rows = [scale.ItemRow(item=str(k), a=x, b=y) for k, (x, y) in enumerate(zip(a, b, strict=True))]
    for theta in (-3.0, 0.1, 2.5, 40.0):
        p = expit(a * (theta - b))
        wanted = float(np.sum(a * a * p * expit(-a * (theta - b))))
        assert scale.information(rows, [theta]) == [pytest.approx(wanted, rel=1e-12)]


def test_many_items_are_thinned_evenly_and_said():
    rows = [scale.ItemRow(item=f"i{k:04}", a=1.0, b=k / 100) for k in range(1000)]
    chart = scale.item_curves(rows, most=11)
    assert "11 of 1,000 items" in subtitle(chart)
    assert [row["b"] for row in data_of(chart)] == pytest.approx(
        [k / 100 for k in (0, 100, 200, 300, 400, 500, 599, 699, 799, 899, 999)], abs=0.011
    )


# Trade-off


def trade(label, score, **more):
    return tradeoff.TradeRow(label=label, score=score, **more)


def test_the_front_holds_what_nothing_beats():
    rows = [
        trade("cheap", 0.3, bits=2), trade("beaten", 0.2, bits=3), trade("good", 0.6, bits=4),
        trade("same score, dearer", 0.6, bits=5), trade("best", 0.7, bits=16),
        trade("twin of good", 0.6, bits=4), trade("mock", 0.9, bits=1, is_baseline=True),
        trade("unknown", 0.9),
    ]  # fmt: skip
    front = [row.label for row in tradeoff.pareto_front(rows, "bits")]
    assert front == ["cheap", "good", "twin of good", "best"]


def test_for_speed_more_is_better():
    rows = [trade("slow", 0.7, tokens_per_s=5.0), trade("fast", 0.5, tokens_per_s=50.0),
            trade("neither", 0.4, tokens_per_s=20.0)]  # fmt: skip
    front = [row.label for row in tradeoff.pareto_front(rows, "tokens_per_s")]
    assert front == ["fast", "slow"]
    spec = tradeoff.tradeoff_plot(rows, "tokens_per_s").to_dict()
    (line,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "line"]
    # Between 5 and 50 tokens a second, .5 is what can be had.
    assert line["mark"]["interpolate"] == "step-before"


@pytest.mark.parametrize("against", ["memory_gib", "tokens_per_s"])
def test_a_simulated_quantisation_has_neither_memory_nor_speed(against):
    planted = {"memory_gib": 123.456, "tokens_per_s": 654.321}
    rows = [trade("real", 0.5, bits=4, memory_gib=2.0, tokens_per_s=9.0),
            trade("sim", 0.5, bits=4, is_simulated=True, **planted)]  # fmt: skip
    chart = tradeoff.tradeoff_plot(rows, against)
    assert "1 of them simulated: neither memory nor speed" in subtitle(chart)
    for text in (json.dumps(c.to_dict()) for c in (chart, tradeoff.tradeoff_plot(rows, "bits"))):
        assert "123.456" not in text
        assert "654.321" not in text


def test_flips_keep_both_sides():
    rows = data_of(flips.flip_plot([flips.FlipRow(label="a", gained=30, lost=30, unchanged=9)]))
    assert holds(rows, {"side": "lost", "at": -30, "items": 30})
    assert holds(rows, {"side": "gained", "at": 30, "items": 30})
