"""A small real model, SmolLM2-135M-Instruct, through hf and gguf; `harness fetch smollm2` brings it."""

from __future__ import annotations

import hashlib
import math
import random
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("xllamacpp")

from harness.backends.base import LoadOptions, load, preview  # noqa: E402
from harness.core.errors import UsageError  # noqa: E402
from harness.core.resources import fetched  # noqa: E402
from harness.core.types import ChoiceRequest, GenerateRequest, Generation, Message  # noqa: E402

FOLDER, CONVERTED = fetched("smollm2"), fetched("smollm2", "transformers")
if FOLDER is None or CONVERTED is None:
    pytest.skip("needs `harness fetch smollm2`", allow_module_level=True)

FILE = FOLDER / "SmolLM2-135M-Instruct.Q4_1.gguf"
# The file's hash with sha256sum; parameters and the loss below were measured with transformers alone.
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PARAMETERS = 134_515_008
PROMPTS = [
    "The capital of France is",
    "Water boils at one hundred degrees",
    "def add(a, b):\n    return a",
    "Monday, Tuesday, Wednesday,",
]
LICENCE_TEXT = Path("/usr/share/common-licenses/GPL-3")
PLAIN = LoadOptions(chat_template="off")


@pytest.fixture(scope="module")
def hf():
    backend = load("hf:smollm2?device=cpu", PLAIN)
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def gguf():
    backend = load("gguf:smollm2?n_ctx=512", PLAIN)
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def chat():
    backend = load("gguf:smollm2?n_ctx=256")
    yield backend
    backend.close()


def request(prompt, seed=0, **generation):
    return GenerateRequest(
        item_id="i", messages=(Message("user", prompt),), seed=seed,
        generation=Generation(**({"max_tokens": 12} | generation)),
    )  # fmt: skip


def compare(prompt, *options):
    return ChoiceRequest(item_id="i", messages=(Message("user", prompt),), continuations=options)


def logits(hf, ids):
    with torch.inference_mode():
        return hf.model(input_ids=torch.tensor([ids])).logits[0].float()


def distribution(gguf, prompt):
    """Give the log-probability of every next token, by id."""
    size = gguf._header.vocabulary
    reply = gguf._complete(
        prompt=gguf.encode(prompt), n_predict=1, max_tokens=1, temperature=0.0, n_probs=size,
        logprobs=size,
    )  # fmt: skip
    (position,) = reply["choices"][0]["logprobs"]["content"]
    return {entry["id"]: entry["logprob"] for entry in position["top_logprobs"]}


def test_it_is_the_file_that_is_known(gguf):
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == SHA256
    assert gguf.identity.revision == SHA256[:16]
    assert gguf.identity.quantisation == "Q4_1"
    assert gguf.describe()["params"] == PARAMETERS


def test_the_converted_model_has_the_same_size_and_says_paris(hf):
    assert sum(p.numel() for p in hf.model.parameters()) == PARAMETERS
    assert hf.identity.name == "smollm2"
    (output,) = hf.generate([request(PROMPTS[0], max_tokens=2)])
    assert output.text == " Paris."


@pytest.mark.skipif(not LICENCE_TEXT.is_file(), reason="needs Debian's licence texts")
def test_its_loss_on_a_known_text_is_the_published_measurement(hf):
    text = LICENCE_TEXT.read_text(encoding="utf-8")[5_000:8_500]
    ids = hf.tokenizer(text)["input_ids"][:512]
    logprobs = logits(hf, ids).log_softmax(-1)
    loss = -logprobs[:-1].gather(1, torch.tensor(ids)[1:, None]).mean().item()
    assert loss == pytest.approx(3.0424, abs=0.002)


def test_saved_and_read_again_it_gives_equal_logits(hf, tmp_path):
    from transformers import AutoModelForCausalLM

    hf.model.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    ids = hf.encode(PROMPTS[1])
    with torch.inference_mode():
        assert torch.equal(again(input_ids=torch.tensor([ids])).logits[0], logits(hf, ids))


@pytest.mark.parametrize("prompt", PROMPTS)
def test_both_ways_read_the_same_weights(hf, gguf, prompt):
    ids = hf.encode(prompt)
    assert gguf.encode(prompt) == ids
    theirs = logits(hf, ids)[-1].log_softmax(-1).tolist()
    ours = distribution(gguf, prompt)
    assert len(ours) == len(theirs) == 49_152
    assert math.fsum(math.exp(value) for value in ours.values()) == pytest.approx(1, abs=1e-3)
    assert max(ours, key=ours.get) == max(range(len(theirs)), key=theirs.__getitem__)
    # llama.cpp computes with 8-bit activations, so equality is not to be had.
    likely = [i for i, value in enumerate(theirs) if value > -8]
    assert max(abs(ours[i] - theirs[i]) for i in likely) < 1.0


