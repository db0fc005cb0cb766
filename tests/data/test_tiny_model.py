"""The committed test model: its card is true, its questions are sound, its training is fixed."""

from __future__ import annotations

import importlib.util
import json
import random
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "data" / "tiny"


@pytest.fixture(scope="module")
def tiny() -> ModuleType:
    place = ROOT / "data" / "make" / "tiny_llama.py"
    spec = importlib.util.spec_from_file_location("tiny_llama_under_test", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def card():
    return json.loads((FOLDER / "card.json").read_text())


@pytest.fixture(scope="module")
def loaded(tiny):
    return tiny.load(FOLDER)


@pytest.fixture(scope="module")
def measured(tiny, card):
    return tiny.evaluate(FOLDER, card["held_out_sha256"])


# --- the committed files ---


def test_files_reproduce_the_card(measured, card):
    assert measured["n_questions"] == card["n_questions"] == 1000
    for kind, value in card["accuracy"].items():
        assert measured["accuracy"][kind] == pytest.approx(value, abs=5e-4), kind
    if measured["held_out_nats"] is None:
        assert "docstrings" in measured["held_out_reason"]
    else:
        assert measured["held_out_nats"] == pytest.approx(card["held_out_nats"], abs=5e-4)


def test_figures_lie_in_the_bounds_of_the_recipe(measured, card):
    found = measured["accuracy"]
    assert 0.45 <= found["overall"] <= 0.65
    assert found["letter"] > 0.95
    assert 0.15 <= found["story"] <= 0.35
    assert card["held_out_nats"] < 5.4 < card["unigram_nats"] < card["uniform_nats"]
    assert card["steps"] == 841


def test_size_and_shape(loaded, measured, card):
    # By hand: embeddings 2048 x 128; a layer has 2 x 128 x 128 (query, output), 2 x 128 x 64 (key,
    # value), 3 x 128 x 352 (feed-forward) and two norms of 128; one last norm; tied output.
    layer = 2 * 128 * 128 + 2 * 128 * 64 + 3 * 128 * 352 + 2 * 128
    expected = 2048 * 128 + 4 * layer + 128
    assert expected == 1_000_576 == card["n_parameters"] == measured["n_parameters"]
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 2_500_000
    assert json.loads((FOLDER / "config.json").read_text())["dtype"] == "float16"
    model, _ = loaded
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_the_page_shows_the_card(card):
    page = (FOLDER / "README.md").read_text()
    assert page == (ROOT / "data" / "make" / "tiny_llama.md").read_text().format(**card)
    shown = [card["held_out_nats"], *card["accuracy"].values()]
    for text in [*(f"{value:.3f}" for value in shown), card["python"], card["torch"]]:
        assert text in page
    for word in ("Apache-2.0", "PSF License", "plumbing, parity and determinism", "no reasoning"):
        assert word in page


def test_tokenizer_adds_bos_once_and_decodes_back(loaded):
    _, tokenizer = loaded
    for text in ("", "Question: What is 3 + 4?\nAnswer: 7", "Straße, 東京, \t tabs"):
        ids = tokenizer(text)["input_ids"]
        assert ids[0] == tokenizer.bos_token_id == 0
        assert ids.count(0) == 1
        assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id, len(tokenizer)) == (1, 2, 2048)
    assert tokenizer.chat_template is None


def test_other_docstrings_give_null_and_a_reason(tiny, monkeypatch):
    monkeypatch.setattr(tiny, "standard_library_docstrings", lambda: ["x" * 81] * 1700)
    monkeypatch.setattr(tiny, "make_questions", lambda: [tiny.make_question("letter", _rng(0))])
    result = tiny.evaluate(FOLDER, tiny.text_sha256(["y"]))
    assert result["held_out_nats"] is None
    assert "other docstrings" in result["held_out_reason"]


# --- the measurement ---


def test_batched_scores_equal_one_row_at_a_time(tiny, loaded):
    model, tokenizer = loaded
    questions = tiny.make_questions(12)
    texts = [q.context + option for q in questions for option in q.options]
    rows = tokenizer(texts)["input_ids"]
    for row, found in zip(rows, tiny.token_logprobs(model, rows, batch=5), strict=True):
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([row])).logits[0]
        expected = [
            -torch.nn.functional.cross_entropy(logits[i], torch.tensor(row[i + 1])).item()
            for i in range(len(row) - 1)
        ]
        assert found == pytest.approx(expected, abs=1e-4)


def test_untrained_weights_fail_the_bounds(tiny, loaded):
    _, tokenizer = loaded
    questions = [tiny.make_question("letter", _rng(i)) for i in range(200)]
    model = tiny.new_model().eval()
    found = tiny.accuracy(tiny.choose(model, tokenizer, questions), questions)
    assert found["letter"] < 0.95
    text = "Return the number of items in the container, or raise an error when it is closed."
    assert tiny.held_out_nats(model, tokenizer, [text]) > 5.4


