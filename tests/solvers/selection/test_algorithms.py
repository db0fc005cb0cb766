"""The exact steps of each way of choosing, on planted behaviours; expected values worked out by hand."""

import pytest

from harness.core.errors import UsageError
from harness.solvers.selection.codemonkey import read_reply
from harness.solvers.selection.desk import expected_in, number_in
from harness.solvers.selection.generated_tests import Base
from harness.solvers.selection.s_star import shares
from harness.solvers.selection.split_tester import Extra, next_cluster, representatives

PROSE = "I would take the second one, since it handles corners."


def judge_right(kit, bench, otherwise="0"):
    """A judge that knows: the first program shown that is right on every input."""

    def model(text):
        places = [p for p, k in enumerate(kit.shown_in(text)) if bench.behaviours[k] == bench.truth]
        return str(places[0]) if places else otherwise

    return model


# llm_judge


@pytest.mark.parametrize(("n", "calls"), [(10, 4), (15, 5), (20, 7), (1, 0), (5, 2)])
def test_knock_out_takes_the_published_number_of_calls(kit, n, calls):
    bench = kit.FakeBench([[0]] * n, [1])
    bench.behaviours[n - 1] = [1]
    found = kit.choose("llm_judge", bench, judge_right(kit, bench))
    assert found.facts["calls"] == calls == len(found.asked)
    assert found.choice.index == n - 1
    assert found.choice.scores[n - 1] == (1.0 if n > 1 else 0.0)
    assert found.facts["engine_runs"] == 0  # nothing is run


def test_knock_out_scores_are_rounds_survived(kit):
    bench = kit.FakeBench([[0]] * 5, [1])
    bench.behaviours[2] = [1]
    found = kit.choose("llm_judge", bench, judge_right(kit, bench))
    # Round 1: 0-3 play, 4 has a bye. Round 2: 2 against 4.
    assert found.choice.scores == (0.0, 0.0, 1.0, 0.0, 0.5)


@pytest.mark.parametrize("tie", ["-1", "4"])
def test_a_tie_sends_on_the_lowest_index_and_is_no_fault(kit, tie):
    found = kit.choose("llm_judge", kit.FakeBench([[0]] * 4, [1]), kit.scripted(tie))
    assert (found.choice.index, found.facts["selector_unreadable"]) == (0, 0)


def test_prose_in_a_knock_out_falls_back_and_is_counted(kit):
    found = kit.choose("llm_judge", kit.FakeBench([[0]] * 10, [1]), lambda _: PROSE)
    assert (found.choice.index, found.facts["selector_unreadable"]) == (0, 4)


def test_an_empty_candidate_does_not_play(kit):
    bench = kit.FakeBench([[0]] * 3, [1], programs=["", "program 1", "program 2"])
    found = kit.choose("llm_judge", bench, lambda _: PROSE)
    assert found.choice.scores == (-1.0, 1.0, 0.0)


def test_candidates_are_shown_in_a_stored_order_drawn_from_the_item(kit):
    bench = kit.FakeBench([[0]] * 4, [1])
    runs = [kit.choose("llm_judge", bench, kit.scripted("2"), key=f"item {k}") for k in range(12)]
    for found in runs:
        (order,) = found.facts["orders"]
        assert kit.shown_in(found.asked[0]) == order
        assert found.choice.index == order[2]
    again = kit.choose("llm_judge", bench, kit.scripted("2"), key="item 0")
    assert again.facts["orders"] == runs[0].facts["orders"]
    assert len({tuple(found.facts["orders"][0]) for found in runs}) > 3


# generated_tests


def test_generated_tests_score_the_share_of_layouts(kit):
    behaviours = [[0, 1, 1, 1], [0, 1, 0, 0], [0, None, 0, 1], [0, 1, 0, "?"], [1, 0, 1, 0]]
    bench = kit.FakeBench(
        behaviours, [0, 1, 0, 1], programs=[*(f"program {k}" for k in range(4)), ""]
    )
    found = kit.choose("generated_tests", bench, kit.scripted("```python\nsuite 0 1 2 3\n```"))
    # An error and an unknown category are -1, and so is a candidate without a program.
    assert found.choice.scores == (0.75, 0.75, -1.0, -1.0, -1.0)
    assert found.choice.index == 0  # the lower index of a tie
    assert found.facts["pattern"][2] == [0, None, 0, 1]
    assert found.facts["expected_pattern"] == [0, 1, 0, 1]
    assert (found.facts["calls"], found.facts["engine_runs"]) == (1, 16)


