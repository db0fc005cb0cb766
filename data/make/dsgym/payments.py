"""merchants.csv, payments.csv, fees.json and manual.md: what payments cost by forty rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from stream import Stream
from table import Question, Table, from_csv, rounded, to_csv

SCHEMES = ("Alder", "Birch", "Cedar")
ACCOUNTS = ("retail", "digital", "travel", "food")
UNUSED = "charity"
"""An account type that the manual knows and no rule names."""
CODES = (5411, 5812, 7011, 7841, 4722)
NAMES = (
    "Kites and Co", "Blue Kettle", "Nine Lanterns", "Harbour Books", "Salt and Rye", "Paper Moon",
    "Old Orchard", "Tin Whistle", "Red Umbrella", "Quiet Corner",
)  # fmt: skip
MERCHANT = NAMES[0]
N_RULES, N_PAYMENTS = 40, 1500
FILES = ("merchants.csv", "payments.csv", "fees.json", "manual.md")

MANUAL = f"""\
# What a payment costs

Every payment runs over a card scheme and is a credit or a debit payment. Its merchant has an account type \
({", ".join(ACCOUNTS)} or {UNUSED}) and a category code.

fees.json lists the rules. A rule applies to a payment when every one of its fields does:

| field | meaning |
|---|---|
| ID | number of the rule |
| card_scheme | the scheme that it is about |
| account_type | list of account types; an empty list means any |
| category_code | list of codes; an empty list means any |
| is_credit | true: credit only, false: debit only, null: both |
| fixed_amount | EUR for every payment |
| rate | for every payment, in ten-thousandths of its amount |

