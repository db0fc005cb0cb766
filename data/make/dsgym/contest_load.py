"""own-load: what five sites of a company draw from the grid each hour; four weeks are hidden."""

from __future__ import annotations

import math

from contest_table import Cell, Contest, Drawn, ids, whole
from stream import Stream
from table import to_csv

DAYS, HIDDEN = 300, 28
NOISE = 0.04
"""Standard deviation of the noise, as a share of the load."""
INPUTS = ("site", "hour", "weekday", "holiday", "temperature", "day")
LEVEL = {"A": 140, "B": 210, "C": 300, "D": 420, "E": 560}
DAY = (
    0.62, 0.58, 0.55, 0.54, 0.56, 0.63, 0.78, 0.97, 1.12, 1.20, 1.24, 1.26,
    1.25, 1.24, 1.22, 1.19, 1.16, 1.15, 1.17, 1.14, 1.03, 0.91, 0.79, 0.69,
)  # fmt: skip
WEEK = (0.02, 0.05, 0.06, 0.05, 0.01, -0.14, -0.22)
"""Monday first; day 1 is a Monday."""
HOLIDAY = -0.20


def make(draw: int) -> Drawn:
    """Draw the days, then the load of every site and hour."""
    stream = Stream(3_000_017 * (draw + 1))
    days = _days(stream)
    names = iter(ids(stream, len(LEVEL) * HIDDEN * 24, first=1001))
    wide: list[list[Cell]] = []
    long: list[list[Cell]] = []
    target: list[float] = []
    test: dict[str, list[Cell]] = {}
    truth: dict[str, str] = {}
    noiseless: dict[str, float] = {}
    for site in LEVEL:
        for day, (temperature, holiday) in enumerate(days, 1):
            weekday = (day - 1) % 7
            loads = []
            for hour in range(24):
                load = _load(site, hour, weekday, holiday, temperature)
                # Hour and weekday as words: the reference programs take them for categories.
                row: list[Cell] = [
                    site, f"{hour:02d}", str(weekday), holiday, temperature, day
                ]  # fmt: skip
                measured = round(load * (1 + NOISE * stream.normal()))
                loads.append(measured)
                if day <= DAYS - HIDDEN:
                    long.append(row)
                    target.append(float(measured))
                    continue
                name = next(names)
                test[name], truth[name], noiseless[name] = row, str(measured), round(load, 3)
            if day <= DAYS - HIDDEN:
                wide.append([site, day, temperature, holiday, *loads])
    asked = [(name, r[0], r[5], int(r[1]), r[4], r[3]) for name, r in test.items()]
    files = {
        "train.csv": to_csv(("site", "day", "temperature", "holiday", *map(str, range(24))), wide),
        "test.csv": to_csv(("id", "site", "day", "hour", "temperature", "holiday"), asked),
    }
    return Drawn(INPUTS, long, target, test, truth, noiseless, files)


def _days(stream: Stream) -> list[tuple[float, int]]:
    """Give mean temperature and whether it is a holiday, for every day."""
    weather, days = 0.0, []
    for day in range(DAYS):
        weather = 0.7 * weather + 2.2 * stream.normal()
        season = 12 - 11 * math.cos(2 * math.pi * (day - 20) / 365)
        # Two holidays at least are hidden; one in thirty days is one.
        holiday = day in (DAYS - 20, DAYS - 9) or whole(stream, 1, 30) == 1
        days.append((round(season + weather, 1), int(holiday)))
    return days


def _load(site: str, hour: int, weekday: int, holiday: int, temperature: float) -> float:
    """Give the load in kW without noise."""
    level = LEVEL[site]
    bend = 0.012 * max(0.0, 14 - temperature) + 0.02 * max(0.0, temperature - 20)
    return level * (DAY[hour] + WEEK[weekday] + bend + HOLIDAY * holiday)


CONTEST = Contest(
    name="own-load",
    title="Electric load of five sites",
    story="A made-up company has five sites. Predict their load for every hour of four weeks, days 273 "
    "to 300, from the 272 days before; the temperature of those weeks is given.",
    data="""\
train.csv: a row for each site and day: site, day, temperature, holiday, and the load of the hours 0 to 23
test.csv: a row for each hour to be predicted: id, site, day, hour, temperature, holiday
sample_submission.csv: the form
id: number of the row, without a meaning
site: A to E
day: 1 to 300; day 1 is a Monday in January
temperature: mean of the day in degrees Celsius
holiday: 1 where the sites have a holiday
load: kW, the target""",
    metric="smape",
    direction="lower",
    measured="Symmetric mean absolute percentage error, 100 times the mean of 2 |p - y| / (|p| + |y|), "
    "lower is better.",
    target="load",
    domain="energy",
    keywords=("time series", "forecasting", "calendar effects", "wide format"),
    make=make,
)
