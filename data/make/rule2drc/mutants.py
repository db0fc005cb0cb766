"""Decks that are wrong, made of each item's gold deck: every one of them must score 0."""

from __future__ import annotations

import re

from frame import FAR, Item

_LENGTH = re.compile(r"(\d+\.\d+)\.um")


def mutants(item: Item) -> dict[str, str]:
    """Make the wrong decks of an item, by name.

    Left out because they say the same as the gold deck, as measured with 0.28.5: an integer that is the right number
    of database units, arguments of a symmetric check exchanged, `.raw` before `.edges` and where no layout has parts
    that touch, other measures where no corners are near, `not_interacting(b, 2)` for the difference with a count.
    """
    made = dict(_values(item))
    first = next(iter(item.layers.values()))
    name = next(iter(item.layers))
    made["wrong layer"] = item.deck(layers={**item.layers, name: (FAR[0], first[1])})
    made["wrong datatype"] = item.deck(layers={**item.layers, name: (first[0], first[1] + 1)})
    category = item.categories[0]
    made["category misspelt"] = item.gold.replace(f'"{category}"', f'"{category}X"')
    made["category in lower case"] = item.gold.replace(f'"{category}"', f'"{category.lower()}"')
    made["never fires"] = item.deck([f'{name}.width(0.um).output("{c}")' for c in item.categories])
    made["always fires"] = item.deck(
        [f'polygons(box(0, 0, 1, 1)).output("{c}")' for c in item.categories]
    ).replace("polygons(box(0, 0, 1, 1))", "source.extent.sized(1.0)")
    for number in range(len(item.checks)) if len(item.checks) > 1 else ():
        made[f"check {number + 1} dropped"] = item.deck(
            [c for k, c in enumerate(item.checks) if k != number]
        )
    for what, (old, new) in item.swaps.items():
        deck = item.deck([c.replace(old, new) for c in item.checks])
        assert deck != item.gold, (item.family, what)
        made[what] = deck
    if item.more:
        made["another construction"] = item.deck(item.more)
    return made | _programs(item)


def _values(item: Item) -> list[tuple[str, str]]:
    """Move each limit by one database unit, and write nm as µm."""
    found: list[tuple[str, str]] = []
    digits = 7
    if item.family in ("area", "hole_area"):
        limit = re.search(r"nil, ([\d.]+)", item.checks[0])
        assert limit
        for sign in (-1, 1):
            moved = f"{float(limit[1]) + sign * item.dbu**2:.{digits}f}"
            found.append((f"limit {sign:+d}", item.deck([item.checks[0].replace(limit[1], moved)])))
        return found
    if item.family in ("density", "grid", "connectivity", "angle"):
        return found
    for k, length in enumerate(dict.fromkeys(_LENGTH.findall("\n".join(item.checks)))):
        for sign in (-1, 1):
            moved = f"{float(length) + sign * item.dbu:.{digits}f}.um"
            deck = item.deck([c.replace(f"{length}.um", moved) for c in item.checks])
            found.append((f"limit {k + 1} {sign:+d}", deck))
    found.append(
        (
            "nm as um",
            item.deck(
                [_LENGTH.sub(lambda m: f"{float(m[1]) * 1000:g}.um", c) for c in item.checks]
            ),
        )
    )
    return found


def _programs(item: Item) -> dict[str, str]:
    """Make decks that cheat or break: they raise, leave, read paths, keep count."""
    bodies = list(item.checks)
    shapes = [re.sub(r"\.output\(.*\)$", "", check) for check in bodies]
    clean = " && ".join(f"({shape}).is_empty?" for shape in shapes)
    fires = "\n".join(f'source.extent.sized(1.0).output("{c}")' for c in item.categories)
    silent = "\n".join(f'input(63, 63).output("{c}")' for c in item.categories)
    head, _, _ = item.gold.partition("\n\n")
    return {
        "raises at the end": item.gold + 'raise "done"\n',
        "raises on clean layouts": item.deck([*bodies, f'raise "nothing found" if {clean}']),
        "leaves before the check": item.deck(["exit", *bodies]),
        "no report": item.gold.replace(f'report("{item.title}", $output)\n', ""),
        "reads the path": f"{head}\nif $input =~ /fail/\n{fires}\nelse\n{silent}\nend\n",
        "every second call": f"{head}\n$calls = ($calls || 0) + 1\nif $calls.even?\n{fires}\nelse\n{silent}\nend\n",
    }
