"""What the gguf backend does before a model is loaded, on heads of GGUF files written here."""

from __future__ import annotations

import importlib.util
import struct
import subprocess
import sys

import pytest

from harness.backends.base import LoadOptions, load, preview
from harness.backends.gguf import _logprobs_of
from harness.backends.gguf_header import read_header
from harness.core.errors import MissingPackageError, UsageError

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="needs xllamacpp"
)


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf_file(path, *, version=3, values=(), tensors=(("a", (4, 3), 0),), body=b"\0" * 64):
    """Write a file by the format's description: magic, version, counts, values, tensors, numbers.

    A value is (name, type, bytes).
    """
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    for name, kind, packed in values:
        head += text(name) + struct.pack("<I", kind) + packed
    for name, shape, offset in tensors:
        head += text(name) + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", 0, offset)
    path.write_bytes(head + body)
    return path


def u32(name, value):
    return name, 4, struct.pack("<I", value)


WORDS = struct.pack("<IQ", 8, 3) + text("a") + text("bc") + text("</s>")
SCORES = struct.pack("<IQ", 6, 3) + struct.pack("<3f", 0.0, 1.0, 2.0)
VALUES = (
    ("general.architecture", 8, text("llama")),
    u32("general.file_type", 3),
    u32("llama.context_length", 512),
    ("tokenizer.ggml.tokens", 9, WORDS),
    ("tokenizer.ggml.scores", 9, SCORES),
    u32("tokenizer.ggml.bos_token_id", 1),
    ("tokenizer.chat_template", 8, text("{{ messages }}")),
)
NAMELESS = tuple(value for value in VALUES if value[0] != "tokenizer.chat_template")


def test_a_head_is_read(tmp_path):
    tensors = (("a", (4, 3), 0), ("b", (5,), 48))
    header = read_header(gguf_file(tmp_path / "m.gguf", values=VALUES, tensors=tensors))
    assert (header.architecture, header.quantisation) == ("llama", "Q4_1")
    assert (header.context_length, header.parameters, header.vocabulary) == (512, 17, 3)
    assert (header.bos, header.eos, header.chat_template) == (1, None, "{{ messages }}")


def test_a_file_cut_anywhere_in_its_head_is_refused(tmp_path):
    whole = gguf_file(tmp_path / "m.gguf", values=VALUES).read_bytes()
    torn = tmp_path / "torn.gguf"
    for length in range(1, len(whole) - 64):
        torn.write_bytes(whole[:length])
        with pytest.raises(UsageError, match="is no whole GGUF file"):
            read_header(torn)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is no whole GGUF file"),
        (b"hello, world: no model", "does not begin with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 99, 0, 0), "version 99"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**60), "longer than the file"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<I", 77),
            "head is torn",
        ),
    ],
)
def test_what_is_no_gguf_file_is_refused_in_one_line(tmp_path, content, says):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=says) as error:
        read_header(path)
    assert "\n" not in str(error.value)


@needs_library
def test_a_plan_knows_the_model_without_loading_it(tmp_path):
    path = gguf_file(tmp_path / "m.gguf", values=VALUES)
    known = preview(f"gguf:{path}")
    assert known.context_length == 512
    assert known.identity.quantisation == "Q4_1"
    assert known.identity.name == "m.gguf"
    assert preview(f"gguf:{path}?n_ctx=64").context_length == 64


@needs_library
@pytest.mark.parametrize(
    ("query", "options", "says"),
    [
        ("?n_ctx=513", {}, "trained for 512"),
        ("?n_ctx=0", {}, "positive whole number"),
        ("?threads=two", {}, "positive whole number"),
        ("?therads=2", {}, "unknown option 'therads'"),
        ("", {"dtype": "bf16"}, "settles its own numbers"),
        ("", {"device": "cuda"}, "runs on the CPU"),
        ("", {"chat_template": "on"}, "has no chat template"),
    ],
)
def test_what_cannot_be_is_refused_before_loading(tmp_path, query, options, says):
    path = gguf_file(tmp_path / "m.gguf", values=NAMELESS)
    with pytest.raises(UsageError, match=says):
        preview(f"gguf:{path}{query}", LoadOptions(**options))


@needs_library
def test_a_model_that_is_not_here_is_named_with_the_way_to_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA", str(tmp_path))
    with pytest.raises(UsageError, match="`harness fetch smollm2` gets it"):
        preview("gguf:smollm2")
    gguf_file(tmp_path / "near.gguf", values=VALUES)
    with pytest.raises(UsageError, match=r"did you mean 'gguf:.*near\.gguf'"):
        preview(f"gguf:{tmp_path}/nea.gguf")


def test_a_missing_library_is_named_with_its_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "xllamacpp" else real(name)
    )
    with pytest.raises(MissingPackageError, match=r"xllamacpp.*\[gguf\]"):
        preview("gguf:smollm2")


@needs_library
def test_llama_cpps_refusal_is_one_line_and_the_process_lives(tmp_path):
    path = gguf_file(tmp_path / "m.gguf", values=VALUES)
    code = (
        "import sys\nfrom harness.backends.base import load\n"
        "from harness.core.errors import UsageError\n"
        "try:\n    load('gguf:' + sys.argv[1])\n"
        "except UsageError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"llama.cpp cannot load {path}")


@needs_library
def test_a_revision_that_is_not_the_files_is_refused(tmp_path):
    path = gguf_file(tmp_path / "m.gguf", values=VALUES)
    with pytest.raises(UsageError, match="beginning of its sha256"):
        load(f"gguf:{path}@0000")


def test_log_probabilities_end_where_the_text_was_cut():
    tokens = [
        {"bytes": list("né".encode()), "logprob": -1.0},
        {"bytes": [], "logprob": -0.5},
        {"bytes": [32, 98], "logprob": -2.0},
        {"bytes": [10], "logprob": -3.0},
    ]
    assert _logprobs_of("né b", tokens) == (-1.0, -0.5, -2.0)
    assert _logprobs_of("", tokens) == ()
