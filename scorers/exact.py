"""The plainest scorer: the whole answer equals a reference."""

from __future__ import annotations

from harness.core.errors import UsageError
from harness.core.task import Scorer
from harness.core.types import Output, Sample, Score
from scorers.reasoning import remove_reasoning


def exact(ignore_case: str = "no") -> Scorer:
    r"""Make a scorer that compares the whole answer with each of ``sample.target``.

    Reasoning and white space at both ends are left out first.

    Parameters
    ----------
    ignore_case : {"no", "yes"}
        Whether ``Paris`` equals ``PARIS``.

    Raises
    ------
    UsageError
        For another value of `ignore_case`.

    Examples
    --------
    >>> sample = Sample(item_id="1", input="Capital of France?", target=("Paris",))
    >>> exact()(sample, Output(text=" Paris\n")).value
    1.0
    """
    if ignore_case not in ("no", "yes"):
        raise UsageError(f"scorer exact: ignore_case={ignore_case} is not one of no, yes")
    fold = str.casefold if ignore_case == "yes" else str

    def score(sample: Sample, output: Output) -> Score:
        answer = remove_reasoning(output.text).strip()
        right = fold(answer) in {fold(target.strip()) for target in sample.target}
        if not answer and not right:
            return Score.no_answer("the answer is empty")
        verdict = "equals" if right else "differs from"
        return Score(
            value=float(right),
            passed=right,
            answer=answer,
            explanation=f"the whole answer {verdict} the reference",
        )

    return score
