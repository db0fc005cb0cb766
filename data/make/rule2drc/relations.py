"""Families of relations: connectivity, two categories at once, a marker layer, another database unit."""

from __future__ import annotations

from distance import EUCLID, MERGED, both_ways, box, comb, diagonal, neck, rest, two_boxes
from frame import Canvas, Case, Draw, Item, case, corners, drawn, fixed


def connectivity(draw: Draw) -> Item:
    """Write the family `connectivity`: a shape meets enough vias."""
    (one, a), (two, b) = draw.layer(0), draw.layer(1)
    least = draw.number + 1  # 1, 2, 3 vias

    def vias(c: Canvas, n: int) -> Canvas:
        for k in range(n):
            c.box(b, 200 + 600 * k, 200, 400 + 600 * k, 400)
        return c

    def held(c: Canvas, n: int, last: int) -> Canvas:
        """Draw the shape with n - 1 vias inside, and one more at a distance from its right edge."""
        c.box(a, 0, 0, 4000, 1000)
        vias(c, n - 1)
        return c.box(b, 4000 + last, 300, 4400 + last, 700)

    cases: list[Case] = []
    for n in range(least + 2):
        cases.append(
            case(
                f"{n} vias",
                int(n < least),
                fixed(lambda c, n: drawn(c.box(a, 0, 0, 4000, 1000), vias(c, n)), n),
            )
        )
    cases += [
        case("the last one touches", 0, lambda c: held(c, least, 0)),
        case("the last one is a unit away", 1, lambda c: held(c, least, 1)),
        case("the last one a unit inside", 0, lambda c: held(c, least, -1)),
        case("the last one touches a corner", 0, lambda c: drawn(
            c.box(a, 0, 0, 4000, 1000), vias(c, least - 1), c.box(b, 4000, 1000, 4400, 1400))),
        case("the last one near a corner", 1, lambda c: drawn(
            c.box(a, 0, 0, 4000, 1000), vias(c, least - 1), c.box(b, 4001, 1001, 4400, 1400))),
        case("a via of two boxes counts once", int(least > 1), lambda c: drawn(
            c.box(a, 0, 0, 4000, 1000), vias(c, max(0, least - 2)), c.box(b, 2600, 200, 2800, 400),
            c.box(b, 2800, 200, 3000, 400))),
        case("two shapes, one without", 1, lambda c: drawn(
            c.box(a, 0, 0, 4000, 1000), vias(c, least), c.box(a, 0, 3000, 4000, 4000))),
        case("a shape of two boxes", 0, lambda c: drawn(
            c.box(a, 0, 0, 500, 1000), c.box(a, 500, 0, 4000, 1000), vias(c, least))),
        case("vias alone", 0, lambda c: vias(c, 1)),
        case("empty", 0, lambda c: c),
    ]  # fmt: skip
    count = ("one", "two", "three")[least - 1]
    noun = two if least == 1 else f"{two} shapes"
    words = (
        f"Every {one} shape must be connected to at least {count} {noun}; touching with an edge or corner is enough.",
        f"A {one} shape that meets fewer than {count} {noun} is a violation; touching counts as meeting.",
        f"Each {one} shape needs contact, overlap or touch, with {count} or more {noun}.",
    )[draw.number % 3]
    category = draw.category(one[0] + two[0], "con", str(least))
    alone = f"{one}.not_interacting({two})"
    short = f"{one} - {one}.interacting({two}, {least})"
    check = f'{alone}.output("{category}")' if least == 1 else f'({short}).output("{category}")'
    swaps = {
        "overlapping": ("interacting(", "overlapping("),
        "inside": (".interacting(", ".inside("),
    }
    if least == 1:
        swaps = {
            "overlapping": ("not_interacting(", "not_overlapping("),
            "inside": ("not_interacting(", "not_inside("),
        }
    else:
        swaps["one fewer"] = (f", {least})", f", {least - 1})")
    return Item(
        "connectivity", 2 if least == 1 else 3, draw.dbu, "connectivity",
        f"{words} {MERGED} A {two} drawn as several touching parts is one.", {one: a, two: b}, ((words, category),),
        (check,), tuple(cases), swaps=swaps,
    )  # fmt: skip