The fee of a rule is fixed_amount + rate x amount / 10000. Where several rules apply to a payment, the one \
with the lowest ID is charged, and only that one. A rule can apply to a merchant when its account type and \
category code do, whatever the scheme. Nothing is rounded before the end.
"""


def make(draw: int) -> Mapping[str, bytes]:
    """Make the files: merchants, rules, payments. The last three rules catch what is left.

    June has fewer payments than May and larger ones: totals say one thing and averages another.
    """
    stream = Stream(draw)
    merchants = [(name, stream.choice(ACCOUNTS), stream.choice(CODES)) for name in NAMES]
    rules = [_rule(stream, number) for number in range(1, N_RULES - 2)]
    for scheme in SCHEMES:
        rules.append(
            {"ID": len(rules) + 1, "card_scheme": scheme, "account_type": [], "category_code": [],
             "is_credit": None, "fixed_amount": 0.1 + stream.below(10) / 100,
             "rate": 60 + stream.below(40)}
        )  # fmt: skip
    rows = []
    for i in range(1, N_PAYMENTS + 1):
        day = date(2024, 5, 1) + timedelta(days=stream.below((31, 61)[stream.below(2)]))
        amount = 100 + stream.below(20_000 if day.month == 5 else 32_000)
        # Every third payment is of the merchant that is asked about.
        name = MERCHANT if stream.below(3) == 0 else stream.choice(NAMES)
        credit = "true" if stream.below(5) < 3 else "false"
        rows.append(
            (i, name, day, stream.choice(SCHEMES), credit, f"{amount // 100}.{amount % 100:02d}")
        )
    return {
        "merchants.csv": to_csv(("merchant", "account_type", "category_code"), merchants),
        "payments.csv": to_csv(
            ("payment", "merchant", "date", "card_scheme", "is_credit", "amount"), rows
        ),
        "fees.json": (json.dumps([_clean(rule) for rule in rules], indent=1) + "\n").encode(),
        "manual.md": MANUAL.encode(),
    }


def _rule(stream: Stream, number: int) -> dict[str, Any]:
    account = [a for a in ACCOUNTS if stream.below(3) == 0]
    codes = [c for c in CODES if stream.below(3) == 0]
    return {
        "ID": number,
        "card_scheme": stream.choice(SCHEMES),
        "account_type": account,
        "category_code": codes,
        "is_credit": stream.choice((True, False, None)),
        "fixed_amount": (1 + stream.below(20)) / 100,
        "rate": 5 + stream.below(95),
    }


def _clean(rule: dict[str, Any]) -> dict[str, Any]:
    return {**rule, "fixed_amount": round(rule["fixed_amount"], 2)}


_CONTEXT = (
    "manual.md explains the files: merchants.csv, payments.csv (May and June 2024) and fees.json. Read it "
    "first."
)
_NA = "If a question does not have a relevant or applicable answer, answer with 'Not Applicable'."


def _question(
    name: str, question: str, guideline: str, kind: str, level: str, minutes: float, *traps: str
) -> Question:
    return Question(
        name=name, question=question, guideline=f"{guideline} {_NA}", answer_type=kind, level=level,
        minutes=minutes, profile="dabstep", traps=traps, keywords=("Payments",), context=_CONTEXT,
    )  # fmt: skip


QUESTIONS = (
    _question(
        "F1", f"Which rules can apply to {MERCHANT}?",
        "A list of IDs separated by commas, e.g.: 1, 2, 3. If the list is empty, answer with an empty "
        "string.", "set(int)", "medium", 6, "an empty list is taken for none",
    ),
    _question(
        "F2", "For credit payments, what is the average fee that the rules of the scheme Birch would "
        "charge for an amount of 10 EUR?",
        "Just a number in EUR rounded to 6 decimals.", "float(6)", "medium", 6,
        "rules for both are left out",
    ),
    _question(
        "F3", f"How much does {MERCHANT} pay in fees for June 2024, in EUR?",
        "Just a number rounded to 2 decimals.", "float(2)", "hard", 12,
        "every rule that applies is charged", "all months",
    ),
    _question(
        "F4", f"Over which scheme would a credit payment of 50 EUR to {MERCHANT} cost least?",
        "The scheme and the fee in EUR in this format: scheme:fee, with exactly 3 decimals and without a "
        "blank.", "label", "hard", 8, "the cheapest rule instead of the one that is charged",
    ),
    _question(
        "F5", f"Which rules name the account type {UNUSED}?",
        "A list of IDs separated by commas, e.g.: 1, 2, 3. If the list is empty, answer with an empty "
        "string.", "empty", "easy", 3, "rules for any type are listed",
    ),
    _question(
        "F6", f"Take the rule that is charged most often to {MERCHANT} in June 2024 (of several the lowest "
        "ID). By how much would the merchant's fees for that month change if its rate were 1?",
        "Just a number in EUR rounded to 9 decimals.", "float(9)", "hard", 12,
        "the fixed amount is changed too", "rounded on the way",
    ),
    _question(
        "F7", f"Does {MERCHANT} pay more in fees per payment in June 2024 than in May 2024?",
        "Just yes or no.", "bool", "hard", 10, "totals are compared instead of averages",
    ),
)  # fmt: skip


def by_pandas(folder: Path) -> dict[str, str]:
    """Answer with pandas: a cross join of payments and rules, money in whole cents."""
    import pandas as pd

    fees = pd.read_json(folder / "fees.json")
    fees["cents"] = (fees.fixed_amount * 100).round().astype(int)
    merchants = pd.read_csv(folder / "merchants.csv").set_index("merchant")
    payments = pd.read_csv(folder / "payments.csv", parse_dates=["date"])
    account, code = merchants.loc[MERCHANT]
    own = fees[
        fees.account_type.map(lambda x: not x or account in x)
        & fees.category_code.map(lambda x: not x or code in x)
    ]
    mine = payments[payments.merchant == MERCHANT].copy()
    mine["paid"] = (mine.amount * 100).round().astype(int)
    both = mine.merge(own, on="card_scheme", suffixes=("", "_rule"))
    fits = both.is_credit_rule.isna() | (both.is_credit_rule == both.is_credit)
    charged = both[fits].sort_values("ID").drop_duplicates("payment").copy()
    # In millionths of a EUR, so that all sums are whole.
    charged["fee"] = charged.cents * 10_000 + charged.rate * charged.paid
    june, may = (charged[charged.date.dt.month == month] for month in (6, 5))
    rule = june.ID.value_counts().sort_index().idxmax()
    changed = june[june.ID.eq(rule)]
    delta = int(((1 - changed.rate) * changed.paid).sum())
    birch = fees[(fees.card_scheme == "Birch") & (fees.is_credit.isna() | (fees.is_credit == True))]  # noqa: E712  the column holds None
    ten = birch.cents * 10_000 + birch.rate * 1000
    credit = own[own.is_credit.isna() | (own.is_credit == True)]  # noqa: E712  the column holds None
    first = credit.sort_values("ID").drop_duplicates("card_scheme")
    fifty = pd.Series(
        (first.cents * 10_000 + first.rate * 5000).to_numpy(), index=first.card_scheme
    ).sort_index()
    named = fees[fees.account_type.map(lambda x: UNUSED in x)].ID
    return {
        "F1": ", ".join(map(str, own.ID)),
        "F2": rounded(Decimal(int(ten.sum())) / len(ten) / 1_000_000, 6),
        "F3": rounded(Decimal(int(june.fee.sum())) / 1_000_000, 2),
        "F4": f"{fifty.idxmin()}:{rounded(Decimal(int(fifty.min())) / 1_000_000, 3)}",
        "F5": ", ".join(map(str, named)),
        "F6": rounded(Decimal(delta) / 1_000_000, 9),
        "F7": "yes" if float(june.fee.mean()) > float(may.fee.mean()) else "no",
    }


def by_hand(folder: Path) -> dict[str, str]:
    """Answer with plain Python: payment by payment, exact fractions."""
    rules = json.loads((folder / "fees.json").read_text(encoding="utf-8"), parse_float=Fraction)
    merchant = next(m for m in from_csv(folder / "merchants.csv") if m["merchant"] == MERCHANT)
    own = [r for r in rules if _for_merchant(r, merchant)]
    fees = {"05": Fraction(0), "06": Fraction(0)}
    n_paid: Counter[str] = Counter()
    used: Counter[int] = Counter()
    volume: Counter[int] = Counter()
    for payment in from_csv(folder / "payments.csv"):
        if payment["merchant"] == MERCHANT:
            month, amount = payment["date"][5:7], Fraction(payment["amount"])
            rule = _charged(own, payment["card_scheme"], payment["is_credit"] == "true")
            fees[month] += _fee(rule, amount)
            n_paid[month] += 1
            if month == "06":
                used[rule["ID"]] += 1
                volume[rule["ID"]] += round(100 * amount)
    often = min(used, key=lambda number: (-used[number], number))
    rate = next(r["rate"] for r in rules if r["ID"] == often)
    birch = [r for r in rules if r["card_scheme"] == "Birch" and r["is_credit"] in (True, None)]
    ten = sum((_fee(r, Fraction(10)) for r in birch), Fraction(0)) / len(birch)
    fifty = {s: _fee(_charged(own, s, credit=True), Fraction(50)) for s in SCHEMES}
    cheapest = min(fifty, key=lambda scheme: fifty[scheme])
    return {
        "F1": ", ".join(str(r["ID"]) for r in own),
        "F2": rounded(_decimal(ten), 6),
        "F3": rounded(_decimal(fees["06"]), 2),
        "F4": f"{cheapest}:{rounded(_decimal(fifty[cheapest]), 3)}",
        "F5": ", ".join(str(r["ID"]) for r in rules if UNUSED in r["account_type"]),
        "F6": rounded(_decimal(Fraction((1 - rate) * volume[often], 1_000_000)), 9),
        "F7": "yes" if fees["06"] / n_paid["06"] > fees["05"] / n_paid["05"] else "no",
    }


def _for_merchant(rule: Mapping[str, Any], merchant: Mapping[str, str]) -> bool:
    accounts, codes = rule["account_type"], rule["category_code"]
    return (not accounts or merchant["account_type"] in accounts) and (
        not codes or int(merchant["category_code"]) in codes
    )


def _charged(rules: list[dict[str, Any]], scheme: str, credit: bool) -> dict[str, Any]:
    return next(r for r in rules if r["card_scheme"] == scheme and r["is_credit"] in (credit, None))


def _fee(rule: Mapping[str, Any], amount: Fraction) -> Fraction:
    return Fraction(rule["fixed_amount"] + rule["rate"] * amount / 10_000)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _of_merchant(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Give the rules and the payments of the merchant that is asked about."""
    merchant = next(m for m in from_csv(folder / "merchants.csv") if m["merchant"] == MERCHANT)
    paid = [p for p in from_csv(folder / "payments.csv") if p["merchant"] == MERCHANT]
    return [r for r in _rules(folder) if _for_merchant(r, merchant)], paid


