"""The families of logarithms and of ECDSA: broken by our solutions, and what they are said to be."""

from __future__ import annotations

import functools
import hashlib
import math
import re
import subprocess
import sys

import pytest
import sympy
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from tasks.aicrypto.ctf import forge
from tasks.aicrypto.ctf.draw import Draw, flag_of
from tasks.aicrypto.ctf.families import dlp, secp256k1
from tasks.aicrypto.ctf.solutions import dlp_smooth, dlp_subgroup, ecdsa_nonce

FAMILIES = {family.name: family for family in dlp.FAMILIES}
EACH = [
    (name, level, kind)
    for name, family in FAMILIES.items()
    for kind in family.kinds
    for level in (1, 2)
]


def _flag(name, level, draw):
    return flag_of(draw, f"{name}-{level}", 0)


@functools.cache
def _make(name, level, kind, draw=0):
    flag = _flag(name, level, draw)
    return FAMILIES[name].make(Draw(name, level, kind, draw), level, kind, flag)


def _output(made):
    return dict(line.split(" = ") for line in made.public["output.txt"].decode().splitlines())


def _planted(made, old, new):
    """The same challenge with another server."""
    main = made.server["main.py"].replace(old, new)
    assert main != made.server["main.py"]
    return type(made)(public=made.public, server={**made.server, "main.py": main})


def test_families():
    kinds = {name: family.kinds for name, family in FAMILIES.items()}
    assert kinds == {
        "dlp_smooth": ("static",),
        "dlp_subgroup": ("dynamic",),
        "ecdsa_nonce": ("static", "dynamic"),
    }


@pytest.mark.parametrize(("name", "level", "kind"), EACH)
@pytest.mark.parametrize("draw", [0, 1, 2])
def test_solution_finds_the_flag(play, name, level, kind, draw):
    assert play(_make(name, level, kind, draw), name) == _flag(name, level, draw)


@pytest.mark.parametrize(("name", "level", "kind"), EACH)
def test_a_draw_is_its_files(name, level, kind):
    made, other = _make(name, level, kind), _make(name, level, kind, 1)
    assert _make.__wrapped__(name, level, kind) == made
    assert made.public["main.py"] == other.public["main.py"]
    if kind == "static":
        assert made.public["output.txt"] != other.public["output.txt"]
    else:
        assert made.server["main.py"] == made.public["main.py"]
        assert made.server["secret.json"] != other.server["secret.json"]


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("name", ["dlp_smooth", "ecdsa_nonce"])
def test_the_program_is_true(tmp_path, name, level):
    """Run with a flag of its own beside it, it writes what has the same form and the same fault."""
    made, flag = _make(name, level, "static"), "flag{" + "c0ffee" * 4 + "}"
    (tmp_path / "main.py").write_bytes(made.public["main.py"])
    (tmp_path / "secret.py").write_text(f"FLAG = {flag.encode()}\n")
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    public = {"main.py": made.public["main.py"], "output.txt": done.stdout}
    assert forge.solution(name)(public, None) == flag
    names = [line.split(" = ")[0] for line in done.stdout.decode().splitlines()]
    assert names == list(_output(made))


# logarithms