def two_categories(draw: Draw) -> Item:
    """Write the family `two_categories`: width and space of one layer, reported apart."""
    t, (name, a) = draw.rng.choice((180, 200, 220)), draw.layer(0)
    below, at, _ = corners(t)

    def strips(c: Canvas, wide: int, gap: int) -> Canvas:
        c.box(a, 0, 0, wide, 4000)
        return c.box(a, wide + gap, 0, 2 * wide + gap + 1000, 4000)

    cases = [
        case(f"width {wide - t:+d} space {gap - t:+d}", (int(wide < t), int(gap < t)),
             fixed(strips, wide, gap))
        for wide in (t - 1, t, t + 1) for gap in (t - 1, t, t + 1)
    ] + [
        case("notch", (0, 1), lambda c: comb(c, a, t - 1)),
        case("abutting halves", (0, 0), lambda c: drawn(c.box(a, 0, 0, t // 2, 4000), c.box(a, t // 2, 0, t, 4000))),
        case(f"corners {below}", (0, 1), lambda c: diagonal(c, a, a, below)),
        case(f"corners {at}", (0, 0), lambda c: diagonal(c, a, a, at)),
        case(f"neck {below}", (1, 0), lambda c: neck(c, a, below)),
        case("empty", (0, 0), lambda c: c),
    ]  # fmt: skip
    first = f"The width of {name} must be {draw.say(t)} or more."
    second = f"The space between {name} shapes, and in notches, must be {draw.say(t)} or more."
    wide, free = (
        draw.category(name[0] + name[-1], "w", "2"),
        draw.category(name[0] + name[-1], "s", "2"),
    )
    return Item(
        "two_categories", 2, draw.dbu, "two rules",
        f"Two rules for {name}, each reported under its own name. {first} {second} {EUCLID} {MERGED}",
        {name: a}, ((first, wide), (second, free)),
        (f'{name}.width({draw.um(t)}).output("{wide}")', f'{name}.space({draw.um(t)}).output("{free}")'),
        tuple(cases),
        swaps={
            "categories exchanged": (f'.output("{wide}")', f'.output("{free}")'),
            "projection": (".um)", ".um, projection)"), "notch for space": (".space(", ".notch("),
            "isolated for space": (".space(", ".isolated("),
        },
    )  # fmt: skip


def marker(draw: Draw) -> Item:
    """Write the family `marker`: a wider limit for shapes that meet a marker."""
    (name, a), (mark, m) = draw.layer(0), draw.layer(1)
    base = draw.threshold(120, 180)
    wide = base + draw.threshold(60, 120)

    def strip(c: Canvas, width: int, marked: str) -> Canvas:
        c.box(a, 0, 0, width, 4000)
        if marked:
            edge = {"under": -500, "half": width // 2, "touching": width}[marked]
            c.box(m, edge, -500, 5000, 4500)
        return c

    (low, _, _), (high, up, _) = corners(base), corners(wide)
    cases = [
        *(case(f"base {d - base:+d}", (int(d < base), 0), fixed(lambda c, d: strip(c, d, ""), d)) for d in (base - 1, base)),
        *(case(f"wide {d - wide:+d}", (0, int(d < wide)), fixed(lambda c, d: strip(c, d, "under"), d))
          for d in (wide - 1, wide, wide + 1)),
        case("base, between the limits", (0, 0), lambda c: strip(c, wide - 10, "")),
        case("half under the marker", (0, 1), lambda c: strip(c, wide - 1, "half")),
        case("touching the marker", (0, 1), lambda c: strip(c, wide - 1, "touching")),
        case("thin, touching the marker", (0, 1), lambda c: strip(c, base - 1, "touching")),
        case("thin, under the marker", (0, 1), lambda c: strip(c, base - 1, "under")),
        case("abutting halves under the marker", (0, 0), lambda c: drawn(
            c.box(a, 0, 0, wide // 2, 4000), c.box(a, wide // 2, 0, wide, 4000), c.box(m, -9, -9, 5000, 4500))),
        case("one of each", (1, 1), lambda c: drawn(
            strip(c, wide - 1, "under"), c.box(a, 9000, 0, 9000 + base - 1, 4000))),
        case("neck below the base", (1, 0), lambda c: neck(c, a, low)),
        case("neck below the wide limit", (0, 1), lambda c: drawn(neck(c, a, high), c.box(m, 500, 500, 900, 900))),
        case("neck at the wide limit", (0, 0), lambda c: drawn(neck(c, a, up), c.box(m, 500, 500, 900, 900))),
        case("empty", (0, 0), lambda c: c),
    ]  # fmt: skip
    first = f"{name} shapes that do not meet {mark} must be {draw.say(base)} wide or more."
    second = (
        f"{name} shapes that meet {mark}, even if they only touch it, must be {draw.say(wide)} wide or more, all of them "
        "and everywhere."
    )
    plain, extra = (
        draw.category(name[0] + name[-1], "w", "1"),
        draw.category(name[0] + name[-1], "w", mark[0] + "k"),
    )
    return Item(
        "marker", 3, draw.dbu, "width by marker",
        f"The least width of {name} depends on the marker layer {mark}. {first} {second} {EUCLID} {MERGED}",
        {name: a, mark: m}, ((first, plain), (second, extra)),
        (
            f'{name}.not_interacting({mark}).width({draw.um(base)}).output("{plain}")',
            f'{name}.interacting({mark}).width({draw.um(wide)}).output("{extra}")',
        ),
        tuple(cases),
        swaps={
            "overlapping": ("interacting(", "overlapping("), "inside": (f".interacting({mark})", f".inside({mark})"),
            "and": (f"{name}.interacting({mark})", f"({name} & {mark})"),
            "base for all": (f"{name}.not_interacting({mark})", name),
            "projection": (".um)", ".um, projection)"),
        },
    )  # fmt: skip


def other_dbu(draw: Draw) -> Item:
    """Write the family `other_dbu`: width or space in a layout of another database unit."""
    draw.dbu = (0.005, 0.002, 0.0005)[draw.number]
    t, (name, a) = draw.threshold(60, 120, 4), draw.layer(0)
    below, at, above = corners(t)
    of_width = draw.number != 1
    steps = ((below, 1), (at, 0), (above, 0))
    if of_width:
        cases = [
            *both_ways("strip", t, lambda c, d, turned: box(c, a, turned, 0, 0, d, 4000)),
            case("abutting halves", 0, lambda c: drawn(c.box(a, 0, 0, t // 2, 4000), c.box(a, t // 2, 0, t, 4000))),
            *(case(f"neck {d}", v, fixed(lambda c, d: neck(c, a, d), d)) for d, v in steps),
            case("thin ring", 1, lambda c: c.ring(a, 3000, t - 1)),
        ]  # fmt: skip
    else:
        cases = [
            *both_ways("gap", t, lambda c, d, turned: two_boxes(c, a, d, turned)),
            case("notch", 1, lambda c: comb(c, a, t - 1)),
            *(
                case(f"corners {d}", v, fixed(lambda c, d: diagonal(c, a, a, d), d))
                for d, v in steps
            ),
            case("touching", 0, lambda c: two_boxes(c, a, 0, False)),
        ]
    cases += rest(a, t - 1)
    what, check = ("width", "w") if of_width else ("space", "s")
    words = (
        f"The {what} of {name} must be {draw.say(t)} or more.",
        f"The {what} of {name}, notches included, may not be below {draw.say(t)}.",
        f"{name} has a {what} of at least {draw.say(t)} everywhere.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], check, "1")
    note = f"The layout's database unit is {draw.dbu:g} µm."
    wrong = "space" if of_width else "width"
    return Item(
        "other_dbu", 3, draw.dbu, f"{what} on another grid", f"{words} {note} {EUCLID} {MERGED}", {name: a},
        ((words, category),), (f'{name}.{what}({draw.um(t)}).output("{category}")',), tuple(cases),
        swaps={
            "as if 0.001": (draw.um(t), str(round(t * draw.dbu * 1000))),
            wrong: (f".{what}(", f".{wrong}("), "projection": (".um)", ".um, projection)"),
        },
    )  # fmt: skip
