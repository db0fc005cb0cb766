"""Write a judge that knows only the graded answers of the own proof problems, and their points.

`data/aicrypto/proof/judge.jsonl` is a script for a mock model: asked about one of the graded answers
it gives exactly the points that stand in the problem's file; asked about anything else it says
nothing, which leaves the answer unscored. With it the whole path can be tried without a model:

    harness run --task aicrypto/proof --model mock:gold \
        --judge 'mock:script?file=data/aicrypto/proof/judge.jsonl'

Usage: make_proof_judge.py [--check]. Made anew whenever a problem or the judge's prompt changes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from harness.core.keys import sha256_of
from scorers.rubric_prompt import grading_prompt
from tasks.aicrypto.proof import Problem, read_problems, to_sample

FOLDER = Path(__file__).resolve().parents[2] / "aicrypto" / "proof"


def rows(problem: Problem) -> list[dict[str, str]]:
    """Give a line for each answer that reaches a judge: the empty one never does."""
    sample = to_sample(problem)
    made = []
    for proof, points in problem.graded().values():
        if proof:
            messages = grading_prompt(sample, problem.rubric, proof)
            # A judge's question is named by its hash (harness/runner/judging.py).
            name = sha256_of(messages)[:16]
            made.append({"item_id": name, "output": json.dumps(points)})
    return made


def render() -> str:
    """Give the whole file."""
    lines = [json.dumps(row) for problem in read_problems(FOLDER) for row in rows(problem)]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write or check the file; return the exit code."""
    parser = argparse.ArgumentParser(description="the judge of the graded answers")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 if different")
    options = parser.parse_args(arguments)
    out = FOLDER / "judge.jsonl"
    text = render()
    if not options.check:
        out.write_text(text, encoding="utf-8")
    elif not out.is_file() or out.read_text(encoding="utf-8") != text:
        print(f"{out} is stale: run this command without --check", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
