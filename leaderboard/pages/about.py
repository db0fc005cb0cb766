"""The page About: words, methods, and whose data these are."""

from __future__ import annotations

from importlib.metadata import version

import streamlit as st

from leaderboard import ui
from leaderboard.rows.about import licences

WORDS = """
- **Task, item, attempt.** A task is a set of items; an attempt is one answer of a model to one item.
  An item is known by task, version and its own name: items of two versions are never mixed.
- **Model and variant.** A variant is a model with its backend, revision, precision and quantisation.
  Each is a row of its own.
- **Run.** A task on a variant, with a solver, a strategy and a seed. Scores here are over all runs of a
  variant with a strategy; an answer that was taken from an earlier run counts once.
- **Baseline.** A mock, such as one that says nothing. Shown for comparison, marked, and never ranked.
- **Simulated quantisation.** Weights were rounded, but kept in full precision: its score is what it
  is, and it says nothing of memory and speed, so none is shown.
"""

COUNTING = """
Every planned attempt ends in exactly one way, and the numbers of all ways sum to those planned.

| status | in the score? |
|---|---|
| scored | yes |
| truncated: the output was cut | yes, as it stands |
| refused | yes, as wrong |
| error, timeout of the model's work | yes, as wrong (a run may be asked to leave them out, and is marked) |
| unparsed: the answer could not be read | yes, as wrong; a part of the errors |
| fault of harness, engine or network | no; tried again by `harness resume`, and the run is partial |
| unscored: no readable verdict of the judge | no |
| unavailable: an engine or data are missing | no; the run is partial |
"""

METHODS = """
- **Interval of a score.** Wilson's for right-or-wrong items that stand by themselves; else a t interval
  with a standard error that is robust to clusters of items that belong together. It says where the
  score would lie with other items of the same kind, in 95 of 100 such samples.
- **Rank interval.** Every pair of models is compared on the items that both answered (paired,
  cluster-robust t test), and all p values are corrected together (Holm). The low end is 1 + the number
  of models significantly better; the high end is the number of models less those significantly worse. At
  95 % all true ranks lie in their intervals at once. Ranks are always those among all models of the
  chosen tasks: a filter hides rows and changes no rank. Where nothing differs, every interval is 1 to K.
- **Tier.** Tier 1 is the leader and all models not told apart from it; then the same among the rest.
- **Score over several tasks.** The mean of the tasks' scores, each task with the same weight, only for
  models that ran all. Its standard error is √(Σ se²) / T, the tasks held fixed, with Satterthwaite's
  degrees of freedom; pairs of models are compared in the same way. Where every task is all right or
  all wrong, the ends of the tasks' own intervals are put together (Zou and Donner 2008).
- **Difficulty, ability, horizon.** A two-parameter logistic model (item response theory) puts models
  and items on one scale; with known human minutes of some items the scale reads in minutes. A model's
  horizon is the length of the tasks it solves half of the time.
- **Published figures of others** stand in tables of their own, with their source, and are in no mean,
  rank or fit.
"""

BRIDGE = """
Response matrix, human minutes and release dates of the reference population: Liu et al. 2026, BRIDGE,
arXiv 2602.07267 (McGill-NLP/BRIDGE, commit 6a1b821), CC BY 4.0.
"""


def page() -> None:
    """Draw the page."""
    ui.heading("About", f"Harness {version('bridge-harness')}, Apache-2.0")
    for title, text in (
        ("Words", WORDS), ("What counts", COUNTING), ("Methods", METHODS),
    ):  # fmt: skip
        st.subheader(title, anchor=False)
        st.markdown(text)
    st.subheader("Data and licences", anchor=False)
    st.markdown(BRIDGE)
    board = ui.board()
    state = board.state()
    if state.kind == "ready":
        ui.table(
            board.ask(licences),
            ("task", "version", "license", "source", "dataset_sha256"),
            "licences",
        )
        ui.provenance(board, [])
    else:
        ui.empty(state.what, state.command)
