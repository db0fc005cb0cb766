"""The hf backend on the committed tiny model, against plain transformers calls."""

from __future__ import annotations

import json
import shutil

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from harness.backends import hf_decode  # noqa: E402
from harness.backends.base import LoadOptions, load  # noqa: E402
from harness.core.errors import UsageError  # noqa: E402
from harness.core.resources import data  # noqa: E402
from harness.core.types import ChoiceRequest, GenerateRequest, Generation, Message  # noqa: E402

PROMPTS = [
    "Question: What is 3 + 4?\nAnswer:",
    "Question:",
    "Return the number of items in the sequence, or zero if there is nothing in it at all. The",
    "Question: Tom has a red ball. Ann has a blue kite. Who has the kite?\nAnswer:",
    "a",
    "Open the file and read",
    "Question: Which letter comes after c?\nAnswer:",
    "def",
]


@pytest.fixture(scope="module")
def tiny():
    return load("hf:tiny?device=cpu")


@pytest.fixture
def on_long(tiny, monkeypatch):
    def use(policy):
        monkeypatch.setattr(tiny, "_options", LoadOptions(on_long=policy))

    return use


def request(prompt, seed=0, **generation):
    return GenerateRequest(
        item_id="i", messages=(Message("user", prompt),), seed=seed,
        generation=Generation(**({"max_tokens": 24} | generation)),
    )  # fmt: skip


def plain_logits(tiny, ids):
    """Logits at every position of one sequence, in one plain call without padding or cache."""
    with torch.inference_mode():
        return tiny.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()


def plain_greedy(tiny, prompt, n):
    """Greedy decoding the slow way: the whole sequence anew for every token."""
    ids = tiny.tokenizer(prompt)["input_ids"]
    start = len(ids)
    logprobs = []
    for _ in range(n):
        logits = plain_logits(tiny, ids)[-1]
        token = int(logits.argmax())
        if token == tiny.tokenizer.eos_token_id:
            break
        logprobs.append(float(logits.log_softmax(-1)[token]))
        ids.append(token)
    return tiny.tokenizer.decode(ids[start:], skip_special_tokens=True), ids[start:], logprobs


# --- batches ---


def test_greedy_is_what_plain_transformers_gives_in_any_batch(tiny):
    expected = [plain_greedy(tiny, p, 24) for p in PROMPTS]
    together = tiny.generate([request(p) for p in PROMPTS])
    alone = [tiny.generate([request(p)])[0] for p in PROMPTS]
    assert (
        [o.text for o in together] == [o.text for o in alone] == [text for text, _, _ in expected]
    )
    for output, (_, ids, logprobs) in zip(together, expected, strict=True):
        assert output.usage.tokens_out == len(ids)
        assert output.token_logprobs == pytest.approx(logprobs, abs=1e-4)
        assert output.finish_reason == ("length" if len(ids) == 24 else "stop")
    assert len({len(tiny.encode(p)) for p in PROMPTS}) > 4  # their lengths are unequal


def test_drawing_depends_on_the_seed_alone(tiny):
    def texts(requests):
        return [o.text for o in tiny.generate(requests)]

    drawn = [request(p, seed=7 + k, temperature=0.9, top_p=0.95) for k, p in enumerate(PROMPTS)]
    together = texts(drawn)
    assert together == [texts([r])[0] for r in drawn]
    assert together == texts(drawn[::-1])[::-1]
    state = torch.get_rng_state()
    others = texts([request(p, seed=99, temperature=0.9) for p in PROMPTS])
    assert torch.equal(torch.get_rng_state(), state)  # the process's own generator is left alone
    assert others != together
    assert len({texts([request("Question:", seed=s, temperature=1.0)])[0] for s in range(5)}) > 1


def test_planted_right_padding_is_caught(tiny, monkeypatch):
    def right_pad(backend, prompts):
        width = max(map(len, prompts))
        pad = backend.tokenizer.pad_token_id
        ids = torch.tensor([p + [pad] * (width - len(p)) for p in prompts])
        mask = torch.tensor([[1] * len(p) + [0] * (width - len(p)) for p in prompts])
        return ids, mask

    good = [o.text for o in tiny.generate([request(p) for p in PROMPTS])]
    monkeypatch.setattr(hf_decode, "_left_pad", right_pad)
    bad = [o.text for o in tiny.generate([request(p) for p in PROMPTS])]
    assert bad != good


