"""Train and measure the project's own test model, a Llama of 1,000,576 parameters.

Train (about five CPU minutes)::

    python data/make/tiny_llama.py --out data/tiny

Measure committed files again (a few seconds, JSON on standard output)::

    python data/make/tiny_llama.py --evaluate data/tiny

Everything the model reads is either a docstring of the running Python's standard library or a question
made here, so nothing is downloaded. The steps, seeds and threads are fixed; the docstrings follow the
Python release, which is why the card stores the release and a hash of the held-out text.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import os
import platform
import random
import string
import sys
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

# Set before the imports below: the script needs no network and must not look for one.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

SEED = 1
QUESTION_SEED = 2
STEPS = 841
BATCH, LENGTH = 16, 128
LEARNING_RATE, FLOOR, WARM_UP = 3e-3, 0.05, 50
VOCABULARY = 2048
BOS, EOS, PAD = "<s>", "</s>", "<pad>"
N_TRAIN_DOCS, N_HELD_OUT_DOCS, N_BLOCKS, N_QUESTIONS = 1500, 200, 9000, 1000
KINDS = ("letter", "arithmetic", "story")
# Word lists as text: one line each.
NAMES = "Ana Ben Cleo Dan Eva Finn Gus Hana Ivo Jan Kim Leo Mia Nils Olga Pia".split()  # noqa: SIM905
THINGS = "ball book box cap car coat cup fork hat jar kite lamp map pen ring shoe".split()  # noqa: SIM905
COLOURS = "black blue brown green grey pink red white yellow".split()  # noqa: SIM905


# --- text: docstrings ---


def standard_library_docstrings() -> list[str]:
    """Collect the standard library's docstrings longer than 80 characters, without importing it.

    Returns
    -------
    list of str
        Each text once, ordered by its own sha256: a changed docstring moves only itself.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    found: set[str] = set()
    for name in sorted(sys.stdlib_module_names):
        for path in [root / f"{name}.py", *sorted((root / name).rglob("*.py"))]:
            # Test suites hold deliberately broken files, and distributions leave them out.
            inner = path.relative_to(root).parts
            if path.is_file() and not {"test", "tests", "idle_test"} & set(inner):
                found.update(_docstrings_in(path))
    return sorted(found, key=lambda text: hashlib.sha256(text.encode()).hexdigest())


def _docstrings_in(path: Path) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old escape sequences in some modules
        tree = ast.parse(path.read_bytes())
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]
    return [text for text in texts if len(text) > 80]


