"""Make the own items of Op-CAD and ProCAD: `python -m data.make.op_cad [--count N] [--seed N] [--out DIR]`.

Writes into data/op_cad:

sequences.jsonl  a sequence of modelling steps a line: records, instruction, code, volume change of each step
procad.jsonl     prompts of whole parts: clean, underspecified, conflicting; with questions and answers
manifest.json    seed, counts, the kernel's versions, SHA-256 of the files and of each final solid (BREP)

`--upstream DIR` writes the sequences in upstream's folder form instead; `--step` adds its STEP files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError

from . import kernel, procad, rows, upstream
from .draw import Drawn

OUT = Path(__file__).resolve().parents[2] / "op_cad"
_WHOLE = 60
"""From so many sequences on the counts must reach the least."""


def lines(made: Sequence[dict[str, Any]]) -> bytes:
    """Write rows as a JSON object a line."""
    return "".join(
        json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n" for one in made
    ).encode()


def files(drawn: Sequence[Drawn], seed: int) -> dict[str, bytes]:
    """Make the content of every file.

    Raises
    ------
    UsageError
        The set does not hold enough of some kind: another seed does.
    """
    found = [rows.row(made, k) for k, made in enumerate(drawn)]
    counted = rows.counts(found)
    lacking = rows.lacking(counted) if len(drawn) >= _WHOLE else []
    if lacking:
        raise UsageError(f"too few with seed {seed}: {'; '.join(lacking)}; try another --seed")
    unclear = procad.items(found, seed)
    made = {"sequences.jsonl": lines(found), "procad.jsonl": lines(unclear)}
    manifest = {
        "seed": seed,
        "sequences": len(found),
        "steps": sum(len(one["steps"]) for one in found),
        "counts": counted,
        "procad": dict(sorted(Counter(one["config_name"] for one in unclear).items())),
        "versions": kernel.versions(),
        "files": {
            name: {"rows": content.count(b"\n"), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in made.items()
        },
        "breps": {one["group_id"]: made_.digest for one, made_ in zip(found, drawn, strict=True)},
    }
    return {**made, "manifest.json": json.dumps(manifest, indent=1).encode() + b"\n"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or the folder in upstream's form."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=rows.ROUND, help="sequences (default: 84)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--upstream", type=Path, metavar="DIR", help="write upstream's form there")
    parser.add_argument("--step", action="store_true", help="with --upstream: STEP files as well")
    asked = parser.parse_args(arguments)
    try:
        drawn = list(rows.sequences(asked.count, asked.seed))
        if asked.upstream is not None:
            found = [rows.row(made, k) for k, made in enumerate(drawn)]
            upstream.write(found, asked.upstream, step_files=asked.step)
            print(f"{asked.upstream}: {len(found)} sequences in upstream's form")
            return 0
        asked.out.mkdir(parents=True, exist_ok=True)
        for name, content in files(drawn, asked.seed).items():
            (asked.out / name).write_bytes(content)
            print(f"{asked.out / name}: {len(content):,} bytes")
    except UsageError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
