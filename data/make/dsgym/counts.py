"""counts.csv and cells.csv: 200 genes in 120 cells of four types, five marker genes each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from stream import Stream
from table import Question, Table, from_csv, rounded, to_csv

if TYPE_CHECKING:
    import pandas as pd

GENES = tuple(f"G{i:03d}" for i in range(1, 201))
TYPES = ("alpha", "beta", "gamma", "delta")
BATCHES = ("b1", "b2", "b3")
N_CELLS, N_MARKERS, N_THROWS = 120, 5, 8
CUT = 420
SEEN = "G100"


def make(draw: int) -> Mapping[str, bytes]:
    """Make both tables: markers and the odd batch, the cells, then counts cell by cell.

    A count is the number of eight throws that hit; a gene hits in 8 to 32 of 100, a marker in its
    own type in 62 to 94, everything a quarter more often in the odd batch, which is the smallest.
    cells.csv has another order of cells than the columns of counts.csv.
    """
    stream = Stream(draw)
    free = list(GENES)
    markers = {
        kind: [free.pop(stream.below(len(free))) for _ in range(N_MARKERS)] for kind in TYPES
    }
    odd = stream.choice(BATCHES)
    base = {gene: 8 + stream.below(25) for gene in GENES}
    strong = {gene: 62 + 8 * i for kind in TYPES for i, gene in enumerate(markers[kind])}
    cells, counts = [], []
    lots = [b for b in BATCHES for _ in range(1 if b == odd else 2)]
    for i in range(1, N_CELLS + 1):
        kind, batch = stream.choice(TYPES), stream.choice(lots)
        cells.append((f"C{i:03d}", kind, batch))
        chance = {gene: strong[gene] if gene in markers[kind] else base[gene] for gene in GENES}
        many = 5 if batch == odd else 4
        counts.append(
            [
                sum(stream.below(400) < many * chance[gene] for _ in range(N_THROWS))
                for gene in GENES
            ]
        )
    rows = [(gene, *(cell[g] for cell in counts)) for g, gene in enumerate(GENES)]
    head = ("gene", *(cell for cell, _, _ in cells))
    for i in range(len(cells) - 1, 0, -1):
        j = stream.below(i + 1)
        cells[i], cells[j] = cells[j], cells[i]
    return {
        "counts.csv": to_csv(head, rows),
        "cells.csv": to_csv(("cell", "type", "batch"), cells),
    }


_CONTEXT = (
    "counts.csv has one row a gene and one column a cell: how often the gene was read in the cell. "
    "cells.csv tells each cell's type (alpha, beta, gamma or delta) and batch (b1, b2 or b3). The total "
    "of a cell is the sum over all genes. The fold change of a gene in a type is log2 of (mean count in "
    "the cells of the type + 1) / (mean count in all other cells + 1); nothing is normalised."
)


def _question(
    name: str, question: str, guideline: str, kind: str, level: str, minutes: float, *traps: str
) -> Question:
    return Question(
        name=name, question=question, guideline=guideline, answer_type=kind, level=level,
        minutes=minutes, profile="dsbio", traps=traps, keywords=("Gene Expression",),
        context=_CONTEXT,
    )  # fmt: skip


QUESTIONS = (
    _question(
        "G1", f"How many cells of type beta have a total of at least {CUT}?",
        "Answer must be a single whole number.", "int", "easy", 4, "all types are counted",
        "the two files are joined by position",
    ),
    _question(
        "G2", "Which five genes have the highest fold change in type gamma?",
        "Answer must be a list of 5 gene names, for example: ['G001', 'G002', 'G003', 'G004', 'G005'], "
        "case-sensitive.", "set(label(case))", "medium", 7,
        "the two files are joined by position",
    ),
    _question(
        "G3", "Which gene has the highest fold change in type alpha?",
        "Answer must be a single gene name, case-sensitive.", "label(case)", "medium", 6,
        "another type is taken",
    ),
    _question(
        "G4", "How high is that highest fold change in type alpha?",
        "Answer must be a number rounded to 2 decimal places.", "float(2)", "medium", 6,
        "no 1 is added", "the natural logarithm",
    ),
    _question(
        "G5", f"In what percentage of all cells was gene {SEEN} read at least once?",
        "Answer must be a percentage rounded to 1 decimal place.", "percent(1)", "easy", 3,
        "a share instead of a percentage",
    ),
    _question(
        "G6", "In which batch are the totals of the cells highest on average?",
        "Answer must be a batch name exactly as it stands in the data, case-sensitive.", "label(case)",
        "medium", 4, "the batch with most cells", "sums are compared instead of averages",
    ),
)  # fmt: skip


def by_pandas(folder: Path) -> dict[str, str]:
    """Answer with pandas."""
    import numpy as np
    import pandas as pd

    counts = pd.read_csv(folder / "counts.csv", index_col="gene")
    cells = pd.read_csv(folder / "cells.csv", index_col="cell").loc[counts.columns]
    totals = counts.sum()

    def change(kind: str) -> pd.Series:
        inside = counts.loc[:, cells.type == kind].mean(axis=1)
        outside = counts.loc[:, cells.type != kind].mean(axis=1)
        return pd.Series(np.log2((inside + 1) / (outside + 1)))

    alpha = change("alpha")
    return {
        "G1": str(int((totals[cells.type == "beta"] >= CUT).sum())),
        "G2": str(sorted(change("gamma").nlargest(N_MARKERS).index)),
        "G3": str(alpha.idxmax()),
        "G4": rounded(float(alpha.max()), 2),
        "G5": rounded(100 * float((counts.loc[SEEN] > 0).mean()), 1),
        "G6": str(totals.groupby(cells.batch).mean().idxmax()),
    }


def by_hand(folder: Path) -> dict[str, str]:
    """Answer with plain Python and exact fractions; folds are compared before the logarithm."""
    rows = from_csv(folder / "counts.csv")
    counts = {r["gene"]: {cell: int(n) for cell, n in r.items() if cell != "gene"} for r in rows}
    cells = from_csv(folder / "cells.csv")
    totals = {c["cell"]: sum(one[c["cell"]] for one in counts.values()) for c in cells}

    def folds(kind: str) -> dict[str, Fraction]:
        inside = [c["cell"] for c in cells if c["type"] == kind]
        outside = [c["cell"] for c in cells if c["type"] != kind]
        return {g: (_mean(n, inside) + 1) / (_mean(n, outside) + 1) for g, n in counts.items()}

    alpha, gamma = folds("alpha"), folds("gamma")
    best = max(alpha, key=lambda gene: alpha[gene])
    n_seen = sum(n > 0 for n in counts[SEEN].values())
    batches = {b: [c["cell"] for c in cells if c["batch"] == b] for b in BATCHES}
    return {
        "G1": str(sum(totals[c["cell"]] >= CUT for c in cells if c["type"] == "beta")),
        "G2": str(sorted(sorted(gamma, key=lambda gene: -gamma[gene])[:N_MARKERS])),
        "G3": best,
        "G4": rounded(math.log2(alpha[best]), 2),
        "G5": rounded(float(Fraction(100 * n_seen, len(cells))), 1),
        "G6": max(batches, key=lambda b: _mean(totals, batches[b])),
    }


def _mean(values: Mapping[str, int], names: Sequence[str]) -> Fraction:
    return Fraction(sum(values[name] for name in names), len(names))


def _read(folder: Path, by_position: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    import pandas as pd

    counts = pd.read_csv(folder / "counts.csv", index_col="gene")
    cells = pd.read_csv(folder / "cells.csv", index_col="cell")
    if by_position:
        cells.index = counts.columns
    return counts, cells.loc[counts.columns]


def _large(folder: Path, *types: str, by_position: bool = False) -> str:
    counts, cells = _read(folder, by_position)
    return str(int((counts.sum() >= CUT)[cells.type.isin(types)].sum()))


def _change(folder: Path, kind: str, *, one: int = 1, by_position: bool = False) -> pd.Series:
    """Give the fold changes as a ratio, with 1 added or another number."""
    counts, cells = _read(folder, by_position)
    inside = counts.loc[:, cells.type == kind].mean(axis=1)
    outside = counts.loc[:, cells.type != kind].mean(axis=1)
    ratio: pd.Series = (inside + one) / (outside + one)
    return ratio


def _by_position(folder: Path) -> str:
    return str(sorted(_change(folder, "gamma", by_position=True).nlargest(N_MARKERS).index))


def _share(folder: Path) -> str:
    counts, _ = _read(folder)
    return rounded(float((counts.loc[SEEN] > 0).mean()), 3)


def _largest_batch(folder: Path, sums: bool) -> str:
    counts, cells = _read(folder)
    by_batch = counts.sum().groupby(cells.batch).sum() if sums else cells.batch.value_counts()
    return str(by_batch.idxmax())


WRONG = {
    "G1": {
        "all types are counted": lambda folder: _large(folder, *TYPES),
        "the two files are joined by position": lambda folder: _large(
            folder, "beta", by_position=True
        ),
    },
    "G2": {"the two files are joined by position": _by_position},
    "G3": {"another type is taken": lambda folder: str(_change(folder, "beta").idxmax())},
    "G4": {
        "no 1 is added": lambda folder: rounded(
            math.log2(_change(folder, "alpha", one=0).max()), 2
        ),
        "the natural logarithm": lambda folder: rounded(
            math.log(_change(folder, "alpha").max()), 2
        ),
    },
    "G5": {"a share instead of a percentage": _share},
    "G6": {
        "the batch with most cells": lambda folder: _largest_batch(folder, sums=False),
        "sums are compared instead of averages": lambda folder: _largest_batch(folder, sums=True),
    },
}

TABLE = Table(
    name="counts", files=("counts.csv", "cells.csv"), make=make, questions=QUESTIONS,
    by_pandas=by_pandas, by_hand=by_hand, wrong=WRONG,
)  # fmt: skip
