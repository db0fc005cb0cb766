"""Readers of choice answers against a table of hard cases, read by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.task import build
from harness.core.types import Output, Sample
from scorers.choice import choice, read_choice

# The same draws each time, and no clock: a busy machine must not fail a test.
steady = settings(deadline=None, derandomize=True)

HEAD = "### Reasoning\nOption 3 and 1 fail, 7 is prime.\n"

# (text, indices) for five options; None: no answer.
STRICT = [
    ("### Answer\n2", {2}),
    (HEAD + "### Answer\n0, 2", {0, 2}),
    (HEAD + "### Answer\n1, 0", {0, 1}),
    ("### Answer\n0 and 2", {0, 2}),
    ("### Answer\n0 (option 0)", {0}),
    ("### Answer\n2 (the value is 89)", {2}),
    ("### Answer\n(2)", {2}),
    ("### Answer\n[0, 2]", {0, 2}),
    ("### Answer\n**2**", {2}),
    ("### Answer\n\n\n  2.  \n\nOption 1 is wrong.", {2}),
    ("### Answer\r\n2\r\n", {2}),
    ("### Answer\n2: 89", {2}),
    ("### Answer\n0: RSA, 1: Rabin", {0, 1}),
    ("### Answer\nOption 2", {2}),
    ("### Answer\n2, 2", {2}),
    ("### Answer\n$2$", {2}),
    ("### Answer\n- 2", {2}),
    ("### Answer\n```\n2\n```", {2}),
    ("### ANSWER\n2", {2}),
    ("### Answers\n0, 1", {0, 1}),
    ("### Answer:\n2", {2}),
    ("### Answer: 2", {2}),
    ("### Answer 2", {2}),
    ("### **Answer**: 2", {2}),
    ("**### Answer**\n2", {2}),
    ("## Final Answer\n2", {2}),
    ("### Answer\n1\nNo, wait.\n### Answer\n2", {2}),
    ("<think>### Answer\n1</think>### Answer\n2", {2}),
    ("### Answer\n2\n### Answer key facts\n1", {2}),
    ("### Answer\nC", {2}),
    ("### Answer\nA, C", {0, 2}),
    ("### Answer\nA and C.", {0, 2}),
    ("### Answer\n(B)", {1}),
    ("### Answer\nA: 2", {2}),
    ("2", {2}),
    ("0, 2", {0, 2}),
    (" [0, 2] \n", {0, 2}),
    ("C", {2}),
    ("<think>1 or 2?</think>\n2", {2}),
    ("", None),
    ("The right one is 2.", None),
    ("Answer: 2", None),
    ("A prime number it is", None),
    ("<think>### Answer\n2", None),
    ("### Answer", None),
    ("### Answer\n\n  \n", None),
    ("### Answer\nI do not know", None),
    ("### Answer\nA prime", None),
    ("### Answer\n5", None),
    ("### Answer\n2, 7", None),
    ("### Answer\n-1", None),
    ("### Answer\n2.5", None),
    ("### Answer\nF", None),
    ("### Answer\n2\n### Answer\nunsure", None),
    ("### Answer\n" + "1" * 5000, None),
]


@pytest.mark.parametrize(("text", "indices"), STRICT)
def test_strict_hard_cases(text, indices):
    sample = _sample(correct=tuple(sorted(indices or {0})))
    score = choice()(sample, Output(text=text))
    if indices is None:
        assert (score.value, score.status, score.reason) == (0.0, "error", "no_answer")
    else:
        assert (score.value, score.passed, score.status) == (1.0, True, "scored"), score.explanation
        assert score.answer == ", ".join(map(str, sorted(indices)))


UPSTREAM = [
    ("### Answer\n1, 0", [0, 1]),
    ("### Answer\n0 (option 0)", [0, 0]),
    ("### Answer\n2\nbecause 3 fails", [2, 3]),
    ("### Answer\n1\n### Answer\n2", [1, 2]),
    ("### answers: 2", [2]),
    ("Option 1 fails. ### Answer 2", [2]),
    ("### Answer\n9", [9]),
    ("2", None),
    ("### Answer\nC", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "found"), UPSTREAM)
def test_upstream_hard_cases(text, found):
    score = choice("upstream")(_sample(correct=(2,)), Output(text=text))
    if found is None:
        assert score.reason == "no_answer"
    else:
        assert score.answer == ", ".join(map(str, found))
        assert score.value == (found == [2])


def test_the_two_profiles_differ_where_the_protocol_says_so():
    sample, output = _sample(correct=(0,)), Output(text="### Answer\n0 (option 0)")
    assert choice("strict")(sample, output).value == 1
    assert choice("upstream")(sample, output).value == 0


@pytest.mark.parametrize("text", ["### Answer\n0", "### Answer\n0, 1, 2", "### Answer\n1"])
def test_part_of_the_key_is_not_the_key(text):
    score = choice()(_sample(correct=(0, 1)), Output(text=text))
    assert (score.value, score.passed, score.status) == (0.0, False, "scored")


def test_the_rule_is_named():
    for profile in ("strict", "upstream"):
        score = choice(profile)(_sample(correct=(1,)), Output(text="### Answer\n1"))
        assert score.explanation.startswith(profile)


@steady
@given(
    st.sets(st.integers(0, 25), min_size=1),
    st.sampled_from([", ", ",", " and ", "; ", " "]),
    st.sampled_from(["{}", "**{}**", "[{}]", "{}.", "Options {}"]),
)
def test_any_set_of_indices_is_read_back(indices, separator, form):
    line = form.format(separator.join(map(str, sorted(indices, reverse=True))))
    assert read_choice(f"{HEAD}### Answer\n{line}\n", 26)[0] == indices


@steady
@given(st.sets(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), min_size=1))
def test_letters_mean_the_same_as_indices(letters):
    indices = {ord(letter) - 65 for letter in letters}
    assert read_choice("### Answer\n" + ", ".join(letters), 26)[0] == indices


@steady
@given(st.text(alphabet="#* Answer:\n0123456789,()[]ABC-.", max_size=60))
def test_what_is_read_is_always_in_range(text):
    indices, rule = read_choice(text, 3)
    assert rule
    assert indices is None or (indices and indices <= {0, 1, 2})


def test_the_likeliest_option_is_the_answer():
    sample = Sample(item_id="1", input="?", choices=("RSA", "AES-256"), correct=(1,))
    score = choice()(sample, Output(text="", choice_logprobs=(-2.0, -3.0)))
    # a character: -2/3 < -3/7
    assert (score.value, score.answer) == (0.0, "0")
    assert score.metrics == {"acc": 0.0, "acc_norm": 1.0}


def test_the_first_of_equals_wins():
    sample = Sample(item_id="1", input="?", choices=("ab", "cd", "ef"), correct=(0,))
    assert choice()(sample, Output(text="", choice_logprobs=(-1.0, -1.0, -1.0))).value == 1
    sample = Sample(item_id="1", input="?", choices=("ab", "cd", "ef"), correct=(1,))
    assert choice()(sample, Output(text="", choice_logprobs=(-1.0, -1.0, -1.0))).value == 0


def test_log_probabilities_win_over_text_and_may_be_minus_infinity():
    sample = _sample(correct=(1,))
    output = Output(text="### Answer\n0", choice_logprobs=(-9.0, -1.0, -9.0, float("-inf"), -9.0))
    assert choice()(sample, output).value == 1


@pytest.mark.parametrize("logprobs", [(), (-1.0,), (float("nan"),) * 5])
def test_broken_log_probabilities_are_not_the_models_fault(logprobs):
    with pytest.raises(ValueError, match="log-probabilities"):
        choice()(_sample(correct=(1,)), Output(text="", choice_logprobs=logprobs))


def test_an_unknown_profile_is_refused():
    with pytest.raises(UsageError, match="profile=loose is not one of strict, upstream"):
        build("scorers", "choice?profile=loose")


def _sample(correct):
    return Sample(item_id="1", input="?", choices=("v", "w", "x", "y", "z"), correct=correct)
