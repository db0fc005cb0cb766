"""All families and the items that they give: one for each family, level and kind."""

from __future__ import annotations

from msgspec import Struct

from tasks.aicrypto.ctf.families import block, classic, dlp, lattice, rsa, stream
from tasks.aicrypto.ctf.families.base import LEVELS, Family, Kind

FAMILIES: tuple[Family, ...] = (
    *classic.FAMILIES, *block.FAMILIES, *stream.FAMILIES, *rsa.FAMILIES, *dlp.FAMILIES,
    *lattice.FAMILIES,
)  # fmt: skip


class Item(Struct, frozen=True, kw_only=True):
    """An own challenge before anything of it is drawn.

    Attributes
    ----------
    item_id : str
        ``own-ctf-<family>-<level>``; with a ``d`` behind it where a family has both kinds and this
        is the one with a server.
    family : Family
    level : int
        1 or 2.
    kind : Kind
    """

    item_id: str
    family: Family
    level: int
    kind: Kind


def _items() -> dict[str, Item]:
    items = {}
    for family in FAMILIES:
        for kind in family.kinds:
            mark = "d" if kind == "dynamic" and len(family.kinds) > 1 else ""
            for level in LEVELS:
                item_id = f"own-ctf-{family.name.replace('_', '-')}-{level}{mark}"
                items[item_id] = Item(item_id=item_id, family=family, level=level, kind=kind)
    return items


ITEMS: dict[str, Item] = _items()
"""By id, in the order of the categories."""
