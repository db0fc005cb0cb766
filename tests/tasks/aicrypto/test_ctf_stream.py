"""Streams, generators and hashes: against published vectors, their instances, limits of servers."""

import hashlib
import json
import random
import subprocess
import sys

import pytest
from msgspec.structs import replace

from tasks.aicrypto.ctf import forge
from tasks.aicrypto.ctf.draw import Draw, flag_of
from tasks.aicrypto.ctf.families import prng, program, stream
from tasks.aicrypto.ctf.families.catalogue import ITEMS
from tasks.aicrypto.ctf.solutions import lcg, lcg_truncated, length_extension, mt19937

NAMES = [family.name for family in stream.FAMILIES]
ITEM_IDS = [item_id for item_id, item in ITEMS.items() if item.family.name in NAMES]
STATIC = [item_id for item_id in ITEM_IDS if ITEMS[item_id].kind == "static"]
DYNAMIC = [item_id for item_id in ITEM_IDS if ITEMS[item_id].kind == "dynamic"]


def make(item_id, draw=0):
    item, flag = ITEMS[item_id], flag_of(draw, item_id, 0)
    return item.family.make(Draw(item_id, draw, 0, 0), item.level, item.kind, flag)


def started_with(seed):
    """A generator whose state is that of the reference program started with a 32-bit seed.

    Knuth's rule, The Art of Computer Programming, volume 2, 3rd edition, page 106.
    """
    words = [seed]
    for i in range(1, 624):
        words.append((1812433253 * (words[-1] ^ (words[-1] >> 30)) + i) % 2**32)
    rng = random.Random()
    rng.setstate((3, (*words, 624), None))
    return rng


@pytest.mark.parametrize("item_id", ITEM_IDS)
@pytest.mark.parametrize("draw", [0, 1])
def test_our_solution_finds_the_flag(item_id, draw):
    instance = forge.make_instance(item_id, draw)
    assert instance.flag == flag_of(draw, item_id, 0)
    assert instance.tries == 1


@pytest.mark.parametrize("item_id", ITEM_IDS)
def test_a_draw_gives_the_same_files_and_another_draw_others(item_id):
    assert make(item_id, 5) == make(item_id, 5)
    one, other = make(item_id, 5), make(item_id, 6)
    assert (one.public, one.server) != (other.public, other.server)
    if item_id in STATIC:
        assert one.public["output.txt"] != other.public["output.txt"]


@pytest.mark.parametrize("item_id", STATIC)
def test_the_program_with_its_secret_prints_the_output(item_id, monkeypatch, tmp_path):
    secrets = []

    def spy(main, secret):
        secrets.append(secret)
        return output_of(main, secret)

    output_of = program.output_of
    monkeypatch.setattr(program, "output_of", spy)
    made = make(item_id, 2)
    (tmp_path / "main.py").write_bytes(made.public["main.py"])
    (tmp_path / "secret.json").write_text(json.dumps(secrets[0]))
    done = subprocess.run([sys.executable, tmp_path / "main.py"], capture_output=True, check=True)
    assert done.stdout == made.public["output.txt"]
    assert flag_of(2, item_id, 0) in json.dumps(secrets[0])


@pytest.mark.parametrize("item_id", DYNAMIC)
def test_rubbish_gets_a_line_of_error_and_the_server_goes_on(item_id, connections):
    made = make(item_id)
    with connections(made.server) as connect:
        tube = connect()
        if "length" in item_id or item_id == "own-ctf-ctr-reuse-1d":
            tube.line()
        for line in (b"zz", b"\xff\xfe", b"0" * 100_001, b"next\x00", b"guess", b"guess one"):
            answer = tube.ask(line)
            assert answer.startswith("error: ")
            assert "flag{" not in answer


# -- linear congruence


def test_lcg_vectors():
    # The constants of the C standard's example with modulus 2^31, from 1.
    numbers = [1103527590, 377401575, 662824084]
    main = program.fill(prng._LCG_STATIC, imports="", modulus="M = 2**31", outputs=3)
    secret = {"flag": "", "a": 1103515245, "c": 12345, "start": 1}
    printed = program.output_of(main, secret).decode().splitlines()
    assert printed[:3] == [f"number = {number}" for number in numbers]
    assert lcg.parameters(numbers, 2**31) == (1103515245, 12345, 2**31)


@pytest.mark.parametrize("seed", range(25))
def test_lcg_with_unknown_modulus(seed):
    draw = Draw("lcg", seed)
    m = draw.prime(128)
    a, c, x = draw.between(2, m - 1), draw.below(m), draw.below(m)
    numbers = [x := (a * x + c) % m for _ in range(13)]
    assert lcg.parameters(numbers) == (a, c, m)


