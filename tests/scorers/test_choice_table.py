"""Hard replies and what each of the two readers makes of them, decided by hand.

The strict column says what a person who asked for indices from 0 would take the reply to say; the
upstream column follows the protocol as published: every run of digits after the first heading.
"""

from __future__ import annotations

import time

import pytest

from harness.core.types import Output, Sample
from scorers.choice import choice, read_choice

OPTIONS = ("RSA", "Diffie-Hellman", "AES-256", "ChaCha20", "None of the above")
THINKING = "<|channel|>analysis<|message|>1?<|end|><|start|>assistant<|channel|>final<|message|>"

# What stands under "### Answer": (lines, strict, upstream); None: no answer can be read.
UNDER_THE_HEADING = [
    # LaTeX and Markdown
    (r"\boxed{2}", {2}, [2]),
    (r"$\boxed{0, 2}$", {0, 2}, [0, 2]),
    (r"$$\boxed{\text{C}}$$", {2}, None),
    ("\\[\n\\boxed{2}\n\\]", {2}, [2]),
    (r"\(2\)", {2}, [2]),
    (r"\boxed{", None, None),
    (r"$\frac{1}{2}$", None, [1, 2]),
    ("**0** and **2**", {0, 2}, [0, 2]),
    ("__2__", {2}, [2]),
    ("<b>2</b>", {2}, [2]),
    ("---\n2", {2}, [2]),
    ("```json\n[0, 2]\n```", {0, 2}, [0, 2]),
    ("```\n2\n```\nOption 3 fails.", {2}, [2, 3]),
    ("~~~\n2\n~~~", {2}, [2]),
    ('{"answer": [0, 2]}', {0, 2}, [0, 2]),
    # letters
    ("A, C", {0, 2}, None),
    ("b)", {1}, None),
    ("Options A and C", {0, 2}, None),
    ("The correct answer is C.", {2}, None),
    ("C is correct.", {2}, None),
    ("N/A", None, None),
    # the option's text
    ("AES-256", {2}, [256]),
    ("RSA, AES-256", {0, 2}, [256]),
    ("The answers are RSA and AES-256.", {0, 2}, [256]),
    ("C. AES-256", {2}, [256]),
    ("2. AES-256", {2}, [2, 256]),
    ("2) AES-256", {2}, [2, 256]),
    ("2: AES-256", {2}, [2, 256]),
    ("2 (AES-256)", {2}, [2, 256]),
    ("Option 2: AES-256", {2}, [2, 256]),
    ("0: RSA, 2: AES-256", {0, 2}, [0, 2, 256]),
    ("none of the above", {4}, None),
    ("1: AES-256", None, [1, 256]),
    ("1. RSA\n2. AES-256", None, [1, 2, 256]),
    ("RSA and Rabin", None, None),
    ("AES-128", None, [128]),
    ("c1", None, [1]),
    # prose around it
    ("The answer is 2.", {2}, [2]),
    ("The answer is (2).", {2}, [2]),
    ("(0) and (2)", {0, 2}, [0, 2]),
    ("Option2", {2}, [2]),
    ("2, because 3 fails", {2}, [2, 3]),
    ("2. Option 3 fails.", {2}, [2, 3]),
    ("2, not 3", {2}, [2, 3]),
    ("2 (not 3)", {2}, [2, 3]),
    ("2 - its key has 256 bits", {2}, [2, 256]),
    ("0 and 2, since 1 and 3 are symmetric.", {0, 2}, [0, 1, 2, 3]),
    ("The correct options are:\n\n0, 2", {0, 2}, [0, 2]),
    ("2\n\n3 comes close.", {2}, [2, 3]),
    # Where the question is which one is false or not secure, this is how it is answered.
    ("Option 2 is incorrect.", {2}, [2]),
    ("0 and 2 are not secure.", {0, 2}, [0, 2]),
    # what is no clear answer
    ("0 or 2", None, [0, 2]),
    ("0-2", None, [0, 2]),
    ("0 – 2", None, [0, 2]),
    ("All except 2", None, [2]),
    ("Not 3", None, [3]),
    ("either 0 or 2", None, [0, 2]),
    ("It isn't 2", None, [2]),
    ("1/2", None, [1, 2]),
    ("1,024", None, [1, 24]),
    ("2^1", None, [1, 2]),
    ("89 (index 2)", None, [2, 89]),
    ("2,5", None, [2, 5]),
    # lists
    ("- 0\n- 2", {0, 2}, [0, 2]),
    ("* 2\n* 3 fails", {2}, [2, 3]),
    ("0\n2", {0, 2}, [0, 2]),
    ("- RSA\n- AES-256", {0, 2}, [256]),
    ("- A\n- C", {0, 2}, None),
    ("0: RSA\n1: Diffie-Hellman\n2: AES-256", {0, 1, 2}, [0, 1, 2, 256]),
    ("2\n7", None, [2, 7]),
    ("2, 2", {2}, [2, 2]),
    # other scripts
    ("２", {2}, [2]),
    ("０，２", {0, 2}, [0, 2]),
    ("０、２", {0, 2}, [0, 2]),
    ("选项２", {2}, [2]),
    ("答案是 2。", {2}, [2]),
    ("Ｃ", {2}, None),
    ("二", None, None),
    ("②", None, None),
    # cut
    ("0,", {0}, [0]),
    ("", None, None),
]

