from __future__ import annotations

import pytest

from harness.core.errors import UsageError
from harness.core.task import build
from harness.core.types import Output, Sample
from scorers.exact import exact

SAMPLE = Sample(item_id="1", input="Capital of France?", target=("Paris", "Paris, France"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Paris", 1),
        ("  Paris\n", 1),
        ("Paris, France", 1),
        ("<think>Lyon?</think>\nParis", 1),
        ("paris", 0),
        ("Paris.", 0),
        ("It is Paris", 0),
    ],
)
def test_the_whole_text_counts(text, value):
    score = exact()(SAMPLE, Output(text=text))
    assert (score.value, score.status) == (value, "scored")


def test_case_may_be_ignored():
    assert build("scorers", "exact?ignore_case=yes")(SAMPLE, Output(text="PARIS")).value == 1
    with pytest.raises(UsageError, match="ignore_case=maybe"):
        exact(ignore_case="maybe")


@pytest.mark.parametrize("text", ["", " \n", "<think>Paris"])
def test_an_empty_answer_is_unreadable(text):
    assert exact()(SAMPLE, Output(text=text)).reason == "no_answer"


def test_an_empty_reference_can_be_met():
    sample = Sample(item_id="1", input="Say nothing.", target=("",))
    assert exact()(sample, Output(text=" ")).value == 1