def split_docstrings(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split off the texts to train on (1,500) and the next ones, held out (200)."""
    end = N_TRAIN_DOCS + N_HELD_OUT_DOCS
    return list(texts[:N_TRAIN_DOCS]), list(texts[N_TRAIN_DOCS:end])


def text_sha256(texts: Sequence[str]) -> str:
    """Hash a list of texts, order included."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


# --- text: questions ---


class Question(NamedTuple):
    """One four-option item: ``options[answer]`` is right; each option starts with a space."""

    kind: str
    context: str
    options: tuple[str, ...]
    answer: int


def is_held_out(a: int, sign: str, b: int) -> bool:
    """Say whether ``a sign b`` is kept out of training (one seventh of all, by hash)."""
    # 3 + 4 and 4 + 3 go together: else half of each held-out sum would be in the training.
    a, b = sorted((a, b)) if sign == "+" else (a, b)
    return int(hashlib.sha256(f"{a}{sign}{b}".encode()).hexdigest(), 16) % 7 == 0


def _triples(held_out: bool) -> list[tuple[int, str, int]]:
    pairs = [(a, b) for a in range(21) for b in range(21)]
    every = [(a, "+", b) for a, b in pairs] + [(a, "-", b) for a, b in pairs if a >= b]
    return [triple for triple in every if is_held_out(*triple) == held_out]


_SEEN, _UNSEEN = _triples(held_out=False), _triples(held_out=True)


def make_question(kind: str, rng: random.Random, held_out: bool = False) -> Question:
    """Make one question.

    Parameters
    ----------
    kind : {"letter", "arithmetic", "story"}
    rng : random.Random
        The only source of chance.
    held_out : bool
        Whether an arithmetic question comes from the triples kept out of training.

    Examples
    --------
    >>> make_question("letter", random.Random(0)).context
    'Question: Which letter comes after m?\\nAnswer:'
    """
    if kind == "letter":
        place = rng.randrange(25)
        asked, right = string.ascii_lowercase[place], string.ascii_lowercase[place + 1]
        wrong = rng.sample([x for x in string.ascii_lowercase if x not in (asked, right)], 3)
        text = f"Question: Which letter comes after {asked}?"
    elif kind == "arithmetic":
        a, sign, b = rng.choice(_UNSEEN if held_out else _SEEN)
        value = a + b if sign == "+" else a - b
        # Four neighbours with the right one at any rank: its size among the options tells nothing.
        first = max(0, value - rng.randrange(4))
        right, wrong = str(value), [str(x) for x in range(first, first + 4) if x != value]
        text = f"Question: What is {a} {sign} {b}?"
    elif kind == "story":
        # All four options stand in the story, so that only reading it beats chance.
        names, things, colours = (rng.sample(x, 4) for x in (NAMES, THINGS, COLOURS))
        facts = [f"{n} has a {c} {t}." for n, c, t in zip(names, colours, things, strict=True)]
        who, place = rng.random() < 0.5, rng.randrange(4)
        wrong = names if who else colours
        right = wrong.pop(place)
        ask = f"Who has the {things[place]}?" if who else f"What colour is the {things[place]}?"
        text = f"{' '.join(facts)}\nQuestion: {ask}"
    else:
        raise ValueError(f"kind of question {kind!r}: choose one of {', '.join(KINDS)}")
    options = [right, *wrong]
    rng.shuffle(options)
    spaced = tuple(f" {option}" for option in options)
    return Question(kind, f"{text}\nAnswer:", spaced, options.index(right))


def make_questions(n: int = N_QUESTIONS, seed: int = QUESTION_SEED) -> list[Question]:
    """Make the items of the measurement: the kinds in turn, arithmetic from held-out triples only."""
    rng = random.Random(f"measure {seed}")
    return [make_question(KINDS[i % len(KINDS)], rng, held_out=True) for i in range(n)]


def training_blocks(n: int = N_BLOCKS, seed: int = SEED) -> list[str]:
    """Make texts of eight answered questions each (30 % letter, 40 % arithmetic, 30 % story)."""
    rng = random.Random(f"train {seed}")
    blocks = []
    for _ in range(n):
        items = [make_question(kind, rng) for kind in rng.choices(KINDS, (3, 4, 3), k=8)]
        blocks.append("\n\n".join(q.context + q.options[q.answer] for q in items))
    return blocks


# --- training ---


def train_tokenizer(texts: Sequence[str]) -> Any:
    """Train a byte-level BPE of 2,048 tokens whose own template puts ``<s>`` in front, once."""
    bpe = tokenizers.Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[BOS, EOS, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    bpe.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B:1", special_tokens=[(BOS, 0)]
    )
    wrap: Any = transformers.PreTrainedTokenizerFast  # the class carries no types
    return wrap(
        tokenizer_object=bpe, bos_token=BOS, eos_token=EOS, pad_token=PAD,
        model_max_length=512, padding_side="left", clean_up_tokenization_spaces=False,
    )  # fmt: skip


def pack(tokenizer: Any, texts: Sequence[str], seed: int = SEED) -> torch.Tensor:
    """Shuffle and join the texts, each as ``<s> text </s>``; cut to rows. Shape (rows, 128)."""
    order = list(texts)
    random.Random(f"pack {seed}").shuffle(order)
    stream = [
        t
        for ids in tokenizer(order, verbose=False)["input_ids"]
        for t in [*ids, tokenizer.eos_token_id]
    ]
    rows = len(stream) // LENGTH
    return torch.tensor(stream[: rows * LENGTH]).view(rows, LENGTH)


def learning_rate(step: int, steps: int) -> float:
    """Warm up linearly over 50 steps, then follow a cosine down to 5 % of 3e-3."""
    if step < WARM_UP:
        return LEARNING_RATE * (step + 1) / WARM_UP
    progress = (step - WARM_UP) / max(1, steps - WARM_UP)
    return LEARNING_RATE * (FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * progress)))


