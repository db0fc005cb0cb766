"""own-rent: what flats of a city cost a month; the noise multiplies."""

from __future__ import annotations

import math

from contest_table import Cell, Contest, Drawn, flat, ids, one_of, whole
from stream import Stream

N_TRAIN, N_TEST = 3000, 1500
NOISE = 0.15
"""Standard deviation of ln(1 + rent) around what the flat is worth."""
INPUTS = (
    "area", "rooms", "floor", "year", "district", "distance", "balcony", "energy", "heating",
    "furnished", "month", "parking",
)  # fmt: skip
EFFECT = {
    "A": 0.32, "B": 0.21, "C": 0.12, "D": 0.05, "E": -0.02, "F": -0.09, "G": -0.17, "H": -0.28,
}  # fmt: skip
ENERGY = "ABCDEFG"
HEATING = {"gas": 0.0, "oil": -0.05, "heat": 0.04, "pump": 0.08}
MISSING = 20
"""One in so many of the cells of year, distance and energy is empty."""


def make(draw: int) -> Drawn:
    """Draw the flats."""
    # Contests and tables of one draw are told apart by where in the stream they begin.
    stream = Stream(1_000_003 * (draw + 1))
    names = ids(stream, N_TRAIN + N_TEST, first=1001)
    rows = [_flat(stream) for _ in names]
    return flat(INPUTS, "rent", names, rows, N_TRAIN)


def _flat(stream: Stream) -> tuple[list[Cell], str, float]:
    area = 22 + whole(stream, 0, 50) + whole(stream, 0, 50)
    rooms = max(1, (area + whole(stream, -12, 12)) // 24)
    district = one_of(stream, "ABCDEFGH")
    row: dict[str, Cell] = {
        "area": area,
        "rooms": rooms,
        "floor": whole(stream, 0, 7),
        "year": whole(stream, 1900, 2022),
        "district": district,
        "distance": (5 + 10 * "ABCDEFGH".index(district) + whole(stream, 0, 60)) / 10,
        "balcony": whole(stream, 0, 1),
        "energy": one_of(stream, ENERGY),
        "heating": one_of(stream, tuple(HEATING)),
        "furnished": int(whole(stream, 0, 5) == 0),
        "month": whole(stream, 1, 12),
        "parking": int(whole(stream, 0, 2) == 0),
    }
    worth = _worth(row)
    rent = round(math.expm1(worth + NOISE * stream.normal()))
    for column in ("year", "distance", "energy"):
        if whole(stream, 1, MISSING) == 1:
            row[column] = ""
    return [row[column] for column in INPUTS], str(rent), round(math.expm1(worth), 3)


def _worth(row: dict[str, Cell]) -> float:
    """Give ln(1 + rent) without noise: districts, a linear part, one product, a step."""
    area, distance, year = float(row["area"]), float(row["distance"]), float(row["year"])
    return (
        5.4
        + EFFECT[str(row["district"])]
        + 0.0155 * area
        + 0.03 * float(row["rooms"])
        + 0.008 * float(row["floor"])
        + 0.0006 * (year - 1960)
        - 0.01 * distance
        - 0.0004 * area * distance
        + (0.16 if year >= 2000 else 0.0)
        + 0.05 * float(row["balcony"])
        - 0.025 * ENERGY.index(str(row["energy"]))
        + HEATING[str(row["heating"])]
        + 0.12 * float(row["furnished"])
        + 0.004 * float(row["month"])
        + 0.06 * float(row["parking"])
    )


CONTEST = Contest(
    name="own-rent",
    title="Monthly rents of flats",
    story="An agency lets flats in a made-up city. Predict the monthly rent in EUR of 1,500 flats from "
    "3,000 whose rent is known.",
    data="""\
train.csv: 3,000 flats with their rent; test.csv: 1,500 without; sample_submission.csv: the form.
id: number of the flat, without a meaning
area: square metres
rooms, floor: counts, 0 is the ground floor
year: when the house was built; some are missing
district: A to H
distance: km to the centre; some are missing
balcony, furnished, parking: 1 for yes
energy: class A (best) to G; some are missing
heating: gas, oil, heat (from a district network), pump (heat pump)
month: of the contract, 1 to 12
rent: EUR a month, the target""",
    metric="rmsle",
    direction="lower",
    measured="Root mean squared error of ln(1 + rent), lower is better. A prediction below 0 is invalid.",
    target="rent",
    domain="housing",
    keywords=("regression", "tabular", "missing values", "skewed target"),
    make=make,
)