def test_answers_do_not_depend_on_what_was_asked_before(gguf):
    asked = [request(prompt, seed=7, temperature=t) for prompt in PROMPTS for t in (0.0, 0.8)]
    first = [output.text for output in gguf.generate(asked)]
    order = list(range(len(asked)))
    random.Random(3).shuffle(order)
    again = gguf.generate([asked[i] for i in order])
    assert [again[order.index(i)].text for i in range(len(asked))] == first
    assert first[0].startswith(" Paris.")


def test_the_seed_decides_a_draw(gguf):
    draws = [gguf.generate([request("Once", seed=s, temperature=1.0)])[0].text for s in range(3)]
    assert len(set(draws)) == 3


def test_usage_reasons_and_log_probabilities_come_along(gguf):
    cut, stopped = gguf.generate(
        [request(PROMPTS[0], max_tokens=3), request(PROMPTS[0], max_tokens=30, stop=("s the", "."))]
    )
    assert (cut.finish_reason, cut.usage.tokens_in, cut.usage.tokens_out) == ("length", 5, 3)
    assert len(cut.token_logprobs) == 3
    assert (stopped.text, stopped.finish_reason) == (" Paris", "stop")
    assert stopped.token_logprobs == cut.token_logprobs[:1]
    ours = distribution(gguf, PROMPTS[0])
    assert cut.token_logprobs[0] == pytest.approx(max(ours.values()), abs=1e-4)


def test_the_chat_template_is_the_models_own(chat):
    (output,) = chat.generate([request("What is 2+2?")])
    turns = [{"role": "user", "content": "What is 2+2?"}]
    tokenizer = load("hf:smollm2?device=cpu").tokenizer
    wanted = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert output.prompt == wanted
    assert output.prompt_token_ids_head == tuple(tokenizer(wanted)["input_ids"][:16])
    assert "4" in output.text


def test_one_token_options_are_read_off_the_next_token(gguf):
    (output,) = gguf.loglikelihood([compare(PROMPTS[0], " Paris", " London", " the")])
    ours = distribution(gguf, PROMPTS[0])
    ids = [gguf.encode(word)[0] for word in (" Paris", " London", " the")]
    assert output.choice_logprobs == pytest.approx([ours[i] for i in ids], abs=1e-4)
    assert output.choice_greedy == (True, False, False)


def test_options_after_a_chat_template_share_its_line_break(chat):
    (output,) = chat.loglikelihood([compare("Say A or B.", "A", "B")])
    assert len(output.choice_logprobs) == 2
    assert all(-20 < value < 0 for value in output.choice_logprobs)


def test_options_of_several_tokens_are_refused(gguf):
    with pytest.raises(UsageError, match="compares options of one token only"):
        gguf.loglikelihood([compare(PROMPTS[0], " Paris", " the city of Lyon")])


@pytest.mark.parametrize(
    ("policy", "finish"), [("error", "error"), ("skip", "skipped"), ("truncate", "stop")]
)
def test_a_prompt_that_does_not_fit_follows_the_policy(chat, monkeypatch, policy, finish):
    monkeypatch.setattr(chat, "_options", LoadOptions(on_long=policy))
    (output,) = chat.generate([request("word " * 300, max_tokens=4)])
    assert output.finish_reason == finish
    assert bool(output.prompt_truncated) == (policy == "truncate")
    if policy == "truncate":
        assert output.usage.tokens_in == 252
        assert output.prompt_token_ids_head[0] == chat._header.bos
    else:
        assert "the model holds 256: see --on-long" in output.error


def test_a_plan_loads_nothing(gguf):
    known = preview("gguf:smollm2")
    assert known.context_length == 8192
    assert known.capabilities == gguf.capabilities


def test_closing_twice_is_safe():
    backend = load("gguf:smollm2?n_ctx=64&threads=1")
    backend.close()
    backend.close()
    with pytest.raises(Exception, match="is closed"):
        backend.generate([request("a")])


def test_hf_says_how_to_get_its_form(monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_DATA", str(tmp_path))
    (tmp_path / "models/smollm2").mkdir(parents=True)
    with pytest.raises(UsageError, match="`harness fetch smollm2` makes the form"):
        preview("hf:smollm2")
