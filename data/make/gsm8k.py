"""Make data/gsm8k/own.jsonl: 60 word problems of several steps, 4 from each of 15 families.

    python data/make/gsm8k.py            write the file
    python data/make/gsm8k.py --check    exit 1 if the file is not what this script makes

Only the standard library is used and the seed is fixed, so the bytes are the same everywhere. The
results are computed a second time, from the text alone, in tests/tasks/test_gsm8k.py.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

SEED = 20261130
OUT = Path(__file__).resolve().parents[1] / "gsm8k" / "own.jsonl"
MOST_OFTEN = 2  # a result that occurs more often would be worth guessing


class Problem(NamedTuple):
    question: str
    steps: list[str]
    result: int


def discount(rng: Random, i: int) -> Problem:
    name, first, second, shop = [
        ("Mira", "backpacks", "pencil cases", "school shop"),
        ("Tomas", "rose bushes", "bags of soil", "garden centre"),
        ("Aisha", "scarves", "pairs of gloves", "clothes shop"),
        ("Pavel", "board games", "card games", "toy shop"),
    ][i]
    n, m, p, q = rng.randint(3, 9), rng.randint(2, 8), rng.randint(6, 24), rng.randint(3, 15)
    off = rng.choice([10, 15, 20, 25, 30, 40])
    bill = n * p + m * q
    if bill * off % 100:
        return discount(rng, i)
    return Problem(
        f"At a {shop}, {name} buys {n} {first} at ${p} each and {m} {second} at ${q} each. The shop "
        f"takes {off}% off the whole bill. How many dollars does {name} pay?",
        [
            f"The {first} cost {n} x {p} = {n * p} dollars.",
            f"The {second} cost {m} x {q} = {m * q} dollars.",
            f"Together that is {n * p} + {m * q} = {bill} dollars.",
            f"The discount is {off}% of {bill}, which is {bill * off // 100} dollars.",
            f"{name} pays {bill} - {bill * off // 100} = {bill - bill * off // 100} dollars.",
        ],
        bill - bill * off // 100,
    )


def two_machines(rng: Random, i: int) -> Problem:
    place, thing, old, new = [
        ("bottling plant", "bottles", "old line", "new line"),
        ("print shop", "posters", "small press", "large press"),
        ("bakery", "rolls", "first oven", "second oven"),
        ("brick works", "bricks", "manual press", "automatic press"),
    ][i]
    slow, more = rng.randrange(40, 160, 5), rng.randrange(15, 90, 5)
    hours, late = rng.randint(5, 9), rng.randint(2, 3)
    fast, fast_hours = slow + more, hours - late
    total = slow * hours + fast * fast_hours
    return Problem(
        f"In a {place}, the {old} makes {slow} {thing} an hour and the {new} makes {more} {thing} an "
        f"hour more than that. Today the {old} ran for {hours} hours, and the {new} was switched on "
        f"{late} hours later and stopped at the same time. How many {thing} were made today?",
        [
            f"The {new} makes {slow} + {more} = {fast} {thing} an hour.",
            f"It ran for {hours} - {late} = {fast_hours} hours.",
            f"The {old} made {slow} x {hours} = {slow * hours} {thing}.",
            f"The {new} made {fast} x {fast_hours} = {fast * fast_hours} {thing}.",
            f"Together that is {slow * hours} + {fast * fast_hours} = {total} {thing}.",
        ],
        total,
    )


def ages(rng: Random, i: int) -> Problem:
    older, younger, their = [
        ("Ingrid", "her nephew Leo", "his"),
        ("Samuel", "his daughter Ruth", "her"),
        ("Beatriz", "her cousin Ivan", "his"),
        ("Hiro", "his sister Emi", "her"),
    ][i]
    times, young, years = rng.randint(2, 5), rng.randint(5, 14), rng.randint(3, 12)
    old = times * young
    total = old + young + 2 * years
    return Problem(
        f"{older} is {times} times as old as {younger}. In {years} years, the sum of {their} age and "
        f"{older}'s age will be {total}. How old is {older} now?",
        [
            (
                f"Each of the two will be {years} years older, so their ages add up to "
                f"{total} - 2 x {years} = {old + young} now."
            ),
            f"{older}'s age is {times} parts and the other age is 1 part, {times + 1} parts in all.",
            f"One part is {old + young} / {times + 1} = {young} years.",
            f"{older} is {times} x {young} = {old} years old.",
        ],
        old,
    )


def coins(rng: Random, i: int) -> Problem:
    name, box, big, small, b, s = [
        ("Nadia", "jar", "quarters", "dimes", 25, 10),
        ("Oskar", "tin", "dimes", "nickels", 10, 5),
        ("Farid", "purse", "quarters", "nickels", 25, 5),
        ("Lucia", "drawer", "half dollars", "dimes", 50, 10),
    ][i]
    many, few = rng.randint(11, 48), rng.randint(9, 40)
    n, cents = many + few, many * b + few * s
    all_small = n * s
    return Problem(
        f"{name} has a {box} with {n} coins in it, all of them {big} ({b} cents each) and {small} "
        f"({s} cents each). The coins are worth {cents} cents. How many {big} are in the {box}?",
        [
            f"If all {n} coins were {small}, they would be worth {n} x {s} = {all_small} cents.",
            f"There are {cents} - {all_small} = {cents - all_small} cents more than that.",
            f"Each of the {big} adds {b} - {s} = {b - s} cents.",
            f"So there are {cents - all_small} / {b - s} = {many} {big}.",
        ],
        many,
    )


def there_and_back(rng: Random, i: int) -> Problem:
    who, start, goal, moves = [
        ("A ferry", "the harbour", "the island", "sails"),
        ("A cyclist", "the village", "the lake", "rides"),
        ("A delivery van", "the depot", "the market", "drives"),
        ("A cargo train", "the mine", "the port", "travels"),
    ][i]
    out, back = rng.choice([12, 15, 20, 24, 30, 36, 40]), rng.choice([10, 16, 18, 24, 25, 30, 48])
    km, rest = rng.randrange(12, 61, 6), rng.randrange(10, 50, 5)
    if out == back or km * 60 % out or km * 60 % back:
        return there_and_back(rng, i)
    a, b = km * 60 // out, km * 60 // back
    return Problem(
        f"{who} {moves} {km} km from {start} to {goal} at {out} km per hour, stops there for {rest} "
        f"minutes, and comes back the same way at {back} km per hour. How many minutes pass between "
        f"leaving {start} and coming back to it?",
        [
            f"The way out takes {km} / {out} hours, which is {km} x 60 / {out} = {a} minutes.",
            f"The way back takes {km} / {back} hours, which is {km} x 60 / {back} = {b} minutes.",
            f"With the stop that is {a} + {rest} + {b} = {a + rest + b} minutes.",
        ],
        a + rest + b,
    )


def left_over(rng: Random, i: int) -> Problem:
    who, pack, thing, takers, gift = [
        ("A teacher", "boxes", "pencils", "pupils", "keeps the rest"),
        ("A coach", "bags", "tennis balls", "teams", "locks the rest away"),
        ("A librarian", "packs", "bookmarks", "reading groups", "puts the rest in a drawer"),
        ("A farmer", "crates", "apples", "families", "feeds the rest to the pigs"),
    ][i]
    packs, each, broken = rng.randint(6, 14), rng.randint(12, 36), rng.randint(3, 11)
    groups = rng.randint(13, 29)
    good, the_giver = packs * each - broken, who.replace("A ", "the ")
    share, rest = divmod(good, groups)
    if rest < 2 or share < 2:
        return left_over(rng, i)
    return Problem(
        f"{who} opens {packs} {pack} with {each} {thing} in each and throws away {broken} {thing} that "
        f"are damaged. The others are shared out among {groups} {takers}, so that all get the same "
        f"number and as many as possible, and {the_giver} {gift}. How many {thing} are in the rest?",
        [
            f"There are {packs} x {each} = {packs * each} {thing} at first.",
            f"Of these {packs * each} - {broken} = {good} are good.",
            f"Each share has {share} {thing}: {groups} x {share} = {share * groups}, and too few remain.",
            f"The rest is {good} - {share * groups} = {rest} {thing}.",
        ],
        rest,
    )


def fence(rng: Random, i: int) -> Problem:
    owner, place, stuff = [
        ("Clara", "sheep meadow", "wire fence"),
        ("Viktor", "vegetable garden", "wooden fence"),
        ("Amara", "playground", "steel fence"),
        ("Jonas", "chicken run", "mesh fence"),
    ][i]
    long, short = rng.randint(18, 45), rng.randint(8, 17)
    gate, metre, gate_price = rng.randint(2, 4), rng.randint(4, 12), rng.randrange(35, 120, 5)
    around = 2 * (long + short)
    total = (around - gate) * metre + gate_price
    return Problem(
        f"{owner} encloses a rectangular {place} that is {long} metres long and {short} metres wide. A "
        f"gate {gate} metres wide stands in one side and costs ${gate_price}; the rest of the boundary "
        f"gets a {stuff} at ${metre} per metre. How many dollars does {owner} spend in all?",
        [
            f"The boundary is 2 x ({long} + {short}) = {around} metres long.",
            f"Without the gate, {around} - {gate} = {around - gate} metres need a fence.",
            f"The fence costs {around - gate} x {metre} = {(around - gate) * metre} dollars.",
            f"With the gate that is {(around - gate) * metre} + {gate_price} = {total} dollars.",
        ],
        total,
    )


def percent_of_rest(rng: Random, i: int) -> Problem:
    group, who, first, second, third = [
        ("school", "pupils", "come by bus", "walk", "come by bicycle"),
        ("company", "workers", "work in the factory", "work in the office", "drive the trucks"),
        ("choir", "singers", "are sopranos", "are altos", "sing the lower parts"),
        ("town library", "readers", "read novels", "read newspapers", "read science books"),
    ][i]
    n, p, q = rng.randrange(120, 901, 20), rng.randrange(20, 61, 5), rng.randrange(20, 76, 5)
    if n * p % 100 or (n - n * p // 100) * q % 100:
        return percent_of_rest(rng, i)
    a = n * p // 100
    rest = n - a
    b = rest * q // 100
    return Problem(
        f"A {group} has {n} {who}. Of all {who}, {p}% {first}. Of the remaining ones, {q}% {second}, and "
        f"all others {third}. How many {who} {third}?",
        [
            f"{p}% of {n} is {a}, so {n} - {a} = {rest} {who} remain.",
            f"{q}% of {rest} is {b}.",
            f"That leaves {rest} - {b} = {rest - b} {who} who {third}.",
        ],
        rest - b,
    )


def average(rng: Random, i: int) -> Problem:
    name, one, unit = [
        ("Yusuf", "dive", "points"),
        ("Greta", "spelling test", "points"),
        ("Dmitri", "bowling game", "points"),
        ("Salma", "archery round", "points"),
    ][i]
    done, mean, more = rng.randint(4, 8), rng.randint(21, 68), rng.randint(1, 4)
    target = mean + more
    need = target * (done + 1) - mean * done
    return Problem(
        f"After {done} {one}s, {name} has an average of {mean} {unit}. How many {unit} must the next {one} "
        f"bring to raise the average of all {done + 1} {one}s to {target} {unit}?",
        [
            f"So far {name} has {done} x {mean} = {done * mean} {unit} in total.",
            f"For the new average the total must be {done + 1} x {target} = {(done + 1) * target}.",
            f"The difference is {(done + 1) * target} - {done * mean} = {need} {unit}.",
        ],
        need,
    )


def timetable(rng: Random, i: int) -> Problem:
    event, part, pause = [
        ("music competition", "performances", "breaks"),
        ("dance course", "lessons", "pauses"),
        ("science fair", "talks", "breaks"),
        ("swimming course", "sessions", "rests"),
    ][i]
    hour, minute = rng.randint(8, 10), rng.choice([5, 10, 15, 20, 35, 40, 50])
    parts, each, gap = rng.randint(4, 7), rng.randrange(20, 50, 5), rng.randint(4, 12)
    minutes = parts * each + (parts - 1) * gap
    start = hour * 60 + minute
    after = start + minutes - 12 * 60
    if not 5 <= after <= 240:
        return timetable(rng, i)
    return Problem(
        f"A {event} starts at {hour}:{minute:02d} in the morning. It has {parts} {part} of {each} minutes "
        f"each, with {pause} of {gap} minutes between one and the next. How many minutes after 12 noon "
        f"does the last of the {part} end?",
        [
            f"The {part} take {parts} x {each} = {parts * each} minutes.",
            f"There are {parts - 1} {pause}, which take {parts - 1} x {gap} = {(parts - 1) * gap} minutes.",
            f"The whole lasts {parts * each} + {(parts - 1) * gap} = {minutes} minutes.",
            f"From the start until noon there are {720 - start} minutes.",
            f"So the end comes {minutes} - {720 - start} = {after} minutes after noon.",
        ],
        after,
    )


def recipe(rng: Random, i: int) -> Problem:
    name, dish, stuff, bag = [
        ("Elif", "pancakes", "flour", "bags"),
        ("Marco", "risotto", "rice", "packets"),
        ("Hanna", "lentil soup", "lentils", "cans"),
        ("Kofi", "fruit salad", "berries", "trays"),
    ][i]
    people, grams, size = (
        rng.randint(3, 6),
        rng.randrange(150, 480, 30),
        rng.choice([250, 400, 500]),
    )
    guests, price = rng.randint(17, 60), rng.randint(2, 6)
    if grams % people or guests % people == 0 or grams // people * guests % size == 0:
        return recipe(rng, i)
    one = grams // people
    need = one * guests
    bags = -(-need // size)
    return Problem(
        f"A recipe of {dish} for {people} people needs {grams} grams of {stuff}. {name} cooks it for "
        f"{guests} people and has no {stuff} at home. The shop sells {stuff} only in {bag} of {size} grams "
        f"at ${price} each. How many dollars must {name} spend at least on {stuff}?",
        [
            f"One person needs {grams} / {people} = {one} grams.",
            f"{guests} people need {guests} x {one} = {need} grams.",
            f"{bags - 1} {bag} would hold only {(bags - 1) * size} grams, so {name} needs {bags}.",
            f"They cost {bags} x {price} = {bags * price} dollars.",
        ],
        bags * price,
    )


def savings(rng: Random, i: int) -> Problem:
    name, thing, she = [
        ("Zoe", "a guitar", "she"),
        ("Emil", "a telescope", "he"),
        ("Priya", "a bicycle", "she"),
        ("Mateo", "a camera", "he"),
    ][i]
    has, first, more = rng.randint(12, 60), rng.randint(4, 12), rng.randint(2, 5)
    weeks = rng.randint(7, 26)
    saved = has + weeks * first + more * weeks * (weeks - 1) // 2
    last = first + more * (weeks - 1)
    price = saved - rng.randrange(last)
    return Problem(
        f"{name} has ${has} and wants to buy {thing} for ${price}. In the first week {she} saves ${first}, "
        f"and in every later week ${more} more than in the week before. After how many weeks does {name} "
        f"have enough money for the first time?",
        [
            f"{name} needs {price} - {has} = {price - has} dollars more.",
            f"In week {weeks} {she} saves {first} + {weeks - 1} x {more} = {last} dollars.",
            (
                f"The savings of {weeks} weeks are {weeks} x ({first} + {last}) / 2 = {saved - has} dollars, "
                f"which is enough."
            ),
            (
                f"One week before they were {saved - has} - {last} = {saved - has - last} dollars, which is "
                f"not enough."
            ),
        ],
        weeks,
    )


def backwards(rng: Random, i: int) -> Problem:
    name, place, first, second = [
        ("Rosa", "fair", "rides", "lunch"),
        ("Anton", "book market", "novels", "a map"),
        ("Leila", "craft fair", "yarn", "buttons"),
        ("Bruno", "flea market", "old records", "a lamp"),
    ][i]
    left, spent, part = rng.randint(14, 60), rng.randint(6, 30), rng.randint(3, 5)
    if left % (part - 1):
        return backwards(rng, i)
    before_gift = left // (part - 1) * part
    half = before_gift + spent
    return Problem(
        f"{name} goes to a {place} and spends half of the money on {first}, then ${spent} on {second}. Of "
        f"what remains, {name} gives 1/{part} to a friend. Now {name} has ${left}. How many dollars did "
        f"{name} bring to the {place}?",
        [
            f"After the gift {part - 1} of {part} equal parts remained, which are {left} dollars.",
            (
                f"One part is {left} / {part - 1} = {left // (part - 1)} dollars, so there were "
                f"{part} x {left // (part - 1)} = {before_gift} dollars before the gift."
            ),
            f"Before paying for {second} there were {before_gift} + {spent} = {half} dollars.",
            f"That was half of the money, so {name} brought 2 x {half} = {2 * half} dollars.",
        ],
        2 * half,
    )


def tank(rng: Random, i: int) -> Problem:
    vessel, source, drain = [
        ("cistern", "hose", "crack"),
        ("paddling pool", "pump", "loose valve"),
        ("fish pond", "inlet", "drain"),
        ("farm tank", "main pipe", "broken seal"),
    ][i]
    in_, out = rng.randint(16, 45), rng.randint(3, 11)
    start, minutes = rng.randrange(50, 400, 10), rng.randint(21, 130)
    full = start + (in_ - out) * minutes
    return Problem(
        f"A {vessel} holds {full} litres when it is full. It contains {start} litres when the {source} is "
        f"opened, which brings {in_} litres a minute, while {out} litres a minute are lost through the "
        f"{drain}. After how many minutes is the {vessel} full?",
        [
            f"There is room for {full} - {start} = {full - start} litres.",
            f"Each minute the content grows by {in_} - {out} = {in_ - out} litres.",
            f"It takes {full - start} / {in_ - out} = {minutes} minutes.",
        ],
        minutes,
    )


def collections(rng: Random, i: int) -> Problem:
    a, b, c, thing = [
        ("Nora", "Felix", "Uma", "stamps"),
        ("Arjun", "Celia", "Moritz", "marbles"),
        ("Selma", "Igor", "Dana", "postcards"),
        ("Theo", "Wanda", "Jamal", "stickers"),
    ][i]
    base, times, fewer, given = (
        rng.randint(18, 60), rng.randint(2, 4), rng.randint(5, 17), rng.randint(4, 14)
    )  # fmt: skip
    first, third = base * times, base * times - fewer
    total = base + first + third - given
    return Problem(
        f"{b} has {base} {thing}. {a} has {times} times as many, and {c} has {fewer} fewer than {a}. Then "
        f"{c} loses {given} {thing}. How many {thing} do the three have together now?",
        [
            f"{a} has {times} x {base} = {first} {thing}.",
            (
                f"{c} has {first} - {fewer} = {third} {thing}, and after the loss {third} - {given} = "
                f"{third - given}."
            ),
            f"Together they have {base} + {first} + {third - given} = {total} {thing}.",
        ],
        total,
    )


FAMILIES: tuple[Callable[[Random, int], Problem], ...] = (
    discount, two_machines, ages, coins, there_and_back, left_over, fence, percent_of_rest,
    average, timetable, recipe, savings, backwards, tank, collections,
)  # fmt: skip


def make() -> str:
    """Give the file's text: one problem a line, families in turn."""
    rng = Random(SEED)
    results: Counter[int] = Counter()
    lines: list[str] = []
    for i in range(4):
        for family in FAMILIES:
            problem = family(rng, i)
            while results[problem.result] >= MOST_OFTEN:
                problem = family(rng, i)
            results[problem.result] += 1
            row = {
                "item_id": f"own-gsm8k-{len(lines) + 1:03d}",
                # Problems of one family share a text and differ in numbers: one cluster.
                "cluster_id": family.__name__,
                "question": problem.question,
                "answer": "\n".join([*problem.steps, f"#### {problem.result}"]),
            }
            lines.append(json.dumps(row, ensure_ascii=False))
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    text = make()
    if argv == ["--check"]:
        if OUT.is_file() and OUT.read_bytes() == text.encode():
            return 0
        print(f"{OUT} is not what {Path(__file__).name} makes: run it without --check")
        return 1
    if argv:
        print(__doc__)
        return 2
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_bytes(text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
