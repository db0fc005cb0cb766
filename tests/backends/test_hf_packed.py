"""Packed log-likelihood against one plain row a choice, and against lm-eval's HFLM."""

from __future__ import annotations

import random

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.backends import hf_packed
from harness.backends.base import LoadOptions, load
from harness.backends.hf_packed import Layout, score, widest_window, windows
from harness.core.errors import UsageError
from harness.core.types import ChoiceRequest, Message

TOLERANCE = 1e-4
VOCABULARY = 2048


@pytest.fixture(scope="module")
def tiny():
    return load("hf:tiny?device=cpu")


def plain(model, pairs):
    """The definition: one sequence a choice, no padding, no mask, all logits."""
    found = []
    for context, continuation in pairs:
        ids = torch.tensor([context + continuation[:-1]])
        with torch.inference_mode():
            logits = model(input_ids=ids, use_cache=False).logits[0].float()
        logits = logits[len(context) - 1 :]
        target = torch.tensor(continuation)
        logprob = logits.log_softmax(-1).gather(1, target[:, None]).sum()
        top, second = logits.topk(2, dim=-1).values.T
        close = bool((top - second < 1e-3).any())
        found.append((float(logprob), bool((logits.argmax(-1) == target).all()), close))
    return found


def assert_as_plain(model, items, layout=None):
    for scores, pairs in zip(score(model, items, layout or Layout()), items, strict=True):
        expected = plain(model, pairs)
        assert [s.logprob for s in scores] == pytest.approx(
            [logprob for logprob, _, _ in expected], abs=TOLERANCE
        )
        for found, (_, greedy, close) in zip(scores, expected, strict=True):
            assert found.greedy == greedy or close


def an_item(rng, choices=4, context=20, length=8, model=None):
    """Random ids; with a model, the first choice is what that model would say."""
    ids = [rng.randrange(3, VOCABULARY) for _ in range(context)]
    pairs = [(ids, [rng.randrange(3, VOCABULARY) for _ in range(length)]) for _ in range(choices)]
    if model is not None:
        greedy = []
        for _ in range(length):
            with torch.inference_mode():
                logits = model(input_ids=torch.tensor([ids + greedy]), use_cache=False).logits
            greedy.append(int(logits[0, -1].argmax()))
        pairs[0] = (ids, greedy)
    return pairs


# --- the definition ---


@st.composite
def item(draw):
    token = st.integers(0, VOCABULARY - 1)
    context = draw(st.lists(token, min_size=1, max_size=40))
    other = [*context[:-1], draw(token)]  # a merge over the boundary changes the last token
    choices = draw(st.lists(st.lists(token, min_size=1, max_size=20), min_size=2, max_size=10))
    apart = draw(st.booleans())
    return [(other if apart and draw(st.booleans()) else context, c) for c in choices]


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    items=st.lists(item(), min_size=1, max_size=4),
    tokens=st.sampled_from([1, 64, 2048]),
    rows=st.sampled_from([None, 1, 3]),
)
def test_packed_is_one_choice_at_a_time(tiny, items, tokens, rows):
    assert_as_plain(tiny.model, items, Layout(tokens=tokens, rows=rows))


def test_greedy_is_said_of_the_models_own_words_alone(tiny):
    items = [an_item(random.Random(i), length=1 + i % 5, model=tiny.model) for i in range(10)]
    for scores in score(tiny.model, items, Layout()):
        assert scores[0].greedy
        assert scores[0].logprob == max(s.logprob for s in scores)
    # One wrong token at the end is enough to lose it.
    spoilt = [[(c, [*k[:-1], (k[-1] + 1) % VOCABULARY])] for (c, k), *_ in items]
    assert not any(s.greedy for (s,) in score(tiny.model, spoilt, Layout()))


def test_layouts_and_order_change_nothing(tiny):
    rng = random.Random(1)
    items = [
        an_item(rng, rng.randrange(2, 8), rng.randrange(1, 60), rng.randrange(1, 12))
        for _ in range(40)
    ]
    order = list(range(len(items)))
    rng.shuffle(order)
    base = score(tiny.model, items, Layout(rows=1))
    others = [score(tiny.model, items, Layout(rows=r)) for r in (4, 16, None)]
    shuffled = score(tiny.model, [items[i] for i in order], Layout(rows=4))
    others.append([shuffled[order.index(i)] for i in range(len(items))])
    for other in others:
        for one, two in zip(base, other, strict=True):
            assert [s.logprob for s in one] == pytest.approx(
                [s.logprob for s in two], abs=TOLERANCE
            )
            assert _argmax(one) == _argmax(two)


