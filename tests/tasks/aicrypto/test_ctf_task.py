"""aicrypto/ctf as a task: its items, gold through the loop, flags of draws and repeats, bad challenges."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from harness.core import registry
from harness.core.environment import EnvironmentRequest
from harness.core.errors import UsageError
from harness.core.keys import sample_hash
from harness.core.records import EventRecord, SampleRecord
from harness.core.task import TaskRequest, make_task
from harness.core.types import ToolCall
from harness.runner import audit as runner_audit
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.runner.prompt import Prompt
from harness.runner.rescore import rescore
from harness.runner.scoring import score_predictions
from harness.sandbox import SandboxUnavailable, reach
from harness.store.journal import read_records
from harness.store.layout import Store
from scorers.flag import flag_of
from tasks.aicrypto.ctf import task as ctf_task
from tasks.aicrypto.ctf import upstream
from tasks.aicrypto.ctf.families.catalogue import FAMILIES, ITEMS
from tasks.aicrypto.ctf.forge import make_instance

NAME = "aicrypto/ctf"
EASY = "own-ctf-caesar-affine-1"
ROOT = Path(__file__).resolve().parents[3]
README = ROOT / "tasks" / "aicrypto" / "README.md"
DEMO = ROOT / "data" / "make" / "demo.sh"
RESERVED = {
    "family", "level", "kind", "from", "draw", "practice", "time_s", "command_s", "mask", "withheld",
    "submissions",
}  # fmt: skip


@pytest.fixture
def isolated():
    try:
        reach("auto")
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "store")


@pytest.fixture
def run(isolated, store):
    def go(model="mock:gold", **options):
        return start(make_config(task=NAME, model=model, **options), store)

    return go


@pytest.fixture
def records(store):
    def read(run_id, kind=SampleRecord):
        return [r for r in read_records(store.journal(run_id)) if isinstance(r, kind)]

    return read


@pytest.fixture
def script(tmp_path):
    def write(*turns):
        path = tmp_path / "script.jsonl"
        path.write_text(json.dumps({"item_id": "*", "turns": list(turns)}) + "\n")
        return f"mock:script?file={path}"

    return write


def own(**fields):
    return make_task(NAME, TaskRequest(**fields))


# --- items ---------------------------------------------------------------------------------------
def test_every_family_has_two_levels_and_hangs_together():
    samples = own().samples
    assert len(samples) == registry.find("tasks", NAME).n == len(ITEMS) >= 40
    assert len(FAMILIES) == 23
    by_family = Counter(s.cluster_id for s in samples)
    assert by_family == {f.name: 2 * len(f.kinds) for f in FAMILIES}
    for sample in samples:
        family = ITEMS[sample.item_id].family
        assert (sample.category, sample.metadata["family"]) == (family.folder, family.name)
        assert re.fullmatch(r"own-ctf-[a-z0-9-]+-[12]d?", sample.item_id)
        sizes = family.sizes[sample.metadata["level"]]
        assert not set(sizes) & RESERVED
        assert {k: sample.metadata[k] for k in sizes} == sizes
        assert all(type(size) in (int, float) for size in sizes.values())


def test_seed_0_is_for_practice():
    assert {s.metadata["practice"] for s in own().samples} == {True}
    assert {(s.metadata["practice"], s.metadata["draw"]) for s in own(seed=5).samples} == {
        (False, 5)
    }


def test_the_prompt_tells_the_setting_and_neither_family_seed_nor_flag():
    task = own(seed=90817263)
    prompt = Prompt(task)
    for sample in task.samples:
        (turn,) = prompt.turns(sample)
        asked = f"{task.system}\n{turn.content}"
        assert ITEMS[sample.item_id].family.story in asked
        assert "flag{***}" in asked
        assert ("127.0.0.1" in asked) == (sample.metadata["kind"] == "dynamic")
        for told in (sample.item_id, "90817263", flag_of(90817263, sample.item_id, 0)):
            assert told not in asked
        # A family's name is the attack on it.
        words = sample.metadata["family"].replace("_", "[ _-]?")
        assert not re.search(rf"\b{words}\b", asked, re.IGNORECASE), sample.item_id


def test_without_data_nothing_of_the_challenge_is_there(run, records, script):
    bare = own(no_data=True)
    assert {s.input for s in bare.samples} == {ctf_task.WITHHELD}
    model = script("<bash>ls -A; ls -A public 2>&1 | wc -l</bash>", "<give_up></give_up>")
    made = run(model, no_data=True, ids=["own-ctf-cbc-flip-1"], solver="agent?protocol=tags")
    assert (made.status, made.metrics["accuracy"].value) == ("done", 0.0)
    first = next(e for e in records(made.run_id, EventRecord) if e.kind == "tool_call")
    assert first.data["text"] == "1\n[exit code 0]\n"


def test_guesses_have_the_form_of_a_flag_and_are_wrong():
    for sample in own().samples:
        guessed = ctf_task.guess(sample, Random(1))
        assert re.fullmatch(r"flag\{[0-9a-f]{24}\}", guessed)
        assert guessed != flag_of(0, sample.item_id, 0)


def test_the_tool_set_names_versions_limits_and_submissions():
    made = own(args={"submissions": "unlimited"}).toolset
    assert (made["name"], made["submissions"]) == ("aicrypto-1", "unlimited")
    assert {"pycryptodome", "sympy", "gmpy2", "z3-solver", "fpylll", "cypari2"} <= set(
        made["packages"]
    )
    assert made["python"].count(".") == 2
    assert own().toolset["submissions"] == "10"


def test_the_prompt_tells_when_wrong_flags_end_the_work():
    for submissions, told in (("10", True), ("unlimited", False)):
        task = own(args={"submissions": submissions})
        (turn,) = Prompt(task).turns(task.samples[0])
        assert ("After 10 wrong flags the work ends." in turn.content) == told
        assert "submit` without it." in turn.content


@pytest.mark.parametrize(
    ("time", "wall"), [(10, 300), (59, 300), (60, 180), (300, 900), (9e9, 1200)]
)
def test_a_command_may_take_what_upstream_gives_it(time, wall):
    assert ctf_task.command_seconds(time) == wall


def test_a_switch_with_another_value_is_refused():
    with pytest.raises(UsageError, match="submissions=5 is not one of 10, unlimited"):
        own(args={"submissions": "5"})


def test_the_readme_draws_a_seed_that_a_run_takes():
    section = README.read_text(encoding="utf-8").split("# aicrypto/ctf\n")[1].split("\n# ")[0]
    (command,) = re.findall(r"SEED=\$\(python3 -c '(.+?)'\)", section)
    drawn = [
        int(subprocess.run([sys.executable, "-c", command], capture_output=True, check=True).stdout)
        for _ in range(4)
    ]
    # Four draws below 2^50 have a chance of 2^-48.
    assert 2**50 < max(drawn) < 2**63
    assert len(set(drawn)) == 4
    for seed in (max(drawn), 2**63 - 1):
        assert make_config(task=NAME, model="mock:gold", seed=seed).seed == seed
        assert make_instance(EASY, seed).flag == flag_of(seed, EASY, 0)
    with pytest.raises(UsageError, match="does not fit into 64 bits"):
        make_config(task=NAME, model="mock:gold", seed=2**63)
    small = [line for line in section.splitlines() if "--model hf:smollm2" in line]
    assert len(small) == 3
    assert all("--limit 5 --solver 'agent?max_turns=5'" in line for line in small)


def test_the_demo_says_no_more_than_that_the_challenges_did_not_finish(tmp_path):
    program = tmp_path / "harness"
    program.write_text('#!/bin/sh\ncase "$*" in fetch*|*aicrypto/ctf*) exit 1;; esac\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", DEMO, program, tmp_path / "store"], capture_output=True, text=True, check=True
    )
    assert f"The challenges did not finish (see above; '{program} doctor' says" in done.stdout
    assert "No box" not in done.stdout


LOADED = """
import sys
from harness.core.task import TaskRequest, make_task
from harness.core.types import ToolCall
{block}
task = make_task("aicrypto/ctf", TaskRequest())
task.toolset, [task.gold(s) for s in task.samples]
print([m for m in {modules!r} if m in sys.modules])
"""
BLOCK = """
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {modules!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize("block", ["", BLOCK])
def test_making_the_task_needs_none_of_the_packages(block):
    modules = [*ctf_task.PACKAGES, "yaml", "duckdb"]
    code = LOADED.format(modules=modules, block=block.format(modules=modules))
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_package_that_is_missing_makes_items_unavailable(run, records, monkeypatch):
    monkeypatch.setitem(ctf_task.PACKAGES, "no_such_module_here", "no-such-package")
    made = run(first=1)
    assert (made.counts["unavailable"], made.n_counted) == (1, 0)
    (record,) = records(made.run_id)
    assert "no-such-package" in record.error
    assert "pip install 'bridge-harness[ctf]'" in record.error


# The practice draw whole: those of categories 01 to 03 are in tests of their own.
@pytest.mark.parametrize("item_id", [i for i in ITEMS if ITEMS[i].family.folder >= "04"])
def test_an_instance_of_the_practice_draw_is_made_and_broken(item_id):
    made = make_instance(item_id, 0)
    assert made.flag == made.config["flag"] == flag_of(0, item_id, 0)
    assert set(made.config) == {"category", "flag", "from", "name", "time", "type"}
    assert made.config["type"] == ("dynamic" if made.server else "static") == ITEMS[item_id].kind


# --- gold, draws and repeats ---------------------------------------------------------------------
@pytest.mark.parametrize(
    ("protocol", "items"),
    [
        ("tools", [EASY, "own-ctf-lwe-tiny-1"]),
        ("fenced", ["own-ctf-cbc-flip-2"]),
        ("tags", ["own-ctf-fermat-1", "own-ctf-ecdsa-nonce-1d"]),
    ],
)
def test_gold_finds_the_flag_in_the_box(run, records, protocol, items):
    made = run(ids=items, seed=3, solver=f"agent?max_turns=100&protocol={protocol}")
    assert (made.status, made.metrics["accuracy"].value) == ("done", 1.0)
    for record in records(made.run_id):
        assert record.output == flag_of(3, record.item_id, 0)
        assert record.isolation == reach("auto").level
        log = json.loads(record.tool_log)
        assert (log["turns"], log["ended_by"], log["wrong_submissions"]) == (5, "submit", 0)


@pytest.mark.parametrize("model", ["mock:empty", "mock:random"])
def test_silence_and_guesses_score_nothing(run, model, records):
    made = run(model, ids=[EASY], solver="agent?max_turns=12")
    assert (made.status, made.n_counted, made.metrics["accuracy"].value) == ("done", 1, 0.0)
    (record,) = records(made.run_id)
    log = json.loads(record.tool_log)
    assert log["wrong_submissions"] == (10 if model == "mock:random" else 0)
    # An answer that was wrong is a score; none at all is counted as unparsed.
    assert made.counts["error"] == (0 if model == "mock:random" else 1)
    assert log["ended_by"] == ("submit" if model == "mock:random" else "max_turns")


def test_each_repeat_has_a_flag_of_its_own_and_draws_of_a_strategy_share_it(
    run, records, store, monkeypatch
):
    made = run(ids=[EASY], epochs=2, seed=4)
    assert made.metrics["accuracy"].value == 1.0
    flags = {r.epoch: r.output for r in records(made.run_id)}
    assert flags == {k: flag_of(4, EASY, k) for k in (0, 1)}
    assert rescore(store, made.run_id).changed == []

    # The answers of the run before are not taken for draws of another repeat.
    monkeypatch.setattr(registry, "_decorated", {})
    registry.strategy("two")(Two)
    both = run(ids=[EASY], epochs=2, seed=4, strategy="two")
    assert both.metrics["accuracy"].value == 1.0
    assert {r.epoch: r.output for r in records(both.run_id)} == {
        0: flags[0], 1: flags[0], 2: flags[1], 3: flags[1]
    }  # fmt: skip
    assert rescore(store, both.run_id).changed == []


class Two:
    """A strategy of two draws."""

    n = 2

    def __call__(self, candidates):
        return 0


def test_the_flag_of_the_practice_draw_is_worth_nothing_on_another(run, script):
    model = script(f"<submit>{flag_of(0, EASY, 0)}</submit>")
    options = {"ids": [EASY], "solver": "agent?max_turns=1&protocol=tags"}
    assert run(model, seed=0, **options).metrics["accuracy"].value == 1.0
    assert run(model, seed=1, **options).metrics["accuracy"].value == 0.0


def test_given_flags_are_scored_without_a_run():
    rows = [{"item_id": item, "output": flag_of(2, item, 0)} for item in (EASY, "own-ctf-wiener-2")]
    assert [s.value for s in score_predictions(NAME, rows, seed=2)] == [1.0, 1.0]
    assert [s.value for s in score_predictions(NAME, rows, seed=0)] == [0.0, 0.0]


def test_the_task_is_sound(monkeypatch):
    # Gold goes its whole path in the tests above, and of every task in tests/runner/test_audit.py.
    checks = [c for c in runner_audit.CHECKS if c.__name__ != "gold_path"]
    monkeypatch.setattr(runner_audit, "CHECKS", checks)
    found = runner_audit.audit(NAME)
    assert [(c.name, c.why) for c in found.checks if c.verdict != "ok"] == []


# --- challenges in upstream's layout -------------------------------------------------------------
CONFIG = """\
category: rsa
flag: CTF{small}
from: SomeCTF-2021
name: small
time: 40
type: static
"""
SERVER = "print(open('hint.txt').read() if input() == 'sesame' else 'no')"


@pytest.fixture
def library(tmp_path):
    """Write a challenge below a data root, and give the root."""
    root = tmp_path / "root"

    def write(name="04-RSA/01-small", config=CONFIG, public=("output.txt",), server=None):
        folder = root / "data" / "CTF" / name
        for part, files in (
            ("public", dict.fromkeys(public, "n = 15")),
            ("server", server or {}),
            ("solution", {"flag.txt": "CTF{small}"}),
        ):
            for file, text in files.items():
                path = folder / part / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(config)
        return folder

    write.root = root
    return write


def test_a_challenge_is_read_as_it_is(library):
    library(public=("output.txt", "lib/helper.py"))
    library("02-Block/03-eval", CONFIG.replace("static", "dynamic").replace("CTF{small}", "0123"),
            server={"main.py": SERVER, "hint.txt": "0123"})  # fmt: skip
    task = own(data_root=library.root)
    block, rsa = task.samples
    assert (block.item_id, rsa.item_id) == ("ctf-02-Block-03-eval", "ctf-04-RSA-01-small")
    assert (rsa.category, rsa.cluster_id, rsa.target) == ("04-RSA", "SomeCTF-2021", ("CTF{small}",))
    assert rsa.metadata["year"] == 2021
    assert (rsa.metadata["kind"], block.metadata["kind"]) == ("static", "dynamic")
    assert (rsa.metadata["time_s"], rsa.metadata["command_s"]) == (40, 300)
    # A flag without braces, and of digits, stays as it is written.
    assert (block.target, block.metadata["mask"], rsa.metadata["mask"]) == (
        ("0123",), "***", "CTF{***}"
    )  # fmt: skip
    assert rsa.input == "Files in ./public: lib/helper.py (6 bytes), output.txt (6 bytes)."
    assert task.info["license"].startswith("none found")
    assert task.toolset["submissions"] == "unlimited"


def test_a_changed_file_is_another_item(library):
    folder = library()
    before = own(data_root=library.root).samples[0].metadata["files_sha256"]
    (folder / "public" / "output.txt").write_text("n = 21")
    assert own(data_root=library.root).samples[0].metadata["files_sha256"] != before


def test_a_server_of_others_runs_in_its_folder_with_what_lies_beside_it(library, run, script):
    library(config=CONFIG.replace("static", "dynamic"),
            server={"main.py": SERVER, "hint.txt": "CTF{small}"})  # fmt: skip
    line = "exec 3<>/dev/tcp/127.0.0.1/1337; echo sesame >&3; cat <&3 > flag.txt"
    model = script(f"<bash>{line}</bash>", "<submit></submit>")
    options = {"data_root": library.root, "solver": "agent?protocol=tags&max_turns=2"}
    assert run(model, **options).metrics["accuracy"].value == 1.0
    assert run("mock:gold", **options).metrics["accuracy"].value == 1.0


BROKEN = {
    "no-flag": (CONFIG.replace("flag: CTF{small}\n", ""), r"config\.yaml: it has no flag$"),
    "empty-flag": (CONFIG.replace("CTF{small}", '"  "'), r"config\.yaml: the flag is empty"),
    "type": (
        CONFIG.replace("static", "quantum"),
        r"config\.yaml: type is 'quantum': give static or dynamic$",
    ),
    "no-type": (CONFIG.replace("type: static\n", ""), r"config\.yaml: it has no type: give static"),
    "types": (CONFIG.replace("static", "[static]"), r"config\.yaml: type is \['static'\]: give"),
    "flags": (CONFIG.replace("CTF{small}", "[a, b]"), r"config\.yaml: .*\$\.flag"),
    "key": (CONFIG + "prize: 5\n", r"config\.yaml: unknown field 'prize'$"),
    "yaml": ("flag: [", r"config\.yaml: no YAML: "),
    "list": ("- a\n- b\n", r"config\.yaml: give fields"),
    "time": (CONFIG.replace("40", "-3"), r"config\.yaml: time is -3"),
    "when": (CONFIG.replace("40", "soon"), r"config\.yaml: time is 'soon': give seconds$"),
}


def test_broken_configs_make_their_items_unavailable_and_the_rest_runs(
    library, run, records, script
):
    for name, (config, _) in BROKEN.items():
        library(f"04-RSA/01-{name}", config)
    library("04-RSA/02-whole")
    model = script("<submit>CTF{small}</submit>")
    made = run(model, data_root=library.root, solver="agent?protocol=tags&max_turns=1")
    assert (made.status, made.counts["unavailable"], made.n_counted) == ("partial", len(BROKEN), 1)
    assert made.metrics["accuracy"].value == 1.0
    found = {r.item_id: r for r in records(made.run_id)}
    for name, (_, why) in BROKEN.items():
        broken = found[f"ctf-04-RSA-01-{name}"]
        assert broken.status == "unavailable"
        assert re.search(rf"04-RSA/01-{name}/{why}", broken.error)


DEAD = {
    "exit": ("import sys; sys.exit(3)", r"\(exit code 3\), with no output$"),
    "import": ("import no_such_module_here", r"ModuleNotFoundError: .*'no_such_module_here'$"),
    "syntax": ("if", "SyntaxError: invalid syntax$"),
    "banner": ("print('Welcome'); open('gone.txt')", r"FileNotFoundError: .*'gone.txt'$"),
    "signal": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", r"\(SIGSEGV\)"),
}
"""Programs that no model could talk to."""
SOUND = {
    "input": "print(input())",
    "number": "import sys; print(int(sys.stdin.readline()))",
    "silent": "try: print(input())\nexcept EOFError: raise SystemExit(1)",
    "socket": "import socket, sys; sys.exit(socket.socket(fileno=0).recv(9) == b'')",
    "well": "print(open('hint.txt').read())",
}
"""Programs that end at once where their input does, most of them with an error."""


def enter(library, program):
    """Begin an attempt at a server of others, and end it."""
    library(
        config=CONFIG.replace("static", "dynamic"),
        server={"main.py": program, "hint.txt": "CTF{small}"},
    )
    task = own(data_root=library.root)
    with task.environment(task.samples[0], EnvironmentRequest()):
        pass


@pytest.mark.parametrize("program", DEAD)
def test_a_server_of_others_that_dies_at_once_is_named(isolated, library, program):
    code, why = DEAD[program]
    with pytest.raises(upstream.HarnessError, match=rf"01-small/server/main\.py ends .*{why}"):
        enter(library, code)


@pytest.mark.parametrize("program", SOUND)
def test_a_server_that_ends_for_want_of_input_is_sound(isolated, library, monkeypatch, program):
    monkeypatch.setattr(upstream, "TRIAL_S", 2.0)
    enter(library, SOUND[program])


def test_a_server_that_dies_at_once_does_not_count_against_a_model(library, run, records):
    library(config=CONFIG.replace("static", "dynamic"), server={"main.py": DEAD["exit"][0]})
    made = run(data_root=library.root)
    assert (made.counts["unavailable"], made.n_counted) == (1, 0)
    (record,) = records(made.run_id)
    assert "01-small/server/main.py ends before it is asked anything" in record.error


def test_gold_gives_up_on_a_challenge_whose_flag_is_not_known(library):
    library(config=BROKEN["no-flag"][0])
    task = own(data_root=library.root)
    (message,) = task.gold(task.samples[0])
    assert [(c.name, c.arguments) for c in message.tool_calls] == [("give_up", {})]


def reason(library):
    return own(data_root=library.root).samples[0].metadata.get("unavailable", "")


def test_files_that_are_missing_are_named(library):
    folder = library(public=())
    assert "01-small/public is missing" in reason(library)
    (folder / "public").mkdir()
    assert "01-small/public is empty" in reason(library)
    (folder / "public" / "a").write_text("1")
    (folder / "config.yaml").write_text(CONFIG.replace("static", "dynamic"))
    assert "01-small/server is missing" in reason(library)
    (folder / "server").mkdir()
    (folder / "server" / "main.sage").write_text("1")
    assert "01-small/server/main.py is missing" in reason(library)
    (folder / "config.yaml").unlink()
    assert "01-small/config.yaml: No such file" in reason(library)


def test_where_a_copy_lies_is_no_part_of_an_item(library, tmp_path):
    library(public=())
    (here,) = own(data_root=library.root).samples
    library.root.rename(tmp_path / "elsewhere")
    (there,) = own(data_root=tmp_path / "elsewhere").samples
    assert here.metadata["unavailable"] == "04-RSA/01-small/public is missing"
    assert sample_hash(here) == sample_hash(there)


@pytest.mark.parametrize("name", ["two\nlines", "back\\slash", "bell\a"])
def test_odd_file_names_are_refused(library, name):
    library(public=("output.txt", name))
    assert f"odd file name {name!r}" in reason(library)


def test_links_out_of_the_folder_are_refused_and_others_followed(library):
    folder = library()
    (folder / "public" / "same.txt").symlink_to("output.txt")
    assert reason(library) == ""
    link = folder / "public" / "link"
    for target in ("../solution/flag.txt", "../solution", "/etc/hostname", "nowhere"):
        link.symlink_to(target)
        assert "public/link is no file, or a link out of its folder" in reason(library)
        link.unlink()


def test_the_solution_folder_is_never_read(library, monkeypatch):
    folder = library()
    (folder / "solution" / "flag.txt").unlink()
    (folder / "solution").rmdir()
    (folder / "solution").symlink_to("/nowhere")
    assert reason(library) == ""


def test_sage_files_need_sage(library, isolated, monkeypatch):
    library(public=("output.txt", "task.sage"))
    task = own(data_root=library.root)
    place = task.environment(task.samples[0], EnvironmentRequest())
    monkeypatch.setattr(upstream, "has_sage", lambda: False)
    needs = r"01-small/public/task\.sage needs Sage.*pip install 'bridge-harness\[sage\]'"
    with pytest.raises(upstream.MissingPackageError, match=needs):
        place.__enter__()
    monkeypatch.setattr(upstream, "has_sage", lambda: True)
    with place:
        assert place.call(ToolCall("c", "bash", {"command": "ls public"}), 60).text.startswith(
            "output.txt\ntask.sage\n"
        )


def test_the_prompt_tells_of_sage_where_a_challenge_needs_it(library):
    library()
    library("04-RSA/02-sage", public=("task.sage",))
    task = own(data_root=library.root)
    prompt = Prompt(task)
    without, with_sage = (prompt.turns(sample)[0].content for sample in task.samples)
    assert "Sage" not in without
    assert "cypari2. Sage is there too, as the package `sage`" in with_sage
    assert "cypari2. One call" in without


def test_files_that_change_under_a_run_are_noticed(library):
    folder = library()
    (sample,) = own(data_root=library.root).samples
    (folder / "public" / "output.txt").write_text("n = 77")
    with pytest.raises(upstream.HarnessError, match="its files have changed"):
        upstream.open_challenge(folder, sample)


def test_a_folder_without_challenges_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no challenge NN-Category/NN-name"):
        own(data_root=tmp_path)


def test_without_yaml_the_package_is_named(library, monkeypatch):
    library()
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(upstream.MissingPackageError, match=r"PyYAML.*bridge-harness\[ctf\]"):
        own(data_root=library.root)
