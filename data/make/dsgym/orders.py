"""orders.csv: 600 orders of a shop, some without a quantity, some sent back."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

from stream import Stream
from table import Question, Table, from_csv, pairs, rounded, to_csv

HEAD = ("order_id", "date", "region", "product", "qty", "price_cents", "discount_pct", "returned")
REGIONS = ("north", "south", "east", "west")
DISCOUNTS = (0, 0, 0, 5, 10, 20)
START = date(2023, 1, 1)


def make(draw: int) -> Mapping[str, bytes]:
    """Make the table: eight values of the stream a row."""
    stream = Stream(draw)
    rows = []
    for i in range(600):
        u = [stream.value() for _ in range(8)]
        rows.append((
            1001 + i, START + timedelta(days=u[0] % 365), REGIONS[u[1] % 4], f"P{u[2] % 7 + 1:02d}",
            "" if u[7] % 29 == 0 else 1 + u[3] % 9, 199 + u[4] % 5000, DISCOUNTS[u[5] % 6],
            "yes" if u[6] % 13 == 0 else "no",
        ))  # fmt: skip
    return {"orders.csv": to_csv(HEAD, rows)}


_CONTEXT = (
    "orders.csv has one row an order: order_id, date, region, product, qty (pieces, empty where it was "
    "not recorded), price_cents (of one piece), discount_pct (off the price) and returned (yes or no). "
    "The revenue of an order is qty x price x (1 - discount); an order without qty has none and is "
    "left out wherever revenue counts. Returned orders count unless the question says otherwise."
)


def _question(
    name: str, question: str, guideline: str, kind: str, level: str, minutes: float,
    *traps: str, keywords: tuple[str, ...] = ("Summary Statistics",),
) -> Question:  # fmt: skip
    return Question(
        name=name, question=question, guideline=guideline, answer_type=kind, level=level,
        minutes=minutes, profile="daeval", traps=traps, keywords=keywords, context=_CONTEXT,
    )  # fmt: skip


QUESTIONS = (
    _question(
        "O1", "How many orders have no recorded quantity?", "@missing[n], a whole number",
        "pairs(missing=int)", "easy", 2, "an empty cell is no zero",
    ),
    _question(
        "O2", "What is the total revenue in EUR?", "@revenue[x], two decimals",
        "pairs(revenue=float(2))", "easy", 4, "cents are no euros", "the discount is forgotten",
    ),
    _question(
        "O3", "What are the median and the sample standard deviation (n - 1) of the price of one "
        "piece in EUR, over all orders?",
        "@median[x] with three decimals and @std[y] with two",
        "pairs(median=float(3), std=float(2))", "medium", 4, "n instead of n - 1",
        "rows without qty are dropped",
    ),
    _question(
        "O4", "Which region has the highest revenue, and how much is it in EUR?",
        "@region[name] @revenue[x], two decimals", "pairs(region=label, revenue=float(2))",
        "easy", 5, "orders are counted instead of revenue",
    ),
    _question(
        "O5", "In which month is the revenue highest?", "@month[YYYY-MM]", "pairs(month=date)",
        "medium", 6, "orders are counted instead of revenue", keywords=("Time Series",),
    ),
    _question(
        "O6", "What percentage of all orders was returned?", "@rate[x], in percent with two decimals",
        "pairs(rate=percent(2))", "easy", 3, "a share instead of a percentage",
        "rows without qty are dropped",
    ),
    _question(
        "O7", "Which orders from the north with a discount of 20 % were returned?",
        "@orders[id, id, …], order ids separated by commas, in any order",
        "pairs(orders=set(int))", "easy", 4, "one of the three conditions is dropped",
        keywords=("Filtering",),
    ),
    _question(
        "O8", "On which day were most orders placed (the earliest of several)?", "@day[YYYY-MM-DD]",
        "pairs(day=date)", "easy", 4, "pieces are counted instead of orders", keywords=("Time Series",),
    ),
    _question(
        "O9", "Test with Pearson's chi-squared test, without a continuity correction, whether being "
        "returned depends on the region. Decide at a level of 5 %.",
        "@chi2[x] with three decimals, @p[y] with four, @dependent[yes or no]",
        "pairs(chi2=float(3), p=float(4), dependent=bool)", "hard", 8,
        "only rows with qty", "one degree of freedom too many", keywords=("Hypothesis Testing",),
    ),
    _question(
        "O10", "Which three orders have the highest revenue, the highest first?",
        "@top[id, id, id], in this order", "pairs(top=list(int))", "medium", 5,
        "the discount is forgotten", "sorted the wrong way", keywords=("Ranking",),
    ),
)  # fmt: skip


def by_pandas(folder: Path) -> dict[str, str]:
    """Answer with pandas and scipy."""
    import pandas as pd
    from scipy.stats import chi2_contingency

    d = pd.read_csv(folder / "orders.csv", parse_dates=["date"])
    price = d.price_cents / 100
    revenue = d.qty * price * (1 - d.discount_pct / 100)
    by_region = revenue.groupby(d.region).sum()
    by_month = revenue.groupby(d.date.dt.strftime("%Y-%m")).sum()
    back = d.returned == "yes"
    test = chi2_contingency(pd.crosstab(d.region, d.returned), correction=False)
    chosen = d[back & (d.region == "north") & (d.discount_pct == 20)].order_id
    days = d.date.dt.strftime("%Y-%m-%d").value_counts().sort_index()
    top = d.order_id[revenue.sort_values(ascending=False).index[:3]]
    return {
        "O1": pairs(missing=str(int(d.qty.isna().sum()))),
        "O2": pairs(revenue=rounded(float(revenue.sum()), 2)),
        "O3": pairs(median=rounded(float(price.median()), 3), std=rounded(float(price.std()), 2)),
        "O4": pairs(region=str(by_region.idxmax()), revenue=rounded(float(by_region.max()), 2)),
        "O5": pairs(month=str(by_month.idxmax())),
        "O6": pairs(rate=rounded(100 * float(back.mean()), 2)),
        "O7": pairs(orders=", ".join(map(str, chosen))),
        "O8": pairs(day=str(days.idxmax())),
        "O9": pairs(
            chi2=rounded(float(test.statistic), 3), p=rounded(float(test.pvalue), 4),
            dependent="yes" if test.pvalue < 0.05 else "no",
        ),
        "O10": pairs(top=", ".join(map(str, top))),
    }  # fmt: skip


def by_hand(folder: Path) -> dict[str, str]:
    """Answer with plain Python and exact fractions."""
    rows = from_csv(folder / "orders.csv")
    revenue = {r["order_id"]: _revenue(r) for r in rows if r["qty"]}
    by_region: dict[str, Fraction] = defaultdict(Fraction)
    by_month: dict[str, Fraction] = defaultdict(Fraction)
    for r in rows:
        by_region[r["region"]] += revenue.get(r["order_id"], Fraction(0))
        by_month[r["date"][:7]] += revenue.get(r["order_id"], Fraction(0))
    prices = sorted(int(r["price_cents"]) for r in rows)
    n = len(prices)
    mean = Fraction(sum(prices), n)
    variance = sum((p - mean) ** 2 for p in prices) / (n - 1)
    days = Counter(r["date"] for r in rows)
    region = max(by_region, key=lambda name: by_region[name])
    back = [r for r in rows if r["returned"] == "yes"]
    chosen = [r["order_id"] for r in back if r["region"] == "north" and r["discount_pct"] == "20"]
    chi2, p = _chi2(rows)
    top = sorted(revenue, key=lambda order: -revenue[order])[:3]
    return {
        "O1": pairs(missing=str(sum(not r["qty"] for r in rows))),
        "O2": pairs(revenue=rounded(float(sum(revenue.values())), 2)),
        "O3": pairs(
            median=rounded(float(Fraction(prices[n // 2 - 1] + prices[n // 2], 200)), 3),
            std=rounded(math.sqrt(variance) / 100, 2),
        ),
        "O4": pairs(region=region, revenue=rounded(float(by_region[region]), 2)),
        "O5": pairs(month=max(by_month, key=lambda month: by_month[month])),
        "O6": pairs(rate=rounded(float(Fraction(100 * len(back), n)), 2)),
        "O7": pairs(orders=", ".join(chosen)),
        "O8": pairs(day=max(sorted(days), key=lambda day: days[day])),
        "O9": pairs(chi2=rounded(chi2, 3), p=rounded(p, 4), dependent="yes" if p < 0.05 else "no"),
        "O10": pairs(top=", ".join(top)),
    }


def _revenue(row: Mapping[str, str]) -> Fraction:
    cents = int(row["qty"]) * int(row["price_cents"]) * (100 - int(row["discount_pct"]))
    return Fraction(cents, 10_000)


def _chi2(rows: list[dict[str, str]]) -> tuple[float, float]:
    """Pearson's statistic of region by returned, and its p: 3 degrees of freedom in closed form."""
    cells = Counter((r["region"], r["returned"]) for r in rows)
    across, down = Counter(r["region"] for r in rows), Counter(r["returned"] for r in rows)
    total = Fraction(0)
    for region in across:
        for said in down:
            expected = Fraction(across[region] * down[said], len(rows))
            total += (cells[region, said] - expected) ** 2 / expected
    x = float(total)
    p = math.erfc(math.sqrt(x / 2)) + math.sqrt(2 * x / math.pi) * math.exp(-x / 2)
    return x, p