@pytest.mark.parametrize("bits", [24, 32])
@pytest.mark.parametrize("seed", range(25))
def test_states_behind_high_bits(bits, seed):
    # Knuth's MMIX: any multiplier of full period must do.
    a, c, x = 6364136223846793005, 1442695040888963407, Draw("high", seed).bits(64)
    start, shown = x, []
    for _ in range(8):
        shown.append(x >> (64 - bits))
        x = (a * x + c) % 2**64
    assert lcg_truncated.first_state(shown, a, c, 64 - bits) == start
    shown[3] ^= 1 << (bits - 1)
    with pytest.raises(ValueError, match="does not give the numbers"):
        lcg_truncated.first_state(shown, a, c, 64 - bits)


def test_modulus_is_told_at_level_one_only():
    for mark in ("", "d"):
        m = json.loads(make("own-ctf-lcg-2d").server["secret.json"])["m"]
        assert m.bit_length() == 128
        assert b"\nM = SECRET" in make(f"own-ctf-lcg-2{mark}").public["main.py"]
        assert b"\nM = SECRET" not in make(f"own-ctf-lcg-1{mark}").public["main.py"]


# -- MT19937


def test_mt19937_vectors():
    rng = started_with(5489)
    outputs = [rng.getrandbits(32) for _ in range(10_000)]
    assert (outputs[0], outputs[1], outputs[-1]) == (3499211612, 581869302, 4123659995)
    clone = mt19937.following(dict(enumerate(outputs[:624])), 9_999)
    assert clone.getrandbits(32) == 4123659995


def test_tempering_is_undone():
    assert mt19937.untemper(0xE016575D) == 0xDEADBEEF
    rng = started_with(5489)
    state = rng.getstate()[1]
    words = [mt19937.untemper(rng.getrandbits(32)) for _ in range(624)]
    assert tuple(words) == rng.getstate()[1][:624] != state[:624]


def test_gaps_are_filled_and_too_many_are_not():
    rng = started_with(5489)
    outputs = dict(enumerate(rng.getrandbits(32) for _ in range(1_500)))
    kept = {i: output for i, output in outputs.items() if i % 5 < 3}
    assert mt19937.following(kept, 1_500).getrandbits(32) == rng.getrandbits(32)
    few = {i: output for i, output in kept.items() if i < 1_000}
    with pytest.raises(ValueError, match="too few words"):
        mt19937.following(few, 1_500)


def test_random_takes_two_outputs():
    # What level 2 says of the numbers that are not shown.
    one, other = started_with(5489), started_with(5489)
    one.random()
    other.getrandbits(32)
    other.getrandbits(32)
    assert one.getrandbits(32) == other.getrandbits(32)


# -- limits and guesses


@pytest.mark.parametrize(
    ("item_id", "count"),
    [("own-ctf-lcg-1d", 6), ("own-ctf-lcg-2d", 13), ("own-ctf-mt19937-1d", 624), ("own-ctf-mt19937-2d", 900)],
)  # fmt: skip
def test_a_generator_shows_so_many_and_takes_one_guess(item_id, count, connections):
    with connections(make(item_id).server) as connect:
        tube, second = connect(), connect()
        first = tube.ask("next")
        assert all(tube.ask("next").isdigit() for _ in range(count - 1))
        assert tube.ask("next").startswith("error: ")
        assert tube.ask("guess 0") == "wrong, good-bye"
        with pytest.raises(EOFError):
            tube.line()
        # Another connection starts anew: what the first one showed is no help.
        assert second.ask(f"guess {first}") == "wrong, good-bye"


def test_telegrams_are_few_and_short(connections):
    with connections(make("own-ctf-ctr-reuse-1d").server) as connect:
        tube = connect()
        secret = tube.line()
        assert tube.ask("00" * 65).startswith("error: ")
        answers = [tube.ask("00" * 64) for _ in range(17)]
        assert len(set(answers[:16])) == 1
        assert answers[16] == "error: the office is closed"
        # Every connection has its nonce.
        assert connect().line() != secret


def test_pages_are_twelve_and_the_flags_is_among_the_first(connections):
    for draw in range(30):
        made, flag = make("own-ctf-ctr-reuse-2d", draw), flag_of(draw, "own-ctf-ctr-reuse-2d", 0)
        pages = json.loads(made.server["secret.json"])["pages"]
        where = [i for i, page in enumerate(pages) if flag in page]
        assert len(pages) == 12
        assert len(where) == 1
        # Block i of the stream is known for i up to 11, and a page has its heading in front.
        assert where[0] + (16 + pages[where[0]].index(flag) + len(flag) - 1) // 16 <= 11
    with connections(made.server) as connect:
        tube = connect()
        assert len({tube.ask("next")[:32] for _ in range(12)}) == 12
        assert tube.ask("next") == "error: that was the last page"


# -- length extension