def test_smooth_groups():
    for level, bits in ((1, 20), (2, 24)):
        output = {
            name: int(value)
            for name, value in _output(_make("dlp_smooth", level, "static")).items()
        }
        p, g = output["p"], output["g"]
        assert p.bit_length() == 256
        assert sympy.isprime(p)
        factors = sympy.factorint(p - 1)
        assert max(factors).bit_length() == bits
        assert all(pow(g, (p - 1) // f, p) != 1 for f in factors)
        text = _flag("dlp_smooth", level, 0).encode()
        assert pow(g, int.from_bytes(text, "big"), p) == output["h"]


def test_pohlig_hellman_vector():
    assert dlp_smooth._logarithm(6, 7531, 8101) == 6689


def test_logarithms_agree_with_sympy():
    draw = Draw("logarithms")
    for _ in range(20):
        p = draw.prime(20)
        g, x = sympy.primitive_root(p), draw.below(p - 1)
        assert dlp_smooth._logarithm(g, pow(g, x, p), p) == x
        assert sympy.discrete_log(p, pow(g, x, p), g) == x


def test_factors_agree_with_sympy():
    for n in [*range(1, 1500), 1009**3, 2**10 * 3**5 * 1013, 1000003 * 1000033]:
        expected = [p for p, power in sympy.factorint(n).items() for _ in range(power)]
        assert sorted(dlp_smooth._factors(n)) == sorted(expected)


def _greeting(tube):
    return dict(tube.line().split(" = ") for _ in range(5))


@pytest.mark.parametrize("level", [1, 2])
def test_subgroup_server(connections, level):
    made = _make("dlp_subgroup", level, "dynamic")
    with connections(made.server) as connect:
        tube = connect()
        p, q, g, h = (int(value) for value in list(_greeting(tube).values())[:4])
        assert p.bit_length() == 512
        assert sympy.isprime(p)
        assert sympy.isprime(q)
        assert (p - 1) % q == 0
        assert 1 != g != pow(g, q, p) == 1
        small = dlp_subgroup._small_factors(p - 1)
        assert math.prod(small) * 2 * q == p - 1
        assert math.prod(small) > 2**160  # so they give the whole key
        assert len(small) == FAMILIES["dlp_subgroup"].sizes[level]["queries"]
        answer = tube.ask(str(g))
        key = hashlib.sha256(str(h).encode()).digest()
        shown = {1: str(h), 2: _hmac_sha256(key, b"ready")}
        assert answer == shown[level]
        refused = [str(y) for y in (0, 1, p - 1, p, p + 5, -3)]
        assert [tube.ask(y).startswith("error: ") for y in refused] == [level == 2] * 6
        for rubbish in ("", "y", "2.0", "7" * 5000, b"\xfe\xff", "None"):
            assert tube.ask(rubbish).startswith("error: ")


def _hmac_sha256(key, message):
    """From its definition, RFC 2104."""
    padded = key.ljust(64, b"\x00")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in padded) + message).digest()
    return hashlib.sha256(bytes(b ^ 0x5C for b in padded) + inner).hexdigest()


def test_subgroup_needs_elements_of_small_order(play):
    """A server that takes elements of the right group only is not broken: the solution says so."""
    made = _make("dlp_subgroup", 1, "dynamic")
    sound = _planted(
        made, b"    return str(pow(y, X, P))",
        b"    return str(pow(y, X, P)) if pow(y, Q, P) == 1 else 'error: a wrong group'",
    )  # fmt: skip
    with pytest.raises(ValueError, match="fixed power"):
        play(sound, "dlp_subgroup")


# ECDSA


def _public_key(x, y):
    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256K1()).public_key()


