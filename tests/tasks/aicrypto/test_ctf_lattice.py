"""The lattice families: broken by our solutions, and what they are said to be."""

from __future__ import annotations

import functools
import itertools
import json
import math
import subprocess
import sys
from hashlib import sha256

import pytest

from tasks.aicrypto.ctf.draw import Draw, flag_of
from tasks.aicrypto.ctf.families import lattice
from tasks.aicrypto.ctf.solutions import knapsack, lwe_tiny

FAMILIES = {family.name: family for family in lattice.FAMILIES}
EACH = [(name, level) for name in FAMILIES for level in (1, 2)]


def _flag(name, level, draw):
    return flag_of(draw, f"{name}-{level}", 0)


@functools.cache
def _make(name, level, draw=0):
    return FAMILIES[name].make(Draw(name, level, draw), level, "static", _flag(name, level, draw))


def _output(made):
    return dict(line.split(" = ") for line in made.public["output.txt"].decode().splitlines())


def test_families():
    assert {name: family.kinds for name, family in FAMILIES.items()} == {
        "knapsack": ("static",),
        "lwe_tiny": ("static",),
    }


@pytest.mark.parametrize(("name", "level"), EACH)
@pytest.mark.parametrize("draw", range(5))
def test_solution_finds_the_flag(play, name, level, draw):
    assert play(_make(name, level, draw), name) == _flag(name, level, draw)


@pytest.mark.parametrize(("name", "level"), EACH)
def test_a_draw_is_its_files(name, level):
    made, other = _make(name, level), _make(name, level, 1)
    assert _make.__wrapped__(name, level) == made
    assert made.server == {}
    assert made.public["main.py"] == other.public["main.py"]
    assert made.public["output.txt"] != other.public["output.txt"]


@pytest.mark.parametrize(("name", "level"), EACH)
def test_the_program_is_true(tmp_path, name, level):
    """Run with a flag of its own beside it, it writes what has the same form and the same fault."""
    made, flag = _make(name, level), "flag{" + "c0ffee" * 4 + "}"
    (tmp_path / "main.py").write_bytes(made.public["main.py"])
    (tmp_path / "secret.py").write_text(f"FLAG = {flag.encode()}\n")
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    module = {"knapsack": knapsack, "lwe_tiny": lwe_tiny}[name]
    assert module.solve({"output.txt": done.stdout}, None) == flag
    names = [line.split(" = ")[0] for line in done.stdout.decode().splitlines()]
    assert names == list(_output(made))


# knapsacks

# The textbook key: secret weights, modulus and factor.
SECRET, Q, R = (2, 7, 11, 21, 42, 89, 180, 354), 881, 588
PUBLIC = (295, 592, 301, 14, 28, 353, 120, 236)


def test_knapsack_vector():
    assert tuple(R * weight % Q for weight in SECRET) == PUBLIC
    assert sum(w for w, bit in zip(PUBLIC, "01100001", strict=True) if bit == "1") == 1129
    assert knapsack._unpack(PUBLIC, 1129) == "01100001"


def test_unpacking_agrees_with_trying_all():
    weights = [12289, 40487, 33391, 58757, 20771, 49999, 61603, 27179, 55103, 16411]
    for bits in itertools.product((0, 1), repeat=len(weights)):
        if sum(bits) not in (1, 4, 9):
            continue
        total = sum(w * bit for w, bit in zip(weights, bits, strict=True))
        found = [int(bit) for bit in knapsack._unpack(weights, total)]
        assert sum(w * bit for w, bit in zip(weights, found, strict=True)) == total


def test_a_sum_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no short vector"):
        knapsack._unpack(PUBLIC, sum(PUBLIC) + 1)


def test_knapsack_sizes():
    for level, (n, bits, sums) in {1: (40, 100, 6), 2: (60, 180, 4)}.items():
        output = {
            name: json.loads(text) for name, text in _output(_make("knapsack", level)).items()
        }
        assert len(output["weights"]) == n
        assert len(output["sums"]) == sums
        assert bits - 2 <= max(output["weights"]).bit_length() <= bits + 1
        # Below 0.94 nearly all knapsacks fall to a short vector (Coster and others, 1992).
        assert n / math.log2(max(output["weights"])) < 0.45


# learning with errors


@pytest.mark.parametrize("level", [1, 2])
def test_lwe_errors(level):
    made, sizes = _make("lwe_tiny", level), FAMILIES["lwe_tiny"].sizes[level]
    output = _output(made)
    q, a, b = int(output["q"]), json.loads(output["A"]), json.loads(output["b"])
    assert (len(a), len(a[0]), q) == (sizes["samples"], sizes["dimension"], sizes["modulus"])
    secret = lwe_tiny._secret(q, a, b)
    errors = [
        (x - sum(y * z for y, z in zip(row, secret, strict=True)) + q // 2) % q - q // 2
        for row, x in zip(a, b, strict=True)
    ]
    assert set(errors) == set(range(-3, 4))
    mask = sha256(str(secret).encode()).digest()
    opened = bytes(x ^ y for x, y in zip(bytes.fromhex(output["box"]), mask, strict=False))
    assert opened.decode() == _flag("lwe_tiny", level, 0)


def test_lwe_by_hand():
    """Two unknowns modulo 97, errors 1, 0, -1, 1, 0: the secret (5, 8) by the definition."""
    a = [[1, 2], [3, 50], [7, 11], [60, 13], [19, 90]]
    b = [22, 27, 25, 17, 39]
    sums = [(5 * x + 8 * y) % 97 for x, y in a]
    assert [(x - y) % 97 for x, y in zip(b, sums, strict=True)] == [1, 0, 96, 1, 0]
    assert lwe_tiny._secret(97, a, b) == [5, 8]


def test_equations():
    """x + 2y = 5 and 3x + y = 5 have x = 1, y = 2; a third that does not fit is refused."""
    assert lwe_tiny._solve(7, [[1, 2, 5], [3, 1, 5]]) == [1, 2]
    assert lwe_tiny._solve(7, [[1, 2, 5], [3, 1, 5], [1, 1, 3]]) == [1, 2]
    assert lwe_tiny._solve(7, [[1, 2, 5], [3, 1, 5], [1, 1, 4]]) is None
    assert lwe_tiny._solve(7, [[1, 2, 5], [2, 4, 3]]) is None


def test_lwe_without_a_secret_is_refused():
    draw = Draw("no secret")
    a = [[draw.below(3329) for _ in range(4)] for _ in range(16)]
    with pytest.raises(ValueError, match="no short vector"):
        lwe_tiny._secret(3329, a, [draw.below(3329) for _ in range(16)])
