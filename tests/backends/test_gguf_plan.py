"""Options that llama.cpp cannot compare are found in the plan, with a small real model."""

import subprocess
import sys

import pytest

pytest.importorskip("xllamacpp")

from harness.backends.base import LoadOptions, load, preview
from harness.core.errors import UsageError
from harness.core.resources import fetched
from harness.core.types import ChoiceRequest, Message

if fetched("smollm2") is None:
    pytest.skip("needs `harness fetch smollm2`", allow_module_level=True)

MODEL = "gguf:smollm2?n_ctx=512"
PLAIN = LoadOptions(chat_template="off")


def compare(item, *options):
    message = Message("user", "The capital of France is")
    return ChoiceRequest(item_id=item, messages=(message,), continuations=options)


@pytest.mark.parametrize("look", [preview, load])
def test_the_item_and_the_option_are_named(look):
    model = look(MODEL, PLAIN)
    model.check([compare("a", " Paris", " London")])
    with pytest.raises(UsageError) as caught:
        model.check([compare("a", " Paris"), compare("b", " Paris", " the city of Lyon")])
    model.close()
    said = str(caught.value)
    assert "' the city of Lyon' of item b has 4" in said
    assert said.endswith("use --solver generate, or the hf backend")


def test_a_run_is_refused_before_it_exists(tmp_path):
    for models in (["--model", MODEL], ["--model", "mock:gold", "--model", MODEL]):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "harness.cli.main", "run", "--task", "aicrypto/mcq",
             "--solver", "choose", "--store", str(tmp_path / "store"), *models],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert "compares options of one token only" in line
        assert not (tmp_path / "store").exists()