def test_a_nucleus_keeps_only_what_it_must(tiny):
    """With a tiny top_p every draw is the likeliest token: greedy, whatever the seed."""
    greedy = [o.text for o in tiny.generate([request(p) for p in PROMPTS])]
    drawn = tiny.generate([request(p, seed=5, temperature=1.5, top_p=1e-6) for p in PROMPTS])
    assert [o.text for o in drawn] == greedy


def test_the_nucleus_by_hand():
    weights = torch.tensor([[0.1, 0.5, 0.25, 0.15]])
    for top_p, kept in (
        (0.4, [1]),
        (0.5, [1]),
        (0.6, [1, 2]),
        (0.76, [1, 2, 3]),
        (1.0, [0, 1, 2, 3]),
    ):
        assert hf_decode._nucleus(weights, top_p)[0].nonzero()[:, 0].tolist() == kept, top_p


# --- ends ---


def test_stop_strings_are_found_across_tokens_and_what_follows_is_dropped(tiny):
    text, ids, logprobs = plain_greedy(tiny, PROMPTS[2], 24)
    pieces = [tiny.tokenizer.decode([i]) for i in ids]
    # A stop string that begins inside one token and ends inside a later one.
    edge = len("".join(pieces[:6]))
    stop = text[edge - 2 : edge + 2]
    assert all(stop not in piece for piece in pieces)
    first = text.index(stop)
    for size in (1, 8):
        prompts = [PROMPTS[2], *PROMPTS[3 : 2 + size]]
        (output, *_) = tiny.generate([request(p, stop=("never ever", stop)) for p in prompts])
        assert output.text == text[:first]
        assert output.finish_reason == "stop"
        kept = 0
        while len("".join(pieces[:kept])) < first:
            kept += 1
        assert output.token_logprobs == pytest.approx(logprobs[:kept], abs=1e-4)
        # It ended with the very token that completed the stop string.
        ends = [stop in "".join(pieces[:k]) for k in range(len(pieces) + 1)].index(True)
        assert kept < output.usage.tokens_out == ends < len(pieces)


def test_an_empty_stop_string_means_nothing(tiny):
    assert tiny.generate([request("def", stop=("",))])[0].text == plain_greedy(tiny, "def", 24)[0]


def test_eos_ends_an_answer_and_is_no_part_of_it(tiny, monkeypatch):
    _, ids, logprobs = plain_greedy(tiny, "def", 12)
    at = next(k for k in range(2, 12) if ids[k] not in ids[:k])
    monkeypatch.setattr(tiny.model.generation_config, "eos_token_id", [1, ids[at]])
    (output, other) = tiny.generate([request("def"), request(PROMPTS[0])])
    assert output.text == tiny.tokenizer.decode(ids[:at])
    assert (output.finish_reason, output.usage.tokens_out) == ("stop", at)
    assert output.token_logprobs == pytest.approx(logprobs[:at], abs=1e-4)
    assert other.usage.tokens_out > 0


# --- long prompts ---

LONG = "one two three four five six seven eight nine ten" + " and on" * 700


def test_long_prompts_by_policy(tiny, on_long):
    n = len(tiny.encode(LONG))
    assert n > tiny.context_length == 512
    for policy, reason in (("error", "error"), ("skip", "skipped")):
        on_long(policy)
        (long, short) = tiny.generate([request(LONG), request("def")])
        assert (long.text, long.finish_reason, long.error_kind) == ("", reason, "model")
        assert f"{n} tokens" in long.error
        assert short.text == plain_greedy(tiny, "def", 24)[0]
    on_long("truncate")
    (long, short) = tiny.generate([request(LONG), request("def")])
    assert long.prompt_truncated == n - (512 - 24)
    assert long.usage.tokens_in == 512 - 24
    # The end of the prompt stays, and so does its BOS.
    ids = tiny.encode(LONG)
    kept = [ids[0], *ids[-(512 - 24 - 1) :]]
    assert long.prompt_token_ids_head == tuple(kept[:16])
    answer = []
    for _ in range(4):
        answer.append(int(plain_logits(tiny, kept + answer)[-1].argmax()))
    assert long.text.startswith(tiny.tokenizer.decode(answer))
    assert short.prompt_truncated == 0
    assert long.error is None


