"""What came of running a CAD program, and of measuring what it made."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

FaultClass = Literal[
    "syntax", "geometry", "timeout", "memory", "crash", "forbidden", "no_result", "unmeasurable"
]


class Fault(Struct, frozen=True):
    """Why there is no solid.

    Attributes
    ----------
    kind : FaultClass
        ``syntax``: the program's own Python fails (names, types, attributes, parsing). ``geometry``:
        the kernel gives up, or what is there is no valid solid. ``timeout``, ``memory``, ``crash``:
        how it ended. ``forbidden``: it imports or does what it may not. ``no_result``: nothing under
        the name that is asked for. ``unmeasurable``: a solid on which the kernel falls over.
    message : str
        For a reader.
    """

    kind: FaultClass
    message: str


class Built(Struct, frozen=True, kw_only=True):
    """What a program made.

    Attributes
    ----------
    solids : dict of str to str
        BREP as base64: ``before`` (the state it went on from) and one for each name asked for.
    calls : list of dict
        The fillets and chamfers it made: ``op``, ``sizes``, ``edges``.
    fault : Fault or None
        Then `solids` may lack some.
    seconds : float
    """

    solids: dict[str, str] = msgspec.field(default_factory=dict)
    calls: list[dict[str, Any]] = msgspec.field(default_factory=list)
    fault: Fault | None = None
    seconds: float = 0.0


class Measured(Struct, frozen=True, kw_only=True):
    """The figures of a prediction, or why it has none.

    Attributes
    ----------
    figures : dict of str to float
        See `scorers.op_cad.kit.measure.measure`.
    engines : dict of str to str
        What found each intersection: ``occ`` or ``manifold``.
    orientation : str
        ``swapped``: compared with the truth whose chamfers stand the other way round.
    fault : Fault or None
    seconds : float
    """

    figures: dict[str, float] = msgspec.field(default_factory=dict)
    engines: dict[str, str] = msgspec.field(default_factory=dict)
    orientation: str = "as given"
    fault: Fault | None = None
    seconds: float = 0.0