def new_model(seed: int = SEED) -> Any:
    """Build the untrained model; the seed decides its weights."""
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=352, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
        tie_word_embeddings=True, bos_token_id=0, eos_token_id=1, pad_token_id=2,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):  # the caller's generator stays as it was
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)


def train(rows: torch.Tensor, steps: int = STEPS, seed: int = SEED) -> Any:
    """Train a new model for a fixed number of steps.

    Parameters
    ----------
    rows : torch.Tensor, shape (n, 128)
        Token ids; read in an order drawn anew for every pass.
    steps : int
        Optimiser steps; the learning-rate schedule is stretched to them.
    """
    model, generator = new_model(seed).train(), torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    passes = math.ceil(steps * BATCH / len(rows))
    order = torch.cat([torch.randperm(len(rows), generator=generator) for _ in range(passes)])
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, steps)
        batch = rows[order[step * BATCH : (step + 1) * BATCH]]
        logits = model(input_ids=batch, use_cache=False).logits[:, :-1]
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 40 == 0 or step == steps - 1:
            print(f"step {step + 1}/{steps}  loss {loss.item():.3f}", file=sys.stderr, flush=True)
    return model.eval()


# --- measurement ---


def token_logprobs(model: Any, rows: Sequence[Sequence[int]], batch: int = 64) -> list[list[float]]:
    """Log-probability, in nats, of every token of every row but its first."""
    # Rows that differ in their last token only (options of one token) share one computation.
    same: dict[tuple[int, ...], list[int]] = {}
    for i, row in enumerate(rows):
        same.setdefault(tuple(row[:-1]), []).append(i)
    out: list[list[float]] = [[] for _ in rows]
    prefixes = sorted(same, key=len)  # like lengths together: less padding
    for start in range(0, len(prefixes), batch):
        chosen = prefixes[start : start + batch]
        # Padding on the right is never seen by the tokens before it: attention is causal.
        width = len(chosen[-1])
        ids = torch.tensor([[*prefix, *[0] * (width - len(prefix))] for prefix in chosen])
        with torch.inference_mode():
            logits = model(input_ids=ids, use_cache=False).logits.float()
        for values, prefix in zip(logits.log_softmax(2), chosen, strict=True):
            for i in same[prefix]:
                out[i] = values[range(len(prefix)), list(rows[i][1:])].tolist()
    return out


def held_out_nats(model: Any, tokenizer: Any, texts: Sequence[str]) -> float:
    """Mean nats per token over the first 128 tokens (``<s>`` included, not counted) of each text."""
    rows = [ids[:LENGTH] for ids in tokenizer(list(texts), verbose=False)["input_ids"]]
    values = [v for row in token_logprobs(model, rows) for v in row]
    return -math.fsum(values) / len(values)


def unigram_nats(tokenizer: Any, train_texts: Sequence[str], texts: Sequence[str]) -> float:
    """Nats per token of add-one token frequencies: what a model without context would reach."""
    counts = Counter(
        t for ids in tokenizer(list(train_texts), verbose=False)["input_ids"] for t in ids[1:]
    )
    total = counts.total() + VOCABULARY
    seen = [t for ids in tokenizer(list(texts), verbose=False)["input_ids"] for t in ids[1:LENGTH]]
    return -math.fsum(math.log((counts[t] + 1) / total) for t in seen) / len(seen)


def choose(model: Any, tokenizer: Any, questions: Sequence[Question]) -> list[int]:
    """Pick, for each question, the option with the largest summed log-probability."""
    contexts = tokenizer([q.context for q in questions], verbose=False)["input_ids"]
    joined = tokenizer([q.context + o for q in questions for o in q.options], verbose=False)[
        "input_ids"
    ]
    values = iter(token_logprobs(model, joined))
    picks = []
    for context, question in zip(contexts, questions, strict=True):
        sums = [math.fsum(next(values)[len(context) - 1 :]) for _ in question.options]
        picks.append(sums.index(max(sums)))
    return picks