def test_an_answer_ends_where_the_context_does(tiny, monkeypatch):
    monkeypatch.setattr(hf_decode, "_end_tokens", lambda backend: set())
    ids = tiny.encode(LONG)
    for length in (511, 509, 500):
        prompt = tiny.tokenizer.decode(ids[1:length])
        room = 512 - len(tiny.encode(prompt))
        (output,) = tiny.generate([request(prompt, max_tokens=400)])
        assert output.finish_reason == "length"
        assert output.usage.tokens_out == room


# --- BOS ---


@pytest.mark.parametrize("text", ["2+2?", "<s>2+2?", "<s><s>2+2?", "", "<s>"])
def test_there_is_one_bos(tiny, text):
    ids = tiny.encode(text)
    assert ids[0] == tiny.tokenizer.bos_token_id
    assert tiny.tokenizer.bos_token_id not in ids[1:]
    assert tiny.generate([request(text)])[0].prompt_token_ids_head == tuple(ids[:16])


def test_a_chat_template_with_its_own_bos_gives_one(tiny, monkeypatch):
    template = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}>"
    monkeypatch.setattr(tiny.tokenizer, "chat_template", template)
    monkeypatch.setattr(tiny, "_templated", True)
    text = tiny.render((Message("system", "Brief."), Message("user", "2+2?")))
    assert text == "<s>[system] Brief.\n[user] 2+2?\n>"
    ids = tiny.encode(text)
    assert ids.count(tiny.tokenizer.bos_token_id) == 1
    assert ids == tiny.tokenizer(text.removeprefix("<s>"))["input_ids"]


# --- log-likelihood ---


def choose(tiny, context, continuations):
    request = ChoiceRequest(
        item_id="i", messages=(Message("user", context),), continuations=tuple(continuations)
    )
    return tiny.loglikelihood([request])[0]


def plain_loglikelihood(tiny, context, continuation):
    """lm-eval's rule, written out: trailing spaces move over, both parts are encoded together."""
    moved = len(context) - len(context.rstrip())
    if moved:
        context, continuation = context[:-moved], context[-moved:] + continuation
    head = tiny.tokenizer(context)["input_ids"]
    whole = tiny.tokenizer(context + continuation)["input_ids"]
    logprobs = plain_logits(tiny, whole[:-1]).log_softmax(-1)
    return sum(float(logprobs[k - 1, whole[k]]) for k in range(len(head), len(whole)))


@pytest.mark.parametrize(
    ("context", "continuations"),
    [
        ("Question: What is 3 + 4?\nAnswer:", [" 7", " 8", " twelve", " seven and some more"]),
        ("Question: What is 3 + 4?\nAnswer: ", ["7", "8", "twelve", "seven and some more"]),
        ("The colour is", [" red", " blue, and that is all that there is to say", "."]),
        ("Return   \n", ["the value", "a"]),
        ("", ["the value", "a"]),
    ],
)
def test_log_likelihood_is_the_plain_sum(tiny, context, continuations):
    output = choose(tiny, context, continuations)
    expected = [plain_loglikelihood(tiny, context, c) for c in continuations]
    assert output.choice_logprobs == pytest.approx(expected, abs=1e-4)
    assert len(set(expected)) == len(expected)


def test_a_space_before_the_answer_shifts_nothing(tiny):
    with_space = choose(tiny, "Answer: ", ["7", "8"]).choice_logprobs
    without = choose(tiny, "Answer:", [" 7", " 8"]).choice_logprobs
    assert with_space == pytest.approx(without, abs=1e-6)


def test_a_tokenizer_without_bos_loses_no_token_of_an_empty_context(tiny, monkeypatch):
    bare = tiny.tokenizer

    class NoBos:
        bos_token_id, eos_token_id = bare.bos_token_id, bare.eos_token_id

        def __call__(self, text):
            return {"input_ids": bare(text, add_special_tokens=False)["input_ids"]}

    ids = bare("the value", add_special_tokens=False)["input_ids"]
    monkeypatch.setattr(tiny, "tokenizer", NoBos())
    assert tiny.split("", "the value") == ([bare.bos_token_id], ids)
    assert tiny.split("Return", " it")[0] == bare("Return", add_special_tokens=False)["input_ids"]