def test_a_failed_suite_is_written_again_with_what_came_of_it(kit):
    bench = kit.FakeBench([[0], [1]], [1])
    found = kit.choose("generated_tests", bench, kit.scripted("first try", "suite 0"))
    assert "first try" in found.asked[1]
    assert "FAULT 1" in found.asked[1]
    assert (found.choice.index, found.facts["calls"], found.facts["failed_scripts"]) == (1, 2, 1)


def test_without_a_suite_all_score_zero_after_six_tries(kit):
    found = kit.choose("generated_tests", kit.FakeBench([[0], [1]], [1]), lambda _: "no script")
    assert (found.choice.scores, found.facts["calls"], found.facts["tests"]) == ((0.0, 0.0), 6, 0)


# split_tester


def test_a_layout_that_splits_nothing_ends_the_splitting(kit):
    bench = kit.FakeBench([[1, 1, 0]] * 3 + [[1, 1, 1]], [1, 1, 1])
    model = kit.scripted("suite 0", "# EXPECTED: VIOLATION\nlayout 1", "0")
    found = kit.choose("split_tester", bench, model)
    assert found.facts["extra_tests"] == 1
    assert [step["broken"] for step in found.facts["steps"]] == [False]
    assert found.facts["calls"] == 3  # suite, one layout, judge


def test_splitting_goes_on_while_it_splits(kit):
    behaviours = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]]
    bench = kit.FakeBench(behaviours, [1, 1, 1, 1])
    layouts = ["# EXPECTED: VIOLATION\nlayout 1", "# EXPECTED: VIOLATION\nlayout 2",
               "# EXPECTED: VIOLATION\nlayout 3"]  # fmt: skip
    found = kit.choose("split_tester", bench, kit.scripted("suite 0", *layouts, "0"))
    # {0,1,2,3}, then {0,1,2} without 3, then {0,1}, which layout 3 does not split.
    assert [step["cluster"] for step in found.facts["steps"]] == [[0, 1, 2, 3], [0, 1, 2], [0, 1]]
    assert [step["broken"] for step in found.facts["steps"]] == [True, True, False]
    assert found.facts["extra_pattern"]["3"] == [0, 0, 0]
    assert found.facts["finalists"] == [2, 0, 1]


def test_a_failed_attempt_uses_up_no_layout_and_ends_it(kit):
    bench = kit.FakeBench([[1, 0], [1, 1]], [1, 1])
    found = kit.choose("split_tester", bench, kit.scripted("suite 0", *["layout 1"] * 6, "0"))
    # A script without its first line is a failed try: six of them, and the judge.
    assert found.facts["calls"] == 1 + 6 + 1
    assert (found.facts["extra_tests"], found.facts["steps"][0]["made"]) == (0, False)
    assert "# EXPECTED" in found.asked[2]


def test_prose_of_the_judge_falls_back_to_the_first_finalist_and_is_counted(kit):
    bench = kit.FakeBench([[0, 1], [1, 0], [1, 1]], [1, 1])
    found = kit.choose("split_tester", bench, kit.scripted("suite 0 1", PROSE))
    assert found.facts["finalists"] == [2, 0, 1]
    assert (found.choice.index, found.facts["selector_unreadable"]) == (2, 1)
    assert found.choice.scores == (0.0, 0.0, 1.0)


def test_the_judge_sees_each_layout_on_which_finalists_differ(kit):
    bench = kit.FakeBench([[0, 1, 1], [1, 1, 1]], [1, 1, 1])
    found = kit.choose("split_tester", bench, kit.scripted("suite 0 1 2", "0"))
    (told,) = found.facts["evidence"]
    assert "<input 0>" in told
    order = found.facts["orders"][-1]
    words = {0: "PASS", 1: "VIOLATION"}
    for place, k in enumerate(order):
        assert f"Program {place}: {words[k]}" in told


def test_the_judge_is_told_when_nothing_tells_the_finalists_apart(kit):
    bench = kit.FakeBench([[1, 1], [1, 1]], [1, 1])
    model = kit.scripted("suite 0", "# EXPECTED: VIOLATION\nlayout 1", "0")
    found = kit.choose("split_tester", bench, model)
    assert found.facts["evidence"] == []
    assert "They said the same on every test input" in found.asked[-1]


def test_an_error_on_an_extra_layout_matches_nothing_and_splits(kit):
    bench = kit.FakeBench([[1, None], [1, 0]], [1, 1])
    model = kit.scripted("suite 0", "# EXPECTED: PASS\nlayout 1", "0")
    found = kit.choose("split_tester", bench, model)
    assert found.facts["steps"][0]["broken"]
    assert found.facts["extra_pattern"] == {"0": [None], "1": [0]}
    assert found.facts["finalists"] == [1, 0]


