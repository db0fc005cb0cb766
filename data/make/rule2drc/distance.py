"""Families of distances: width, space, notch, isolated, separation, enclosure, overlap."""

from __future__ import annotations

from collections.abc import Callable

from frame import FAR, Canvas, Case, Draw, Item, Point, case, corners, drawn, fixed

EUCLID = "Distances are Euclidean: corner to corner counts as well."
MERGED = "Shapes that touch or overlap are one shape."


def near(limit: int) -> list[tuple[str, int, int]]:
    """Give the steps around a limit, with a name and whether they violate it."""
    return [("-1", limit - 1, 1), ("", limit, 0), ("+1", limit + 1, 0)]


def both_ways(name: str, limit: int, shapes: Callable[[Canvas, int, bool], Canvas]) -> list[Case]:
    """Make layouts one unit below a limit, at it and above, along x; below and at it along y."""
    made = [
        case(f"{name} x{sign}", label, fixed(lambda c, d: shapes(c, d, False), d))
        for sign, d, label in near(limit)
    ]
    return made + [
        case(f"{name} y{sign}", label, fixed(lambda c, d: shapes(c, d, True), d))
        for sign, d, label in near(limit)[:2]
    ]


def box(
    c: Canvas, layer: Point, turned: bool, left: int, bottom: int, right: int, top: int
) -> Canvas:
    """Draw a box, mirrored at the diagonal if turned."""
    if turned:
        left, bottom, right, top = bottom, left, top, right
    return c.box(layer, left, bottom, right, top)


def rest(layer: Point, thin: int) -> list[Case]:
    """Make a layout that violates on another layer only, and one with nothing in it."""
    return [
        case("other layer", 0, lambda c: drawn(c.box(layer, 0, 0, 5000, 5000), c.box(FAR, 0, 9000, thin, 12000),
                                          c.box(FAR, thin + 1, 9000, 4000, 12000))),
        case("empty", 0, lambda c: c),
    ]  # fmt: skip


def neck(c: Canvas, layer: Point, d: int) -> Canvas:
    """Draw two squares that overlap at a corner by d in x and in y."""
    c.box(layer, 0, 0, 3000, 3000)
    return c.box(layer, 3000 - d, 3000 - d, 6000 - d, 6000 - d)


def diagonal(c: Canvas, one: Point, other: Point, d: int) -> Canvas:
    """Draw two squares whose nearest corners lie d apart in x and in y."""
    c.box(one, 0, 0, 2000, 2000)
    return c.box(other, 2000 + d, 2000 + d, 4000 + d, 4000 + d)


def comb(c: Canvas, layer: Point, gap: int, turned: bool = False) -> Canvas:
    """Draw a U with a gap between its arms, as one polygon."""
    points = [(0, 0), (0, 3000), (1000, 3000), (1000, 1000), (1000 + gap, 1000), (1000 + gap, 3000),
              (2000 + gap, 3000), (2000 + gap, 0)]  # fmt: skip
    return c.polygon(layer, [(y, x) for x, y in points] if turned else points)


def three_boxes(c: Canvas, layer: Point, gap: int) -> Canvas:
    """Draw the same U of three boxes that touch."""
    c.box(layer, 0, 0, 2000 + gap, 1000)
    c.box(layer, 0, 1000, 1000, 3000)
    return c.box(layer, 1000 + gap, 1000, 2000 + gap, 3000)


def facing_arms(c: Canvas, layer: Point, d: int) -> Canvas:
    """Draw one shape with two arms whose ends are diagonal to each other."""
    c.box(layer, 0, 0, 3000, 1000)
    c.box(layer, 3000 + d, 1000 + d, 6000 + d, 2000 + d)
    c.box(layer, 0, 1000, 800, 6000)
    c.box(layer, 0, 6000, 6000 + d, 7000)
    return c.box(layer, 5200 + d, 2000 + d, 6000 + d, 6000)


