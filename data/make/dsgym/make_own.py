"""Make the own questions of DSGym: tables, questions with answers, and a manifest of the files.

``python data/make/dsgym/make_own.py`` writes draw 0, the public practice instance, into data/dsgym;
``--draw N --out DIR`` another one, for ``--data-root DIR``; ``--check`` only compares;
``--check-draws N`` answers the questions of draws 0 to N - 1 twice each and writes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import sys
import tempfile
from pathlib import Path

from table import NEAR_TIES, Question, Table, write_or_compare

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("orders", "clinic", "sensors", "payments", "counts", "causal", "survey")


def tables() -> list[Table]:
    """Give the tables in their order."""
    found: list[Table] = [importlib.import_module(name).TABLE for name in NAMES]
    return found


def files_of(draw: int) -> dict[str, bytes]:
    """Make every file of a draw, by its path below the root.

    Raises
    ------
    ValueError
        The two references of a question disagree, or a number of draw 0 is too near to a half to be
        rounded by everybody alike.
    """
    NEAR_TIES.clear()
    made: dict[str, bytes] = {}
    rows = []
    for table in tables():
        content = table.make(draw)
        made |= {f"data/data/own/{name}": data for name, data in content.items()}
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for name, data in content.items():
                (folder / name).write_bytes(data)
            answers, again = table.by_pandas(folder), table.by_hand(folder)
        for question in table.questions:
            one, other = answers[question.name], again[question.name]
            if one != other:
                raise ValueError(f"draw {draw}, {question.name}: {one!r} and by hand {other!r}")
            rows.append(_row(table, question, one))
    if NEAR_TIES and draw == 0:
        raise ValueError(f"near a half: {', '.join(NEAR_TIES)}")
    made["data/task/own/own.json"] = (
        json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    ).encode()
    listed = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in sorted(made.items())
    }
    manifest = {"draw": draw, "practice": draw == 0, "files": listed}
    made["manifest.json"] = (json.dumps(manifest, indent=1) + "\n").encode()
    return made


def _row(table: Table, question: Question, answer: str) -> dict[str, object]:
    return {
        "item_id": f"own-dsgym-{question.name}",
        "context": question.context,
        "question": question.question,
        "answer": answer,
        "data": [f"/data/own/{name}" for name in table.files],
        "answer_type": question.answer_type,
        "level": question.level,
        "reference_fn": f"data/make/dsgym/{table.name}.py",
        "human_minutes": question.minutes,
        "metadata": {
            "profile": question.profile,
            "keywords": list(question.keywords),
            "traps": list(question.traps),
            "guideline": question.guideline,
            "options": list(question.options),
        },
    }


def _check_draws(n: int) -> int:
    """Make draws 0 to n - 1; tell which have a number near a half, and which disagree."""
    n_wrong = 0
    for draw in range(n):
        try:
            files_of(draw)
        except ValueError as error:
            print(error, file=sys.stderr)
            n_wrong += 1
            continue
        for tie in sorted(set(NEAR_TIES)):
            print(f"draw {draw}: near a half: {tie}")
    print(f"{n - n_wrong} of {n} draws: both references agree")
    return 1 if n_wrong else 0


def main() -> int:
    """Write the files, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "data" / "dsgym")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument(
        "--check-draws", type=int, metavar="N", help="compare the two references on N draws"
    )
    asked = parser.parse_args()
    if asked.check_draws is not None:
        return _check_draws(asked.check_draws)
    return write_or_compare(files_of(asked.draw), asked.out, check=asked.check)


if __name__ == "__main__":
    sys.exit(main())
