import pytest

from harness.core.errors import UsageError
from harness.core.spec import ModelSpec, only, parse_model, parse_spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("hf:tiny", ModelSpec("hf", "tiny")),
        ("hf:org/name@v2?dtype=bf16&quant=mxfp4",
         ModelSpec("hf", "org/name", "v2", {"dtype": "bf16", "quant": "mxfp4"})),
        ("openai:gpt?base_url=http://127.0.0.1:80/v1",
         ModelSpec("openai", "gpt", None, {"base_url": "http://127.0.0.1:80/v1"})),
        ("mock:constant?text=%23%23%23 Answer%0A2",
         ModelSpec("mock", "constant", None, {"text": "### Answer\n2"})),
        ("mock:constant?text=a+b", ModelSpec("mock", "constant", None, {"text": "a+b"})),
        ("mock:constant?text=", ModelSpec("mock", "constant", None, {"text": ""})),
        ("gguf:dir/file.gguf", ModelSpec("gguf", "dir/file.gguf")),
    ],
)  # fmt: skip
def test_model_specs_are_read_and_written_back(text, spec):
    assert parse_model(text) == spec
    assert parse_model(str(spec)) == spec


@pytest.mark.parametrize("text", ["tiny", "hf:", ":tiny", "hf:tiny?dtype", "hf:tiny?a=1&a=2", ""])
def test_malformed_model_specs_are_usage_errors(text):
    with pytest.raises(UsageError):
        parse_model(text)


def test_a_misspelt_option_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match=r"unknown option 'acuracy'.*it takes accuracy"):
        only(parse_spec("noisy?acuracy=1").args, {"accuracy"}, "mock:noisy")