@pytest.mark.parametrize(
    ("behaviours", "index", "scores"),
    [
        ([[None], [1]], 1, (-1.0, 1.0)),  # one valid: it is taken, wrong or not
        ([[None], ["?"]], 0, (1.0, -1.0)),  # none: the lowest index
    ],
)
def test_fewer_than_two_valid_candidates_need_no_judge(kit, behaviours, index, scores):
    found = kit.choose("split_tester", kit.FakeBench(behaviours, [0]), kit.scripted("suite 0"))
    assert (found.choice.index, found.choice.scores, found.facts["calls"]) == (index, scores, 1)


def _base(patterns, expected):
    return Base(
        (), {k: [] for k in range(len(patterns))}, [0.0] * len(patterns), patterns, expected
    )


@pytest.mark.parametrize(
    ("patterns", "cluster"),
    [
        # 2 members with 3 of 3 bits (6) against 3 members with 1 of 3 (3).
        ([[1, 1, 1]] * 2 + [[1, 0, 0]] * 3, [0, 1]),
        # 2 x 3 bits against 3 x 2 bits: equal, so the larger.
        ([[1, 1, 1]] * 2 + [[1, 1, 0]] * 3, [2, 3, 4]),
        # Equal in both: the one with the smallest index.
        ([[0, 1, 1], [1, 1, 0], [0, 1, 1], [1, 1, 0]], [0, 2]),
        ([[0, 0, 0], [0, 0, 1]], None),
    ],
)
def test_the_next_cluster_has_the_largest_score_times_size(patterns, cluster):
    valid = list(range(len(patterns)))
    assert next_cluster(_base(patterns, [1, 1, 1]), Extra(valid), valid) == cluster


def test_representatives_are_three_in_order_and_drawn_by_step():
    cluster = [1, 3, 4, 6, 7, 9]
    drawn = [representatives(cluster, step, 0) for step in range(20)]
    assert all(len(three) == 3 and three == sorted(three) for three in drawn)
    assert all(set(three) <= set(cluster) for three in drawn)
    assert drawn == [representatives(cluster, step, 0) for step in range(20)]
    assert {k for three in drawn for k in three} == set(cluster)
    assert representatives([5, 2], 0, 0) == [2, 5]


# s_star


def test_shares_of_further_layouts():
    assert shares(3) == [3, 3, 2]
    assert all(sum(shares(d)) == 8 and max(shares(d)) - min(shares(d)) <= 1 for d in range(1, 20))


def test_duels_share_eight_layouts_and_give_the_whole_side_a_vote(kit):
    behaviours = [[1, 1, 1, 1], [1, 1, 0, 1], [0, 0, 0, 1], [None, 1, 1, 1]]
    bench = kit.FakeBench(behaviours, [1, 1, 1, 1])
    right = judge_right(kit, bench)

    def model(text):
        if "make 8" in text:
            return "suite 0 1 2"
        return "layout 3" if "make 1" in text else right(text)

    found = kit.choose("s_star", bench, model)
    assert found.facts["shares"] == [3, 3, 2]
    assert found.facts["calls"] == 1 + 8 + 3
    # Layout 3 separates nobody, so it is not kept.
    assert [duel["further"] for duel in found.facts["duels"]] == [0, 0, 0]
    # Side 1 of layouts 0 and 1 is {0, 1}, of layout 2 {0}.
    assert found.choice.scores == (1.0, pytest.approx(2 / 3), 0.0, -1.0)


def test_a_duel_shows_further_layouts_that_separate_the_two(kit):
    bench = kit.FakeBench([[1, 1], [0, 0]], [1, 1])
    found = kit.choose("s_star", bench, kit.scripted("suite 0", *["layout 1"] * 8, "2"))
    assert found.facts["duels"][0]["further"] == 8
    assert found.asked[-1].count("<input 1>") == 8
    assert (found.choice.scores, found.facts["selector_unreadable"]) == ((0.0, 0.0), 0)  # a tie


def test_prose_in_a_duel_is_a_tie_that_is_counted(kit):
    bench = kit.FakeBench([[1], [0]], [1])
    found = kit.choose("s_star", bench, kit.scripted("suite 0", *["x"] * 8, PROSE))
    assert (found.choice.scores, found.facts["selector_unreadable"]) == ((0.0, 0.0), 1)


def test_s_star_without_disagreement_asks_nobody(kit):
    found = kit.choose("s_star", kit.FakeBench([[1], [1]], [1]), kit.scripted("suite 0"))
    assert (found.choice.scores, found.facts["calls"]) == ((0.0, 0.0), 1)


# codemonkey


def test_a_decision_in_the_first_round_ends_it(kit):
    bench = kit.FakeBench([[1, 0], [1, 1], [0, 1]], [1, 1])
    model = kit.scripted("suite 0", "layout 1", "Fine: <decision>1</decision>")
    found = kit.choose("codemonkey", bench, model)
    assert found.choice.index == found.facts["orders"][0][1]
    assert (found.facts["calls"], found.facts["rounds"]) == (3, 1)