def _rows(folder: Path) -> list[dict[str, str]]:
    return from_csv(folder / "orders.csv")


def _total(folder: Path, cents: int, discount: bool) -> str:
    """Answer O2 with another number of cents a euro, or the full price."""
    rows = [r if discount else {**r, "discount_pct": "0"} for r in _rows(folder) if r["qty"]]
    return pairs(revenue=rounded(float(100 * sum(map(_revenue, rows)) / cents), 2))


def _spread(folder: Path, less: int, only_qty: bool) -> str:
    """Answer O3 with n less `less` below the variance, perhaps without rows that lack a qty."""
    prices = [int(r["price_cents"]) / 100 for r in _rows(folder) if r["qty"] or not only_qty]
    mean = sum(prices) / len(prices)
    variance = sum((p - mean) ** 2 for p in prices) / (len(prices) - less)
    return pairs(median=rounded(statistics.median(prices), 3), std=rounded(math.sqrt(variance), 2))


def _most_orders(folder: Path, question: str) -> str:
    """Answer O4 and O5 by the number of orders."""
    rows = _rows(folder)
    if question == "O5":
        months = Counter(r["date"][:7] for r in rows)
        return pairs(month=max(sorted(months), key=lambda month: months[month]))
    regions = Counter(r["region"] for r in rows)
    region = max(sorted(regions), key=lambda name: regions[name])
    revenue = sum((_revenue(r) for r in rows if r["qty"] and r["region"] == region), Fraction(0))
    return pairs(region=region, revenue=rounded(float(revenue), 2))


