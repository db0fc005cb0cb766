"""Families of single shapes: area, area of holes, density, length of edges, angles, grid."""

from __future__ import annotations

from distance import MERGED, comb, near, rest
from frame import FAR, Canvas, Case, Draw, Item, Point, case, drawn, fixed


def _side(area: int, units: int) -> int:
    """Give the other side of a rectangle of an area, which is made to be a multiple of the first."""
    assert area % units == 0
    return area // units


def area(draw: Draw) -> Item:
    """Write the family `area`: the least area of a shape."""
    (name, a), side = draw.layer(0), draw.threshold(200, 300, 20)
    limit = side * side  # square units, a multiple of `side`
    um2 = f"{limit * draw.dbu**2:.4f}".rstrip("0")
    whole = _side(limit, side)

    def strip(c: Canvas, more: int) -> Canvas:
        # One unit more or less of area: a step of one by one on the end of a strip.
        return c.polygon(
            a, [(0, 0), (0, side), (whole, side), (whole, 1), (whole + more, 1), (whole + more, 0)]
        )

    def bent(c: Canvas, more: int) -> Canvas:
        arm = side // 2
        long = (limit - arm * arm) // (2 * arm) + arm  # two arms and their corner
        over = limit - (2 * arm * long - arm * arm)
        return c.polygon(a, [(0, 0), (0, long), (arm, long), (arm, arm), (long, arm), (long, 1),
                      (long + over + more, 1), (long + over + more, 0)])  # fmt: skip

    cases = [
        *(case(f"strip {sign or 'exact'}", v, fixed(strip, d))
          for sign, d, v in (("-1", -1, 1), ("", 0, 0), ("+1", 1, 0))),
        *(case(f"L {sign or 'exact'}", v, fixed(bent, d))
          for sign, d, v in (("-1", -1, 1), ("", 0, 0), ("+1", 1, 0))),
        case("abutting halves", 0, lambda c: drawn(c.box(a, 0, 0, side, side // 2), c.box(a, 0, side // 2, side, side))),
        case("halves in two cells", 0, lambda c: c.placed(
            "HALF", lambda i: i.box(a, 0, 0, side, side // 2), (0, 0), (0, side // 2))),
        case("ring with a large outline", 1, lambda c: c.ring(a, 2 * side, side // 8)),
        case("the same small shape twice", 1, lambda c: drawn(
            c.box(a, 0, 0, side - 10, side - 10), c.box(a, 0, 0, side - 10, side - 10))),
        case("a large and a small one", 1, lambda c: drawn(
            c.box(a, 0, 0, 2000, 2000), c.box(a, 5000, 0, 5000 + side, side - 1))),
        case("other layer", 0, lambda c: drawn(c.box(a, 0, 0, 2000, 2000), c.box(FAR, 5000, 0, 5050, 50))),
        case("empty", 0, lambda c: c),
    ]  # fmt: skip
    words = (
        f"The area of each {name} shape must be at least {um2} square microns.",
        f"A {name} shape of less than {um2} µm² is too small; exactly {um2} µm² is enough.",
        f"No {name} shape may have an area below {um2} µm². Holes do not count as area.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], "a", "1")
    return Item(
        "area", 1, draw.dbu, "area", f"{words} {MERGED}", {name: a}, ((words, category),),
        (f'{name}.with_area(nil, {um2}).output("{category}")',), tuple(cases),
        swaps={
            "inverted": (".with_area(", ".without_area("), "raw": (f"{name}.with", f"{name}.raw.with"),
            "closed bound": ("(nil, ", "(nil, 0.0000005 + "), "upper": (f"(nil, {um2})", f"({um2}, nil)"),
        },
    )  # fmt: skip


def hole_area(draw: Draw) -> Item:
    """Write the family `hole_area`: the least area of a hole."""
    (name, a), side = draw.layer(0), draw.threshold(200, 300, 20)
    limit = side * side
    um2 = f"{limit * draw.dbu**2:.4f}".rstrip("0")
    wall = 600

    def cut(c: Canvas, more: int) -> Canvas:
        # The hole is a square with a step of one by one at a corner.
        inner: list[Point] = [(wall, wall), (wall, wall + side), (wall + side, wall + side), (wall + side, wall + 1),
                              (wall + side + more, wall + 1), (wall + side + more, wall)]  # fmt: skip
        big = 2 * wall + side
        return c.polygon(a, [(0, 0), (0, big), (big, big), (big, 0)], inner)

    def built(c: Canvas, height: int, more: int) -> Canvas:
        c.box(a, 0, 0, 2 * wall + side, wall)
        c.box(a, 0, wall + height, 2 * wall + side, 2 * wall + height)
        c.box(a, 0, wall, wall, wall + height)
        c.box(a, wall + side, wall, 2 * wall + side, wall + height)
        if more < 0:  # one unit of the hole is filled
            c.box(a, wall, wall, wall + 1, wall + 1)
        return c

    cases = [
        *(case(f"cut out {sign or 'exact'}", v, fixed(cut, d))
          for sign, d, v in (("-1", -1, 1), ("", 0, 0), ("+1", 1, 0))),
        case("of four boxes -1", 1, lambda c: built(c, side, -1)),
        case("of four boxes exact", 0, lambda c: built(c, side, 0)),
        case("of four boxes, small", 1, lambda c: built(c, side - 1, 0)),
        case("no hole, small", 0, lambda c: c.box(a, 0, 0, side - 10, side - 10)),
        case("open U", 0, lambda c: comb(c, a, side - 20)),
        case("two holes, one small", 1, lambda c: drawn(
            c.ring(a, 3000, 1000), c.placed("SMALL", lambda i: i.ring(a, 2 * wall + side - 2, wall), (6000, 0)))),
        case("hole filled on another layer", 1, lambda c: drawn(
            cut(c, -1), c.box(FAR, wall, wall, wall + side, wall + side))),
        case("small hole filled again", 0, lambda c: drawn(
            cut(c, -1), c.box(a, wall, wall, wall + side, wall + side))),
        *rest(a, side - 1),
    ]  # fmt: skip
    words = (
        f"A hole in {name} must have an area of at least {um2} square microns.",
        f"Holes enclosed by {name} may not be smaller than {um2} µm²; a notch that is open is no hole.",
        f"The enclosed area of every {name} hole is {um2} µm² or more.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], "h", "1")
    return Item(
        "hole_area", 2, draw.dbu, "hole area", f"{words} {MERGED}", {name: a}, ((words, category),),
        (f'{name}.holes.with_area(nil, {um2}).output("{category}")',), tuple(cases),
        swaps={
            "no holes": (".holes.", "."), "inverted": (".with_area(", ".without_area("),
            "raw": (f"{name}.holes", f"{name}.raw.holes"),
        },
    )  # fmt: skip


def density(draw: Draw) -> Item:
    """Write the family `density`: covered share of each tile between two limits."""
    (name, a), tile = draw.layer(0), draw.threshold(8000, 12000, 1000)
    low, high = draw.rng.choice(((0.2, 0.6), (0.3, 0.7), (0.25, 0.75)))
    lo, hi = round(tile * low), round(tile * high)  # heights of strips that are as wide as the tile

    def tiles(c: Canvas, left: int, right: int) -> Canvas:
        for x, height in ((0, left), (tile, right)):
            if height:
                c.box(a, x, 0, x + tile, height)
        return c

    middle = (lo + hi) // 2
    cases = [
        case("both in the middle", 0, lambda c: tiles(c, middle, middle)),
        *(case(f"low {sign or 'exact'}", v, fixed(lambda c, d: tiles(c, middle, lo + d), d))
          for sign, d, v in (("-1", -1, 1), ("", 0, 0), ("+1", 1, 0))),
        *(case(f"high {sign or 'exact'}", v, fixed(lambda c, d: tiles(c, hi + d, middle), d))
          for sign, d, v in (("-1", -1, 0), ("", 0, 0), ("+1", 1, 1))),
        case("right in the mean of both tiles only", 1, lambda c: tiles(c, lo - 500, hi)),
        case("one tile empty", 1, lambda c: tiles(c, middle, 0)),
        case("empty", 1, lambda c: c),
        case("the same shape twice", 1, lambda c: drawn(tiles(c, middle, lo - 10), tiles(c, middle, lo - 10))),
        case("overlaps above the low limit", 0, lambda c: drawn(
            tiles(c, middle, lo), c.box(a, tile, 0, 2 * tile, lo // 2))),
        case("full", 1, lambda c: tiles(c, tile, tile)),
    ]  # fmt: skip
    size = f"{(tile * draw.dbu):g}"
    said = f"Tiles are {size} µm by {size} µm: two of them side by side, from (0, 0) on."
    words = (
        f"The density of {name} in every tile must lie between {low:g} and {high:g}, both allowed.",
        f"In each tile {100 * low:g} % to {100 * high:g} % of the area is covered by {name}; the limits are allowed.",
        f"A tile whose {name} density is below {low:g} or above {high:g} is a violation.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], "den", "1")
    where = f"tile_size({size}.um), tile_origin(0.um, 0.um), tile_count(2, 1)"
    return Item(
        "density", 3, draw.dbu, "density", f"{words} {said} What is covered twice counts once. {MERGED}",
        {name: a}, ((words, category),),
        (f'{name}.without_density({low:g} .. {high:g}, {where}).output("{category}")',), tuple(cases),
        swaps={
            "with": (".without_density(", ".with_density("),
            "low limit only": (f"({low:g} .. {high:g}", f"({low:g} .. 1.0"),
            "high limit only": (f"({low:g} .. {high:g}", f"(0.0 .. {high:g}"),
            "one tile": ("tile_count(2, 1)", "tile_count(1, 1)"),
        },
        more=(
            f'{name}.with_density(0.0 .. {low:g}, {where}).output("{category}")',
            f'{name}.with_density({high:g} .. 1.0, {where}).output("{category}")',
        ),
    )  # fmt: skip


def edge_length(draw: Draw) -> Item:
    """Write the family `edge_length`: the least length of an edge."""
    (name, a), t = draw.layer(0), 200  # chamfers of 141 and 142 units lie around it

    def step(c: Canvas, d: int) -> Canvas:
        return c.polygon(
            a, [(0, 0), (0, 3000), (1500, 3000), (1500, 3000 - d), (3000, 3000 - d), (3000, 0)]
        )

    def chamfer(c: Canvas, d: int) -> Canvas:
        return c.polygon(a, [(0, 0), (0, 3000 - d), (d, 3000), (3000, 3000), (3000, 0)])

    cases = [
        *(
            case(f"box {sign or 'exact'}", v, fixed(lambda c, d: c.box(a, 0, 0, d, 3000), d))
            for sign, d, v in near(t)
        ),
        *(
            case(f"box lying {sign or 'exact'}", v, fixed(lambda c, d: c.box(a, 0, 0, 3000, d), d))
            for sign, d, v in near(t)[:2]
        ),
        *(case(f"step {sign or 'exact'}", v, fixed(step, d)) for sign, d, v in near(t)),
        case("chamfer 141", 1, lambda c: chamfer(c, 141)),
        case("chamfer 142", 0, lambda c: chamfer(c, 142)),
        case(
            "abutting boxes",
            0,
            lambda c: drawn(c.box(a, 0, 0, 120, 3000), c.box(a, 120, 0, 3000, 3000)),
        ),
        *rest(a, t - 1),
    ]
    words = (
        f"No edge of {name} may be shorter than {draw.say(t)}, whatever its direction.",
        f"Every edge of a {name} outline is {draw.say(t)} long or longer.",
        f"Edges of {name} below a length of {draw.say(t)} are violations.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], "len", "1")
    return Item(
        "edge_length", 2, draw.dbu, "edge length", f"{words} {MERGED}", {name: a}, ((words, category),),
        (f'{name}.edges.with_length(nil, {draw.um(t)}).output("{category}")',), tuple(cases),
        swaps={
            "inverted": (".with_length(", ".without_length("),
            "width": (".edges.with_length(nil, ", ".width("),
        },
    )  # fmt: skip


def angle(draw: Draw) -> Item:
    """Write the family `angle`: right angles only, or half right ones as well."""
    name, a = draw.layer(0)
    free = draw.number == 1  # half right angles are allowed

    def tilted(c: Canvas, run: int, rise: int) -> Canvas:
        return c.polygon(a, [(0, 0), (0, 3000), (run, 3000 + rise), (run, 0)])

    diagonal = 0 if free else 1
    cases = [
        case("box", 0, lambda c: c.box(a, 0, 0, 3000, 2000)),
        case("45 degrees", diagonal, lambda c: tilted(c, 400, 400)),
        case("45 degrees +1", 1, lambda c: tilted(c, 400, 401)),
        case("45 degrees -1", 1, lambda c: tilted(c, 400, 399)),
        case("45 degrees in 40 um", diagonal, lambda c: tilted(c, 40000, 40000)),
        case("45 degrees +1 in 40 um", 1, lambda c: tilted(c, 40000, 40001)),
        case("level +1 in 1 um", 1, lambda c: tilted(c, 1000, 1)),
        case("level -1 in 100 um", 1, lambda c: tilted(c, 100000, -1)),
        case("upright +1", 1, lambda c: c.polygon(a, [(0, 0), (1, 3000), (3000, 3000), (3000, 0)])),
        case("octagon", diagonal, lambda c: c.polygon(
            a, [(0, 1000), (0, 2000), (1000, 3000), (2000, 3000), (3000, 2000), (3000, 1000), (2000, 0), (1000, 0)])),
        case("skew cut inside a box", 0, lambda c: drawn(
            c.polygon(a, [(0, 0), (0, 2000), (1300, 2000), (900, 0)]),
            c.polygon(a, [(900, 0), (1300, 2000), (3000, 2000), (3000, 0)]))),
        case("other layer", 0, lambda c: drawn(
            c.box(a, 0, 0, 3000, 2000), c.polygon(FAR, [(0, 5000), (10, 7000), (3000, 7000)]))),
        case("empty", 0, lambda c: c),
    ]  # fmt: skip
    words = (
        f"All edges of {name} are horizontal or vertical.",
        f"Edges of {name} run horizontally, vertically or at 45 degrees, exactly; any other direction is a violation.",
        f"{name} is drawn with right angles only: an edge that is neither horizontal nor vertical violates this.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], "ang", "1")
    more = ".without_angle(diagonal)" if free else ""
    swaps = {
        "inverted": (".without_angle(ortho)", ".with_angle(ortho)"),
    }
    if free:
        swaps["ortho alone"] = (more, "")
        swaps["diagonals alone"] = (
            ".without_angle(ortho).without_angle(diagonal)",
            ".without_angle(diagonal_only)",
        )
    else:
        swaps["diagonal allowed"] = (
            ".without_angle(ortho)",
            ".without_angle(ortho).without_angle(diagonal)",
        )
        swaps["0 degrees alone"] = (".without_angle(ortho)", ".without_angle(0)")
    return Item(
        "angle", 2, draw.dbu, "angles", f"{words} {MERGED}", {name: a}, ((words, category),),
        (f'{name}.edges.without_angle(ortho){more}.output("{category}")',), tuple(cases), swaps=swaps,
    )  # fmt: skip


def grid(draw: Draw) -> Item:
    """Write the family `grid`: every vertex on a grid."""
    (name, a), g = draw.layer(0), draw.rng.choice((5, 10, 20))

    def cell(c: Canvas, inner: int, at: tuple[int, int]) -> Canvas:
        return c.placed("UNIT", lambda i: i.box(a, inner, 0, 1000 + inner, 1000), at)

    cases: list[Case] = [
        case("on", 0, lambda c: c.box(a, 0, 0, 100 * g, 50 * g)),
        case("right edge +1", 1, lambda c: c.box(a, 0, 0, 100 * g + 1, 50 * g)),
        case("right edge -1", 1, lambda c: c.box(a, 0, 0, 100 * g - 1, 50 * g)),
        case("top edge +1", 1, lambda c: c.box(a, 0, 0, 100 * g, 50 * g + 1)),
        case("one vertex of an L", 1, lambda c: c.polygon(
            a, [(0, 0), (0, 3000), (1000, 3000), (1000, 1000 + 1), (3000, 1000 + 1), (3000, 0)])),
        case("instance on", 0, lambda c: cell(c, 0, (7 * g, 3 * g))),
        case("instance off", 1, lambda c: cell(c, 0, (7 * g + 1, 3 * g))),
        case("instance that puts it right", 0, lambda c: cell(c, 1, (7 * g - 1, 3 * g))),
        case("vertex inside abutting parts", 0, lambda c: drawn(
            c.box(a, 0, 0, 1001, 1000), c.box(a, 1001, 0, 2000, 1000))),
        case("negative, on", 0, lambda c: c.box(a, -40 * g, -30 * g, -10 * g, -5 * g)),
        case("negative, off", 1, lambda c: c.box(a, -40 * g, -30 * g, -10 * g, -5 * g - 1)),
        case("other layer", 0, lambda c: drawn(c.box(a, 0, 0, 100 * g, 50 * g), c.box(FAR, 1, 1, 501, 501))),
        case("empty", 0, lambda c: c),
    ]  # fmt: skip
    words = (
        f"All vertices of {name} lie on a grid of {draw.say(g)}.",
        f"Every corner of {name}, after merging, has coordinates that are multiples of {draw.say(g)}.",
        f"A {name} vertex off the {draw.say(g)} grid is a violation; positions count in the whole layout.",
    )[draw.number % 3]
    category = draw.category(name[0] + name[-1], "grid", "1")
    return Item(
        "grid", 1, draw.dbu, "grid", f"{words} {MERGED}", {name: a}, ((words, category),),
        (f'{name}.ongrid({draw.um(g)}).output("{category}")',), tuple(cases),
        swaps={"raw": (f"{name}.ongrid", f"{name}.raw.ongrid"), "double": (draw.um(g), draw.um(2 * g))},
    )  # fmt: skip