def test_a_round_shows_its_own_layout_script_outcomes_and_rounds_left(kit):
    bench = kit.FakeBench([[1, 0, 1], [1, 1, 0]], [1, 1, 1])
    more = "<generator>layout 2</generator>"
    found = kit.choose(
        "codemonkey", bench, kit.scripted("suite 0", "layout 1", more, "<decision>0</decision>")
    )
    assert "layout 1" in found.asked[2]
    assert "<input 1>" in found.asked[2]
    assert "7 more" in found.asked[2]
    assert "<input 2>" in found.asked[3]
    assert "<input 1>" not in found.asked[3]
    assert "6 more" in found.asked[3]


def test_in_the_last_round_only_a_decision_counts(kit):
    bench = kit.FakeBench([[1, 0], [1, 1]], [1, 1])
    more = ["<generator>layout 1</generator>"] * 8
    found = kit.choose("codemonkey", bench, kit.scripted("suite 0", "layout 1", *more, "x"))
    assert (found.facts["rounds"], found.facts["calls"], found.choice.index) == (8, 2 + 8, 0)
    assert "This was the last test input" in found.asked[-1]
    decided = kit.scripted("suite 0", "layout 1", *more[:7], "<decision>0</decision>")
    found = kit.choose("codemonkey", bench, decided)
    assert found.choice.index == found.facts["orders"][0][0]


def test_scripts_are_repaired_five_times_with_seeds_of_round_and_try(kit):
    bench = kit.FakeBench([[1, 0], [1, 1]], [1, 1])
    model = kit.scripted(
        "suite 0", "bad", "bad", "layout 1", "<generator>bad</generator>", *["bad"] * 9
    )
    found = kit.choose("codemonkey", bench, model, seed=7)
    # Suite; round 0 with tries 0, 1, 2; round 1 with its first try and five repairs.
    assert bench.seeds == [7, 7, 8, 9, 107, 108, 109, 110, 111, 112]
    # No script ran in the end, so the first of the three stands.
    assert (found.choice.index, found.facts["rounds"]) == (0, 1)


def test_a_reply_that_cannot_be_read_twice_is_counted_once(kit):
    bench = kit.FakeBench([[0, 0], [1, 1]], [1, 1])
    found = kit.choose("codemonkey", bench, kit.scripted("suite 0", "layout 1", PROSE, PROSE))
    assert (found.choice.index, found.facts["selector_unreadable"]) == (1, 1)
    assert "could not be read" in found.asked[-1]


@pytest.mark.parametrize(
    "text",
    ["", PROSE, "<decision>3</decision>", "<decision>one</decision>", "<decision>1", "<generator> </generator>",
     "<decision>0</decision><decision>0</decision>", "<decision>0</decision><generator>x</generator>"],
)  # fmt: skip
def test_replies_that_are_no_single_tag(text):
    assert read_reply(text, 3) is None


# common


@pytest.mark.parametrize("by", ["generated_tests", "split_tester", "codemonkey", "s_star"])
def test_own_inputs_need_a_bench_that_has_them(kit, by):
    with pytest.raises(UsageError, match="maker=items"):
        kit.choose(by, kit.FakeBench([[1], [0]], [1]), PROSE, maker="items")


@pytest.mark.parametrize("by", ["split_tester", "codemonkey", "s_star", "generated_tests"])
def test_with_own_inputs_and_a_right_judge_the_right_one_is_found(kit, by):
    truth = [k % 2 for k in range(12)]
    flipped = [[bit ^ (k == j) for k, bit in enumerate(truth)] for j in range(6)]
    bench = kit.FakeBench([*flipped, truth, *flipped[:3]], truth, with_items=True)
    right = judge_right(kit, bench)

    def model(text):
        said = right(text)
        return f"<decision>{said}</decision>" if "<decision>" in text else said

    found = kit.choose(by, bench, model, maker="items")
    assert found.choice.index == 6
    assert found.facts["maker"] == "items"


@pytest.mark.parametrize("text", ["", "1.", "Program 1", "1 2", "**1**", "0x1", "¹", "1\n2", "+1"])
def test_only_a_bare_number_is_read(text):
    assert number_in(text) is None


@pytest.mark.parametrize(
    "script", ["", "import pya\n# EXPECTED: PASS", "# expected: pass", "#EXPECTED: MAYBE"]
)
def test_only_the_first_line_says_what_is_expected(script):
    assert expected_in(script) is None
    assert expected_in("# EXPECTED: PASS\nimport pya") == 0
