"""Make the project's own multiple-choice items on cryptography.

    python data/make/aicrypto/make_mcq.py [--draw 0] [--out data/aicrypto/mcq.json] [--check]

Only the standard library is needed. The same draw gives the same bytes in every Python version.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

# The generator is a folder of scripts; under `python -P` that folder is not on the path by itself.
sys.path.insert(0, str(Path(__file__).resolve().parent))

import asymmetric
import classic
import mathematics
import misc
import symmetric
from common import Item, Maker, Role, Stream, build, faults

LABELS: dict[str, dict[str, Maker]] = {
    "classic": classic.ITEMS,
    "symmetric": symmetric.ITEMS,
    "asymmetric": asymmetric.ITEMS,
    "math": mathematics.ITEMS,
    "misc": misc.ITEMS,
}
SEVERAL = ("S10", "A06", "A10", "X10")
"""The items with several right options; they never offer "None of the above"."""

OFFERS = 5
"""Items a label that offer "None of the above". For one of them it is the key, so that with five
options the last one is right as often as each of the others."""

OUT = Path(__file__).resolve().parents[2] / "aicrypto" / "mcq.json"


def roles(label: str, draw: int) -> dict[str, Role]:
    """Return for each item of a label what it does with "None of the above" in this draw.

    Parameters
    ----------
    label
        One of the keys of `LABELS`.
    draw
        The draw.
    """
    single = [number for number in LABELS[label] if number not in SEVERAL]
    offering = Stream(f"own-mcq-none-{label}", draw).shuffled(single)[:OFFERS]
    out: dict[str, Role] = dict.fromkeys(LABELS[label], "plain")
    out.update(dict.fromkeys(offering, "offer"))
    out[offering[0]] = "key"
    return out


def make_items(draw: int) -> list[Item]:
    """Return the 50 items of one draw, in file order.

    Parameters
    ----------
    draw
        Non-negative; 0 is the public default instance.
    """
    items = []
    for label, makers in LABELS.items():
        role = roles(label, draw)
        for number, maker in makers.items():
            items.append(build(f"own-mcq-{number}", label, maker, draw, role[number]))
    return items


def render(items: list[Item]) -> bytes:
    """Return the bytes of the JSON file."""
    rows = [item.record(i) for i, item in enumerate(items)]
    return (json.dumps(rows, indent=2, ensure_ascii=False) + "\n").encode()


def main(arguments: list[str] | None = None) -> int:
    """Write or check the file; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--draw", type=int, default=0, help="fixes every choice (default 0)")
    parser.add_argument("--out", type=Path, default=OUT, help="the file to write or check")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 if different")
    options = parser.parse_args(arguments)
    if options.draw < 0:
        parser.error("--draw must be 0 or more")
    items = make_items(options.draw)
    found = [fault for item in items for fault in faults(item)]
    if found:
        print("\n".join(found), file=sys.stderr)
        return 1
    data = render(items)
    if not options.check:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_bytes(data)
    elif not options.out.is_file() or options.out.read_bytes() != data:
        print(
            f"{options.out}: not what draw {options.draw} gives; run this command without --check",
            file=sys.stderr,
        )
        return 1
    return 0


_Raw = argparse.RawDescriptionHelpFormatter

if __name__ == "__main__":
    raise SystemExit(main())