def test_accuracy_counts_by_kind(tiny):
    options = (" a", " b", " c", " d")
    questions = [tiny.Question(kind, "", options, 1) for kind in ("letter", "letter", "story")]
    assert tiny.accuracy([1, 0, 1], questions) == pytest.approx(
        {"overall": 2 / 3, "letter": 0.5, "story": 1.0}
    )


# --- the questions ---


def test_questions_have_one_right_answer(tiny):
    questions = tiny.make_questions()
    assert Counter(q.kind for q in questions) == {"letter": 334, "arithmetic": 333, "story": 333}
    for q in questions:
        assert len(set(q.options)) == 4
        assert q.options[q.answer] == " " + _solve(q.context)
    assert questions == tiny.make_questions()
    assert questions != tiny.make_questions(seed=3)


def test_answers_stand_at_every_place(tiny):
    # 1,000 items over 4 places: mean 250, standard deviation 13.7; five of them allowed.
    places = Counter(q.answer for q in tiny.make_questions())
    assert all(abs(places[place] - 250) < 69 for place in range(4))


def test_size_of_a_sum_among_its_options_tells_nothing(tiny):
    # A blind guess at one rank must stay near chance. Sums below 3 have less room, hence the slack:
    # 333 items, standard deviation 7.9 around 83.
    questions = [q for q in tiny.make_questions() if q.kind == "arithmetic"]
    ranks = Counter(sorted(q.options, key=int).index(q.options[q.answer]) for q in questions)
    assert max(ranks.values()) / len(questions) < 0.37


def test_held_out_sums_are_never_trained_on(tiny):
    trained = {triple for block in tiny.training_blocks(1500) for triple in _sums(block)}
    asked = {triple for q in tiny.make_questions() for triple in _sums(q.context)}
    assert len(trained) > 500
    assert len(asked) > 60
    assert not trained & asked
    assert not trained & {(b, "+", a) for a, sign, b in asked if sign == "+"}


def test_blocks_answer_their_own_questions(tiny):
    for block in tiny.training_blocks(50):
        items = block.split("\n\n")
        assert len(items) == 8
        for item in items:
            context, answer = item.rsplit(" ", 1)
            assert answer == _solve(context)


def test_unknown_kind_is_refused(tiny):
    with pytest.raises(ValueError, match="choose one of letter, arithmetic, story"):
        tiny.make_question("riddle", _rng(0))


# --- the training ---


def test_learning_rate_follows_the_recipe(tiny):
    assert tiny.learning_rate(0, 841) == pytest.approx(3e-3 / 50)
    assert tiny.learning_rate(49, 841) == tiny.learning_rate(50, 841) == pytest.approx(3e-3)
    # Half way down the cosine: the mean of 100 % and 5 %.
    assert tiny.learning_rate(50 + 400, 850) == pytest.approx(3e-3 * 0.525)
    assert tiny.learning_rate(840, 841) == pytest.approx(3e-3 * 0.05, rel=1e-3)


def test_training_is_a_function_of_its_seed(tiny):
    rows = torch.randint(3, 2048, (40, 16), generator=torch.Generator().manual_seed(0))
    state = torch.get_rng_state()
    first, again, other = (tiny.train(rows, steps=4, seed=seed) for seed in (1, 1, 2))
    weights = [m.model.embed_tokens.weight for m in (first, again, other, tiny.new_model(1))]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert not torch.equal(weights[0], weights[3])
    assert torch.equal(torch.get_rng_state(), state)


def test_command_line_names_what_is_missing(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tiny_llama.py", "--evaluate", str(tmp_path)])
    with pytest.raises(SystemExit) as stop:
        tiny.main()
    assert stop.value.code == 2
    assert "card.json is missing" in capsys.readouterr().err


# --- helpers ---


def _rng(seed):
    return random.Random(seed)


def _sums(text):
    return re.findall(r"What is (\d+) ([+-]) (\d+)\?", text)


def _solve(context):
    """Answer a question from its words alone, without the script's code."""
    if found := re.search(r"comes after (\w)\?", context):
        return chr(ord(found[1]) + 1)
    if found := _sums(context):
        a, sign, b = found[0]
        return str(int(a) + int(b) if sign == "+" else int(a) - int(b))
    facts = re.findall(r"(\w+) has a (\w+) (\w+)\.", context)
    if found := re.search(r"Who has the (\w+)\?", context):
        return next(name for name, _, thing in facts if thing == found[1])
    thing = re.search(r"What colour is the (\w+)\?", context)[1]
    return next(colour for _, colour, other in facts if other == thing)
