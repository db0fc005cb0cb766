"""The tasks of AMS-SizingBench: what is asked, what gold says, upstream's files, what cannot be asked here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

import pytest

import tasks
from harness.cli.main import main
from harness.core.errors import UsageError
from harness.core.task import TaskRequest, make_task
from harness.runner.prompt import Prompt
from harness.solvers.environment import EnvironmentRequest
from scorers.spice import CIRCUITS, technology
from scorers.spice.calibration import LEVELS, calibration
from scorers.spice.technology import missing

README = (Path(tasks.__file__).parent / "ams_sizing/README.md").read_text(encoding="utf-8")

PROTOCOLS = ("one_shot", "loop", "space")


def task(protocol="one_shot", root=None, **args):
    return make_task(f"ams_sizing/{protocol}", TaskRequest(args=args, data_root=root))


def needs_ngspice():
    if shutil.which("ngspice") is None:
        pytest.skip("needs the program ngspice: apt-get install ngspice")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_circuit_is_asked_with_its_netlist_grids_and_targets_and_without_gold(protocol):
    made = task(protocol, tech="demo")
    assert [sample.metadata["circuit"] for sample in made.samples] == list(CIRCUITS)
    for number, sample in enumerate(made.samples):
        text = Prompt(made).turns(made.samples[number])[-1].content
        about = sample.metadata
        for part in (about["netlist"], about["words"]):
            assert part in text
        for name, grid in about["variables"].items():
            assert f"{name}: {', '.join(map(str, grid))}" in text
            assert f"{name}}}" in about["netlist"]
        for metric, op, target in about["specs"]:
            assert f"{metric} {op} {target}" in text
        assert sample.target[0] not in text
        assert str(about["random_rate"]) not in text


def test_levels_are_other_items_and_other_libraries_other_versions(monkeypatch, tmp_path):
    ids = {
        level: {s.item_id for s in task(tech="demo", level=level).samples}
        for level in ("1", "2", "3", "upstream")
    }
    assert len(set.union(*ids.values())) == 96 == len(task(tech="demo", level="all").samples)
    assert task(tech="demo").version == f"1-demo-{technology('demo').sha256[:8]}"
    monkeypatch.setenv("HARNESS_DATA", str(tmp_path))
    absent = task()
    assert absent.version == "1-sky130"
    assert {absent.missing(sample)[:40] for sample in absent.samples} == {
        "the SKY130 models are not here: harness "[:40]
    }


def test_two_circuits_are_unavailable_in_the_small_set():
    if missing("sky130"):
        pytest.skip("needs the SKY130 models: harness fetch sky130")
    needs_ngspice()
    made = task()
    why = {s.metadata["circuit"]: made.missing(s) for s in made.samples if made.missing(s)}
    assert set(why) == {"bandgap_reference", "ldo_regulator"}
    assert all("tech=sky130-full --arg pdk=DIR" in reason for reason in why.values())


def test_wrong_switches_are_one_line():
    for args, why in (
        ({"tech": "gf180"}, "tech=gf180 is not one of"), ({"level": "4"}, "level=4 is not one of"),
        ({"tech": "demo", "budget": "7"}, "budget"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=why):
            task("loop", **args)


def write(folder, text, name="five_trans_ota"):
    (folder / f"{name}.yaml").write_text(text)
    return folder


GOOD = """\
variable: {W_tail_base: null, W_diff_base: null, W_load_base: null}
W_values: [1.68, 10e-1]
user_specs_metric: "fom > 0.5 AND dc_gain_db > -15 AND power_dc < 65"
testbench_template: "{unused.__class__}"
"""


def test_a_file_is_read_strictly_and_no_template_is_run(tmp_path):
    pytest.importorskip("yaml")
    (sample,) = task(root=write(tmp_path, GOOD), tech="demo").samples
    assert sample.metadata["variables"]["W_tail_base"] == [1.68, 1.0]
    assert sample.metadata["specs"] == [["dc_gain_db", ">", -15.0], ["power_dc", "<", 65.0]]
    for text, why, name in (
        (GOOD, "there is no circuit five", "five"),
        (GOOD.replace("W_load_base", "W_out"), "variable must name", "five_trans_ota"),
        (
            GOOD.replace("W_values: [1.68, 10e-1]", ""),
            "neither W_tail_base_values nor W_values",
            "five_trans_ota",
        ),
        (GOOD.replace("10e-1", "wide"), "no list of numbers", "five_trans_ota"),
        (GOOD.replace("10e-1", "-1"), "must hold numbers above 0", "five_trans_ota"),
        (GOOD.replace("> -15", "about 15"), "is no specification", "five_trans_ota"),
        ("a: [", "is no YAML", "five_trans_ota"),
        ("- 1", "holds no fields", "five_trans_ota"),
    ):
        for old in tmp_path.iterdir():
            old.unlink()
        with pytest.raises(UsageError, match=why):
            task(root=write(tmp_path, text, name), tech="demo")
    with pytest.raises(UsageError, match="holds no circuit"):
        task(root=tmp_path / "none", tech="demo")


def test_the_readme_says_how_often_chance_meets_the_targets():
    for name, circuit in CIRCUITS.items():
        cells = []
        for tech in ("sky130", "demo"):
            if tech not in circuit.technologies:
                cells.append("unavailable")
                continue
            levels = calibration(tech, name).levels
            shares = ", ".join(f"{levels[level].rate * 100:.1f}" for level in LEVELS)
            cells.append(shares + ("" if levels["upstream"].discriminating else "°"))
        assert f"| `{name}` | {circuit.n_points:,} | {cells[0]} | {cells[1]} |" in README


def test_a_bench_counts_what_is_new_and_ends_at_the_budget():
    needs_ngspice()
    made = task("loop", tech="demo", budget="10")
    sample = next(s for s in made.samples if s.metadata["circuit"] == "inverter")
    rng = Random(0)
    with made.environment(sample, EnvironmentRequest()) as bench:
        gold = json.loads(made.gold(sample))
        (first,) = bench.evaluate([gold])
        assert (first.met, bench.left) == (True, 9)
        assert bench.evaluate([gold, json.dumps(gold)]) == [first, first]
        assert bench.left == 9
        (wrong,) = bench.evaluate(["no design"])
        assert (wrong.design, bench.left) == (None, 8)
        more = {made.guess(sample, rng) for _ in range(40)}
        bench.evaluate(sorted(more))
        assert (bench.left, len(bench.tried)) == (0, 10)
        assert bench.evaluate([gold]) == [first]
    handed = json.loads(bench.answer())["designs"]
    assert handed[:2] == [gold, "no design"]
    assert len(handed) == 10
    with pytest.raises(RuntimeError, match="closed"):
        bench.evaluate([gold])


def run(tmp_path, *words):
    return main(["run", "--store", str(tmp_path / "store"), "--arg", "tech=demo", "--json", *words])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_gold_meets_everything(tmp_path, capsys, protocol):
    needs_ngspice()
    assert (
        run(tmp_path, "--task", f"ams_sizing/{protocol}", "--model", "mock:gold", "--limit", "8")
        == 0
    )
    report = json.loads(capsys.readouterr().out)
    (row,) = report["runs"]
    assert (row["metrics"]["success"]["value"], row["n_counted"]) == (1.0, 8)


def test_autosizer_with_a_scripted_model_solves_a_real_circuit(tmp_path, capsys):
    needs_ngspice()
    pytest.importorskip("optuna")
    # Around the best sizing that calibration found, 1.26 and 1.05.
    good = {"W_pmos_base": [1.05, 1.26, 1.47], "W_nmos_base": [1.05, 1.26]}
    turns = [
        '{"topology": "inverter"}',
        json.dumps({"variables_to_optimize": good, "variables_fixed": {}}),
        '{"action": "search", "method": "lhs", "n_samples": 10}',
    ]
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"item_id": "*", "turns": turns}))
    code = run(
        tmp_path, "--task", "ams_sizing/space", "--model", f"mock:script?file={script}", "--ids", "inverter/demo/1",
        "--arg", "level=1",
    )  # fmt: skip
    assert code == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    # All six designs of the space, and no more.
    assert row["metrics"]["evaluations:design"]["value"] == 6
    assert row["metrics"]["success"]["value"] == 1.0