def accuracy(picks: Sequence[int], questions: Sequence[Question]) -> dict[str, float]:
    """Share of right picks, overall and by kind."""
    right: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for pick, question in zip(picks, questions, strict=True):
        right[question.kind].append(pick == question.answer)
    every = [hit for hits in right.values() for hit in hits]
    return {
        "overall": sum(every) / len(every),
        **{kind: sum(hits) / len(hits) for kind, hits in right.items() if hits},
    }


def load(folder: Path) -> tuple[Any, Any]:
    """Read model (in fp32) and tokenizer from a folder."""
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, local_files_only=True
    )
    return model.eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)


def evaluate(folder: Path, held_out_sha256: str) -> dict[str, Any]:
    """Measure the files in a folder.

    Parameters
    ----------
    folder : Path
        Model and tokenizer, as ``--out`` writes them.
    held_out_sha256 : str
        Hash of the held-out docstrings of the training. Where this Python's library gives other
        texts, ``held_out_nats`` is None and ``held_out_reason`` says so.
    """
    model, tokenizer = load(folder)
    questions = make_questions()
    result: dict[str, Any] = {
        "n_parameters": sum(p.numel() for p in model.parameters()),
        "n_questions": len(questions),
        "accuracy": accuracy(choose(model, tokenizer, questions), questions),
        "held_out_nats": None,
        "held_out_reason": None,
    }
    _, texts = split_docstrings(standard_library_docstrings())
    if text_sha256(texts) == held_out_sha256:
        result["held_out_nats"] = held_out_nats(model, tokenizer, texts)
    else:
        result["held_out_reason"] = (
            f"Python {platform.python_version()} has other docstrings than the training had"
        )
    return result


# --- command line ---


def make(out: Path, steps: int, threads: int) -> None:
    """Train, save in fp16, measure the saved files and write their card."""
    began = time.process_time()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    docs, held_out = split_docstrings(standard_library_docstrings())
    if len(held_out) < N_HELD_OUT_DOCS:
        raise SystemExit(
            "standard library: too few docstrings; use a complete Python, not a cut one"
        )
    texts = [*docs, *training_blocks()]
    tokenizer = train_tokenizer(texts)
    rows = pack(tokenizer, texts)
    print(f"{len(texts)} texts, {rows.numel()} tokens", file=sys.stderr)
    model = train(rows, steps)
    seconds = time.process_time() - began
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)
    card = evaluate(out, text_sha256(held_out)) | {
        "held_out_sha256": text_sha256(held_out),
        "uniform_nats": math.log(VOCABULARY),
        "unigram_nats": unigram_nats(tokenizer, docs, held_out),
        "steps": steps, "seed": SEED, "question_seed": QUESTION_SEED, "threads": threads,
        "training_tokens": steps * BATCH * LENGTH, "training_cpu_seconds": round(seconds),
        "python": platform.python_version(), "torch": torch.__version__,
        "transformers": transformers.__version__, "tokenizers": tokenizers.__version__,
    }  # fmt: skip
    (out / "card.json").write_text(json.dumps(card, indent=2, sort_keys=True) + "\n")
    template = Path(__file__).with_suffix(".md").read_text()
    (out / "README.md").write_text(template.format(**card))


def main() -> None:
    """Read the command line: ``--out DIR`` trains, ``--evaluate DIR`` measures."""
    parser = argparse.ArgumentParser(description="Train or measure the tiny test model.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, metavar="DIR", help="train and write the model here")
    what.add_argument("--evaluate", type=Path, metavar="DIR", help="measure and print as JSON")
    parser.add_argument("--steps", type=int, default=STEPS, help="optimiser steps (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="torch threads (%(default)s)")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error(f"--steps {options.steps}: give at least 1")
    if options.out:
        make(options.out, options.steps, options.threads)
        return
    card = options.evaluate / "card.json"
    if not card.is_file():
        parser.error(f"{card} is missing: give a folder that --out wrote")
    figures = evaluate(options.evaluate, json.loads(card.read_text())["held_out_sha256"])
    print(json.dumps(figures, indent=2, sort_keys=True))


if __name__ == "__main__":
    main()
