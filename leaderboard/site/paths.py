"""Where each thing of a site stands, from its top."""

from __future__ import annotations

from leaderboard.site.names import file_name


def task_path(task: str, version: str) -> str:
    """Give the page of a task; each version has its own.

    Examples
    --------
    >>> task_path("demo/add", "1") == task_path("demo/add", "2")
    False
    """
    return f"task/{file_name(f'{task} {version}')}.html"


def model_path(model_id: str) -> str:
    """Give the page of a model."""
    return f"model/{file_name(model_id)}.html"


def run_path(run_id: str) -> str:
    """Give the page of a run."""
    return f"run/{file_name(run_id)}.html"


def samples_path(run_id: str, shard: int = 0) -> str:
    """Give a page of a run's samples."""
    return f"samples/{file_name(run_id)}-{shard + 1:03d}.html"


def compare_path(a: str, b: str) -> str:
    """Give the page of a comparison, by the labels of the two."""
    return f"compare/{file_name(f'{a} against {b}')}.html"


def scale_path(fit_id: str) -> str:
    """Give the page of a fit's scale."""
    return f"scale/{file_name(fit_id)}.html"


def horizon_path(fit_id: str) -> str:
    """Give the page of a fit's horizons."""
    return f"horizon/{file_name(fit_id)}.html"