def test_log_likelihood_of_long_contexts_by_policy(tiny, on_long):
    options = [" eleven", " a much longer way to go on with it"]
    for policy, reason in (("error", "error"), ("skip", "skipped")):
        on_long(policy)
        output = choose(tiny, LONG, options)
        assert (output.choice_logprobs, output.finish_reason) == (None, reason)
    on_long("truncate")
    output = choose(tiny, LONG, options)
    pairs = [tiny.split(LONG, o) for o in options]
    over = max(len(c) + len(k) - 1 for c, k in pairs) - 512
    assert output.prompt_truncated == over > 0
    for found, (context, continuation) in zip(output.choice_logprobs, pairs, strict=True):
        whole = [context[0], *context[over + 1 :], *continuation]
        assert len(whole) - 1 <= 512
        logprobs = plain_logits(tiny, whole[:-1]).log_softmax(-1)
        start = len(whole) - len(continuation)
        expected = sum(float(logprobs[k - 1, whole[k]]) for k in range(start, len(whole)))
        assert found == pytest.approx(expected, abs=1e-4)


# --- loading and identity ---


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(data("tiny"), folder)
    return folder


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ("hf:tinny", "unknown model 'hf:tinny': did you mean 'hf:tiny'"),
        ("hf:{tmp}/nowhere", "unknown model"),
        ("hf:{tmp}", "no config.json"),
        ("hf:tiny?dtype=fp8", "unknown dtype 'fp8': did you mean .*'fp16'"),
        ("hf:tiny?treads=1", "unknown option 'treads'"),
        ("hf:tiny?threads=0", "threads=0 must be"),
        ("hf:tiny?device=tpu", "not one of auto, cpu, cuda"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(tmp_path, spec, match):
    with pytest.raises(UsageError, match=match) as caught:
        load(spec.format(tmp=tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fault", ["torn weights", "no weights", "broken config", "no tokenizer"])
def test_a_broken_folder_is_one_line(copy, fault):
    if fault == "torn weights":
        weights = copy / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:1000])
    elif fault == "no weights":
        (copy / "model.safetensors").unlink()
    elif fault == "broken config":
        (copy / "config.json").write_text("{")
    else:
        (copy / "tokenizer.json").unlink()
        (copy / "tokenizer_config.json").unlink()
    with pytest.raises(UsageError, match="cannot load hf:") as caught:
        load(f"hf:{copy}")
    assert "\n" not in str(caught.value)


def test_bf16_is_another_model_with_nearly_the_same_answers(tiny):
    half = load("hf:tiny?dtype=bf16&device=cpu")
    assert half.identity.dtype == "bf16"
    assert tiny.identity.dtype == "fp32"
    assert half.identity.variant_id != tiny.identity.variant_id
    assert {p.dtype for p in half.model.parameters()} == {torch.bfloat16}
    one, other = (choose(m, PROMPTS[0], [" 7", " 8"]).choice_logprobs for m in (tiny, half))
    assert one != other
    assert other == pytest.approx(one, abs=0.3)
    assert half.generate([request("def")])[0].usage.tokens_out > 0


def test_identity_follows_the_files(copy, tiny):
    def identity(spec=""):
        return load(f"hf:{copy}{spec}?device=cpu").identity

    before = identity()
    assert before == identity()
    assert before.args == tiny.identity.args  # the same files give the same hashes anywhere
    named = identity("@v1")
    assert named.revision == "v1"

    weights = copy / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    flipped = identity()
    assert flipped != before
    assert identity("@v1") != named  # a name for a revision does not hide changed weights

    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 1e-5}))
    assert identity() not in (before, flipped)

    tokenizer = json.loads((copy / "tokenizer.json").read_text())
    tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:-1]
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert identity().args["tokenizer"] != before.args["tokenizer"]


def test_closing_twice_is_fine(copy):
    model = load(f"hf:{copy}?device=cpu")
    described = model.describe()
    assert described["context_length"] == 512
    json.dumps(described)
    model.close()
    model.close()
