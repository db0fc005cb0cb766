"""own-churn: which customers of a telephone company leave; about 18 % do."""

from __future__ import annotations

import math

from contest_table import Cell, Contest, Drawn, flat, ids, one_of, whole
from stream import Stream

N_TRAIN, N_TEST = 4000, 2000
INPUTS = (
    "tenure", "plan", "price", "calls", "complaints", "region", "age", "payment", "contract_end",
    "discount", "days", "batch",
)  # fmt: skip
PRICE = {"S": 14, "M": 24, "L": 39}
PAYMENT = {"bank": 0.0, "card": 0.1, "bill": 0.6}
REGION = {"N": 0.0, "E": 0.15, "S": -0.1, "W": 0.05}


def make(draw: int) -> Drawn:
    """Draw the customers."""
    stream = Stream(2_000_003 * (draw + 1))
    names = ids(stream, N_TRAIN + N_TEST, first=1001)
    rows = [_customer(stream) for _ in names]
    return flat(INPUTS, "churn", names, rows, N_TRAIN)


def _customer(stream: Stream) -> tuple[list[Cell], str, float]:
    tenure = 1 + whole(stream, 0, 71) * whole(stream, 0, 71) // 71
    plan = one_of(stream, "SSMMML")
    calls = whole(stream, 0, 3) + whole(stream, 0, 3)
    row: dict[str, Cell] = {
        "tenure": tenure,
        "plan": plan,
        "price": PRICE[plan] + whole(stream, 0, 10),
        "calls": calls,
        "complaints": max(0, whole(stream, -3, 2) + (calls > 4)),
        "region": one_of(stream, tuple(REGION)),
        "age": whole(stream, 18, 84),
        "payment": one_of(stream, tuple(PAYMENT)),
        "contract_end": whole(stream, 0, 24),
        "discount": (0, 0, 5, 10, 20)[whole(stream, 0, 4)],
        # Two columns that a careful model does without: tenure again in other units, and nothing.
        "days": 30 * tenure,
        "batch": whole(stream, 0, 99),
    }
    share = round(1 / (1 + math.exp(-_logit(row))), 6)
    leaves = stream.unit() < share
    return [row[column] for column in INPUTS], str(int(leaves)), share


def _logit(row: dict[str, Cell]) -> float:
    """Give the log-odds of leaving: a linear part and two interactions."""
    tenure, complaints = float(row["tenure"]), float(row["complaints"])
    return (
        -2.75
        - 0.03 * tenure
        + 0.025 * (float(row["price"]) - 25)
        + 0.22 * float(row["calls"])
        + 0.35 * complaints
        + REGION[str(row["region"])]
        - 0.012 * (float(row["age"]) - 50)
        + PAYMENT[str(row["payment"])]
        - 0.07 * (float(row["contract_end"]) - 12)
        - 0.04 * float(row["discount"])
        + (0.9 * complaints if tenure <= 12 else 0.0)
        + (1.2 if row["plan"] == "L" and row["discount"] == 0 else 0.0)
    )


CONTEST = Contest(
    name="own-churn",
    title="Customers who leave",
    story="A made-up telephone company wants to know who leaves within a quarter. Predict for 2,000 "
    "customers how likely they are to leave, from 4,000 of whom it is known.",
    data="""\
train.csv: 4,000 customers and whether they left; test.csv: 2,000 without; sample_submission.csv: the form.
id: number of the customer, without a meaning
tenure: months since the first contract
plan: S, M or L
price: EUR a month
calls, complaints: to the service, in the last quarter
region: N, E, S, W
age: years
payment: bank, card or bill
contract_end: months until the contract can be ended
discount: percent off the price
days: days since the first contract, 30 a month
batch: the machine that printed the last bill
churn: 1 left, 0 stayed, the target""",
    metric="auc",
    direction="higher",
    measured="Area under the ROC curve, higher is better. Any numbers will do: only their order counts.",
    target="churn",
    domain="telecommunication",
    keywords=("classification", "tabular", "imbalanced", "interactions"),
    make=make,
)
