"""The one number reader against a table of hard cases, read by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.task import build
from harness.core.types import Output, Sample
from scorers.number import extract_number, number

# The same draws each time, and no clock: a busy machine must not fail a test.
steady = settings(deadline=None, derandomize=True)

# (text, value) by topic; None: there is no number.
MARKERS = [
    ("#### 18", "18"),
    ("####18", "18"),
    ("#### **18**", "18"),
    ("9 * 2 = 18\n#### 18\nThat took 3 steps.", "18"),
    ("The answer is 18", "18"),
    ("So the final answer is: 18", "18"),
    ("The answer would be $18 for 2 days.", "18"),
    ("The answer to the question of the 3 sisters is 18.", "18"),
    ("Answer: 18", "18"),
    ("**Answer:** 18 eggs, as 16 + 2 = 18 and 20 - 2 = 18; check 1", "18"),
    ("**Answer: $18**\n\nShe works 5 days.", "18"),
    ("### Answer\n18\n\nThis took 2 steps.", "18"),
    ("## Final Answer\n\n**18** dollars", "18"),
    (r"Hence \boxed{18}. Check: 9 + 9 = 18, step 2.", "18"),
    (r"The answer is $\boxed{18}$ in 3 steps", "18"),
    (r"\[ \boxed{x = 18} \] and 7", "18"),
    (r"\boxed{\text{18 apples}} of 20", "18"),
    (r"\boxed{18\text{ m}^2}", "18"),
    ("The answer is:\n\n$$\n18\n$$\nin 2 lines", "18"),
    ("She makes **18** dollars in 2 days.", "18"),
    ("She makes **$18 per day**, not 20.", "18"),
    ("A: 18 of the 20", "18"),
    ("The answer is 16. Wait, no. The answer is 18. It took 2 tries.", "18"),
    ("First **16**, then **18** of 20.", "18"),
    ("The answer is clear. She makes 18 dollars.", "18"),
    ("The answer is 16 - 3 - 4 = 9 * 2 = $18 in 5 days.", "18"),
    ("The answer is x = 18", "18"),
    ("The answer is approximately 18.5 metres, in 2 parts.", "18.5"),
    ("Answer: each of the 3 children gets 6 apples. 2 are left.", "6"),
    ("#### Step 2: multiply\n9 * 2 = 18", "18"),
    ("**Step 1:** 16 - 7 = 9\n**Step 2:** 9 * 2 = 18", "18"),
    ("**2. Multiply**\n9 * 2 = 18 dollars", "18"),
]
NUMBERS = [
    ("It costs 3,000.50 in all", "3000.50"),
    ("$1,234,567", "1234567"),
    ("#### 1,450", "1450"),
    ("12,34,567 rupees", "1234567"),
    (r"$1{,}000$", "1000"),
    (r"1\,000 metres", "1000"),
    ("1_000_000", "1000000"),
    ("1\u202f000", "1000"),
    ("$118 000 for the house", "118000"),
    ("rooms 12 100", "100"),
    ("1, 2, 3", "3"),
    ("$18", "18"),
    (r"\$18", "18"),
    ("€18", "18"),
    ("18€", "18"),
    ("18 €", "18"),
    ("USD 18", "18"),
    ("USD18", "18"),
    ("US$18", "18"),
    ("50%", "50"),
    (r"50\%", "50"),
    ("-5", "-5"),
    ("\u22125", "-5"),
    ("\u20135 degrees", "-5"),
    ("-$5", "-5"),
    ("$-5", "-5"),
    ("+5", "5"),
    ("Answer: -5", "-5"),
    ("10-3 is seven", "3"),
    ("pages 3\u20135", "5"),
    ("18.", "18"),
    ("It is 18.Then", "18"),
    ("0.5", "0.5"),
    ("a share of .5", "0.5"),
    ("in total.5", "5"),
    ("18dollars", "18"),
    ("the total is18", "18"),
    ("It weighs 18kg.", "18"),
    ("18 m^2", "18"),
    (r"18 \text{ cm}^{2}", "18"),
    ("18 m2 of carpet", "18"),
    ("18 on the 3rd day", "18"),
    ("18 km/h", "18"),
    ("1/2", "0.5"),
    ("3/4 cup", "0.75"),
    ("2 1/2 cups", "2.5"),
    ("-1/4", "-0.25"),
    (r"\frac{1}{2}", "0.5"),
    (r"\dfrac{3}{4}", "0.75"),
    (r"-\frac{1}{2}", "-0.5"),
    (r"\frac12", "0.5"),
    (r"1\frac{1}{2}", "1.5"),
    (r"The answer is \(\frac{9}{2}\), from 3 parts", "4.5"),
    ("1.5e3", "1500"),
    ("2E-2", "0.02"),
    ("1.5 × 10^3", "1500"),
    (r"$1.5 \times 10^{3}$", "1500"),
    ("3 eggs", "3"),
    ("007", "7"),
    ("123456789012345678901234567890123", "123456789012345678901234567890123"),
    ("", None),
    ("I do not know.", None),
    ("5/0", None),
]
CUTS = [
    ("The answer is 18.\n\nQuestion: Tom has 5 apples. The answer is 7.", "18"),
    ("She makes 18 dollars.\nQ: Tom has 5 apples and 2 pears.\nA: 7", "18"),
    ("#### 18\n\n**Question 2:** Tom has 5\n#### 7", "18"),
    ("18 dollars\nProblem: count to 9", "18"),
    ("Question: Janet has 16 eggs?\nAnswer: 18", "18"),
    ("<think>It may be 17.</think>The answer is 18.", "18"),
    ("17, no </think> 18", "18"),
    ("<think>The answer is 17", None),
]


@pytest.mark.parametrize(("text", "value"), MARKERS + NUMBERS + CUTS)
def test_hard_cases(text, value):
    assert extract_number(text) == (None if value is None else Decimal(value))


@pytest.mark.parametrize("text", [text for text, value in MARKERS if value == "18"])
def test_an_invented_question_does_not_change_the_answer(text):
    assert extract_number(f"{text}\n\nQuestion: Tom has 5 apples.\nAnswer: 7") == 18


FORMS = ["{}", "${}", "€{}", "{}%", "{} apples", "{}apples", "{}.", "**{}**", "`{}`", "({})"]
FRAMES = [
    "{}", "#### {}", "The answer is {}", "Answer: {}", "**Answer:** {}", r"\boxed{{{}}}",
    "We add 3 and 4.\nSo the answer is {}.\nIt took 2 steps.", "<think>99</think> It is {}",
    "#### {}\n\nQuestion: Tom has 5 apples. How many?\n#### 5",
]  # fmt: skip


@steady
@given(
    value=st.integers(-(10**15), 10**15),
    grouped=st.booleans(),
    minus=st.sampled_from(["-", "−"]),
    form=st.sampled_from(FORMS),
    frame=st.sampled_from(FRAMES),
)
def test_any_integer_is_read_back(value, grouped, minus, form, frame):
    written = (f"{value:,}" if grouped else str(value)).replace("-", minus)
    assert extract_number(frame.format(form.format(written))) == value


@steady
@given(value=st.decimals(-(10**9), 10**9, places=3), frame=st.sampled_from(FRAMES))
def test_any_decimal_is_read_back(value, frame):
    assert extract_number(frame.format(f"{value:,}")) == value


@steady
@given(
    st.integers(-999, 999), st.integers(1, 999), st.sampled_from(["{}/{}", r"\frac{{{}}}{{{}}}"])
)
def test_any_fraction_is_read_back(up, down, form):
    written = ("-" if up < 0 else "") + form.format(abs(up), down)
    assert extract_number(f"The answer is {written}") == Decimal(up) / Decimal(down)


@steady
@given(st.text(alphabet="0123456789.,-−$€%/\\frac{}^*x ×eE#=:answeris\nQ<>thk", max_size=80))
def test_no_text_breaks_the_reader(text):
    found = extract_number(text)
    assert found is None or found.is_finite()


@pytest.mark.parametrize("piece", ["The answer is ", "\\boxed{", "\nQ:", "answer to ", "**1"])
def test_a_model_caught_in_a_loop_is_read_in_linear_time(piece):
    # A reader that looked back over the whole text for each piece would take minutes here.
    assert extract_number(piece * 10_000 + "\nThe answer is 18") == 18


def _score(text, target="18", **options):
    sample = Sample(item_id="1", input="?", target=(target,))
    return number(**options)(sample, Output(text=text))


def test_verdicts():
    right, wrong = _score("#### 18.00"), _score("#### 19")
    assert (right.value, right.passed, right.answer, right.status) == (1.0, True, "18", "scored")
    assert (wrong.value, wrong.passed, wrong.answer) == (0.0, False, "19")
    assert "19" in wrong.explanation
    assert "18" in wrong.explanation


def test_no_number_is_an_unreadable_answer():
    score = _score("I cannot say.")
    assert (score.value, score.passed, score.status, score.reason) == (
        0.0,
        False,
        "error",
        "no_answer",
    )


@pytest.mark.parametrize(
    ("tolerance", "text", "value"),
    [
        ("0", "18.01", 0),
        ("0.01", "18.01", 1),
        ("0.01", "17.99", 1),
        ("0.01", "18.011", 0),
        ("2", "20", 1),
    ],
)
def test_tolerance_is_absolute_and_exact(tolerance, text, value):
    assert _score(text, tolerance=tolerance).value == value


@pytest.mark.parametrize("tolerance", ["-1", "much", "nan", "inf", ""])
def test_a_bad_tolerance_is_refused(tolerance):
    with pytest.raises(UsageError, match="tolerance"):
        number(tolerance=tolerance)


def test_one_third_equals_one_third_only():
    assert _score("1/3", target="2/6").value == 1
    assert _score("0.3333", target="1/3").value == 0


def test_huge_numbers_are_scored_and_written_short():
    score = _score("1e999", tolerance="5")
    assert score.value == 0
    assert len(score.answer) < 30
    assert _score("7" * 6000).value == 0


def test_a_target_without_a_number_is_not_the_models_fault():
    with pytest.raises(ValueError, match="no number in 'many'"):
        _score("18", target="many")


def test_the_registry_builds_it():
    sample = Sample(item_id="1", input="?", target=("18",))
    assert build("scorers", "number?tolerance=0.5")(sample, Output(text="18.4")).value == 1