# Whole replies.
REPLIES = [
    ("### Answers: 0 and 2", {0, 2}, [0, 2]),
    ("## Answers: 0 and 2", {0, 2}, None),
    ("Answers: 0 and 2", None, None),
    ("### Answer(s)\n0, 2", {0, 2}, [0, 2]),
    ("### 2. Answer\n0", {0}, None),
    ("### Answer - 2", {2}, [2]),
    ("### Answer B", {1}, None),
    ("＃＃＃ Ａｎｓｗｅｒ\n２", {2}, None),
    ("### Answer\n1\n\nWait: 1 fails.\n\n### Answer\n2", {2}, [1, 1, 2]),
    ("### Answer draft\n1\n### Answer\n2", {2}, [1, 2]),
    ("### Answer\n2\n### Note\n3 is close.", {2}, [2, 3]),
    ("### Answer\n2\n### Answer\n", None, [2]),
    ("```\n### Reasoning\n1 fails.\n### Answer\n2\n```", {2}, [2]),
    ("<think>### Answer\n1</think>\n### Answer\n2", {2}, [2]),
    ("<reasoning>1?</reasoning>### Answer\n2", {2}, [2]),
    ("1?</think>### Answer\n2", {2}, [2]),
    (THINKING + "### Answer\n2", {2}, [2]),
    ("<think>It is 2.</think>", None, None),
    ("<think>It is 2.\n### Answer\n2", None, None),
    ("### Reasoning\nOption 2 is", None, None),
    ("### Reasoning\nOption 2 is right.\n### Ans", None, None),
    ("AES-256", {2}, None),
    ("C. AES-256", {2}, None),
    ("0: RSA\n1: Diffie-Hellman\n2: AES-256", None, None),
]
TABLE = [(f"### Reasoning\n7 is prime.\n### Answer\n{lines}", *both)
         for lines, *both in UNDER_THE_HEADING] + REPLIES  # fmt: skip


def _read(profile, text):
    sample = Sample(item_id="1", input="?", choices=OPTIONS, correct=(0,))
    score = choice(profile)(sample, Output(text=text))
    if score.answer is None:
        assert (score.value, score.status, score.reason) == (0.0, "error", "no_answer")
        return None
    return [int(index) for index in score.answer.split(", ")]


def test_the_table_is_long_enough_and_says_nothing_twice():
    assert len(TABLE) >= 30
    assert len({text for text, _, _ in TABLE}) == len(TABLE)


@pytest.mark.parametrize(("text", "strict", "upstream"), TABLE)
def test_hard_replies(text, strict, upstream):
    assert _read("strict", text) == (None if strict is None else sorted(strict))
    assert _read("upstream", text) == upstream


def test_a_number_is_an_index_though_an_option_says_it():
    options = ("2", "4", "0", "12", "(0, 1)")
    for line, indices in (("2", {2}), ("0", {0}), ("(0, 1)", {0, 1}), ("1: 4", {1}), ("B: 4", {1})):
        assert read_choice(f"### Answer\n{line}", 5, options)[0] == indices
    assert read_choice("### Answer\n12", 5, options)[0] is None


def test_a_letter_is_a_position_though_an_option_says_it():
    assert read_choice("### Answer\nA", 3, ("B", "A", "C"))[0] == {0}


def test_a_value_is_read_by_its_text_where_it_can_be_no_index():
    options = ("13/55", "$2^{64}$", "1.5 bits", "2 blocks", "a2V5")
    for j, option in enumerate(options):
        assert read_choice(f"### Answer\n{option}", 5, options)[0] == {j}, option
    # In a code upper and lower case differ.
    assert read_choice("### Answer\nA2V5", 5, options)[0] is None


def test_the_longer_of_two_options_is_meant():
    options = ("RSA", "RSA-OAEP", "RSA-OAEP and RSA-PSS")
    for j, option in enumerate(options):
        assert read_choice(f"### Answer\n{option}", 3, options)[0] == {j}


@pytest.mark.parametrize(
    "unit",
    [
        "0, ",
        "(",
        "#",
        "a ",
        "the ",
        " ",
        "1",
        "\n- 2",
        " is correct",
        "*",
        "the!",
        "(a",
        "0) ",
        "1 - ",
    ],
)
def test_a_reply_that_goes_round_in_circles_is_read_in_no_time(unit):
    begin = time.process_time()
    for text in ("### Answer\n{} x", "### Answer{}x", "### Answer\nC{}1", "{}"):
        read_choice(text.format(unit * 20_000), 5, OPTIONS)
    assert time.process_time() - begin < 3
