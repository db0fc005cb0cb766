"""Classic ciphers: the programs against textbook vectors, their instances, what gives no flag."""

import subprocess
import sys

import pytest
from msgspec.structs import replace

from tasks.aicrypto.ctf import forge
from tasks.aicrypto.ctf.draw import Draw, flag_of
from tasks.aicrypto.ctf.families import classic, program, text
from tasks.aicrypto.ctf.families.catalogue import ITEMS

NAMES = [family.name for family in classic.FAMILIES]
ITEM_IDS = [item_id for item_id, item in ITEMS.items() if item.family.name in NAMES]


def make(item_id, draw):
    item, flag = ITEMS[item_id], flag_of(draw, item_id, 0)
    return item.family.make(Draw(item_id, draw, 0, 0), item.level, item.kind, flag)


@pytest.mark.parametrize(
    ("encipher", "secret", "cipher"),
    [
        (classic._SHIFT, {"message": "cryptography", "shift": 7}, "jyfwavnyhwof"),
        (classic._AFFINE, {"message": "affine", "a": 5, "b": 8}, "ihhwvc"),
        (
            program.fill(classic._VIGENERE, low=5, high=5).decode(),
            {"message": "attackatdawn", "key": "lemon"},
            "lxfopvefrnhr",
        ),
        (
            # The alphabet that the key word ZEBRAS begins.
            classic._SUBSTITUTION,
            {"message": "fleeatonce", "key": "zebrascdfghijklmnopqtuvwxy"},
            "siaazqlkba",
        ),
    ],
)
def test_textbook_vectors(encipher, secret, cipher):
    size = len(secret["message"])
    main = program.fill(classic._FRAME, title="", encipher=encipher, length=size, words="")
    output = program.output_of(main, {"flag": "flag{}", **secret}).decode()
    assert output.splitlines()[0] == f"ciphertext = {cipher}"


@pytest.mark.parametrize("item_id", ITEM_IDS)
@pytest.mark.parametrize("draw", [0, 1])
def test_our_solution_finds_the_flag(item_id, draw):
    instance = forge.make_instance(item_id, draw)
    assert instance.flag == flag_of(draw, item_id, 0)
    assert instance.tries == 1
    assert instance.server == {}


@pytest.mark.parametrize("item_id", ITEM_IDS)
def test_a_draw_gives_the_same_files_and_another_draw_others(item_id):
    assert make(item_id, 5) == make(item_id, 5)
    assert make(item_id, 5).public["output.txt"] != make(item_id, 6).public["output.txt"]


@pytest.mark.parametrize("item_id", ITEM_IDS)
def test_the_program_with_its_secret_prints_the_output(item_id, monkeypatch, tmp_path):
    secrets = []

    def spy(main, secret):
        secrets.append(secret)
        return output_of(main, secret)

    output_of = program.output_of
    monkeypatch.setattr(program, "output_of", spy)
    made = make(item_id, 2)
    (tmp_path / "main.py").write_bytes(made.public["main.py"])
    (tmp_path / "secret.json").write_bytes(forge.msgspec.json.encode(secrets[0]))
    done = subprocess.run([sys.executable, tmp_path / "main.py"], capture_output=True, check=True)
    assert done.stdout == made.public["output.txt"]
    assert secrets[0]["flag"] == flag_of(2, item_id, 0)


@pytest.mark.parametrize("item_id", ITEM_IDS)
def test_messages_have_the_letters_that_the_sizes_say(item_id):
    item = ITEMS[item_id]
    cipher = make(item_id, 3).public["output.txt"].decode().split()[2]
    assert len(cipher) == item.family.sizes[item.level]["letters"]
    assert cipher.isalpha()
    assert cipher.islower()


def test_three_hundred_words_of_letters():
    assert len(text.WORDS) == 300
    assert all(word.isalpha() and word.islower() for word in text.WORDS)
    assert {letter for word in text.WORDS for letter in word} == set("abcdefghijklmnopqrstuvwxyz")
    assert text.word_list().decode().split() == list(text.WORDS)


def test_texts_are_words_of_the_list():
    draw = Draw("words")
    for _ in range(200):
        assert set(text.sentence(draw)) <= set(text.WORDS)


@pytest.mark.parametrize("item_id", [i for i in ITEM_IDS if "substitution" not in i])
def test_a_seal_that_does_not_belong_to_the_message_is_found_out(item_id):
    made = make(item_id, 0)
    lines = made.public["output.txt"].decode().splitlines()
    other = make(item_id, 1).public["output.txt"].decode().splitlines()
    mixed = "\n".join([lines[0], other[1]]).encode()
    fault = forge.fault_of(
        ITEMS[item_id],
        replace(made, public={**made.public, "output.txt": mixed}),
        flag_of(0, item_id, 0),
    )
    assert fault is not None
    assert "no key opens the flag" in fault
