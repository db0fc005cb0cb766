"""What the reference proofs claim, counted out over small groups, functions and ciphers.

Every probability here is exact: all seeds, keys and challenges are gone through.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from random import Random

import pytest

HALF = Fraction(1, 2)


def share(values):
    values = list(values)
    return Fraction(sum(map(bool, values)), len(values))


def parity(number):
    return number.bit_count() % 2


@pytest.mark.parametrize("seed", range(5))
def test_p01_the_parity_test_has_advantage_one_half(seed):
    rng, length = Random(seed), 7
    outputs = [rng.randrange(2**length) for _ in range(2**4)]  # any function of 4 bits
    on_generator = share(parity(y << 1 | parity(y)) == 0 for y in outputs)
    on_uniform = share(parity(u) == 0 for u in range(2 ** (length + 1)))
    assert on_generator - on_uniform == HALF


@pytest.mark.parametrize("seed", range(5))
def test_p02_the_inverter_succeeds_at_least_as_often(seed):
    rng, n = Random(seed), range(8)
    f = [rng.randrange(4) for _ in n]
    adversary = {(z, y): (rng.choice(n), rng.choice([y, y ^ 1])) for z in range(4) for y in n}
    pairs = list(itertools.product(n, n))

    def inverts(x, y):
        a, b = adversary[f[x], y]
        return (f[a], b) == (f[x], y)

    of_g = share(inverts(x, y) for x, y in pairs)
    of_f = share(f[adversary[f[x], y][0]] == f[x] for x, y in pairs)
    assert 0 < of_g <= of_f


@pytest.mark.parametrize("seed", range(5))
def test_p03_the_attack_is_always_right(seed):
    cipher = list(range(8))
    Random(seed).shuffle(cipher)
    for iv1, iv2 in itertools.product(range(8), repeat=2):
        first = cipher[0 ^ iv1]
        messages = (iv1 ^ iv2, iv1 ^ iv2 ^ 7)
        assert [cipher[m ^ iv2] == first for m in messages] == [True, False]


@pytest.mark.parametrize("seed", range(5))
def test_p04_the_forged_tag_is_right_and_the_wrong_one_is_not(seed):
    cipher = list(range(16))
    Random(seed).shuffle(cipher)

    def mac(*blocks):
        tag = 0
        for block in blocks:
            tag = cipher[block ^ tag]
        return tag

    assert all(mac(m, m ^ mac(m)) == mac(m) for m in range(16))
    assert share(mac(m, m) == 0 for m in range(1, 16)) < HALF


@pytest.mark.parametrize("attempts", range(5))
def test_p05_guessing_reaches_the_bound(attempts):
    # Against all functions from 1 to 2 bits, `attempts` different guesses at one fresh point.
    functions = list(itertools.product(range(4), repeat=2))
    won = share(any(r[1] == guess for guess in range(attempts)) for r in functions)
    assert won == Fraction(attempts, 4)


@pytest.mark.parametrize("seed", range(20))
def test_p05_no_adaptive_forger_beats_the_bound(seed):
    rng = Random(seed)
    functions = list(itertools.product(range(4), repeat=2))
    ask_first = rng.random() < 0.5
    guesses = {
        known: [(rng.randrange(2), rng.randrange(4)) for _ in range(2)] for known in range(4)
    }

    def wins(r):
        known = r[0] if ask_first else 0
        return any(r[x] == t and not (ask_first and x == 0) for x, t in guesses[known])

    assert share(map(wins, functions)) <= Fraction(2, 4)


def test_p06_the_posterior_of_the_one_time_pad_is_the_prior():
    prior = [Fraction(k, 10) for k in (1, 2, 3, 4)]
    for c in range(4):
        joint = [prior[m] * share((m ^ k) == c for k in range(4)) for m in range(4)]
        assert sum(joint) == Fraction(1, 4)
        assert [p / sum(joint) for p in joint] == prior


def test_p06_two_keys_never_hide_three_messages():
    injections = list(itertools.permutations(range(4), 3))
    for keys in itertools.combinations_with_replacement(injections, 2):
        laws = {tuple(sorted(Counter(k[m] for k in keys).items())) for m in range(3)}
        assert len(laws) > 1


def _chain(h, bits):
    """Give the inputs of h and the value for a message, n = b = 2."""
    filled = bits + "0" * (-len(bits) % 2)
    blocks = [filled[i : i + 2] for i in range(0, len(filled), 2)] + [f"{len(bits):02b}"]
    inputs, z = [], "00"
    for block in blocks:
        inputs.append(z + block)
        z = h[z + block]
    return inputs, z


@pytest.mark.parametrize("seed", range(5))
def test_p07_every_collision_gives_one_of_the_compression_function(seed):
    rng = Random(seed)
    h = {f"{i:04b}": f"{rng.randrange(4):02b}" for i in range(16)}
    messages = ["".join(bits) for n in range(4) for bits in itertools.product("01", repeat=n)]
    n_found = 0
    for x, y in itertools.combinations(messages, 2):
        (of_x, hx), (of_y, hy) = _chain(h, x), _chain(h, y)
        if hx != hy:
            continue
        if len(x) != len(y):
            a, b = of_x[-1], of_y[-1]
        else:
            a, b = next((a, b) for a, b in zip(of_x[::-1], of_y[::-1], strict=True) if a != b)
        assert a != b
        assert h[a] == h[b]
        n_found += 1
    assert n_found


# The squares modulo 23: a group of the prime order 11, generated by 2.
P, Q, G = 23, 11, 2


def power(base, exponent):
    return pow(base, exponent % Q, P)


def test_the_group_is_one():
    assert {power(G, e) for e in range(Q)} == {x * x % P for x in range(1, P)}
    assert len({power(G, e) for e in range(Q)}) == Q


def test_p08_random_triples_hide_the_bit_and_the_attack_reads_it():
    group = [power(G, e) for e in range(Q)]
    for m in group:
        assert sorted(z * m % P for z in group) == sorted(group)
    for x, r, m in itertools.product(range(Q), range(Q), group):
        h = power(G, x)
        u, v = power(G, r), power(h, r) * m % P
        again = u * G % P, v * h % P
        assert again[0] != u
        assert again[1] * power(again[0], -x) % P == m


@pytest.mark.parametrize(("p", "g"), [(7, 3), (11, 2), (23, 5)])
def test_p09_the_advantage_is_one_half_exactly(p, g):
    assert len({pow(g, e, p) for e in range(p - 1)}) == p - 1

    def residue(y):
        return pow(y, (p - 1) // 2, p) == 1

    def consistent(x, y, z):
        return residue(z) == (residue(x) or residue(y))

    exponents = range(p - 1)
    power_of = [pow(g, e, p) for e in exponents]
    pairs = list(itertools.product(exponents, repeat=2))
    triples = list(itertools.product(power_of, repeat=3))
    true = [(power_of[a], power_of[b], power_of[a * b % (p - 1)]) for a, b in pairs]
    assert share(consistent(*t) for t in true) == 1
    assert share(consistent(*t) for t in triples) == HALF
    # What the half proof has (a test of Z alone), and what the wrong one claims for its own test.
    assert (
        share(residue(z) for _, _, z in true) - share(residue(z) for _, _, z in triples) == HALF**2
    )
    product_rule = share(residue(z) == (residue(x) == residue(y)) for x, y, z in true)
    assert product_rule != 1


def test_p10_simulated_transcripts_have_the_law_of_real_ones():
    for w in range(Q):
        h = power(G, w)
        pairs = list(itertools.product(range(Q), repeat=2))
        real = Counter((power(G, r), e, (r + e * w) % Q) for r, e in pairs)
        simulated = Counter((power(G, z) * power(h, -e) % P, e, z) for e, z in pairs)
        assert real == simulated
        assert all(power(G, z) == a * power(h, e) % P for a, e, z in real)
        # The wrong proof's simulator draws all three: it is accepted as often as chance has it.
        drawn = itertools.product(range(Q), repeat=3)
        accepted = share(power(G, z) == power(G, r) * power(h, e) % P for r, e, z in drawn)
        assert accepted == Fraction(1, Q)


def test_p10_two_transcripts_give_the_logarithm():
    for w, r in itertools.product(range(Q), repeat=2):
        for e, f in itertools.permutations(range(Q), 2):
            z, y = r + e * w, r + f * w
            assert (z - y) * pow(e - f, -1, Q) % Q == w


def test_p11_commitments_are_uniform_and_collisions_give_the_logarithm():
    for s in range(1, Q):
        h = power(G, s)
        opened = {}
        for m in range(Q):
            values = [power(G, m) * power(h, r) % P for r in range(Q)]
            assert len(set(values)) == Q
            for r, c in enumerate(values):
                opened.setdefault(c, []).append((m, r))
        for openings in opened.values():
            for (m, r), (n, u) in itertools.combinations(openings, 2):
                assert r != u
                assert (m - n) * pow(u - r, -1, Q) % Q == s


def test_p12_two_of_three_shares_are_uniform_and_three_give_the_secret():
    p, points = 5, (1, 2, 3, 4)
    for s in range(p):
        polynomials = [(s, *c) for c in itertools.product(range(p), repeat=2)]

        def at(f, x):
            return sum(c * x**i for i, c in enumerate(f)) % p

        for pair in itertools.combinations(points, 2):
            assert set(Counter(tuple(at(f, x) for x in pair) for f in polynomials).values()) == {1}
        for three in itertools.combinations(points, 3):
            for f in polynomials:
                total = 0
                for j in three:
                    term = at(f, j)
                    for k in three:
                        if k != j:
                            term = term * k * pow(k - j, -1, p)
                    total += term
                assert total % p == s
