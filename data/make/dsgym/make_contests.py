"""Make the own contests of DSGym: files of the box, truth, boards of reference programs, a manifest.

``python data/make/dsgym/make_contests.py`` writes draw 0, the public practice instance, into
data/dsgym; ``--draw N --out DIR`` another one, for ``--data-root DIR``; ``--check`` only compares.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import json
import sys
from pathlib import Path

from contest_board import DIGITS, board
from contest_table import Contest, Drawn
from table import to_csv, write_or_compare

from scorers.contest import METRICS

ROOT = Path(__file__).resolve().parents[3]
MODULES = ("contest_rent", "contest_churn", "contest_load")
BOARDS = "data/DSPredict_Offline_Leaderboard/own.json"
MANIFEST = "contests_manifest.json"


def contests() -> list[Contest]:
    """Give the contests in their order."""
    found: list[Contest] = [importlib.import_module(name).CONTEST for name in MODULES]
    return found


def tables_of(contest: Contest, drawn: Drawn) -> dict[str, bytes]:
    """Give the tables of one contest by their paths; the truth lies beside what a box sees."""
    head = ("id", contest.target)
    seen = dict(drawn.files)
    seen["sample_submission.csv"] = to_csv(head, [(one, 0) for one in drawn.test])
    return {
        **{f"data/data/{contest.name}/{name}": content for name, content in seen.items()},
        f"data/truth/{contest.name}.csv": to_csv(head, drawn.truth.items()),
    }


def row_of(contest: Contest, drawn: Drawn) -> dict[str, object]:
    """Give what upstream's file of contests says of one, and what its score rests on."""
    floor = METRICS[contest.metric](
        [float(text) for text in drawn.truth.values()], list(drawn.noiseless.values())
    )
    story = f"{contest.title}\n\n{contest.story}"
    return {
        "challenge_name": contest.name,
        "description": f"{story}\n\n{contest.measured}\n\n{contest.data}",
        "docker_challenge_path": f"/data/{contest.name}",
        "competition_description": story,
        "evaluation_metric": contest.measured,
        "dataset_description": contest.data,
        "metadata": {
            "domain": contest.domain,
            "keywords": list(contest.keywords),
            "metric": contest.metric,
            "direction": contest.direction,
            "id_column": "id",
            "target_column": contest.target,
            "noise_floor": round(floor, DIGITS),
        },
    }


def files_of(draw: int) -> dict[str, bytes]:
    """Make every file of a draw, by its path below the root."""
    made: dict[str, bytes] = {}
    rows, boards = [], {}
    for contest in contests():
        drawn = contest.make(draw)
        made |= tables_of(contest, drawn)
        rows.append(row_of(contest, drawn))
        boards[contest.name] = board(contest, drawn)
    made["data/task/own_predict/own_predict.json"] = _json(rows)
    made[BOARDS] = _json(boards)
    listed = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in sorted(made.items())
    }
    facts = {"draw": draw, "practice": draw == 0, "boards_made_with": f"scikit-learn {_version()}"}
    made[MANIFEST] = _json({**facts, "files": listed})
    return made


def _version() -> str:
    return importlib.metadata.version("scikit-learn")


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def main() -> int:
    """Write the files, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "data" / "dsgym")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    asked = parser.parse_args()
    return write_or_compare(files_of(asked.draw), asked.out, check=asked.check)


if __name__ == "__main__":
    sys.exit(main())
