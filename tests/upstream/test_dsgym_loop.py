"""Real questions, answered by programs of ours through the real loop: box, kernel, tags, scorer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.backends.base import ModelIdentity
from harness.core import registry
from harness.core.records import EventRecord, SampleRecord, ScoreRecord
from harness.core.types import Output
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.store.journal import read_records
from harness.store.layout import Store

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "dsgym"
_CSV = "import pandas as pd\nd = pd.read_csv({!r})\n"
_FARES, _INSURED, _CASES = (
    f"/data/daeval/{name}.csv" for name in ("test_ave", "insurance", "estimated_numbers")
)

# Each prints the answer as it is handed in; none holds a number of it.
SCRIPTS = {
    "daeval-000": _CSV.format(_FARES) + "print(f'@mean_fare[{d.Fare.mean():.2f}]')",
    "daeval-005": _CSV.format(_FARES)
    + "print(f'@correlation_coefficient[{(d.SibSp + d.Parch).corr(d.Fare):.2f}]')",
    "daeval-006": _CSV.format(_FARES)
    + """
group = pd.cut(d.Age, [-1, 12, 19, 59, 200], labels=['child', 'teenager', 'adult', 'elderly'])
means = d.groupby(group, observed=True).Fare.mean()
print(' '.join(f'@mean_fare_{name}[{value:.2f}]' for name, value in means.items()))
""",
    "daeval-024": _CSV.format(_INSURED) + "print(f'@mean_age[{d.age.mean():.2f}]')",
    "daeval-025": _CSV.format(_INSURED)
    + "print(f\"@bmi_distribution[{'normal' if abs(d.bmi.skew()) < 0.5 else 'not normal'}]\")",
    "daeval-027": _CSV.format(_INSURED)
    + """
low, high = d.charges.quantile([0.25, 0.75])
spread = 1.5 * (high - low)
out = d.charges[(d.charges < low - spread) | (d.charges > high + spread)]
print(f'@total_outliers[{len(out)}] @mean_charges_outliers[{out.mean():.2f}] '
      f'@median_charges_outliers[{out.median():.2f}]')
""",
    "daeval-030": _CSV.format(_INSURED)
    + """
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
x, x_test, y, y_test = train_test_split(d[['age', 'bmi']], d.charges, test_size=0.2, random_state=42)
error = LinearRegression().fit(x, y).predict(x_test) - y_test
print(f'@model_rmse[{(error ** 2).mean() ** 0.5:.2f}]')
""",
    "daeval-056": _CSV.format(_CASES)
    + """
deaths = pd.to_numeric(d['No. of deaths'].astype(str).str.extract(r'^([0-9]+)')[0])
worst = d.loc[deaths.idxmax()]
print(f'@max_deaths_country[{worst.Country}] @max_deaths_year[{int(worst.Year)}]')
""",
    "qrdata-000": _CSV.format("/data/qrdata/data/stent365.csv")
    + "print(f\"{(d[d.group == 'treatment'].outcome == 'stroke').mean():.2f}\")",
    "qrdata-004": _CSV.format("/data/qrdata/data/sinusitis.csv")
    + """
share = d.groupby('group').self_reported_improvement.apply(lambda s: (s == 'yes').mean())
print(f'{share.idxmax()} group')
""",
    "qrdata-010": _CSV.format("/data/qrdata/data/immigration.csv")
    + """
few = d[d.political == 'conservative']
print(f"{(few.response == 'Apply for citizenship').mean():.2f}")
""",
    "qrdata-019": _CSV.format("/data/qrdata/data/malaria.csv")
    + """
rate = d.groupby('treatment').outcome.apply(lambda s: (s == 'infection').mean())
print(f"{rate['placebo'] - rate['vaccine']:.3f}")
""",
    "dabstep-dev-1273": """
import json
fees = [f for f in json.load(open('/data/dabstep/fees.json'))
        if f['card_scheme'] == 'GlobalCard' and f['is_credit'] in (True, None)]
print(round(sum(f['fixed_amount'] + f['rate'] * 10 / 10000 for f in fees) / len(fees), 6))
""",
    "dabstep-dev-1305": """
import json
import pandas as pd
codes = pd.read_csv('/data/dabstep/merchant_category_codes.csv')
mcc = int(codes[codes.description == 'Eating Places and Restaurants'].mcc.iloc[0])
fees = [f for f in json.load(open('/data/dabstep/fees.json'))
        if f['card_scheme'] == 'GlobalCard'
        and (not f['account_type'] or 'H' in f['account_type'])
        and (not f['merchant_category_code'] or mcc in f['merchant_category_code'])]
print(f"{sum(f['fixed_amount'] + f['rate'] * 10 / 10000 for f in fees) / len(fees):.6f}")
""",
    "dabstep-dev-1464": """
import json
fees = json.load(open('/data/dabstep/fees.json'))
print(', '.join(str(f['ID']) for f in fees
                if (not f['account_type'] or 'R' in f['account_type'])
                and (not f['aci'] or 'B' in f['aci'])))
""",
}


class Programmer:
    """A model that runs its program for the item and hands in what the box printed."""

    capabilities = frozenset({"generate"})
    is_baseline = False
    context_length = None
    batch_size = 4

    def __init__(self, spec, options) -> None:
        self.identity = ModelIdentity(backend="programmer", name=spec.name)

    def generate(self, requests):
        return [Output(text=self._say(request)) for request in requests]

    def _say(self, request) -> str:
        last = request.messages[-1].content
        seen = re.search(r"<information>\n(.*)\n</information>", last, re.DOTALL)
        if seen is None:
            return f"<reasoning>Compute it.</reasoning>\n<python>\n{SCRIPTS[request.item_id]}\n</python>"
        return f"<answer>{seen[1].strip()}</answer>"

    def describe(self):
        return {"backend": "programmer"}

    def close(self) -> None:
        pass


@pytest.fixture
def programmer(monkeypatch):
    if not (DATA / "data").is_dir():
        pytest.skip("needs ../shared/upstream/dsgym")
    monkeypatch.setattr(registry, "_decorated", {})
    registry.backend("programmer")(Programmer)


@pytest.mark.parametrize("name", ["daeval", "qrdata", "dabstep"])
def test_our_programs_reach_the_references(programmer, tmp_path, name):
    ids = tuple(item for item in SCRIPTS if item.startswith(name))
    store = Store.open(tmp_path / "store")
    config = make_config(task=f"dsgym/{name}", model="programmer:a", data_root=str(DATA), ids=ids)
    run = start(config, store)
    records = list(read_records(store.journal(run.run_id)))
    verdicts = {r.item_id: r.metrics for r in records if isinstance(r, ScoreRecord)}
    right = {"accuracy_upstream": 1.0, "accuracy_strict": 1.0}
    assert verdicts == dict.fromkeys(ids, right)
    calls = [r for r in records if isinstance(r, EventRecord) and r.kind == "tool_call"]
    assert len(calls) == 2 * len(ids)
    assert {r.isolation for r in records if isinstance(r, SampleRecord)} != {None}
    logs = [json.loads(r.tool_log) for r in records if isinstance(r, SampleRecord)]
    assert {log["ended_by"] for log in logs} == {"submit"}
