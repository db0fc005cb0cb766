"""aicrypto/ctf on a sample of upstream's challenges; skipped where it is not at hand.

The sample has four configs, and of two challenges the one public file that is data.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.core.records import SampleRecord
from harness.core.task import TaskRequest, make_task
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.store.journal import read_records
from harness.store.layout import Store

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "aicrypto"
BABY = "ctf-04-RSA-17-babyrsa-2019"
IDS = ["ctf-01-Classic-01-greek-cipher", "ctf-02-Block-03-decrypt-then-eval", BABY,
       "ctf-04-RSA-23-simple-math"]  # fmt: skip

# For a prime A and B < A, B! follows from (A - 1)! = -1 mod A (Wilson) by dividing the factors between;
# the next primes after two such values are factors of n, and what is left of n is the third.
SOLUTION = """\
import re
import gmpy2

text = open("public/output.txt").read()
given = {name: int(value, 0) for name, value in re.findall(r"(\\w+)=(\\w+)", text)}


def factorial(b, a):
    between = 1
    for k in range(b + 1, a):
        between = between * k % a
    return -pow(between, -1, a) % a


p, q = (int(gmpy2.next_prime(factorial(given[f"B{i}"], given[f"A{i}"]))) for i in (1, 2))
r, rest = divmod(given["n"], p * q)
assert rest == 0
d = pow(given["e"], -1, (p - 1) * (q - 1) * (r - 1))
m = pow(given["c"], d, given["n"])
print(m.to_bytes((m.bit_length() + 7) // 8, "big").decode())
"""


@pytest.fixture(scope="module")
def task():
    if not (DATA / "data" / "CTF").is_dir():
        pytest.skip("needs ../shared/upstream/aicrypto")
    return make_task("aicrypto/ctf", TaskRequest(data_root=DATA))


@pytest.fixture
def run(task, tmp_path):
    store = Store.open(tmp_path / "store")

    def go(model, **options):
        config = make_config(task="aicrypto/ctf", model=model, data_root=DATA, **options)
        made = start(config, store)
        records = read_records(store.journal(made.run_id))
        return made, {r.item_id: r for r in records if isinstance(r, SampleRecord)}

    return go


def test_exactly_the_challenges_of_the_sample(task):
    assert [s.item_id for s in task.samples] == IDS
    kinds = {s.item_id: s.metadata["kind"] for s in task.samples}
    assert kinds == dict.fromkeys(IDS, "static") | {IDS[1]: "dynamic"}
    baby = task.samples[2]
    assert (baby.category, baby.cluster_id) == ("04-RSA", "RoarCTF-2019")
    assert [s.metadata.get("year") for s in task.samples] == [2023, 2024, 2019, 2022]
    assert [s.metadata["time_s"] for s in task.samples] == [400, 300, 300, 300]
    assert [s.metadata["command_s"] for s in task.samples] == [1200, 900, 900, 900]
    assert [s.metadata["mask"] for s in task.samples] == [
        "lactf{***}", "DUCTF{***}", "RoarCTF{***}", "***"
    ]  # fmt: skip
    # Names, sizes and bytes of all files, hashed apart from this project.
    assert baby.metadata["files_sha256"] == (
        "79696715f2b241d4a04deac6bf6b9db5079a6b2dc8c1772bb6567abfdb5a55b2"
    )


def test_gold_hands_in_the_flag_and_what_is_not_there_is_unavailable(run):
    made, records = run("mock:gold")
    assert (made.status, made.n_counted, made.metrics["accuracy"].value) == ("partial", 2, 1.0)
    for item in IDS[:2]:
        assert records[item].status == "unavailable"
        assert f"{item[4:].replace('-', '/', 2).replace('/', '-', 1)}/public" in records[item].error


def test_the_flag_of_babyrsa_follows_from_its_output(run, tmp_path):
    """Wilson's theorem: found in the box by a script, from output.txt alone."""
    turns = [
        {"tool_calls": [{"name": "create_file", "arguments": {"path": "solve.py", "content": SOLUTION}}]},
        {"tool_calls": [{"name": "bash", "arguments": {"command": "python3 solve.py | tee flag.txt"}}]},
        {"tool_calls": [{"name": "submit"}]},
    ]  # fmt: skip
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"item_id": BABY, "turns": turns}) + "\n")
    made, records = run(f"mock:script?file={script}", ids=[BABY], solver="agent?protocol=tools")
    assert (made.status, made.metrics["accuracy"].value) == ("done", 1.0)
    assert json.loads(records[BABY].tool_log)["turns"] == 3
    config = (DATA / "data/CTF/04-RSA/17-babyrsa-2019/config.yaml").read_text()
    assert f"flag: {records[BABY].output}\n" in config
