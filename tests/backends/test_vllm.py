"""A vLLM server that is started here: how it begins, what it is told, and that it always ends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.backends import vllm_server
from harness.backends.base import LoadOptions, load, preview
from harness.backends.vllm import Vllm, sum_after
from harness.backends.vllm_server import last_words
from harness.core.errors import HarnessError, MissingPackageError, UsageError
from harness.core.spec import parse_model
from harness.core.types import ChoiceRequest, GenerateRequest, Generation, Message

FIXTURE = Path(__file__).parents[1] / "fixtures" / "fake_vllm.py"


class Fake:
    """The program, put first on PATH, and what it tells."""

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.folder = folder
        program = folder / "bin" / "vllm"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -P {FIXTURE} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("FAKE_VLLM", str(folder))
        monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
        monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
        (folder / "tmp").mkdir()
        self.plan()
        self._made = []

    def plan(self, **how) -> None:
        (self.folder / "plan.json").write_text(json.dumps(how))

    def model(self, more: str = "", **options):
        made = load(f"vllm:org/m1{more}", LoadOptions(**options))
        self._made.append(made)
        return made

    @property
    def seen(self) -> dict:
        return json.loads((self.folder / "seen.json").read_text())

    @property
    def started(self) -> bool:
        return (self.folder / "seen.json").exists()

    @property
    def logs(self) -> list[Path]:
        return list((self.folder / "tmp").rglob("server.log"))

    def wait_until_started(self) -> None:
        wait_for(lambda: self.started)

    def close(self) -> None:
        for made in self._made:
            made.close()


def wait_for(true, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """Tell whether a process is there and is no zombie that nobody has asked after."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def none_lives(pids) -> bool:
    return not any(map(lives, pids))


@pytest.fixture
def fake(tmp_path, monkeypatch):
    made = Fake(tmp_path, monkeypatch)
    yield made
    made.close()
    if made.started:
        wait_for(lambda: none_lives(made.seen["pids"]))


def ask(model, item="item-a"):
    request = GenerateRequest(
        item_id=item, messages=(Message("user", f"{item}: 2 + 2?"),), generation=Generation()
    )
    return model.generate([request])[0]


def test_nothing_is_started_before_the_first_question(fake):
    model = fake.model()
    assert preview("vllm:org/m1").identity == model.identity
    assert not fake.started
    assert ask(model).text == "4"
    assert fake.started


def test_it_is_told_what_was_asked_for_and_the_key_is_no_argument(fake):
    more = "?dtype=bf16&serve.max_model_len=64&serve.enforce-eager=off"
    model = fake.model(more + '&serve.hf-overrides={"a": 1}')
    assert ask(model).text == "4"  # it answers nobody without the key
    argv, env = fake.seen["argv"], fake.seen["env"]
    port = model.url.removeprefix("http://127.0.0.1:").removesuffix("/v1")
    assert argv == [
        "serve", "org/m1", "--host=127.0.0.1", f"--port={port}", "--served-model-name=org/m1",
        "--dtype=bfloat16", "--generation-config=vllm", "--uvicorn-log-level=warning",
        "--max-model-len=64", "--no-enforce-eager", '--hf-overrides={"a": 1}',
    ]  # fmt: skip
    assert (env["VLLM_NO_USAGE_STATS"], env["DO_NOT_TRACK"], env["HF_HUB_OFFLINE"]) == ("1",) * 3
    key = env["VLLM_API_KEY"]
    assert len(key) == 48
    assert key not in repr([argv, model.identity, model.describe()])
    assert model.context_length == 64
    assert model.observed()["started vLLM 9.9.9"] == 1


