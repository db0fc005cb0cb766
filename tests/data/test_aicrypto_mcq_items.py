"""The project's own multiple-choice items on cryptography, made by data/make/aicrypto."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "data" / "make" / "aicrypto" / "make_mcq.py"
FILE = ROOT / "data" / "aicrypto" / "mcq.json"
NONE = "None of the above"
DRAWS = range(50)

# Typed from the specification of the items, not from their output; S10, A06, A10, X10 have several.
GOLDEN = {
    "C01": ["JYFWAVNYHWOF"],
    "C02": ["LXFOPVEFRNHR"],
    "C03": ["IHHWVC"],
    "C04": ["21"],
    "C05": ["312"],
    "C06": ["MAEDETTHBIGETRE"],
    "C07": ["88.4 bits"],
    "C08": ["HIAT"],
    "C09": ["13/55"],
    "C10": ["CATTTANADAKW"],
    "S01": ["12"],
    "S02": ["2"],
    "S03": ["0"],
    "S04": ["15"],
    "S05": ["c1"],
    "S06": ["inverse ca, S-box ed"],
    "S07": ["2"],
    "S08": ["3"],
    "S09": ["1f0a1e000b"],
    "S10": ["CTR", "OFB", "CFB"],
    "A01": [r"$d_\varphi = 2753$, $d_\lambda = 413$, $c = 2790$"],
    "A02": ["2"],
    "A03": ["$y = 132$, $(c_1, c_2) = (29, 424)$"],
    "A04": ["order 19, $3G = (10, 6)$"],
    "A05": ["28"],
    "A06": ["10", "32", "45", "67"],
    "A07": ["$(20, 5)$"],
    "A08": ["5"],
    "A09": ["158"],
    "A10": ["RSA", "ECDH", "DSA"],
    "M01": ["237"],
    "M02": ["2753"],
    "M03": ["192"],
    "M04": ["$-1$, which proves that 1001 is not a square modulo 9907"],
    "M05": ["42"],
    "M06": ["54"],
    "M07": ["5"],
    "M08": ["9 irreducible, 6 primitive"],
    "M09": ["2047"],
    "M10": ["1025"],
    "X01": ["23"],
    "X02": ["21"],
    "X03": ["47.6 bits"],
    "X04": ["16,384 bytes"],
    "X05": ["10"],
    "X06": ["a2V5"],
    "X07": ["28 letters"],
    "X08": ["$2^{64}$"],
    "X09": ["1.5 bits"],
    # Perfectly hiding by hand: h^r runs evenly over the group as q is prime and h is not 1; r^e runs
    # evenly over the units, as e is prime to phi(n).
    "X10": [
        r"Pedersen: $g^m h^r$ in a group of prime order $q$, $r$ uniform in $\mathbb{Z}_q$, $h \ne 1$",
        (
            r"$v^m r^e \bmod n$ with $m < e$, where $(n, e)$ is an RSA key and $r$ uniform in "
            r"$\mathbb{Z}_n^*$"
        ),
    ],
}


@pytest.fixture(scope="module")
def make():
    """The generator: a folder of scripts, so it is loaded from its path and put away again."""
    names = {path.stem for path in SCRIPT.parent.glob("*.py")}
    kept = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    path, no_cache = list(sys.path), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("aicrypto_make_mcq", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(kept)
    sys.path[:], sys.dont_write_bytecode = path, no_cache


@pytest.fixture(scope="module")
def draws(make):
    return [make.make_items(draw) for draw in DRAWS]


@pytest.fixture(scope="module")
def rows():
    return json.loads(FILE.read_text(encoding="utf-8"))


def _keys(row):
    return [row["choice"][i] for i in row["answer"]]


def test_golden_keys_of_the_file(rows):
    assert [row["item_id"] for row in rows] == [f"own-mcq-{number}" for number in GOLDEN]
    none = 0
    for row, expected in zip(rows, GOLDEN.values(), strict=True):
        if _keys(row) == [NONE]:
            none += 1
            assert expected[0] not in row["choice"], row["item_id"]
        else:
            assert sorted(_keys(row)) == sorted(expected), row["item_id"]
    assert none == 5


def test_golden_values_before_none_of_the_above_is_applied(draws):
    for item, expected in zip(draws[0], GOLDEN.values(), strict=True):
        assert sorted(item.draft.right) == sorted(expected), item.item_id


def test_golden_values_of_other_numbers(make):
    assert make.classic.affine_keys(29) == 812
    assert [make.symmetric.sha256_blocks(n) for n in (55, 56, 119, 120)] == [1, 2, 2, 3]
    assert make.misc.people(65536) == 302
    assert make.mathematics.jacobi(1001, 9907) == -1


def test_structure_of_the_file(rows):
    assert [row["id"] for row in rows] == list(range(50))
    assert list(rows[0]) == ["id", "item_id", "question", "choice", "answer", "label"]
    labels = Counter(row["label"] for row in rows)
    assert labels == dict.fromkeys(("classic", "symmetric", "asymmetric", "math", "misc"), 10)
    several = [row["item_id"][-3:] for row in rows if len(row["answer"]) > 1]
    assert several == ["S10", "A06", "A10", "X10"]
    assert 20 <= sum(NONE in row["choice"] for row in rows) <= 30
    for row in rows:
        assert 4 <= len(row["choice"]) == len(set(row["choice"])) <= 5
        assert row["answer"] == sorted(set(row["answer"]))
        assert NONE not in row["choice"][:-1]
    places = Counter(row["answer"][0] for row in rows if len(row["answer"]) == 1)
    assert max(places.values()) <= 15  # of 46; upstream has 38 of 118 at one place


def test_every_key_by_a_second_route(make, draws):
    found = [fault for items in draws for item in items for fault in make.faults(item)]
    assert found == []


def test_every_draw_keeps_the_mix(draws):
    for items in draws:
        assert sum(item.choice[item.answer[0]] == NONE for item in items) == 5
        assert sum(len(item.answer) > 1 for item in items) == 4


def test_the_same_draw_gives_the_committed_bytes(make, draws):
    assert make.render(draws[0]) == FILE.read_bytes()
    assert make.render(make.make_items(7)) == make.render(draws[7])


def test_other_draws_give_other_items(draws):
    for draw in DRAWS[1:]:
        for public, item in zip(draws[0], draws[draw], strict=True):
            before = (public.draft.question, {*public.draft.right, *public.draft.wrong.values()})
            after = (item.draft.question, {*item.draft.right, *item.draft.wrong.values()})
            assert before != after, (item.item_id, draw)


def test_a_constant_answer_scores_chance(draws):
    """Chance of place i is the sum of 1/n over the single-answer items with n > i options.

    That holds with "None of the above" too: it is offered in 25 items of five options a draw and
    right in five of them, so the last place is right in one of five like each of the others.
    """
    single = [item for items in draws for item in items if len(item.answer) == 1]
    assert len(single) == 46 * len(DRAWS)
    for place in range(5):
        chance = [1 / len(item.choice) for item in single if len(item.choice) > place]
        hits = sum(item.answer == (place,) for item in single)
        error = sum(p * (1 - p) for p in chance) ** 0.5
        assert abs(hits - sum(chance)) < 3 * error, place


def test_planted_wrong_keys_are_found(make, draws):
    for item in draws[0]:
        if len(item.answer) == 1:
            moved = ((item.answer[0] + 1) % len(item.choice),)
        else:
            moved = item.answer[1:]
        assert make.faults(dataclasses.replace(item, answer=moved)), item.item_id


def test_planted_wrong_value_is_found(make, draws):
    item = draws[0][0]
    draft = dataclasses.replace(item.draft, right=(next(iter(item.draft.wrong.values())),))
    found = make.faults(dataclasses.replace(item, draft=draft))
    assert found == ["own-mcq-C01: the two routes disagree"]


def test_planted_shuffle_without_the_key_is_found(make, draws):
    sound = [item for item in draws[0] if NONE not in item.choice and len(item.answer) == 1]
    for item in sound:
        turned = item.choice[1:] + item.choice[:1]
        assert make.faults(dataclasses.replace(item, choice=turned)), item.item_id


@pytest.mark.parametrize(
    ("number", "other_form"),
    [("C09", r"$\frac{26}{110}$"), ("X04", "16384 bytes"), ("M10", "$1025$")],
)
def test_planted_option_equal_to_the_key_is_found(make, draws, number, other_form):
    item = next(item for item in make.make_items(0) if item.item_id.endswith(number))
    key = item.draft.right[0]
    twice = (key, other_form, *[text for text in item.choice if text not in (key, NONE)][:3])
    found = make.faults(dataclasses.replace(item, choice=twice, answer=(0,)))
    assert f"own-mcq-{number}: two options are equal" in found


def test_planted_right_option_beside_none_of_the_above_is_found(make, draws):
    item = next(item for item in draws[0] if item.choice[item.answer[0]] == NONE)
    found = make.faults(dataclasses.replace(item, choice=(item.draft.right[0], *item.choice[1:])))
    assert len(found) == 1
    assert "a right option is offered" in found[0]


def test_an_item_without_enough_errors_is_refused(make):
    draft = make.classic.ITEMS["C01"](make.Stream("own-mcq-C01", 0))
    poor = dataclasses.replace(draft, wrong={"same as the key": draft.right[0]})
    with pytest.raises(ValueError, match="too few distinct wrong options"):
        make.build("own-mcq-C01", "classic", lambda _: poor, 0, "plain")


def test_own_sha256_is_checked_against_hashlib(make, monkeypatch):
    routes = sys.modules["routes"]
    assert routes.count_compressions(b"abc") == 1
    monkeypatch.setattr(routes, "_START", [0] * 8)
    with pytest.raises(AssertionError, match="differs from hashlib"):
        routes.count_compressions(b"abc")


def test_command_writes_and_checks(make, tmp_path, capsys):
    out = tmp_path / "new" / "mcq.json"
    assert make.main(["--out", str(out)]) == 0
    assert out.read_bytes() == FILE.read_bytes()
    assert make.main(["--out", str(out), "--check"]) == 0
    assert make.main(["--draw", "1", "--out", str(out), "--check"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "draw 1" in error
    with pytest.raises(SystemExit) as stop:
        make.main(["--draw", "-1"])
    assert stop.value.code == 2


def test_command_needs_the_standard_library_only(tmp_path):
    """-I and -S leave out the script's folder, the environment and all installed packages."""
    command = [sys.executable, "-I", "-S", "-B", str(SCRIPT), "--check"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
