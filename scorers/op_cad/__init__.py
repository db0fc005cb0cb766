"""CAD programs judged by their solids: an engine in boxes, and figures that are usable alone.

The figures on solids and clouds (`kit`) need the extra ``cad``; importing this package does not.
"""

from scorers.op_cad.engine import CadEngine, engine_version, missing_engine
from scorers.op_cad.results import Built, Fault, Measured

__all__ = ["Built", "CadEngine", "Fault", "Measured", "engine_version", "missing_engine"]
