"""Near-duplicates by word 5-grams: the fast search gives what comparing all pairs gives."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.runner.audit_text import (
    clean,
    jaccard,
    numbers,
    shingles,
    similar_groups,
    similar_pairs,
)

WORDS = [f"w{k}" for k in range(40)]
small_sets = st.lists(
    st.frozensets(st.integers(0, 12).map(lambda k: (str(k),)), min_size=1, max_size=9), max_size=14
)


def all_pairs(sets, threshold):
    """Compare everything with everything, by the definition of the index."""
    found = []
    for (i, a), (j, b) in combinations(enumerate(sets), 2):
        similarity = len(a & b) / (len(a) + len(b) - len(a & b))
        if similarity >= threshold:
            found.append((i, j, similarity))
    return found


def all_groups(sets, threshold):
    """Connect everything that is similar, one flood at a time."""
    near = {i: set() for i in range(len(sets))}
    for i, j, _ in all_pairs(sets, threshold):
        near[i].add(j)
        near[j].add(i)
    groups, left = [], set(near)
    while left:
        group, edge = set(), {min(left)}
        while edge:
            group |= edge
            edge = {j for i in edge for j in near[i]} - group
        left -= group
        if len(group) > 1:
            groups.append(sorted(group))
    return sorted(groups)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8, 1.0])
def test_pairs_and_groups_equal_those_of_all_comparisons_on_texts(threshold):
    rng = Random(3)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(3, 40))) for _ in range(60)]
    for source in texts[:40]:  # copies with a few words exchanged
        words = source.split()
        for _ in range(rng.randrange(4)):
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        texts.append(" ".join(words))
    sets = [shingles(text) for text in texts]
    assert similar_pairs(sets, threshold) == all_pairs(sets, threshold)
    assert similar_groups(sets, threshold) == all_groups(sets, threshold)
    assert all_pairs(sets, threshold)


@given(small_sets, st.sampled_from([0.1, 1 / 3, 0.5, 2 / 3, 0.75, 1.0]))
@settings(max_examples=300, deadline=None)
def test_nothing_is_lost_or_made_up(sets, threshold):
    assert similar_pairs(sets, threshold) == all_pairs(sets, threshold)
    assert similar_groups(sets, threshold) == all_groups(sets, threshold)


def test_one_word_of_twenty_changed_by_hand():
    """20 words have 16 runs; a change in the middle breaks 5 of them on either side: 11 of 21."""
    words = [chr(ord("a") + k) for k in range(20)]
    other = [*words[:10], "zz", *words[11:]]
    assert jaccard(shingles(" ".join(words)), shingles(" ".join(other))) == 11 / 21


def test_a_template_is_one_text_once_its_numbers_are_masked():
    a = "Ann buys 12 pens at $1.50 each and 3 rulers. What does she pay?"
    b = "Ann buys 7 pens at $2.25 each and 14 rulers. What does she pay?"
    assert jaccard(shingles(a), shingles(b)) < 0.5
    assert shingles(a, mask=True) == shingles(b, mask=True)
    assert numbers(a) == ("12", "1.50", "3")


def test_white_space_and_accents_are_normalised_and_case_is_not():
    assert clean("e\u0301 \n x") == clean("é x")
    assert clean("Key") != clean("key")
