"""The RSA families: what they make is broken by our solutions, and is what it is said to be."""

from __future__ import annotations

import functools
import itertools
import math
import subprocess
import sys

import gmpy2
import pytest
import sympy

from tasks.aicrypto.ctf.draw import Draw, flag_of
from tasks.aicrypto.ctf.families import rsa
from tasks.aicrypto.ctf.solutions import (
    broadcast,
    common_modulus,
    fermat,
    rsa_lsb,
    rsa_small_e,
    shared_prime,
    wiener,
)

FAMILIES = {family.name: family for family in rsa.FAMILIES}
STATIC = [name for name in FAMILIES if name != "rsa_lsb"]
EACH = [(name, level) for name in FAMILIES for level in (1, 2)]
EACH_STATIC = [(name, level) for name in STATIC for level in (1, 2)]


def _flag(name, level, draw):
    return flag_of(draw, f"{name}-{level}", 0)


@functools.cache
def _make(name, level, draw=0):
    family = FAMILIES[name]
    return family.make(Draw(name, level, draw), level, family.kinds[0], _flag(name, level, draw))


def _numbers(made):
    rows = [line.split(" = ") for line in made.public["output.txt"].decode().splitlines()]
    return [(name, int(value)) for name, value in rows]


def _values(made, name):
    return [value for key, value in _numbers(made) if key.rstrip("0123456789") == name]


def _connect():
    raise AssertionError("a static challenge has no server")


def test_families():
    assert list(FAMILIES) == [
        "rsa_small_e", "common_modulus", "fermat", "wiener", "shared_prime", "broadcast", "rsa_lsb",
    ]  # fmt: skip
    assert all(set(family.sizes) == {1, 2} for family in FAMILIES.values())


@pytest.mark.parametrize(("name", "level"), EACH)
@pytest.mark.parametrize("draw", [0, 1])
def test_solution_finds_the_flag(play, name, level, draw):
    assert play(_make(name, level, draw), name) == _flag(name, level, draw)


@pytest.mark.parametrize(("name", "level"), EACH)
def test_a_draw_is_its_files(name, level):
    made, other = _make(name, level), _make(name, level, 1)
    assert _make.__wrapped__(name, level) == made
    assert made.public["main.py"] == other.public["main.py"]
    if name == "rsa_lsb":
        assert made.server["secret.json"] != other.server["secret.json"]
    else:
        assert made.public["output.txt"] != other.public["output.txt"]


@pytest.mark.parametrize(("name", "level"), EACH_STATIC)
def test_the_program_is_true(tmp_path, name, level):
    """Run with a flag of its own beside it, it writes what has the same form and the same fault."""
    made, flag = _make(name, level), "flag{" + "c0ffee" * 4 + "}"
    (tmp_path / "main.py").write_bytes(made.public["main.py"])
    (tmp_path / "secret.py").write_text(f"FLAG = {flag.encode()}\n")
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    public = {"main.py": made.public["main.py"], "output.txt": done.stdout}
    module = {
        "broadcast": broadcast, "common_modulus": common_modulus, "fermat": fermat,
        "rsa_small_e": rsa_small_e, "shared_prime": shared_prime, "wiener": wiener,
    }[name]  # fmt: skip
    assert module.solve(public, _connect) == flag
    names = [line.split(" = ")[0] for line in done.stdout.decode().splitlines()]
    assert names == [key for key, _ in _numbers(made)]


@pytest.mark.parametrize(("name", "level"), EACH_STATIC)
def test_moduli_have_their_size(name, level):
    bits = FAMILIES[name].sizes[level]["modulus_bits"]
    assert {n.bit_length() for n in _values(_make(name, level), "n")} == {bits}


# what each level is


def test_small_e_wraps_as_often_as_said():
    for level in (1, 2):
        ((_, n), (_, e), (_, c)) = _numbers(_make("rsa_small_e", level))
        text = _flag("rsa_small_e", level, 0)
        m = int.from_bytes((text if level == 1 else f"# {text}\n").encode(), "big")
        assert (e, pow(m, 3, n)) == (3, c)
        wraps = m**3 // n
        assert wraps == 0 if level == 1 else 2**15 < wraps < 2**17


def test_common_modulus_exponents():
    for level in (1, 2):
        numbers = dict(_numbers(_make("common_modulus", level)))
        assert math.gcd(numbers["e1"], numbers["e2"]) == level
        assert numbers["e1"] != numbers["e2"]


def test_fermat_needs_ratios_at_level_2_only():
    gaps = {}
    for level in (1, 2):
        ((_, n), _, _) = _numbers(_make("fermat", level))
        p = fermat._factor(n)
        q = n // p
        assert p * q == n
        assert sympy.isprime(p)
        assert sympy.isprime(q)
        gaps[level] = abs(p - q).bit_length()
    assert gaps[1] <= 521  # the next prime may lie a little beyond 2^520
    assert gaps[2] > 1000  # Fermat's own steps would be more than 2^900


def test_wiener_exponents():
    for level, bits in ((1, 480), (2, 505)):
        ((_, n), (_, e), _) = _numbers(_make("wiener", level))
        d, p, q = wiener._attack(e, n)
        assert d.bit_length() == bits
        assert p * q == n
        assert 3 * d < gmpy2.iroot(n, 4)[0]  # Wiener's limit, for p < 2q