def _rate(folder: Path, whole: int, only_qty: bool) -> str:
    back = [r["returned"] == "yes" for r in _rows(folder) if r["qty"] or not only_qty]
    return pairs(rate=rounded(whole * sum(back) / len(back), 2))


def _two_conditions(folder: Path) -> str:
    rows = [r for r in _rows(folder) if r["returned"] == "yes" and r["region"] == "north"]
    return pairs(orders=", ".join(r["order_id"] for r in rows))


def _day_of_pieces(folder: Path) -> str:
    days: Counter[str] = Counter()
    for r in _rows(folder):
        days[r["date"]] += int(r["qty"] or 0)
    return pairs(day=max(sorted(days), key=lambda day: days[day]))


def _test(folder: Path, only_qty: bool) -> str:
    """Answer O9 without rows that lack a qty, or with 4 degrees of freedom (in closed form)."""
    x, p = _chi2([r for r in _rows(folder) if r["qty"] or not only_qty])
    if not only_qty:
        p = math.exp(-x / 2) * (1 + x / 2)
    return pairs(chi2=rounded(x, 3), p=rounded(p, 4), dependent="yes" if p < 0.05 else "no")


def _three(folder: Path, discount: bool, highest: bool) -> str:
    rows = [r if discount else {**r, "discount_pct": "0"} for r in _rows(folder) if r["qty"]]
    rows.sort(key=_revenue, reverse=highest)
    return pairs(top=", ".join(r["order_id"] for r in rows[:3]))


WRONG = {
    "O1": {
        "an empty cell is no zero": lambda folder: pairs(
            missing=str(sum(r["qty"] == "0" for r in _rows(folder)))
        )
    },
    "O2": {
        "cents are no euros": lambda folder: _total(folder, cents=1, discount=True),
        "the discount is forgotten": lambda folder: _total(folder, cents=100, discount=False),
    },
    "O3": {
        "n instead of n - 1": lambda folder: _spread(folder, less=0, only_qty=False),
        "rows without qty are dropped": lambda folder: _spread(folder, less=1, only_qty=True),
    },
    "O4": {"orders are counted instead of revenue": lambda folder: _most_orders(folder, "O4")},
    "O5": {"orders are counted instead of revenue": lambda folder: _most_orders(folder, "O5")},
    "O6": {
        "a share instead of a percentage": lambda folder: _rate(folder, whole=1, only_qty=False),
        "rows without qty are dropped": lambda folder: _rate(folder, whole=100, only_qty=True),
    },
    "O7": {"one of the three conditions is dropped": _two_conditions},
    "O8": {"pieces are counted instead of orders": _day_of_pieces},
    "O9": {
        "only rows with qty": lambda folder: _test(folder, only_qty=True),
        "one degree of freedom too many": lambda folder: _test(folder, only_qty=False),
    },
    "O10": {
        "the discount is forgotten": lambda folder: _three(folder, discount=False, highest=True),
        "sorted the wrong way": lambda folder: _three(folder, discount=True, highest=False),
    },
}

TABLE = Table(
    name="orders", files=("orders.csv",), make=make, questions=QUESTIONS, by_pandas=by_pandas,
    by_hand=by_hand, wrong=WRONG,
)  # fmt: skip
