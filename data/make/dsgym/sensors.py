"""sensors.csv: an hourly thermometer as such files come: semicolons, commas, Latin-1, a clock moved."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from stream import Stream
from table import Question, Table, from_csv, pairs, rounded, to_csv

N = 2160
START = datetime(2024, 2, 20, tzinfo=UTC)
# Tenths of a degree above the mean by hour of day (UTC): coldest at 4, warmest at 14.
DAY = (
    -25,
    -31,
    -36,
    -39,
    -40,
    -38,
    -33,
    -24,
    -12,
    2,
    16,
    28,
    36,
    41,
    43,
    40,
    34,
    26,
    17,
    9,
    2,
    -5,
    -12,
    -19,
)
N_GAPS, N_SPIKES = 14, 9
WHOLE_DAY = 41
"""The day, counted from the first, of which nothing was recorded."""
SPIKE = 15
HEAD = ("Messzeit (örtlich)", "Zone", "Temperatur [°C]", "Gerät")


def make(draw: int) -> Mapping[str, bytes]:
    """Make the file: gaps, then readings hour by hour until there are enough, then spikes."""
    stream = Stream(draw)
    lost = _gaps(stream)
    hours: list[int] = []
    hour = 0
    while len(hours) < N:
        if hour not in lost:
            hours.append(hour)
        hour += 1
    tenths = [80 + DAY[h % 24] + h // 60 + math.floor(5 * stream.normal() + 0.5) for h in hours]
    places: list[int] = []
    while len(places) < N_SPIKES:
        at = 30 + stream.below(N - 60)
        # Far from each other and from gaps, so that "above its neighbours" is plain.
        if all(abs(at - p) > 48 for p in places) and hours[at + 1] - hours[at - 1] == 2:
            places.append(at)
            tenths[at] += 260 + stream.below(120)
    rows = [_row(h, t) for h, t in zip(hours, tenths, strict=True)]
    return {"sensors.csv": to_csv(HEAD, rows, ";").decode().encode("latin-1")}


def _gaps(stream: Stream) -> set[int]:
    """Choose hours without a reading: a whole day and more, and shorter gaps with readings between."""
    day = 24 * WHOLE_DAY
    lost = set(range(day - 1 - stream.below(5), day + 25 + stream.below(5)))
    n = 1
    while n < N_GAPS:
        begin, length = 24 + stream.below(2100), 2 + stream.below(8)
        hours = set(range(begin, begin + length))
        if not lost & set(range(begin - 3, begin + length + 3)):
            lost |= hours
            n += 1
    return lost


def _row(hour: int, tenths: int) -> Sequence[object]:
    # For a while the clock stood at another zone.
    ahead = 2 if 400 <= hour < 2000 else 0
    local = START + timedelta(hours=hour + ahead)
    value = f"{'-' if tenths < 0 else ''}{abs(tenths) // 10},{abs(tenths) % 10}"
    return f"{local:%d.%m.%Y %H:%M}", f"+0{ahead}:00", value, "Fühler 3"


_CONTEXT = (
    "sensors.csv has one row a reading, taken every full hour: the local time, the zone of the clock "
    "at that time (offset from UTC), the temperature in degrees Celsius and the device. It is encoded in "
    "Latin-1, cells are separated by semicolons and numbers have a decimal comma. All questions mean UTC. "
    "A gap is a run of full hours without a reading between two readings. A spike is a reading more than "
    "15 degrees above the reading before it and above the one after it."
)


# With every question, so that it gives away none.
_NA = "If a question has no relevant or applicable answer, answer with 'Not Applicable' alone."


def _question(
    name: str, question: str, guideline: str, kind: str, level: str, minutes: float, *traps: str,
    profile: str = "daeval",
) -> Question:  # fmt: skip
    return Question(
        name=name, question=question, guideline=f"{guideline}. {_NA}", answer_type=kind, level=level,
        minutes=minutes, profile=profile, traps=traps, keywords=("Time Series", "Cleaning"),
        context=_CONTEXT,
    )  # fmt: skip


QUESTIONS = (
    _question(
        "S1", "How many gaps are there?", "@gaps[n], a whole number", "pairs(gaps=int)", "medium", 6,
        "the zone is ignored",
    ),
    _question(
        "S2", "How many hours without a reading has the longest gap?", "@hours[n], a whole number",
        "pairs(hours=int)", "medium", 6, "the distance of the readings around it",
    ),
    _question(
        "S3", "On which days were there spikes?", "@days[YYYY-MM-DD, …], in any order",
        "pairs(days=set(date))", "hard", 7, "day and month are swapped",
    ),
    _question(
        "S4", "What is the mean temperature when spikes are left out?", "@mean[x], two decimals",
        "pairs(mean=float(2))", "easy", 5, "spikes are kept",
    ),
    _question(
        "S5", "In which hour of the day is it warmest on average (spikes left out)?",
        "@hour[n], from 0 to 23", "pairs(hour=int)", "hard", 6, "the zone is ignored",
    ),
    _question(
        "S6", "How strongly do readings and the readings 24 hours later correlate (Pearson), over all "
        "pairs of which both exist, spikes left out?",
        "@r[x], two decimals", "pairs(r=float(2))", "hard", 9, "rows are shifted instead of hours",
        "spikes are kept",
    ),
    _question(
        "S7", f"What was the reading at noon of {(START + timedelta(days=WHOLE_DAY)):%Y-%m-%d}?",
        "Just the number with one decimal", "na", "easy", 3, "a neighbouring reading is given",
        profile="dabstep",
    ),
)  # fmt: skip


def by_pandas(folder: Path) -> dict[str, str]:
    """Answer with pandas."""
    import pandas as pd

    d = pd.read_csv(folder / "sensors.csv", sep=";", decimal=",", encoding="latin-1")
    d.columns = pd.Index(["local", "zone", "value", "device"])
    local = pd.to_datetime(d.local, format="%d.%m.%Y %H:%M")
    ahead = pd.to_timedelta(d.zone.str[1:3].astype(int), unit="h")
    s = pd.Series(d.value.to_numpy(), index=pd.DatetimeIndex(local - ahead)).sort_index()
    missing = (s.index.to_series().diff() / pd.Timedelta(hours=1)).dropna() - 1
    spike = (s - s.shift(1) > SPIKE) & (s - s.shift(-1) > SPIKE)
    calm = s[~spike]
    by_hour = calm.groupby(calm.index.hour).mean()
    full = calm.asfreq("h")
    noon = START + timedelta(days=WHOLE_DAY, hours=12)
    found = s.get(pd.Timestamp(noon).tz_localize(None))
    return {
        "S1": pairs(gaps=str(int((missing > 0).sum()))),
        "S2": pairs(hours=str(int(missing.max()))),
        "S3": pairs(days=", ".join(sorted(set(s.index[spike].strftime("%Y-%m-%d"))))),
        "S4": pairs(mean=rounded(float(calm.mean()), 2)),
        "S5": pairs(hour=str(int(by_hour.idxmax()))),
        "S6": pairs(r=rounded(float(full.corr(full.shift(-24))), 2)),
        "S7": "Not Applicable" if found is None else str(found),
    }


def by_hand(folder: Path) -> dict[str, str]:
    """Answer with plain Python and exact fractions."""
    series = _read(folder)
    times = sorted(series)
    steps = [round((b - a) / timedelta(hours=1)) - 1 for a, b in pairwise(times)]
    spikes = {
        now
        for before, now, after in zip(times, times[1:], times[2:], strict=False)
        if series[now] - max(series[before], series[after]) > SPIKE
    }
    calm = {time: value for time, value in series.items() if time not in spikes}
    hours: dict[int, list[Fraction]] = defaultdict(list)
    for time, value in calm.items():
        hours[time.hour].append(value)
    day = timedelta(hours=24)
    both = [(value, calm[time + day]) for time, value in calm.items() if time + day in calm]
    noon = START + timedelta(days=WHOLE_DAY, hours=12)
    return {
        "S1": pairs(gaps=str(sum(step > 0 for step in steps))),
        "S2": pairs(hours=str(max(steps))),
        "S3": pairs(days=", ".join(sorted({f"{time:%Y-%m-%d}" for time in spikes}))),
        "S4": pairs(mean=rounded(float(sum(calm.values()) / len(calm)), 2)),
        "S5": pairs(hour=str(max(hours, key=lambda h: sum(hours[h]) / len(hours[h])))),
        "S6": pairs(r=rounded(_correlation(both), 2)),
        "S7": str(float(series[noon])) if noon in series else "Not Applicable",
    }


def _read(folder: Path) -> dict[datetime, Fraction]:
    found = {}
    for row in from_csv(folder / "sensors.csv", ";", "latin-1"):
        local, zone, value, _ = row.values()
        ahead = timedelta(hours=int(zone[:3]))
        time = datetime.strptime(local, "%d.%m.%Y %H:%M").replace(tzinfo=UTC) - ahead
        found[time] = Fraction(value.replace(",", "."))
    return found


def _correlation(both: list[tuple[Fraction, Fraction]]) -> float:
    n = len(both)
    x, y = sum(a for a, _ in both) / Fraction(n), sum(b for _, b in both) / Fraction(n)
    xy = sum((a - x) * (b - y) for a, b in both)
    xx, yy = sum((a - x) ** 2 for a, _ in both), sum((b - y) ** 2 for _, b in both)
    return float(xy) / math.sqrt(xx * yy)


def _by_the_clock(folder: Path) -> list[datetime]:
    """Give the times as they stand in the file."""
    rows = from_csv(folder / "sensors.csv", ";", "latin-1")
    return [
        datetime.strptime(next(iter(r.values())), "%d.%m.%Y %H:%M").replace(tzinfo=UTC)
        for r in rows
    ]


def _gaps_by_the_clock(folder: Path) -> str:
    hour = timedelta(hours=1)
    return pairs(gaps=str(sum(b - a > hour for a, b in pairwise(_by_the_clock(folder)))))


def _longest_step(folder: Path) -> str:
    step = max(b - a for a, b in pairwise(sorted(_read(folder))))
    return pairs(hours=str(step // timedelta(hours=1)))


def _calm(series: Mapping[datetime, Fraction]) -> tuple[dict[datetime, Fraction], list[datetime]]:
    """Part the readings into those without spikes, and the times of the spikes."""
    values = list(series.values())
    spikes = [
        time
        for i, time in enumerate(series)
        if 0 < i < len(values) - 1 and values[i] - max(values[i - 1], values[i + 1]) > SPIKE
    ]
    return {time: value for time, value in series.items() if time not in spikes}, spikes


def _swapped_days(folder: Path) -> str:
    """Answer S3 as a reader does that takes the month to come first wherever that is possible."""
    days = {
        f"{t.year}-{t.day:02d}-{t.month:02d}" if t.day <= 12 else f"{t:%Y-%m-%d}"
        for t in _calm(_read(folder))[1]
    }
    return pairs(days=", ".join(sorted(days)))


def _mean_of_all(folder: Path) -> str:
    values = _read(folder).values()
    return pairs(mean=rounded(float(sum(values) / len(values)), 2))


def _hour_by_the_clock(folder: Path) -> str:
    series = _read(folder)
    calm, _ = _calm(series)
    hours: dict[int, list[Fraction]] = defaultdict(list)
    for shown, time in zip(_by_the_clock(folder), series, strict=True):
        if time in calm:
            hours[shown.hour].append(calm[time])
    return pairs(hour=str(max(hours, key=lambda h: sum(hours[h]) / len(hours[h]))))


def _lagged_rows(folder: Path) -> str:
    values = list(_calm(_read(folder))[0].values())
    return pairs(r=rounded(_correlation(list(zip(values, values[24:], strict=False))), 2))


def _lag_with_spikes(folder: Path) -> str:
    series, day = _read(folder), timedelta(hours=24)
    both = [(value, series[time + day]) for time, value in series.items() if time + day in series]
    return pairs(r=rounded(_correlation(both), 2))


def _reading_before(folder: Path) -> str:
    series, noon = _read(folder), START + timedelta(days=WHOLE_DAY, hours=12)
    return f"{float(series[max(time for time in series if time <= noon)]):.1f}"


WRONG = {
    "S1": {"the zone is ignored": _gaps_by_the_clock},
    "S2": {"the distance of the readings around it": _longest_step},
    "S3": {"day and month are swapped": _swapped_days},
    "S4": {"spikes are kept": _mean_of_all},
    "S5": {"the zone is ignored": _hour_by_the_clock},
    "S6": {"rows are shifted instead of hours": _lagged_rows, "spikes are kept": _lag_with_spikes},
    "S7": {"a neighbouring reading is given": _reading_before},
}

TABLE = Table(
    name="sensors", files=("sensors.csv",), make=make, questions=QUESTIONS, by_pandas=by_pandas,
    by_hand=by_hand, wrong=WRONG,
)  # fmt: skip