def _argmax(scores):
    return max(range(len(scores)), key=lambda i: scores[i].logprob)


# --- cost: what is computed, and how often ---


def test_a_context_is_fed_once_and_only_scored_places_reach_the_output_layer(tiny):
    context, choices, length = 30, 4, 8
    items = [an_item(random.Random(2), choices, context, length)]
    seen = []
    layer = tiny.model.get_output_embeddings()
    body = tiny.model.get_decoder()
    hooks = [
        layer.register_forward_hook(lambda _, args, logits: seen.append(logits.shape)),
        body.register_forward_pre_hook(
            lambda _, args, kwargs: seen.append(kwargs["input_ids"].shape), with_kwargs=True
        ),
    ]
    try:
        score(tiny.model, items, Layout())
    finally:
        for hook in hooks:
            hook.remove()
    fed = context + choices * (length - 1)
    scored = 1 + choices * (length - 1)  # the first token of all choices is read at one place
    assert [tuple(shape[:2]) for shape in seen] == [(1, fed), (1, scored)]
    assert not layer._forward_pre_hooks  # nothing stays behind


@pytest.mark.parametrize("tokens", [40, 100, 2048])
def test_batches_keep_to_the_limit(tokens):
    rng = random.Random(3)
    items = [an_item(rng, rng.randrange(2, 10), rng.randrange(1, 50), rng.randrange(1, 20))
             for _ in range(50)]  # fmt: skip
    layout = Layout(tokens=tokens)
    rows = [r for i, pairs in enumerate(items) for r in hf_packed._rows(i, pairs, layout)]
    batches = list(hf_packed._batches(rows, layout))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(r.length for r in batch) <= tokens
        assert len({r.masked for r in batch}) == 1
    for row in rows:
        longest = max(map(len, row.choices))
        assert row.length <= len(row.context) + max(tokens, longest - 1)
    placed = sorted((r.item, p) for b in batches for r in b for p in r.places)
    assert placed == [(i, p) for i, pairs in enumerate(items) for p in range(len(pairs))]


def test_choices_share_a_context_longer_than_the_limit():
    (row,) = hf_packed._rows(0, an_item(random.Random(8), 4, 500, 10), Layout(tokens=64))
    assert (len(row.choices), row.length) == (4, 500 + 4 * 9)
    rows = list(hf_packed._rows(0, an_item(random.Random(8), 9, 500, 10), Layout(tokens=64)))
    assert [len(r.choices) for r in rows] == [7, 2]  # 7 x 9 tokens fit into 64