def test_each_server_has_a_key_of_its_own(fake, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    assert ask(fake.model()).text == "4"
    assert fake.model().server.key != fake.model().server.key


def test_the_network_may_be_allowed(fake, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    ask(fake.model())
    assert fake.seen["env"]["HF_HUB_OFFLINE"] == "0"


def test_a_slow_start_is_waited_for(fake, capsys):
    fake.plan(unhealthy=3)
    assert ask(fake.model()).text == "4"
    said = capsys.readouterr().err
    assert "vllm:org/m1: starting vLLM; its log: " in said
    assert "vllm:org/m1: ready after" in said


def test_what_dies_at_its_start_is_one_line_with_the_reason(fake):
    fake.plan(dies="(Worker pid=7) ERROR 11-30 20:30:51 [x.py:1] ValueError: no memory for this")
    model = fake.model()
    with pytest.raises(HarnessError) as caught:
        ask(model)
    said = str(caught.value)
    (log,) = fake.logs
    assert said == (
        "vllm:org/m1: vLLM ended before it was ready (exit code 1); the log says: ValueError: no "
        f"memory for this (whole log: {log})"
    )
    wait_for(lambda: none_lives(fake.seen["pids"]))  # the worker too
    with pytest.raises(HarnessError, match="no memory"):  # it is not tried again for each item
        ask(model)
    model.close()
    assert log.exists()


def test_an_option_that_vllm_does_not_know_is_told(fake):
    with pytest.raises(HarnessError, match="unrecognized arguments: --max-modl-len=64"):
        ask(fake.model("?serve.max-modl-len=64"))


def test_what_never_gets_healthy_is_given_up(fake):
    fake.plan(unhealthy=10**9)
    with pytest.raises(HarnessError, match=r"not ready after 2 s \(it answers HTTP 503\); start_t"):
        ask(fake.model("?start_timeout=2"))
    assert none_lives(fake.seen["pids"])


def test_another_model_is_refused(fake):
    fake.plan(serves="org/other")
    with pytest.raises(HarnessError, match="serves org/other and not org/m1"):
        ask(fake.model())
    assert none_lives(fake.seen["pids"])


def test_closing_ends_all_of_it_and_takes_the_log_away(fake):
    model = fake.model()
    ask(model)
    assert fake.logs
    model.close()
    assert none_lives(fake.seen["pids"])
    assert not fake.logs
    model.close()


def test_a_worker_that_does_not_listen_is_killed(fake, monkeypatch):
    monkeypatch.setattr(vllm_server, "GRACE_S", 0.3)
    fake.plan(stubborn=True)
    model = fake.model()
    ask(model)
    model.close()
    assert none_lives(fake.seen["pids"])


def test_closing_while_it_starts_ends_the_wait(fake):
    fake.plan(unhealthy=10**9)
    model = fake.model()
    errors = []

    def start():
        try:
            ask(model)
        except HarnessError as error:
            errors.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    fake.wait_until_started()
    model.close()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert errors == ["vllm:org/m1 was stopped while it started"]
    assert none_lives(fake.seen["pids"])


def test_it_outlives_the_thread_that_started_it_and_is_started_once(fake):
    model = fake.model()
    outputs = []
    threads = [
        threading.Thread(target=lambda k=k: outputs.append(ask(model, f"item-{k}")))
        for k in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [output.text for output in outputs] == ["4"] * 8
    assert model.observed()["started vLLM 9.9.9"] == 1
    pids = fake.seen["pids"]
    # Longer than the guard looks away; the server must still be there.
    assert not model.server._closed.wait(1.0)
    assert all(map(lives, pids))
    assert ask(model).text == "4"


def test_a_server_that_died_in_between_stops_the_run(fake):
    model = fake.model()
    ask(model)
    os.kill(fake.seen["pids"][0], signal.SIGKILL)
    wait_for(lambda: not lives(fake.seen["pids"][1]))
    with pytest.raises(HarnessError, match=r"vLLM ended \(exit code 137\)"):
        ask(model)
    model.close()
    assert fake.logs  # its log is kept


OWNER = """
import os, sys, time
from harness.backends.base import load
from harness.core.types import GenerateRequest, Generation, Message
model = load("vllm:org/m1")
request = GenerateRequest(item_id="a", messages=(Message("user", "a"),), generation=Generation())
assert model.generate([request])[0].text == "4"
if sys.argv[1] == "forked":
    child = os.fork()  # holds open all that we hold
    print(child, flush=True)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["alone", "forked"])
def test_it_ends_when_we_are_killed(fake, how):
    owner = subprocess.Popen(
        [sys.executable, "-P", "-c", OWNER, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        lines = iter(owner.stdout.readline, "ready\n")
        assert len([line for line in lines if line.strip()]) <= 2  # a fork repeats the word
        pids = fake.seen["pids"]
        assert all(map(lives, pids))
        owner.kill()
        wait_for(lambda: none_lives(pids))
    finally:
        os.killpg(owner.pid, signal.SIGKILL)
        owner.communicate()


def command(*arguments):
    return [
        sys.executable, "-P", "-m", "harness.cli.main", "run", "--task", "aicrypto/mcq",
        "--model", "vllm:org/m1", "--limit", "5", *arguments,
    ]  # fmt: skip


def test_a_run_from_the_command_line_starts_and_ends_it(fake, tmp_path):
    store = ["--store", str(tmp_path / "store"), "--json"]
    done = subprocess.run(
        command("--dry-run", "--json"), capture_output=True, text=True, check=False
    )
    assert (done.returncode, fake.started) == (0, False), done.stderr
    done = subprocess.run(command(*store), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert (run["status"], run["n_counted"]) == ("done", 5)
    assert none_lives(fake.seen["pids"])
    key = fake.seen["env"]["VLLM_API_KEY"].encode()
    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if key in path.read_bytes()]
    (fake.folder / "seen.json").unlink()
    again = subprocess.run(command(*store), capture_output=True, text=True, check=False)
    assert (again.returncode, fake.started) == (0, False)  # all answers were in the store


@pytest.mark.parametrize("plan", [{"answers": ["hang"]}, {"unhealthy": 10**9}])
def test_ctrl_c_ends_it(fake, tmp_path, plan):
    fake.plan(**plan)
    run = subprocess.Popen(
        command("--store", str(tmp_path / "store")), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )  # fmt: skip
    try:
        word = "ready after" if "answers" in plan else "starting vLLM"
        said = ""
        while word not in said:
            line = run.stderr.readline()
            assert line, said
            said += line
        fake.wait_until_started()
        run.send_signal(signal.SIGINT)
        _, rest = run.communicate(timeout=40)
    finally:
        run.kill()
        run.communicate()
    assert run.returncode == 1
    assert "harness resume" in rest
    assert "Traceback" not in rest
    assert none_lives(fake.seen["pids"])


def test_without_vllm_it_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(MissingPackageError, match=r"program vllm, .*pip install vllm .*base_url="):
        preview("vllm:org/m1")
    assert preview("vllm:org/m1?base_url=http://127.0.0.1:1/v1").capabilities


def test_vllm_beside_our_interpreter_is_found(tmp_path, monkeypatch):
    (tmp_path / "vllm").write_text("#!/bin/sh\n")
    (tmp_path / "vllm").chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert load("vllm:org/m1").server.program == str(tmp_path / "vllm")


@pytest.mark.parametrize(
    ("more", "options", "said"),
    [
        ("?serve.port=1", {}, "ours to set"),
        ("?serve.api_key=x", {}, "ours to set"),
        ("?serve.hf-token=x", {}, "ours to set"),
        ("?serve.max-model-len=", {}, "serve.OPTION=VALUE"),
        ("?serve.=1", {}, "serve.OPTION=VALUE"),
        ("?start_timeout=soon", {}, "number of seconds"),
        ("?start_timeout=0", {}, "number of seconds"),
        ("?dtype=fp17", {}, "unknown dtype"),
        ("?key_env=KEY", {}, "key_env goes with base_url"),
        ("?temprature=1", {}, "unknown option 'temprature'"),
        ("?base_url=http://127.0.0.1:1/v1&serve.port=1", {}, "started here"),
        ("", {"device": "cuda"}, "leave it"),
    ],
)
def test_bad_options_are_refused_before_anything_starts(fake, more, options, said):
    with pytest.raises(UsageError, match=said) as caught:
        fake.model(more, **options)
    assert "\n" not in str(caught.value)


def test_a_folder_is_known_by_its_files(fake, tmp_path):
    folder = tmp_path / "model"
    with pytest.raises(UsageError, match="no such folder"):
        load(f"vllm:{folder}")
    folder.mkdir()
    with pytest.raises(UsageError, match=r"no config\.json"):
        load(f"vllm:{folder}")
    (folder / "config.json").write_text('{"max_position_embeddings": 512}')
    before = load(f"vllm:{folder}")
    assert before.context_length == 512
    (folder / "model.safetensors").write_bytes(b"1")
    after = load(f"vllm:{folder}")
    assert before.identity.variant_id != after.identity.variant_id
    (folder / "modeling_own.py").write_text("pass")
    assert after.identity.variant_id != load(f"vllm:{folder}").identity.variant_id
    assert ask(after).text == "4"
    assert fake.seen["argv"][1] == str(folder)
    after.close()
    with pytest.raises(UsageError, match="no revisions"):
        load(f"vllm:{folder}@v1")


def test_what_changes_answers_changes_the_identity_and_the_port_does_not(fake):
    specs = ["", "?dtype=fp32", "?serve.quantization=awq", "?api=chat", "?body.top_k=4"]
    assert len({fake.model(more).identity.variant_id for more in specs}) == len(specs)
    assert fake.model("?dtype=fp32").identity == fake.model("", dtype="fp32").identity
    assert fake.model("?start_timeout=9").identity == fake.model().identity
    assert "base_url" not in fake.model().identity.args


def test_the_first_cause_is_told_and_no_mere_warning():
    log = (
        "(APIServer pid=1) WARNING 11-30 20:30:29 [u.py:255] errors like `OSError: [Errno 24]`\n"
        "(Worker-0 pid=3) ERROR 11-30 20:30:51 [m.py:953]     raise ValueError(\n"
        "(Worker-0 pid=3) ERROR 11-30 20:30:51 [m.py:953] ValueError: Available memory is less\n"
        "(EngineCore pid=2) ERROR 11-30 20:30:53 [c.py:1510] Exception: WorkerProc failed\n"
        "RuntimeError: Engine core initialization failed. See root cause above.\n\n"
    )
    assert last_words(log) == "ValueError: Available memory is less"
    assert last_words("a\nvllm serve: error: no such option\n\n").endswith("no such option")
    assert last_words("") == ""


# Replies of vLLM 0.32.0 for this project's test model, shortened to what is read.
BOS = {"text": "2 + 2 = 4.", "logprobs": {
    "tokens": ["<s>", "2", " +", " 2", " =", " 4", "."], "text_offset": [0, 3, 4, 6, 8, 10, 12],
    "token_logprobs": [None, -9.7885685, -3.7881489, -2.543232, -5.0444746, -2.7106760, -2.0095408],
}}  # fmt: skip
LETTERS = {"text": "Größe = 4é(", "logprobs": {
    "tokens": ["<s>", "G", "r", "", "ö", "", "ß", "e", " =", " 4", "", "é", "("],
    "text_offset": [0, 3, 4, 5, 5, 6, 6, 7, 8, 10, 12, 12, 13],
    "token_logprobs": [None, -5.7061882, -7.0156555, -12.6145536, -10.1806402, -9.5744114,
                       -10.8681087, -6.6089697, -6.5203304, -4.7958455, -11.9150982, -11.6121693,
                       -2.1665533],
}}  # fmt: skip


@pytest.mark.parametrize(
    ("choice", "context", "option", "expected"),
    [
        (BOS, "2 + 2 =", " 4", -2.7106760),
        (BOS, "2 + 2", " = 4", -5.0444746 - 2.7106760),
        (LETTERS, "Größe =", " 4é", -4.7958455 - 11.9150982 - 11.6121693),
        (LETTERS, "Größe = 4", "é", -11.9150982 - 11.6121693),
        (LETTERS, "Grö", "ße = 4é", -(9.5744114 + 10.8681087 + 6.6089697 + 6.5203304 + 4.7958455
                                      + 11.9150982 + 11.6121693)),
    ],
)  # fmt: skip
def test_the_options_tokens_are_found_behind_bos_and_letters_of_several(
    choice, context, option, expected
):
    found = sum_after({"choices": [choice]}, len(context), len(context) + len(option))
    assert found == pytest.approx(expected)


def test_tokens_that_lose_their_blanks_are_counted(monkeypatch):
    """As with Llama 2: ' 4' is shown as '4', so the context's tokens are counted instead."""
    said = {
        "2 =": {"text": "2 =x", "logprobs": {"tokens": ["<s>", "2", "=", "x"],
                                             "token_logprobs": [None, -1.0, -2.0, -7.0]}},
        "2 = 4": {"text": "2 = 4y", "logprobs": {"tokens": ["<s>", "2", "=", "4", "y"],
                                                 "token_logprobs": [None, -1.0, -2.0, -3.0, -8.0]}},
    }  # fmt: skip
    model = Vllm(parse_model("vllm:m1?base_url=http://127.0.0.1:1/v1"), LoadOptions())
    monkeypatch.setattr(model, "_echo", lambda prompt: {"choices": [said[prompt]]})
    request = ChoiceRequest(item_id="a", messages=(Message("user", "2 ="),), continuations=(" 4",))
    assert model.loglikelihood([request])[0].choice_logprobs == (-3.0,)
