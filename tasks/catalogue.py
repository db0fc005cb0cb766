"""The tasks that come with the project; `n` counts own items, the ones used without `--data-root`."""

from __future__ import annotations

from harness.core.registry import Entry, Need

_CTF = tuple(
    Need("package", module, "pip install 'bridge-harness[ctf]'")
    for module in ("Crypto", "sympy", "gmpy2", "z3", "fpylll", "cysignals", "cypari2")
)
_DATA_SCIENCE = tuple(
    Need("package", module, "pip install 'bridge-harness[dsgym]'")
    for module in ("pandas", "sklearn", "statsmodels", "networkx")
)

_DRC = (
    Need("package", "klayout", "pip install 'bridge-harness[drc]'"),
    Need("package", "yaml", "pip install 'bridge-harness[drc]'"),
    Need("program", "klayout", "apt-get install klayout", unless="engine=regions"),
)
_CAD = tuple(
    Need("package", module, "pip install 'bridge-harness[cad]'")
    for module in ("cadquery", "trimesh", "manifold3d")
)
_SPICE = (Need("program", "ngspice", "apt-get install ngspice"),)

TASKS: tuple[Entry, ...] = (
    Entry(
        name="gsm8k",
        target="tasks.gsm8k.task:gsm8k",
        version="1",
        group="gsm8k",
        n=60,
        summary="grade-school word problems, answered by one number",
    ),
    Entry(
        name="aicrypto/mcq",
        target="tasks.aicrypto.mcq:mcq",
        version="1",
        group="aicrypto",
        n=50,
        summary="cryptography as choice questions, one or several options right",
    ),
    Entry(
        name="aicrypto/ctf",
        target="tasks.aicrypto.ctf.task:ctf",
        version="1",
        group="aicrypto",
        n=54,
        needs=_CTF,
        summary="capture the flag: cryptographic challenges attacked with tools, some over a socket",
    ),
    Entry(
        name="aicrypto/proof",
        target="tasks.aicrypto.proof:proof",
        version="1",
        group="aicrypto",
        n=12,
        summary="cryptographic proofs, graded by judge models against a rubric",
    ),
    Entry(
        name="dsgym/daeval",
        target="tasks.dsgym.task:daeval",
        version="1",
        group="dsgym",
        needs=_DATA_SCIENCE,
        needs_data=True,
        summary="closed questions on tables, answered by named values",
    ),
    Entry(
        name="dsgym/qrdata",
        target="tasks.dsgym.task:qrdata",
        version="1",
        group="dsgym",
        needs=_DATA_SCIENCE,
        needs_data=True,
        summary="statistical and causal questions, a number or a choice",
    ),
    Entry(
        name="dsgym/dabstep",
        target="tasks.dsgym.task:dabstep",
        version="1",
        group="dsgym",
        needs=_DATA_SCIENCE,
        needs_data=True,
        summary="payments, fees and a manual in several steps",
    ),
    Entry(
        name="dsgym/dsbio",
        target="tasks.dsgym.task:dsbio",
        version="1",
        group="dsgym",
        needs=_DATA_SCIENCE,
        needs_data=True,
        summary="questions on the data of biology papers",
    ),
    Entry(
        name="dsgym/discoverybench",
        target="tasks.dsgym.discovery:discoverybench",
        version="1",
        group="dsgym",
        needs=_DATA_SCIENCE,
        needs_data=True,
        summary="hypotheses found in data, compared with the authors' by judge models",
    ),
    Entry(
        name="dsgym/own",
        target="tasks.dsgym.task:own",
        version="1",
        group="dsgym",
        n=46,
        needs=_DATA_SCIENCE,
        summary="questions of our own over generated tables",
    ),
    Entry(
        name="dsgym/own_predict",
        target="tasks.dsgym.contests:own_predict",
        version="1",
        group="dsgym",
        n=3,
        needs=_DATA_SCIENCE,
        summary="prediction contests of our own, placed on boards of reference programs",
    ),
    Entry(
        name="dsgym/dspredict",
        target="tasks.dsgym.contests:dspredict",
        version="1",
        group="dsgym",
        needs=_DATA_SCIENCE,
        needs_data=True,
        summary="prediction contests, placed on real leaderboards",
    ),
    Entry(
        name="rule2drc/script",
        target="tasks.rule2drc.script:script",
        version="1",
        group="rule2drc",
        n=51,
        needs=_DRC,
        summary="a design rule in words, answered by a KLayout deck that is run on layouts",
    ),
    Entry(
        name="rule2drc/select",
        target="tasks.rule2drc.select:select",
        version="1",
        group="rule2drc",
        n=51,
        needs=_DRC,
        summary="choosing one of ten decks for a rule, without labels",
    ),
    Entry(
        name="ams_sizing/one_shot",
        target="tasks.ams_sizing.task:one_shot",
        version="1",
        group="ams_sizing",
        n=24,
        needs=_SPICE,
        summary="transistor sizes for 24 circuits in one try, judged by simulation",
    ),
    Entry(
        name="ams_sizing/loop",
        target="tasks.ams_sizing.task:loop",
        version="1",
        group="ams_sizing",
        n=24,
        needs=_SPICE,
        summary="transistor sizes within a budget of simulations, all results shown",
    ),
    Entry(
        name="ams_sizing/space",
        target="tasks.ams_sizing.task:space",
        version="1",
        group="ams_sizing",
        n=24,
        needs=_SPICE,
        summary="the model reduces the search space of a circuit, an optimiser searches it",
    ),
    Entry(
        name="op_cad/step",
        target="tasks.op_cad.task:step",
        version="1",
        group="op_cad",
        n=420,
        needs=_CAD,
        summary="the next modelling operation of a part in CadQuery, judged by its solid",
    ),
    Entry(
        name="op_cad/sequence",
        target="tasks.op_cad.task:sequence",
        version="1",
        group="op_cad",
        n=84,
        needs=_CAD,
        summary="a whole part in CadQuery from its instructions, judged by its solid",
    ),
    Entry(
        name="procad",
        target="tasks.procad.task:procad",
        version="1",
        group="procad",
        n=333,
        needs=_CAD,
        summary="unclear descriptions of CAD parts, clarified by questions before they are built",
    ),
)
