"""Instructions and records: the text gives the record back; code in both forms."""

from __future__ import annotations

import pytest

from harness.core.errors import UsageError


def first_number(step):
    return int(next(iter(step["records"][0])).rpartition(" ")[2])


def steps(sequences):
    return [step for row in sequences for step in row["steps"]]


def test_every_instruction_gives_its_records_back(maker, sequences):
    for step in steps(sequences):
        assert maker.text.parse(step["instruction"], first_number(step)) == step["records"]


@pytest.mark.parametrize("wording", range(3))
def test_every_wording_gives_every_record_back(maker, sequences, wording):
    for step in steps(sequences):
        told = maker.text.write(step["records"], wording, step["kinds"])
        assert maker.text.parse(told, first_number(step)) == step["records"]


def test_the_three_wordings_differ(maker, sequences):
    for step in steps(sequences):
        assert len({maker.text.write(step["records"], k, step["kinds"]) for k in range(3)}) == 3


def test_every_wording_is_in_the_set(maker, sequences):
    used = [
        next(k for k in range(3) if maker.text.write(s["records"], k, s["kinds"]) == s["instruction"])
        for s in steps(sequences)
    ]  # fmt: skip
    assert min(used.count(k) for k in range(3)) > len(used) / 5


def test_another_number_is_another_record(maker):
    body = maker.text.parse(
        "Fillet the straight edge with midpoint (1, 2, 3) with a radius of 2 mm.", 4
    )
    assert body == [{"Fillet 4": {"edge": [[1.0, 2.0, 3.0]], "radius": 2.0}}]
    other = maker.text.parse(
        "Fillet the straight edge with midpoint (1, 2, 3) with a radius of 3 mm.", 4
    )
    assert other != body


def test_arcs_intersections_and_small_numbers_survive(maker):
    r = maker.records
    loop = r.path((0, 0), ((4, 0),), ((5, 1), (4, 2.25)), ((0.0001, 2.25),))
    plane = ((0.5, -1e-5, 3.0), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0))
    record = r.numbered(r.extrude(plane, [loop], r.INTERSECT, (5.5, -2.0), r.TWO_SIDED), 3)
    for wording in range(3):
        assert maker.text.parse(maker.text.write([record], wording), 3) == [record]


def test_what_is_no_instruction_is_refused(maker):
    with pytest.raises(UsageError, match="no instruction of ours"):
        maker.text.parse("Make it nicer.")


def test_cop_code_less_its_comments_is_the_plain_code(maker, sequences):
    for row in sequences:
        parts = [step["script_part"] for step in row["steps"]]
        told = [step["instruction"] for step in row["steps"]]
        for k in range(len(parts) + 1):
            commented = maker.code.pre_code_cop(parts, told, k).splitlines(keepends=True)
            plain = "".join(line for line in commented if not line.startswith("## step"))
            assert plain == maker.code.pre_code(parts, k)
            assert len(commented) - len(plain.splitlines()) == k
        assert row["script"] == maker.code.pre_code(parts, len(parts))
        assert maker.code.pre_code(parts, 0) == ""
