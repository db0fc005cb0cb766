"""`harness list models`: cards, prices with their day, and what is here."""

from __future__ import annotations

import json

import pytest

from harness.cli.main import main

OWN = (
    '["openai:big"]\nfamily = "Big"\nprice_in = 2.5\nprice_out = 10\nprice_date = 2026-01-31\n'
    'price_source = "made up for the test"\nrelease_date = 2025-12-01\n["nobody:x"]\nparams = 7\n'
)


@pytest.fixture
def listed(tmp_path, monkeypatch, capsys):
    (tmp_path / "models.toml").write_text(OWN)
    monkeypatch.setenv("HARNESS_MODELS", str(tmp_path / "models.toml"))
    monkeypatch.setenv("HARNESS_DATA", str(tmp_path / "data"))

    def read():
        assert main(["list", "models", "--json"]) == 0
        return {row["name"]: row for row in json.loads(capsys.readouterr().out)}

    return read


def test_cards_and_baselines_are_listed(listed):
    rows = listed()
    tiny, big, gold = rows["hf:tiny"], rows["openai:big"], rows["mock:gold"]
    assert (tiny["params"], tiny["license"], tiny["state"]) == (1_000_576, "Apache-2.0", "ready")
    assert (big["price_in"], big["price_out"], big["price_date"]) == (2.5, 10.0, "2026-01-31")
    assert (big["release_date"], big["context"]) == ("2025-12-01", None)
    assert (gold["baseline"], tiny["baseline"]) == (True, False)
    assert rows["nobody:x"]["state"] == "unavailable"
    assert "no backend 'nobody'" in rows["nobody:x"]["why"]


@pytest.mark.parametrize(("model", "kind"), [("hf", "transformers"), ("gguf", "models")])
def test_a_model_to_be_fetched_is_ready_when_its_form_is_here(listed, tmp_path, model, kind):
    before = listed()[f"{model}:smollm2"]
    assert (before["state"], before["why"]) == (
        "unavailable",
        "not here yet: harness fetch smollm2",
    )
    (tmp_path / "data" / kind / "smollm2").mkdir(parents=True)
    assert listed()[f"{model}:smollm2"]["state"] == "ready"


def test_the_table_shows_prices_with_their_day(listed, capsys):
    assert main(["list", "models"]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if "openai:big" in x]
    assert "2.5 / 10 (2026-01-31)" in line