EXTENDED = {
    "md5": ("dd4e3eb5b8c3fa3caa4ec75fb5ec7b36", "c38ca41defcc704a2e3f800257a01aac"),
    "sha1": (
        "6bba6a85457e7cff8cb4c8e61e2015317547cc8a",
        "caab5d74402b1c4da66f3fdd404e6ff081d4bccf",
    ),
    "sha256": (
        "cecb010531bef12ca9524b8aac6aac7a1ebd54edce01f2e3ccb327f105ca946a",
        "499c17332c50ae61154dad2bdee30bbca3e8846586ec27f3af427f7f41921ac6",
    ),
}


@pytest.mark.parametrize("name", EXTENDED)
def test_length_extension_vectors(name):
    before, after = EXTENDED[name]
    assert hashlib.new(name, b"k" * 16 + b"user=guest").hexdigest() == before
    assert length_extension.extend(name, before, 26, b"&role=admin")[1] == after


@pytest.mark.parametrize("name", EXTENDED)
def test_extended_tags_are_those_of_hashlib(name):
    data = bytes(range(256))
    for length in (*range(50, 70), 0, 1, 119, 120, 128, 200):
        for size in (0, 11, 55, 56, 64, 130):
            text, suffix = data[:length], data[:size]
            glue, tag = length_extension.extend(
                name, hashlib.new(name, text).hexdigest(), length, suffix
            )
            assert tag == hashlib.new(name, text + glue + suffix).hexdigest()


def test_both_hashes_of_level_one_come_up_and_keys_of_many_lengths():
    mains = [make("own-ctf-length-extension-1", draw).public["main.py"] for draw in range(20)]
    assert {b"hashlib.md5" in main for main in mains} == {True, False}
    secrets = [make("own-ctf-length-extension-2", d).server["secret.json"] for d in range(60)]
    lengths = {len(json.loads(secret)["key"]) // 2 for secret in secrets}
    assert min(lengths) >= 8
    assert max(lengths) <= 32
    assert len(lengths) > 10


@pytest.mark.parametrize("size", [8, 15, 16, 31, 32])
def test_keys_of_any_length_are_found(size, play):
    item_id = "own-ctf-length-extension-2"
    made = make(item_id)
    secret = {"flag": flag_of(0, item_id, 0), "key": "6b" * size}
    server = {**made.server, "secret.json": json.dumps(secret).encode()}
    assert play(replace(made, server=server), "length_extension") == secret["flag"]


def test_a_pass_without_its_tag_opens_nothing(connections):
    with connections(make("own-ctf-length-extension-1").server) as connect:
        tube = connect()
        guest, tag = tube.line().split()
        assert tube.ask(f"{guest} {tag}") == "welcome, guest"
        master = guest + b"&role=master".hex()
        for other in (tag, "", "0" * len(tag), tag.upper()):
            assert tube.ask(f"{master} {other}") == "error: this pass is forged"


# -- planted faults


@pytest.mark.parametrize(
    ("item_id", "old", "new", "says"),
    [
        ("own-ctf-lcg-1d", "int(rest) == generator.next()", "False", "solution found 'wrong"),
        ("own-ctf-lcg-2d", 'raise ValueError("say next', 'return SECRET["flag"]  # (', "to anyone"),
        ("own-ctf-mt19937-2d", "rng.random()", "rng.getrandbits(32)", "solution found 'wrong"),
        ("own-ctf-mt19937-1d", "yield rng", "yield random.SystemRandom()", "solution found 'wrong"),
        ("own-ctf-ctr-reuse-1d", "nonce=NONCE", "nonce=secrets.token_bytes(8)", "no flag in"),
        ("own-ctf-ctr-reuse-2d", "initial_value=number", "initial_value=16 * number", "no flag in"),
        ("own-ctf-length-extension-2", "KEY + text)", "text + KEY)", "no length of the key fits"),
        ("own-ctf-length-extension-2", 'raise ValueError("this pass is forged")',
         'return SECRET["flag"]', "to anyone"),
    ],
)  # fmt: skip
def test_planted_faults_of_a_server_are_caught(item_id, old, new, says):
    made = make(item_id)
    main = made.server["main.py"].decode()
    assert main.count(old) == 1
    server = {**made.server, "main.py": main.replace(old, new).encode()}
    fault = forge.fault_of(ITEMS[item_id], replace(made, server=server), flag_of(0, item_id, 0))
    assert fault is not None
    assert says in fault


@pytest.mark.parametrize("item_id", STATIC)
def test_an_output_of_another_draw_is_caught(item_id):
    made, other = make(item_id), make(item_id, 1)
    fault = forge.fault_of(ITEMS[item_id], other, flag_of(0, item_id, 0))
    assert fault is not None
    assert "the solution found" in fault
    assert forge.fault_of(ITEMS[item_id], made, flag_of(0, item_id, 0)) is None