def _rules(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "fees.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text, parse_float=Fraction)
    return found


def _never_any(folder: Path) -> str:
    merchant = next(m for m in from_csv(folder / "merchants.csv") if m["merchant"] == MERCHANT)
    account, code = merchant["account_type"], int(merchant["category_code"])
    rules = [r for r in _rules(folder) if account in r["account_type"]]
    return ", ".join(str(r["ID"]) for r in rules if code in r["category_code"])


def _credit_only(folder: Path) -> str:
    rules = [r for r in _rules(folder) if r["card_scheme"] == "Birch" and r["is_credit"] is True]
    total = sum((_fee(r, Fraction(10)) for r in rules), Fraction(0))
    return rounded(_decimal(total / max(len(rules), 1)), 6)


def _charges(folder: Path, months: tuple[str, ...]) -> list[tuple[dict[str, Any], Fraction]]:
    """Give the rule that is charged and the amount, payment by payment."""
    own, paid = _of_merchant(folder)
    return [
        (_charged(own, p["card_scheme"], p["is_credit"] == "true"), Fraction(p["amount"]))
        for p in paid
        if p["date"][5:7] in months
    ]


def _total(folder: Path, *months: str) -> Fraction:
    return sum((_fee(*charge) for charge in _charges(folder, months)), Fraction(0))


def _every_rule(folder: Path) -> str:
    own, paid = _of_merchant(folder)
    fees = [
        _fee(r, Fraction(p["amount"]))
        for p in paid
        for r in own
        if p["date"][5:7] == "06" and r["card_scheme"] == p["card_scheme"]
        if r["is_credit"] in (p["is_credit"] == "true", None)
    ]
    return rounded(_decimal(sum(fees, Fraction(0))), 2)


def _cheapest_rule(folder: Path) -> str:
    own, _ = _of_merchant(folder)
    rule = min((r for r in own if r["is_credit"] is not False), key=lambda r: _fee(r, Fraction(50)))
    return f"{rule['card_scheme']}:{rounded(_decimal(_fee(rule, Fraction(50))), 3)}"


def _any_account(folder: Path) -> str:
    return ", ".join(str(r["ID"]) for r in _rules(folder) if not r["account_type"])


def _other_change(folder: Path, whole_cents: bool) -> str:
    """Answer F6 with fees in whole cents, or with a fixed amount that goes away too."""
    charges = _charges(folder, ("06",))
    used = Counter(rule["ID"] for rule, _ in charges)
    often = min(used, key=lambda number: (-used[number], number))
    change = Decimal(0)
    for rule, amount in charges:
        if rule["ID"] == often:
            new = {**rule, "rate": 1, "fixed_amount": rule["fixed_amount"] if whole_cents else 0}
            after, before = _decimal(_fee(new, amount)), _decimal(_fee(rule, amount))
            change += round(after, 2) - round(before, 2) if whole_cents else after - before
    return rounded(change, 9)


def _by_totals(folder: Path) -> str:
    return "yes" if _total(folder, "06") > _total(folder, "05") else "no"


WRONG = {
    "F1": {"an empty list is taken for none": _never_any},
    "F2": {"rules for both are left out": _credit_only},
    "F3": {
        "every rule that applies is charged": _every_rule,
        "all months": lambda folder: rounded(_decimal(_total(folder, "05", "06")), 2),
    },
    "F4": {"the cheapest rule instead of the one that is charged": _cheapest_rule},
    "F5": {"rules for any type are listed": _any_account},
    "F6": {
        "the fixed amount is changed too": lambda folder: _other_change(folder, whole_cents=False),
        "rounded on the way": lambda folder: _other_change(folder, whole_cents=True),
    },
    "F7": {"totals are compared instead of averages": _by_totals},
}

TABLE = Table(
    name="payments", files=FILES, make=make, questions=QUESTIONS, by_pandas=by_pandas,
    by_hand=by_hand, wrong=WRONG,
)  # fmt: skip