def test_shared_prime_two_keys_share_one():
    for level, count in ((1, 30), (2, 200)):
        moduli = _values(_make("shared_prime", level), "n")
        assert len(moduli) == count
        rest = gmpy2.mpz(math.prod(moduli))
        weak = [n for n in moduli if gmpy2.gcd(rest // n, n) > 1]
        assert len(weak) == 2
        assert math.gcd(*weak).bit_length() == 512


def test_shared_prime_level_2_has_one_flag_only():
    made = _make("shared_prime", 2)
    e, moduli, ciphers = 65537, _values(made, "n"), _values(made, "c")
    texts = []
    for n, c, p in zip(moduli, ciphers, shared_prime._common(moduli), strict=True):
        if p > 1:
            m = pow(c, pow(e, -1, (p - 1) * (n // p - 1)), n)
            texts.append(m.to_bytes(30, "big").decode())
    assert sorted(text.startswith("flag{") for text in texts) == [False, True]


def test_broadcast_needs_most_of_its_copies():
    for level, e, enough in ((1, 3, 3), (2, 5, 4)):
        made = _make("broadcast", level)
        moduli, ciphers = _values(made, "n"), _values(made, "c")
        assert len(moduli) == e
        values, product = zip(*[sympy.ntheory.modular.crt(moduli[:k], ciphers[:k])
                                for k in range(1, e + 1)], strict=True)  # fmt: skip
        assert all(a < b for a, b in itertools.pairwise(product))
        whole = [gmpy2.iroot(gmpy2.mpz(int(value)), e)[1] for value in values]
        assert whole == [False] * (enough - 1) + [True] * (e - enough + 1)


# the solutions against figures that are not ours


def test_wiener_vector():
    assert wiener._attack(17993, 90581) == (5, 239, 379)


def test_wiener_refuses_a_large_exponent():
    p, q = sympy.nextprime(2**128), sympy.nextprime(2**129)
    with pytest.raises(ValueError, match="not small"):
        wiener._attack(65537, p * q)


def test_product_tree_agrees_with_pairs():
    draw = Draw("tree")
    primes = [draw.prime(24) for _ in range(16)]
    for count in (2, 3, 7, 12):
        moduli = [draw.choice(primes[:8]) * draw.choice(primes[8:]) for _ in range(count)]
        moduli = list(dict.fromkeys(moduli))
        expected = [math.gcd(n, math.prod(other for other in moduli if other != n)) for n in moduli]
        assert shared_prime._common(moduli) == expected


def test_fermat_agrees_with_sympy():
    for n in (1009 * 1013, 100003 * 100019, 10007 * 20021):
        assert fermat._factor(n) in sympy.primefactors(n)


def test_solutions_do_not_make_flags_up():
    """Sound keys are planted: no solution may find anything in them."""
    draw = Draw("sound")
    n1, n2 = draw.prime(512) * draw.prime(512), draw.prime(512) * draw.prime(512)
    m = int.from_bytes(b"flag{" + b"0" * 24 + b"}", "big")
    sound = f"n = {n1}\ne = 65537\nc = {pow(m, 65537, n1)}\n"
    keys = f"e = 65537\nn = {n1}\nc = {pow(m, 65537, n1)}\nn = {n2}\nc = {pow(m, 65537, n2)}\n"
    pairs = f"n = {n1}\ne1 = 257\nc1 = {pow(m, 257, n1)}\ne2 = 257\nc2 = {pow(m, 257, n1)}\n"
    for module, text in [
        (rsa_small_e, sound), (wiener, sound), (shared_prime, keys), (common_modulus, pairs),
        (broadcast, keys.replace("65537", "3", 1)),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=r"\w"):
            module.solve({"output.txt": text.encode()}, _connect)


# the server


def test_lsb_server_tells_the_lowest_bit_and_no_more(connections):
    made, flag = _make("rsa_lsb", 1), _flag("rsa_lsb", 1, 0)
    with connections(made.server) as connect:
        tube = connect()
        n, e, c = (int(tube.line().split(" = ")[1]) for _ in range(3))
        assert n.bit_length() == 256
        assert tube.ask(str(c)) == str(int.from_bytes(flag.encode(), "big") % 2)
        for m in (0, 1, 2, 12345, n - 1, n - 2):
            assert tube.ask(str(pow(m, e, n))) == str(m % 2)
        for rubbish in ("", "x", "-1", str(n), "1.5", "9" * 5000, b"\xff\x00", "0x10"):
            assert tube.ask(rubbish).startswith("error: ")


def test_lsb_solution_believes_the_server_only(play):
    made = _make("rsa_lsb", 1)
    main = made.server["main.py"].replace(b"str(pow(c, D, N) % 2)", b"'0'")
    assert main != made.server["main.py"]
    planted = type(made)(public=made.public, server={**made.server, "main.py": main})
    assert "flag{" not in play(planted, "rsa_lsb")


def test_lsb_asks_as_often_as_said(connections, tube_type):
    for level, queries in ((1, 256), (2, 512)):
        made = _make("rsa_lsb", level)
        asked = []

        class Counting(tube_type):
            def send_all(self, lines, asked=asked):
                asked.extend(lines)
                super().send_all(lines)

        with connections(made.server) as connect:
            tube = connect()
            rsa_lsb.solve(made.public, lambda tube=tube: Counting(tube._read, tube._write))
        assert len(asked) == queries == FAMILIES["rsa_lsb"].sizes[level]["queries"]