def _verifies(public, message, r, s):
    try:
        public.verify(utils.encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def test_curve_agrees_with_another_library():
    draw = Draw("curve")
    for k in [1, 2, 3, secp256k1.N - 1, *(1 + draw.below(secp256k1.N - 1) for _ in range(10))]:
        numbers = ec.derive_private_key(k, ec.SECP256K1()).public_key().public_numbers()
        assert secp256k1.times_base(k) == (numbers.x, numbers.y)


def test_ecdsa_vector():
    d, k = 123456789, 987654321
    one, two = (secp256k1.sign(message, d, k) for message in (b"a", b"b"))
    r = 0x5AD2703F5B4F4B9DEA4C28FA30D86D3781D28E09DD51AAE1208DE80BB6155BEE
    assert one[0] == two[0] == r
    point = ec.derive_private_key(k, ec.SECP256K1()).public_key().public_numbers()
    assert point.x == r
    signatures = [
        ecdsa_nonce._signature(message, f"{r:x} {s:x}")
        for message, (r, s) in zip("ab", (one, two), strict=True)
    ]
    assert ecdsa_nonce._same_nonce(*signatures) == (d, k)


@pytest.mark.parametrize("level", [1, 2])
def test_signatures_are_valid(level):
    output = _output(_make("ecdsa_nonce", level, "static"))
    public = _public_key(*(int(word, 16) for word in output.pop("public").split()))
    output.pop("box")
    rs = []
    for message, numbers in output.items():
        r, s = (int(word, 16) for word in numbers.split())
        assert _verifies(public, message.encode(), r, s)
        assert not _verifies(public, b"another", r, s)
        rs.append(r)
    assert (len(rs), len(set(rs))) == {1: (8, 7), 2: (40, 40)}[level]


def test_sound_nonces_give_nothing_away():
    draw = Draw("sound")
    d = 1 + draw.below(secp256k1.N - 1)
    signatures = []
    for i in range(40):
        r, s = secp256k1.sign(f"order {i}".encode(), d, 1 + draw.below(secp256k1.N - 1))
        signatures.append(ecdsa_nonce._signature(f"order {i}", f"{r:x} {s:x}"))
    with pytest.raises(ValueError, match="do not hold the key"):
        ecdsa_nonce._private_key(signatures)


def _gives_the_flag_to_anyone(server, flag, connections):
    with connections(server) as connect:
        tube = connect()
        tube.line()
        lines = ["order 1 1", "order 0 0", f"order {secp256k1.N:x} 1", "order 1", "order x y"]
        lines += [
            "order",
            "sign",
            "",
            "flag",
            b"\xff\xfe",
            "sign open the vault",
            "open",
            "order -1 -1",
        ]
        answers = [tube.ask(line) for line in lines]
    assert all(answer.startswith("error: ") or answer == flag for answer in answers)
    return flag in answers


@pytest.mark.parametrize("level", [1, 2])
def test_notary_gives_nothing_for_a_wrong_signature(connections, level):
    made, flag = _make("ecdsa_nonce", level, "dynamic"), _flag("ecdsa_nonce", level, 0)
    assert not _gives_the_flag_to_anyone(made.server, flag, connections)
    open_to_all = _planted(made, b"return k != 0 and", b"return True or")
    assert _gives_the_flag_to_anyone(open_to_all.server, flag, connections)


@pytest.mark.parametrize("level", [1, 2])
def test_notary_signs_validly(connections, level):
    made = _make("ecdsa_nonce", level, "dynamic")
    with connections(made.server) as connect:
        tube, other = connect(), connect()
        greeting = tube.line()
        assert greeting == other.line()  # the key stays from one connection to the next
        public = _public_key(*(int(x, 16) for x in greeting.removeprefix("public = ").split()))
        pairs = [
            [int(x, 16) for x in end.ask(f"sign text {i}").split()]
            for end in (tube, other)
            for i in range(8)
        ]
    assert all(_verifies(public, f"text {i % 8}".encode(), *pair) for i, pair in enumerate(pairs))
    assert len({r for r, _ in pairs}) == {1: 14, 2: 16}[level]


def test_a_notary_with_sound_nonces_is_not_broken(play):
    made = _make("ecdsa_nonce", 1, "dynamic")
    sound = _planted(made, b"return NONCES[i % 7]", b"return 1 + randbelow(N - 1)")
    with pytest.raises(ValueError, match="do not hold the key"):
        play(sound, "ecdsa_nonce")


def test_programs_show_the_curve_that_made_them():
    """The text in the programs is run by itself and multiplies as the project's own."""
    space = {"sha256": hashlib.sha256}
    exec(secp256k1.SOURCE, space)
    assert space["times_base"](12345) == secp256k1.times_base(12345)
    for kind in ("static", "dynamic"):
        program = _make("ecdsa_nonce", 1, kind).public["main.py"].decode()
        assert secp256k1.SOURCE in program
        assert not re.search(r"\$\w", program)
