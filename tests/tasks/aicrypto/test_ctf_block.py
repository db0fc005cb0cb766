"""Block ciphers: servers against published vectors, their instances, planted faults of servers."""

import json

import pytest
from msgspec.structs import replace

from tasks.aicrypto.ctf import forge
from tasks.aicrypto.ctf.draw import Draw, flag_of
from tasks.aicrypto.ctf.families import block
from tasks.aicrypto.ctf.families.catalogue import ITEMS
from tasks.aicrypto.ctf.solutions import ecb_byte

NAMES = [family.name for family in block.FAMILIES]
ITEM_IDS = [item_id for item_id, item in ITEMS.items() if item.family.name in NAMES]


def make(item_id, draw=0):
    item, flag = ITEMS[item_id], flag_of(draw, item_id, 0)
    return item.family.make(Draw(item_id, draw, 0, 0), item.level, item.kind, flag)


def changed(made, old, new):
    """The challenge with another text in its server; the agent's copy is left alone."""
    program = made.server["main.py"].decode()
    assert program.count(old) == 1
    return replace(made, server={**made.server, "main.py": program.replace(old, new).encode()})


def with_secret(made, **values):
    secret = json.loads(made.server["secret.json"]) | values
    return {**made.server, "secret.json": json.dumps(secret).encode()}


@pytest.mark.parametrize("item_id", ITEM_IDS)
@pytest.mark.parametrize("draw", [0, 1])
def test_our_solution_finds_the_flag(item_id, draw):
    instance = forge.make_instance(item_id, draw)
    assert instance.flag == flag_of(draw, item_id, 0)
    assert instance.tries == 1
    assert instance.public == {"main.py": instance.server["main.py"]}


@pytest.mark.parametrize("item_id", ITEM_IDS)
def test_a_draw_gives_the_same_files_and_another_draw_others(item_id):
    assert make(item_id, 5) == make(item_id, 5)
    assert make(item_id, 5).server["secret.json"] != make(item_id, 6).server["secret.json"]


@pytest.mark.parametrize("item_id", ITEM_IDS)
def test_rubbish_gets_a_line_of_error_and_the_server_goes_on(item_id, connections):
    made = make(item_id)
    with connections(made.server) as connect:
        tube = connect()
        if "padding" in item_id:
            tube.line()
        for line in (b"zz", b"\xff\xfe", b"0" * 100_001, b"card\x00", b"enter", b"enter 00"):
            answer = tube.ask(line)
            assert answer.startswith("error: ")
            assert "flag{" not in answer


def test_labels_are_locked_as_the_standard_says(connections):
    # FIPS 197, appendix C.1.
    key, plain = bytes(range(16)).hex(), "00112233445566778899aabbccddeeff"
    server = with_secret(make("own-ctf-ecb-byte-1"), key=key)
    with connections(server) as connect:
        assert connect().ask(plain)[:32] == "69c4e0d86a7b0430d8cdb78070b4c55a"


def test_parcels_are_opened_as_the_standard_says(connections):
    # SP 800-38A, F.2.1: with this IV the block reads as `plain`; other IVs change it bit by bit.
    key, iv = "2b7e151628aed2a6abf7158809cf4f3c", bytes(range(16))
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172a")
    locked = bytes.fromhex("7649abac8119b246cee98e9b12e9197d")
    server = with_secret(make("own-ctf-cbc-padding-1"), key=key)

    def parcel(wanted):
        return (bytes(a ^ b ^ c for a, b, c in zip(iv, plain, wanted, strict=True)) + locked).hex()

    with connections(server) as connect:
        tube = connect()
        tube.line()
        assert tube.ask(parcel(bytes(15) + b"\x01")) == "well packed"
        assert tube.ask(parcel(bytes(14) + b"\x02\x02")) == "well packed"
        assert tube.ask(parcel(b"\x10" * 16)) == "well packed"
        assert tube.ask(parcel(bytes(14) + b"\x01\x02")) == "badly packed"
        assert tube.ask(parcel(bytes(16))) == "badly packed"
        assert tube.ask(parcel(b"\x11" * 16)) == "badly packed"


@pytest.mark.parametrize("level", [1, 2])
def test_a_block_costs_4096_queries_at_most(level, connections, tube_type):
    item_id = f"own-ctf-cbc-padding-{level}"
    made, asked = make(item_id), []
    with connections(made.server) as connect:

        def counted():
            tube = connect()
            send_all = tube.send_all
            tube.send_all = lambda lines: (asked.append(len(lines)), send_all(lines))
            return tube

        assert forge.solution("cbc_padding")(made.public, counted) == flag_of(0, item_id, 0)
    blocks = ITEMS[item_id].family.sizes[level]["blocks"]
    # Two more where the last byte alone leaves two answers.
    assert sum(asked) <= blocks * (4096 + 2)


@pytest.mark.parametrize("draw", range(16))
def test_the_number_of_bytes_in_front_is_found(draw, play):
    item_id = "own-ctf-ecb-byte-2"
    made = make(item_id)
    shop = bytes(range(1, 1 + draw)).hex()
    assert play(replace(made, server=with_secret(made, shop=shop)), "ecb_byte") == flag_of(
        0, item_id, 0
    )


@pytest.mark.parametrize(
    ("shop", "fill"), [("01", 15), ("02" * 15, 1), ("00" * 9, 7), ("03" * 3, 13), ("", 0)]
)
def test_bytes_in_front_may_look_like_ours(shop, fill, connections):
    made = make("own-ctf-ecb-byte-2")
    with connections(with_secret(made, shop=shop)) as connect:
        assert ecb_byte._front(connect()) == (fill, 1 if shop else 0)


def test_a_guests_card_opens_nothing(connections):
    for level in (1, 2):
        with connections(make(f"own-ctf-cbc-flip-{level}").server) as connect:
            tube = connect()
            card = tube.ask("card guest" if level == 2 else "card")
            assert tube.ask(f"enter {card}") == "welcome, reader"


def test_a_name_cannot_bring_its_own_field(connections):
    with connections(make("own-ctf-cbc-flip-2").server) as connect:
        tube = connect()
        card = tube.ask("card x;keeper=yes;y=")
        assert tube.ask(f"enter {card}") == "welcome, reader"


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize(
    ("family", "old", "new", "says"),
    [
        # A mail room that takes every parcel, and one that takes none, tell nothing.
        ("cbc-padding", 'return "badly packed"', "pass", "tells nothing"),
        ("cbc-padding", "unpad(text, 16)\n", 'raise ValueError("no")\n', "tells nothing"),
        # Flags for everybody, or for nobody.
        ("cbc-flip", 'raise ValueError("say card or enter")', 'return SECRET["flag"]', "to anyone"),
        ("cbc-flip", 'return SECRET["flag"]', 'return "welcome"', "did not open"),
        ("ecb-byte", "label = bytes.fromhex(line)", 'return SECRET["flag"]', "to anyone"),
        ("ecb-byte", "AES.MODE_ECB", "AES.MODE_CBC", "not ECB"),
        ("ecb-byte", "+ FLAG", "+ bytes(30)", "no byte fits"),
    ],
)
def test_planted_faults_of_a_server_are_caught(level, family, old, new, says):
    item_id = f"own-ctf-{family}-{level}"
    made = make(item_id)
    fault = forge.fault_of(ITEMS[item_id], changed(made, old, new), flag_of(0, item_id, 0))
    assert fault is not None
    assert says in fault
