"""Where a data question is worked on: a Python that keeps its state, the data read-only, an answer.

For a contest the answer is a file: what was last written to ``submission.csv`` is judged, also where
the process that wrote it was lost later.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from harness.core.errors import HarnessError
from harness.core.types import Tool, ToolCall
from harness.solvers.environment import SandboxLevel, ToolResult
from harness.solvers.tools import PYTHON, Workbench
from scorers.data_answer import EMPTY

if TYPE_CHECKING:
    from harness.sandbox import Limits

SUBMISSION = "submission.csv"
ANSWER = Tool(
    "answer",
    "Hands in the final answer and ends the work. Nothing but the answer, in the form asked for.",
    {
        "type": "object",
        "properties": {"answer": {"type": "string", "description": "The answer."}},
        "required": ["answer"],
    },
)
FINISH = Tool(
    "answer",
    f"Ends the work: the file {SUBMISSION} in the working folder is judged as it is then.",
    {
        "type": "object",
        "properties": {"answer": {"type": "string", "description": "A word on what you did."}},
        "required": [],
    },
)
PRELOAD = ("numpy", "pandas")


class Kernel:
    """The environment of one attempt; see `harness.core.environment.Environment`.

    Parameters
    ----------
    level : SandboxLevel
        The isolation asked for.
    limits : Limits
        Of the box; ``wall_s`` of one cell.
    data : mapping
        Path in the box, ``/data/…``, to the file here. With `withheld` the folders are there and
        empty.
    withheld : bool
        ``--no-data``.
    submission : bool
        The answer is the file `SUBMISSION`.

    Raises
    ------
    HarnessError
        On entering: a file is missing, named.
    """

    def __init__(
        self,
        *,
        level: SandboxLevel,
        limits: Limits,
        data: Mapping[str, Path],
        withheld: bool = False,
        submission: bool = False,
    ) -> None:
        self.tools: tuple[Tool, ...] = (PYTHON, FINISH if submission else ANSWER)
        self._level, self._limits = level, limits
        self._data, self._withheld, self._submission = data, withheld, submission
        self._stack = ExitStack()
        self._bench: Workbench | None = None
        self._killed = False

    def __enter__(self) -> Self:
        """Look for the data; the box is started by the first cell."""
        for inside, path in self._data.items():
            if not path.is_file():
                # Named as below the root: the message is stored, and a home folder is nobody's business.
                below = f"data/data/{inside.removeprefix('/data/')}"
                raise HarnessError(f"{below} is missing below the data root ({inside} in the box)")
        mounts = self._mounts()
        bench = Workbench(
            level=self._level, tools=("python",), limits=self._limits, mounts=mounts,
            preload=PRELOAD, keep=(SUBMISSION,) if self._submission else (),
        )  # fmt: skip
        self._bench = self._stack.enter_context(bench)
        if self._killed:
            bench.kill()
        return self

    def _mounts(self) -> dict[str, Path]:
        if not self._withheld:
            return dict(self._data)
        empty = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        empty.chmod(0o755)
        return {str(Path(inside).parent): empty for inside in self._data}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the box."""
        self._stack.close()

    def call(self, call: ToolCall, wall_s: float) -> ToolResult:
        """Run a cell, or take the answer."""
        if call.name == "answer":
            given = call.arguments if isinstance(call.arguments, dict) else {}
            return ToolResult(text="Handed in.", submitted=str(given.get("answer", "")).strip())
        assert self._bench is not None  # set on entering
        return self._bench.call(call, wall_s)

    def finish(self, submitted: str | None) -> str | None:
        """Give what is judged: the answer, or the file of a contest."""
        if not self._submission:
            return EMPTY if submitted == "" else submitted
        assert self._bench is not None  # set on entering
        files, _ = self._bench.collect([SUBMISSION])
        return files.get(SUBMISSION, b"").decode("utf-8", "replace")

    def kill(self) -> None:
        """End the box at once, from any thread."""
        self._killed = True
        bench = self._bench
        if bench is not None:
            bench.kill()