def test_out_of_memory_halves_the_batch_and_goes_on(tiny, monkeypatch):
    items = [an_item(random.Random(i), 3, 10 + i, 4) for i in range(9)]
    expected = score(tiny.model, items, Layout(rows=1))
    whole = hf_packed._score_batch
    sizes = []

    def small_memory(model, batch):
        sizes.append(len(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError("planted")
        return whole(model, batch)

    monkeypatch.setattr(hf_packed, "_score_batch", small_memory)
    found = score(tiny.model, items, Layout())
    assert sizes[0] == 9
    assert [[s.logprob for s in row] for row in found] == [
        pytest.approx([s.logprob for s in row], abs=TOLERANCE) for row in expected
    ]

    def no_memory(model, batch):
        raise torch.OutOfMemoryError("planted")

    monkeypatch.setattr(hf_packed, "_score_batch", no_memory)
    with pytest.raises(torch.OutOfMemoryError):
        score(tiny.model, items, Layout())


# --- planted faults: a mask or positions that are wrong, or not honoured, change the numbers ---


def see_other_choices(parts, dtype):
    width = parts.shape[1]
    hidden = torch.ones(width, width, dtype=torch.bool).triu(1)
    mask = torch.zeros(len(parts), width, width, dtype=dtype)
    return mask.masked_fill(hidden, torch.finfo(dtype).min)[:, None]


def see_no_context(parts, dtype):
    same = parts[:, :, None] == parts[:, None, :]
    hidden = ~(same & torch.ones(same.shape[1:], dtype=torch.bool).tril())
    return torch.zeros(same.shape, dtype=dtype).masked_fill(hidden, torch.finfo(dtype).min)[:, None]


FAULTS = {
    "choices see each other": ("_mask", see_other_choices),
    "choices do not see the context": ("_mask", see_no_context),
    "positions run on": ("_positions", lambda row: iter(range(row.length))),
}


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_in_the_layout_are_caught(tiny, monkeypatch, fault, attention):
    monkeypatch.setattr(tiny.model.config, "_attn_implementation", attention)
    items = [an_item(random.Random(4))]
    assert_as_plain(tiny.model, items)
    assert widest_window(tiny.model) is None
    monkeypatch.setattr(hf_packed, *FAULTS[fault])
    with pytest.raises(AssertionError):
        assert_as_plain(tiny.model, items)
    assert widest_window(tiny.model) == 0  # the check at load sees it and gives rows of their own
    assert_as_plain(tiny.model, items, Layout(window=0))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_check_sees_through_half_precision(monkeypatch, fault):
    half = load("hf:tiny?dtype=bf16&device=cpu").model
    assert widest_window(half) is None
    monkeypatch.setattr(hf_packed, *FAULTS[fault])
    assert widest_window(half) == 0


def test_padding_rows_are_numbers(tiny):
    """A softmax over nothing would be NaN and spread; the short item shares a batch with a long."""
    items = [an_item(random.Random(5), context=2, length=2), an_item(random.Random(6), context=90)]
    assert_as_plain(tiny.model, items)
    mask = hf_packed._mask(torch.tensor([[0, 1, 2, -1, -1]]), torch.float32)[0, 0]
    seen = [[k for k in range(5) if mask[q, k] == 0] for q in range(5)]
    assert seen == [[0], [0, 1], [0, 2], [3], [4]]


# --- other architectures: packed where that is right, a row each where it is not ---


def small(name, **extra):
    config = transformers.AutoConfig.for_model(
        name, vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, **extra
    )
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():  # fresh weights are so small that everything is nearly uniform
        for p in model.parameters():
            if p.dim() > 1:
                p.mul_(8)
    return model


GEMMA = {"head_dim": 8, "intermediate_size": 64, "num_key_value_heads": 2}
ARCHITECTURES = {
    "learned positions": ("gpt2", {}, None),
    "soft caps behind the output layer": ("gemma2", GEMMA | {"sliding_window": 16}, 16),
    "sliding window": ("mistral", {"intermediate_size": 64, "num_key_value_heads": 2,
                                   "sliding_window": 12}, 12),
    "positions from places (ALiBi)": ("bloom", {}, 0),
    "recurrent": ("mamba", {"state_size": 8}, 0),
}  # fmt: skip


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_architectures(kind):
    name, extra, window = ARCHITECTURES[kind]
    model = small(name, **extra)
    assert widest_window(model) == window
    rng = random.Random(7)
    items = []
    for context, length in ((4, 5), (9, 3), (30, 6), (30, 1)):
        ids = [rng.randrange(200) for _ in range(context)]
        items.append([(ids, [rng.randrange(200) for _ in range(length)]) for _ in range(4)])
    assert_as_plain(model, items, Layout(window=window))
    spread = [s.logprob for s in score(model, items, Layout(window=window))[0]]
    assert max(spread) - min(spread) > 1  # not a uniform model, on which anything passes


def test_flash_attention_gets_rows_of_its_own(tiny, monkeypatch):
    monkeypatch.setattr(tiny.model.config, "_attn_implementation", "flash_attention_2")
    assert widest_window(tiny.model) == 0


# --- from texts ---


def choose(backend, context, continuations):
    request = ChoiceRequest(
        item_id="i", messages=(Message("user", context),), continuations=tuple(continuations)
    )
    return backend.loglikelihood([request])[0]


def test_a_continuation_of_nothing_is_the_tasks_fault(tiny):
    output = choose(tiny, "Answer:", [" 7", ""])
    assert (output.choice_logprobs, output.choice_greedy) == (None, None)
    assert (output.finish_reason, output.error_kind) == ("error", "harness")
    assert "empty" in output.error


def test_a_continuation_that_merges_into_the_context_is_the_merged_token(tiny):
    """The word and its ending are one token together: lm-eval would have nothing to score."""
    tokens = {text: tiny.tokenizer(text)["input_ids"] for text in ("retur", "return", "retu", "x")}
    assert len(tokens["return"]) <= len(tokens["retur"])
    context, continuation = tiny.split("retur", "n")
    assert context + continuation == tokens["return"]
    assert len(continuation) == 1
    found = choose(tiny, "retur", ["n", "x"]).choice_logprobs
    pairs = [tiny.split("retur", c) for c in ("n", "x")]
    assert pairs[0][0] != pairs[1][0]  # two contexts in one item
    assert found == pytest.approx([p for p, _, _ in plain(tiny.model, pairs)], abs=TOLERANCE)


def test_without_bos_eos_stands_for_no_text_and_without_both_nothing_does():
    model = load("hf:tiny?device=cpu")
    eos = model.tokenizer.eos_token_id
    (letter,) = model.tokenizer("a", add_special_tokens=False)["input_ids"]
    model.tokenizer.bos_token = None
    found = model.loglikelihood_rolling(["a"], add_bos=False)
    assert found == pytest.approx([plain(model.model, [([eos], [letter])])[0][0]], abs=TOLERANCE)
    model.tokenizer.eos_token = None
    with pytest.raises(UsageError, match="neither BOS nor EOS"):
        model.loglikelihood_rolling(["a"], add_bos=False)


def test_batch_size_sets_the_rows_and_no_number():
    one, many = (load("hf:tiny?device=cpu", LoadOptions(batch_size=size)) for size in (1, None))
    assert (one._layout.rows, many._layout.rows) == (1, None)
    for context in ("Question: What is 3 + 4?\nAnswer:", "The"):
        options = [" 7", " 8", " seven and a bit", " the value of it"]
        a, b = (choose(m, context, options) for m in (one, many))
        assert a.choice_logprobs == pytest.approx(b.choice_logprobs, abs=TOLERANCE)
        assert a.choice_greedy == b.choice_greedy


# --- whole texts ---


@pytest.mark.parametrize(
    ("n", "room"), [(0, 4), (1, 4), (4, 4), (5, 4), (9, 4), (13, 4), (7, None)]
)
def test_every_token_is_in_one_window(n, room):
    ids = list(range(1, n + 1))
    found = windows(ids, 0, room)
    assert [t for _, scored in found for t in scored] == ids
    for context, scored in found:
        assert len(context) + len(scored) - 1 <= (room or n)
        # What stands before the scored tokens is what stood before them in the text.
        before = [0, *ids][: scored[0]]
        assert context == before[-len(context) :]


TEXTS = [
    "Return the number of items in the sequence.",
    "",
    "a",
    " ".join(f"Question: What is {a} + {a % 7}?\nAnswer: {a + a % 7}\n" for a in range(90)),
]


def test_rolling_is_the_sum_over_the_text(tiny):
    found = tiny.loglikelihood_rolling(TEXTS, add_bos=False)
    for text, total in zip(TEXTS, found, strict=True):
        ids = tiny.tokenizer(text, add_special_tokens=False)["input_ids"]
        whole = [tiny.tokenizer.bos_token_id, *ids]
        expected = 0.0
        for start in range(0, len(ids), 512):
            end = min(start + 512, len(ids))
            with torch.inference_mode():
                seen = torch.tensor([whole[max(0, end - 512) : end]])
                logprobs = tiny.model(input_ids=seen).logits[0, start - end :].log_softmax(-1)
            expected += sum(float(logprobs[k, ids[start + k]]) for k in range(end - start))
        assert total == pytest.approx(expected, abs=TOLERANCE, rel=1e-6)
    assert found[1] == 0


@pytest.fixture(scope="module")
def hflm(tiny):
    from lm_eval.models.huggingface import HFLM

    def make(**options):
        return HFLM(pretrained=tiny.model, tokenizer=tiny.tokenizer, batch_size=16, **options)

    return make


def instances(kind, arguments):
    from lm_eval.api.instance import Instance

    return [Instance(kind, {}, args, i) for i, args in enumerate(arguments)]


@pytest.mark.parametrize("add_bos", [None, False])
def test_rolling_is_lm_evals(tiny, hflm, add_bos):
    lm = hflm() if add_bos is None else hflm(add_bos_token=add_bos)
    texts = [t for t in TEXTS if t]
    assert len(tiny.encode(texts[-1])) > 2 * 512
    expected = lm.loglikelihood_rolling(instances("r", [(t,) for t in texts]), disable_tqdm=True)
    found = tiny.loglikelihood_rolling(texts, add_bos=add_bos)
    # A sum over a thousand tokens in fp32 on their side.
    assert found == pytest.approx(expected, abs=TOLERANCE, rel=1e-6)


# --- against lm-eval ---


def questions(n, shots, words):
    rng = random.Random(shots * 100 + words)
    adjectives = ["red", "blue", "green", "black", "white", "round", "small", "tall"]

    def ask():
        a, b = rng.randrange(21), rng.randrange(21)
        return f"Question: What is {a} + {b}?\nAnswer:", a + b

    def option(value):
        tail = "," + "".join(" " + rng.choice(adjectives) for _ in range(words - 6))
        return f" {value}" + (tail if words > 1 else "")

    rows = []
    for _ in range(n):
        shown = "".join(f"{text} {answer}\n\n" for text, answer in (ask() for _ in range(shots)))
        text, answer = ask()
        values = [answer, *rng.sample([v for v in range(41) if v != answer], 3)]
        space = rng.random() < 0.1  # some contexts end in the space that must move over
        rows.append((
            shown + text + (" " if space else ""),
            tuple(option(v)[1 if space else 0 :] for v in values),
        ))  # fmt: skip
    return rows


@pytest.mark.parametrize(
    ("n", "shots", "words"), [(1000, 0, 1), (300, 0, 12), (200, 5, 1), (100, 5, 12)]
)
def test_packed_is_lm_evals_hflm(tiny, hflm, n, shots, words):
    lm = hflm()
    rows = questions(n, shots, words)
    asked = [(context, c) for context, options in rows for c in options]
    for context, c in asked[:200]:
        assert tiny.split(context, c) == lm._encode_pair(context, c)
    theirs = iter(lm.loglikelihood(instances("loglikelihood", asked), disable_tqdm=True))
    outputs = tiny.loglikelihood(
        [ChoiceRequest(item_id="i", messages=(Message("user", context),), continuations=options)
         for context, options in rows]
    )  # fmt: skip
    for output, (context, options) in zip(outputs, rows, strict=True):
        expected = [next(theirs) for _ in options]
        logprobs = [logprob for logprob, _ in expected]
        assert output.choice_logprobs == pytest.approx(logprobs, abs=TOLERANCE)
        assert output.choice_logprobs.index(max(output.choice_logprobs)) == logprobs.index(
            max(logprobs)
        )
        flags = [greedy for _, greedy in expected]
        if list(output.choice_greedy) != flags:
            pairs = [tiny.split(context, c) for c in options]
            assert any(close for _, _, close in plain(tiny.model, pairs))  # a tie


def test_an_empty_context_is_lm_evals(tiny, hflm):
    options = (" the value", "a", "<s>def")
    theirs = hflm().loglikelihood(
        instances("loglikelihood", [("", c) for c in options]), disable_tqdm=True
    )
    found = choose(tiny, "", options)
    assert found.choice_logprobs == pytest.approx([p for p, _ in theirs], abs=TOLERANCE)


def test_planted_double_bos_is_caught(tiny, hflm, monkeypatch):
    rows = questions(20, 0, 1)
    asked = [(context, c) for context, options in rows for c in options]
    theirs = hflm().loglikelihood(instances("loglikelihood", asked), disable_tqdm=True)
    whole = tiny._ids
    bos = tiny.tokenizer.bos_token_id
    monkeypatch.setattr(
        tiny, "_ids", lambda texts, **options: [[bos, *ids] for ids in whole(texts, **options)]
    )
    ours = [p for context, options in rows for p in choose(tiny, context, options).choice_logprobs]
    assert max(abs(a - b) for a, (b, _) in zip(ours, theirs, strict=True)) > 0.01
