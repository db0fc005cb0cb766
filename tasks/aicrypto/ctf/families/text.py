"""Plain English-like texts of random sentences, for the classic ciphers: words of our own."""

from __future__ import annotations

from tasks.aicrypto.ctf.draw import Draw


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_DETERMINERS = _split("the every one this that our their her his my")
_ADJECTIVES = _split("""
    old new small great quiet heavy frozen lazy silver golden broken empty hidden distant gentle
    narrow wooden bitter bright clever crooked curious dark dry dusty early fierce foreign green
    hollow honest hungry large little lonely lucky modest northern polite proud purple quick rough
    rusty sacred salty secret sharp silent simple slow southern strange sudden tired unknown useful
    warm wet wild young brave cheap equal final grey humble jolly loyal nervous odd
""")
_NOUNS = _split("""
    anchor answer apple archive baker barrel basket beacon bell boat bottle box bridge brother
    candle captain carpet castle cellar chapel child clerk clock cloud coast coin copper corner
    cottage courier customs daughter desert doctor dragon drawer engine envoy farmer feather ferry
    field fisher flag flower forest fountain garden gate giant glove grain guard hammer harbour
    hill horse hotel hunter island jar jewel judge juniper kettle king kitchen knife ladder lake
    lamp lantern letter library lighthouse lizard lock map market merchant meadow mill mirror
    monk morning mountain needle night ocean orchard oven owl painter paper parcel pepper pilot
    pocket prison queen quarry rabbit rain river road rope sailor school shadow shepherd sister
    soldier spoon stable station stone storm street student table tailor teacher temple thief
    tower traveller treaty tunnel uncle valley village vineyard violin voyage wagon window winter
    wizard zebra acrobat blanket cabin ribbon saddle tunic zither
""")
_VERBS = _split("""
    found lost carried followed watched painted sold bought hid opened closed guarded repaired
    remembered forgot visited described measured counted praised feared ignored kept left moved
    noticed ordered passed pulled pushed reached saved sent showed stole took touched traded
    turned wanted warned washed weighed wrapped hired
""")
_PLACES = _split("under over behind near beside before after inside beyond from with without")
_ADVERBS = _split("again slowly today twice always never soon quietly together exactly")
_JOINTS = _split("and but while because until so")

WORDS = tuple(
    sorted({*_DETERMINERS, *_ADJECTIVES, *_NOUNS, *_VERBS, *_PLACES, *_ADVERBS, *_JOINTS})
)
"""All words that the texts use."""


def _thing(draw: Draw) -> list[str]:
    # "the" leads in real texts, and a solver that knows English may count on it.
    first = "the" if draw.below(2) else draw.choice(_DETERMINERS)
    middle = [draw.choice(_ADJECTIVES)] if draw.below(2) else []
    return [first, *middle, draw.choice(_NOUNS)]


def sentence(draw: Draw) -> list[str]:
    """Give the words of a random sentence."""
    words = [*_thing(draw), draw.choice(_VERBS), *_thing(draw)]
    if draw.below(2):
        words += [draw.choice(_PLACES), *_thing(draw)]
    if draw.below(4) == 0:
        words.append(draw.choice(_ADVERBS))
    if draw.below(3) == 0:
        words.append(draw.choice(_JOINTS))
    return words


def letters(draw: Draw, n: int) -> str:
    """Give `n` letters of running text, a to z without spaces; the last word may be cut.

    Examples
    --------
    >>> len(letters(Draw("example"), 60))
    60
    """
    text = ""
    while len(text) < n:
        text += "".join(sentence(draw))
    return text[:n]


def word_list() -> bytes:
    """Give the words as a file, one a line."""
    return "".join(f"{word}\n" for word in WORDS).encode()
