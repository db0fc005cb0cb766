"""The scorers that come with the project."""

from __future__ import annotations

from harness.core.registry import Entry

SCORERS: tuple[Entry, ...] = (
    Entry(
        name="number",
        target="scorers.number:number",
        version="1",
        summary="the final number of the answer, compared by value (tolerance=0)",
    ),
    Entry(
        name="choice",
        target="scorers.choice:choice",
        version="2",
        summary="the set of chosen options, or the likeliest one (profile=strict|upstream)",
    ),
    Entry(
        name="exact",
        target="scorers.exact:exact",
        version="1",
        summary="the whole answer equals a reference (ignore_case=no|yes)",
    ),
    Entry(
        name="flag",
        target="scorers.flag:flag",
        version="1",
        summary="a captured flag: exactly that of the item, drawn anew for each seed and repeat",
    ),
    Entry(
        name="rubric",
        target="scorers.rubric:rubric",
        version="1",
        summary="a proof graded by judges, points for each criterion (repeats=1, solved=0.8)",
    ),
    Entry(
        name="data_answer",
        target="scorers.data_answer:data_answer",
        version="1",
        summary="an answer about data, by the benchmark's rules and by strict ones (profile=both)",
    ),
    Entry(
        name="discovery",
        target="scorers.discovery:discovery",
        version="1",
        summary="a hypothesis compared with the reference by judges (metric=match|hms)",
    ),
    Entry(
        name="contest",
        target="scorers.contest:contest",
        version="1",
        summary="a submission to a prediction contest, placed on its two boards (perfect=keep|drop)",
    ),
    Entry(
        name="drc",
        target="scorers.drc.scorer:drc",
        version="1",
        summary="a deck of design rules, run on labelled layouts (engine=klayout|regions)",
    ),
    Entry(
        name="drc_choice",
        target="scorers.drc.choice:drc_choice",
        version="1",
        summary="a choice among decks: the chosen one, run on labelled layouts (engine=klayout|regions)",
    ),
    Entry(
        name="sizing",
        target="scorers.spice.sizing:sizing",
        version="1",
        summary="sizes of a circuit, simulated by ngspice (tech=sky130|demo|sky130-full)",
    ),
    Entry(
        name="op_cad",
        target="scorers.op_cad.scorer:op_cad",
        version="1",
        summary="a CAD program, run and compared by its solid (pictures=wrong|yes|no)",
    ),
    Entry(
        name="procad",
        target="scorers.op_cad.procad:procad",
        version="1",
        summary="questions about an unclear description, and the CAD part made after them",
    ),
)
