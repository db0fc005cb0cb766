"""When an attempt counts, and as what: the one home of the denominator's rules.

`effective_status` and `value_counted` serve the live counters and `harness.score`;
`harness/store/sql/views.sql` says the same in SQL for everything stored, and a test compares the
two over every combination.
"""

from __future__ import annotations

from harness.core.types import ErrorKind, Status

SCORER_FAULT = "scorer_fault"
ERROR_POLICIES = ("wrong", "exclude")


def effective_status(solved: Status, scored: Status | None) -> Status:
    """Join the status an output got when it was solved with the one its score gave.

    An attempt whose output waits for a verdict is stored as ``unscored``; the score then decides.
    Every other status (a cut, refused or failed output) stays as it is, whatever a scorer says; but
    of a cut output too nothing is known where the judge could not be read or was not there.

    Examples
    --------
    >>> effective_status("unscored", "scored"), effective_status("truncated", "error")
    ('scored', 'truncated')
    >>> effective_status("truncated", "unscored")
    'unscored'
    """
    if solved == "unscored" and scored is not None:
        return scored
    if solved == "truncated" and scored in ("unscored", "unavailable"):
        return scored
    return solved


def error_kind_of(reason: str | None) -> ErrorKind:
    """Say whose fault an ``error`` given by a score is: a scorer that fell over is the harness's.

    Examples
    --------
    >>> error_kind_of("no_answer"), error_kind_of("scorer_fault")
    ('model', 'harness')
    """
    return "harness" if reason == SCORER_FAULT else "model"


def is_open(status: Status, kind: ErrorKind | None) -> bool:
    """Tell whether an attempt ended by no fault of the model, so that `resume` makes it again.

    Examples
    --------
    >>> is_open("error", "network"), is_open("error", "model"), is_open("unavailable", None)
    (True, False, True)
    """
    return status == "unavailable" or (status == "error" and kind not in (None, "model"))


def value_counted(
    status: Status, error_kind: ErrorKind | None, value: float | None, policy: str = "wrong"
) -> float | None:
    """Give the value with which an attempt enters the denominator, None when it stays out.

    Parameters
    ----------
    status : Status
        The effective status.
    error_kind : ErrorKind or None
        Whose fault an ``error`` or ``timeout`` was; None means the model's.
    value : float or None
        The headline score, if there is one.
    policy : {"wrong", "exclude"}
        What becomes of the model's own errors and timeouts.

    Returns
    -------
    float or None

    Examples
    --------
    >>> value_counted("scored", None, 1.0), value_counted("refused", None, None)
    (1.0, 0.0)
    >>> value_counted("error", "network", None) is None
    True
    >>> value_counted("truncated", None, 1.0), value_counted("unscored", None, None)
    (1.0, None)
    """
    if status in ("unscored", "unavailable"):
        return None
    if status in ("scored", "truncated"):
        return value if value is not None or status == "scored" else 0.0
    if status == "refused":
        return 0.0
    if error_kind not in (None, "model") or policy == "exclude":
        return None
    return 0.0