def square_hole(c: Canvas, layer: Point, side: int) -> Canvas:
    """Draw a square with a square hole of a side."""
    return c.ring(layer, side + 2000, 1000)


def width(draw: Draw) -> Item:
    """Write the family `width`."""
    t, (name, a) = draw.threshold(110, 240), draw.layer(0)
    below, at, above = corners(t)
    half = t // 2
    cases = [
        *both_ways("strip", t, lambda c, d, turned: box(c, a, turned, 0, 0, d, 4000)),
        case("abutting halves", 0, lambda c: drawn(c.box(a, 0, 0, half, 4000), c.box(a, half, 0, t, 4000))),
        case("halves in two cells", 0, lambda c: drawn(
            c.placed("LEFT", lambda i: i.box(a, 0, 0, half, 4000), (0, 0)),
            c.placed("RIGHT", lambda i: i.box(a, 0, 0, t - half, 4000), (half, 0)))),
        case("thin in a turned cell", 1, lambda c: c.placed(
            "TURNED", lambda i: i.box(a, 0, 0, 4000, t - 1), (0, 0), turn=1)),
        case("thin ring", 1, lambda c: c.ring(a, 3000, t - 1)),
        case("thin arm of an L", 1, lambda c: c.polygon(
            a, [(0, 0), (0, 3000), (t - 1, 3000), (t - 1, 900), (3000, 900), (3000, 0)])),
        case("narrow notch in a wide shape", 0, lambda c: comb(c, a, t - 20)),
        *(case(f"neck {d}", label, fixed(lambda c, d: neck(c, a, d), d)) for d, label in ((below, 1), (at, 0), (above, 0))),
        *rest(a, t - 1),
    ]  # fmt: skip
    words = (
        f"Shapes on {name} must be at least {draw.say(t)} wide everywhere; exactly {draw.say(t)} is allowed.",
        f"The width of {name} may nowhere be below {draw.say(t)}.",
        f"Every part of a {name} shape needs a width of {draw.say(t)} or more.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], "w", "1")
    return Item(
        "width", 1, draw.dbu, "width", f"{words} {EUCLID} {MERGED}", {name: a}, ((words, category),),
        (f'{name}.width({draw.um(t)}).output("{category}")',), tuple(cases),
        swaps={
            "space": (".width(", ".space("), "projection": (".um)", ".um, projection)"),
            "square": (".um)", ".um, square)"), "raw": (f"{name}.width", f"{name}.raw.width"),
        },
    )  # fmt: skip


def _of_gaps(
    draw: Draw,
    family: str,
    level: int,
    words: str,
    category: str,
    t: int,
    name: str,
    cases: list[Case],
    *others: str,
) -> Item:
    swaps = {other: (f".{family}(", f".{other}(") for other in others}
    swaps |= {"projection": (".um)", ".um, projection)"), "square": (".um)", ".um, square)")}
    layer = draw.layer(0)[1]
    return Item(
        family, level, draw.dbu, family, f"{words} {EUCLID} {MERGED}", {name: layer}, ((words, category),),
        (f'{name}.{family}({draw.um(t)}).output("{category}")',), tuple(cases), swaps=swaps,
    )  # fmt: skip


def two_boxes(c: Canvas, layer: Point, gap: int, turned: bool) -> Canvas:
    """Draw two boxes with a gap."""
    box(c, layer, turned, 0, 0, 2000, 3000)
    return box(c, layer, turned, 2000 + gap, 0, 4000 + gap, 3000)


def space(draw: Draw) -> Item:
    """Write the family `space`: between shapes, and between parts of one."""
    t, (name, a) = draw.threshold(110, 240), draw.layer(0)
    below, at, above = corners(t)
    cases = [
        *both_ways("gap", t, lambda c, d, turned: two_boxes(c, a, d, turned)),
        case("notch", 1, lambda c: comb(c, a, t - 1)),
        *(case(f"corners {d}", v, fixed(lambda c, d: diagonal(c, a, a, d), d)) for d, v in ((below, 1), (at, 0), (above, 0))),
        case("touching", 0, lambda c: two_boxes(c, a, 0, False)),
        case("overlapping", 0, lambda c: two_boxes(c, a, -500, False)),
        case("across cells", 1, lambda c: c.placed(
            "UNIT", lambda i: i.box(a, 0, 0, 2000, 2000), (0, 0), (2000 + t - 1, 0))),
        *rest(a, t - 1),
    ]  # fmt: skip
    words = (
        f"{name} shapes, and parts of one shape that face each other, must keep {draw.say(t)} of space.",
        f"The space on {name}, notches included, must be {draw.say(t)} or more.",
        f"No two edges of {name} may face each other over less than {draw.say(t)}, within a shape or between two.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], "s", "1")
    return _of_gaps(draw, "space", 1, words, category, t, name, cases, "notch", "isolated", "width")


def notch(draw: Draw) -> Item:
    """Write the family `notch`: within one shape only."""
    t, (name, a) = draw.threshold(110, 240), draw.layer(0)
    below, at, above = corners(t)
    cases = [
        *both_ways("notch", t, lambda c, d, turned: comb(c, a, d, turned)),
        case("two shapes", 0, lambda c: two_boxes(c, a, t - 1, False)),
        case("U of three boxes", 1, lambda c: three_boxes(c, a, t - 1)),
        case("hole", 1, lambda c: square_hole(c, a, t - 1)),
        *(
            case(f"arms {d}", v, fixed(lambda c, d: facing_arms(c, a, d), d))
            for d, v in ((below, 1), (at, 0), (above, 0))
        ),
        *rest(a, t - 1),
    ]
    words = (
        f"Within one {name} shape, facing edges must be {draw.say(t)} apart or more; two shapes may be closer.",
        f"Notches and holes of {name} shapes must measure at least {draw.say(t)}; the gap between shapes is free.",
        f"A {name} shape may have no notch below {draw.say(t)}; what stands between different shapes is no notch.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], "n", "2")
    return _of_gaps(draw, "notch", 2, words, category, t, name, cases, "space", "isolated")


def isolated(draw: Draw) -> Item:
    """Write the family `isolated`: between different shapes only."""
    t, (name, a) = draw.threshold(110, 240), draw.layer(0)
    below, at, above = corners(t)
    cases = [
        *both_ways("gap", t, lambda c, d, turned: two_boxes(c, a, d, turned)),
        case("U", 0, lambda c: comb(c, a, t - 1)),
        case("U of three boxes", 0, lambda c: three_boxes(c, a, t - 1)),
        case("hole", 0, lambda c: square_hole(c, a, t - 1)),
        *(
            case(f"corners {d}", v, fixed(lambda c, d: diagonal(c, a, a, d), d))
            for d, v in ((below, 1), (at, 0), (above, 0))
        ),
        *rest(a, t - 1),
    ]
    words = (
        f"Different {name} shapes must be {draw.say(t)} apart or more; notches within one shape are free.",
        f"Between separate shapes of {name} at least {draw.say(t)} must be free; within a shape nothing is asked.",
        f"Two {name} shapes that do not touch need a distance of {draw.say(t)}; a shape's own arms and holes do not.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], "i", "3")
    return _of_gaps(draw, "isolated", 2, words, category, t, name, cases, "space", "notch")


def separation(draw: Draw) -> Item:
    """Write the family `separation`: between two layers."""
    t, (one, a), (two, b) = draw.threshold(110, 240), draw.layer(0), draw.layer(1)
    below, at, above = corners(t)

    def pair(c: Canvas, gap: int, turned: bool) -> Canvas:
        box(c, a, turned, 0, 0, 2000, 3000)
        return box(c, b, turned, 2000 + gap, 0, 4000 + gap, 3000)

    cases = [
        *both_ways("gap", t, pair),
        case("touching", 1, lambda c: pair(c, 0, False)),
        case("corner touch", 1, lambda c: diagonal(c, a, b, 0)),
        case("overlap", 0, lambda c: pair(c, -700, False)),
        case("inside", 0, lambda c: drawn(c.box(a, 0, 0, 4000, 4000), c.box(b, 1500, 1500, 2500, 2500))),
        case("near shape on the same layer", 0, lambda c: drawn(
            c.box(a, 0, 0, 1000, 3000), c.box(a, 1000 + t - 1, 0, 2000, 3000), c.box(b, 9000, 0, 9900, 900))),
        *(case(f"corners {d}", v, fixed(lambda c, d: diagonal(c, a, b, d), d)) for d, v in ((below, 1), (at, 0), (above, 0))),
        case("empty", 0, lambda c: c),
    ]  # fmt: skip
    words = (
        f"{one} and {two} must be {draw.say(t)} apart; touching is a violation, overlap is not.",
        (
            f"From a {one} edge to a {two} edge that faces it from outside there must be {draw.say(t)}: 0 where they touch "
            "is too little; where they overlap, or one lies in the other, nothing is asked."
        ),
        f"The gap between {one} and {two} may not be below {draw.say(t)} (a gap of 0 is one); overlaps are allowed.",
    )[draw.number % 3]
    category = draw.category(f"{one[0]}{two[0]}", "sep", "1")
    return Item(
        "separation", 2, draw.dbu, "separation", f"{words} {EUCLID} {MERGED}", {one: a, two: b}, ((words, category),),
        (f'{one}.separation({two}, {draw.um(t)}).output("{category}")',), tuple(cases),
        swaps={
            "overlap": (".separation(", ".overlap("), "projection": (".um)", ".um, projection)"),
            "square": (".um)", ".um, square)"), "space of one": (f".separation({two}, ", ".space("),
        },
    )  # fmt: skip


def enclosure(draw: Draw) -> Item:
    """Write the family `enclosure`: one layer around another, and nothing of it outside."""
    t, (metal, a), (via, b) = draw.threshold(40, 90), draw.layer(0), draw.layer(1)
    below, at, _ = corners(t)

    def around(c: Canvas, left: int, bottom: int, right: int, top: int) -> Canvas:
        c.box(b, 0, 0, 400, 400)
        return c.box(a, -left, -bottom, 400 + right, 400 + top)

    def re_entrant(c: Canvas, d: int) -> Canvas:
        c.box(b, 0, 0, 400, 400)
        return c.polygon(
            a,
            [
                (-900, -900),
                (-900, 2000),
                (400 + d, 2000),
                (400 + d, 400 + d),
                (2000, 400 + d),
                (2000, -900),
            ],
        )

    cases = [
        *(case(f"all sides {sign or 'exact'}", v, fixed(lambda c, d: around(c, d, d, d, d), d)) for sign, d, v in near(t)),
        *(case(f"one side {sign}", v, fixed(lambda c, d: around(c, 500, 500, d, 500), d)) for sign, d, v in near(t)[::2]),
        case("coincident edge", 1, lambda c: around(c, 500, 500, 0, 500)),
        case("same box", 1, lambda c: around(c, 0, 0, 0, 0)),
        case("outside", 1, lambda c: drawn(c.box(b, 0, 0, 400, 400), c.box(a, 5000, 0, 7000, 2000))),
        case("half out", 1, lambda c: around(c, 500, 500, -200, 500)),
        case("touching from outside", 1, lambda c: drawn(c.box(b, 0, 0, 400, 400), c.box(a, 400, -500, 2400, 900))),
        case("no via", 0, lambda c: c.box(a, 0, 0, 2000, 2000)),
        case("metal of two boxes", 0, lambda c: drawn(
            c.box(b, 0, 0, 400, 400), c.box(a, -500, -500, 200, 900), c.box(a, 200, -500, 900, 900))),
        case("via of two boxes", 0, lambda c: drawn(
            c.box(a, -500, -500, 900, 900), c.box(b, 0, 0, 200, 400), c.box(b, 200, 0, 400, 400))),
        case(f"inner corner {below}", 1, lambda c: re_entrant(c, below)),
        case(f"inner corner {at}", 0, lambda c: re_entrant(c, at)),
    ]  # fmt: skip
    words = (
        f"{metal} must enclose every {via} by {draw.say(t)} on all sides; a {via} not wholly inside is a violation too.",
        f"Each {via} lies wholly in {metal}, with a margin of {draw.say(t)} or more everywhere.",
        f"The margin of {metal} around {via} may nowhere be below {draw.say(t)}, and no part of a {via} may stick out.",
    )[draw.number % 3]
    category = draw.category(f"{metal[0]}{via[0]}", "enc", "1")
    checks = (
        f'{metal}.enclosing({via}, {draw.um(t)}).output("{category}")',
        f'{via}.not_inside({metal}).output("{category}")',
    )
    return Item(
        "enclosure", 3, draw.dbu, "enclosure", f"{words} {EUCLID} {MERGED}", {metal: a, via: b}, ((words, category),),
        checks, tuple(cases),
        swaps={
            "outside for not_inside": (".not_inside(", ".outside("), "projection": (".um)", ".um, projection)"),
            "square": (".um)", ".um, square)"),
        },
        more=(
            f'{metal}.enclosing({via}, {draw.um(t)}).output("{category}")',
            f'({via}.sized({draw.um(t)}) - {metal}).output("{category}")',
        ),
    )  # fmt: skip


def overlap(draw: Draw) -> Item:
    """Write the family `overlap`: how deep two layers go into each other."""
    t, (one, a), (two, b) = draw.threshold(110, 240), draw.layer(0), draw.layer(1)

    def pair(c: Canvas, depth: int, turned: bool) -> Canvas:
        box(c, a, turned, 0, 0, 2000, 3000)
        return box(c, b, turned, 2000 - depth, 0, 4000, 3000)

    def corner(c: Canvas, depth: int) -> Canvas:
        c.box(a, 0, 0, 2000, 2000)
        return c.box(b, 2000 - depth, 2000 - depth, 4000, 4000)

    below, _, _ = corners(t)
    cases = [
        *both_ways("depth", t, pair),
        case("touching", 1, lambda c: pair(c, 0, False)),
        case("disjoint", 0, lambda c: pair(c, -300, False)),
        case("wholly inside", 0, lambda c: drawn(c.box(a, 0, 0, 4000, 4000), c.box(b, 1500, 1500, 2500, 2500))),
        case("corner, shallow", 1, lambda c: corner(c, below - 20)),
        case("corner, deep", 0, lambda c: corner(c, t + 200)),
        case("near shapes of one layer", 0, lambda c: drawn(
            c.box(a, 0, 0, 1000, 3000), c.box(a, 1000 - t + 1, 0, 2000, 3000))),
        case("other layer", 0, lambda c: drawn(c.box(a, 0, 0, 2000, 3000), c.box(FAR, 2000 - t + 1, 0, 4000, 3000))),
        case("empty", 0, lambda c: c),
    ]  # fmt: skip
    words = (
        (
            f"Where {one} and {two} meet, they must overlap by {draw.say(t)}; touching is an overlap of 0, and shapes that "
            "are apart, or one wholly inside the other, are free."
        ),
        (
            f"An overlap of {one} with {two} must be {draw.say(t)} deep or more; two that only touch violate this, two "
            "that are apart do not, nor one that lies inside the other."
        ),
        f"{one} and {two} overlap by at least {draw.say(t)} wherever their outlines cross or touch.",
    )[draw.number % 3]
    category = draw.category(f"{one[0]}{two[0]}", "ovl", "1")
    return Item(
        "overlap", 2, draw.dbu, "overlap", f"{words} {EUCLID} {MERGED}", {one: a, two: b}, ((words, category),),
        (f'{one}.overlap({two}, {draw.um(t)}).output("{category}")',), tuple(cases),
        swaps={"separation": (".overlap(", ".separation("), "enclosing": (".overlap(", ".enclosing(")},
    )  # fmt: skip
