"""Model cards: strict reading, overriding field by field, and cost by hand calculation."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from harness.core.errors import UsageError
from harness.core.models import Card, all_cards, card_of, read_cards
from harness.core.resources import data

PRICED = 'price_date = 2026-01-31\nprice_source = "price list"\n'


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write the user's file of cards."""
    path = tmp_path / "models.toml"
    monkeypatch.setenv("HARNESS_MODELS", str(path))
    path.write_text("")

    def write(text):
        path.write_text(text)
        return path

    return write


def test_ours_hold_facts_and_no_prices(own):
    cards = all_cards()
    assert set(cards) >= {"hf:tiny", "hf:smollm2", "gguf:smollm2"}
    assert cards["hf:tiny"].params == 1_000_576
    assert cards["gguf:smollm2"].params == 134_515_008
    assert "Q4_1" in cards["hf:smollm2"].source_weights
    assert all(card.price_in is None and card.price_out is None for card in cards.values())


def test_the_parameters_on_our_card_are_those_of_the_weights():
    from safetensors import safe_open

    with safe_open(data("tiny") / "model.safetensors", "pt") as weights:
        n = sum(weights.get_tensor(name).numel() for name in weights.keys())  # noqa: SIM118
    assert card_of("hf:tiny").params == n


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('["hf:tiny"]\nparms = 1\n', r"table \['hf:tiny'\]: unknown key 'parms'"),
        ('["hf:tiny"]\nparams = "1"\n', r"table \['hf:tiny'\]: params: expected .int"),
        ('["hf:tiny"]\nparams = true\n', r"params: expected .int"),
        ('["hf:tiny"]\nparams = -1\n', "params must be a number of at least 0"),
        ('["hf:tiny"]\nrelease_date = "spring"\n', "release_date: "),
        ('["x:y"]\ncurrency = "EUR"\n', "currency: "),
        ('["x:y"]\nprice_in = nan\n' + PRICED, "price_in must be a number"),
        ('["x:y"]\nprice_in = inf\n' + PRICED, "price_in must be a number"),
        ('["x:y"]\nprice_in = 1.0\n', "price_in needs price_date"),
        ('["x:y"]\nprice_out = 1.0\nprice_date = 2026-01-31\n', "price_out needs price_source"),
        ("[tiny]\nparams = 1\n", "a card's name is a SPEC"),
        ('"hf:tiny" = 1\n', "'hf:tiny' is no table"),
        ('["hf:tiny"\n', "not valid TOML"),
        ("\udcff", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_named_with_table_and_key(own, text, match):
    path = own("")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError) as error:
        card_of("hf:tiny")
    assert str(path) in str(error.value)
    assert re.search(match, str(error.value))


def test_a_named_file_that_is_not_there_is_an_error_and_the_default_one_is_not(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("HARNESS_MODELS", str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"none\.toml, which is no file"):
        card_of("hf:tiny")
    monkeypatch.delenv("HARNESS_MODELS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert card_of("hf:tiny").family == "tiny"
    (tmp_path / "bridge-harness").mkdir()
    (tmp_path / "bridge-harness" / "models.toml").write_text('["hf:tiny"]\nfamily = "mine"\n')
    assert card_of("hf:tiny").family == "mine"


def test_a_users_card_overrides_field_by_field(own):
    own('["hf:tiny"]\nnote = "mine"\nrelease_date = 2026-02-03\n')
    card = card_of("hf:tiny@v2?dtype=fp32")
    assert (card.note, card.release_date) == ("mine", dt.date(2026, 2, 3))
    assert (card.family, card.params) == ("tiny", 1_000_576)
    assert card.facts()["release_date"] == "2026-02-03"
    assert "currency" not in card.facts()


def test_the_closer_pattern_wins_and_others_fill_in(own):
    own(
        '["openai:big-2"]\nfamily = "Big 2"\n'
        '["openai:big*"]\nfamily = "Big"\ncontext = 100\n'
        '["openai:*"]\nfamily = "?"\nlicense = "closed"\n'
    )
    card = card_of("openai:big-2?base_url=http://x")
    assert (card.family, card.context, card.license) == ("Big 2", 100, "closed")
    assert card_of("openai:big-3").family == "Big"
    assert card_of("openai:other") == Card(family="?", license="closed")
    assert card_of("gemini:other") == Card()


@pytest.mark.parametrize(
    ("prices", "usage", "dollars"),
    [
        # 1000 x 3 / 1e6 + 200 x 15 / 1e6 = 0.003 + 0.003
        ({"price_in": 3.0, "price_out": 15.0}, (1000, 200, None), 0.006),
        # reasoning is part of the output and costs the same: nothing changes
        ({"price_in": 3.0, "price_out": 15.0}, (1000, 200, 150), 0.006),
        # 0.003 + 50 x 15 / 1e6 + 150 x 20 / 1e6 = 0.003 + 0.00075 + 0.003
        ({"price_in": 3.0, "price_out": 15.0, "price_reasoning": 20.0}, (1000, 200, 150), 0.00675),
        ({"price_in": 0.0, "price_out": 0.0}, (1000, 200, None), 0.0),
        # what is not known is not 0
        ({"price_in": 3.0, "price_out": 15.0}, (None, 200, None), None),
        ({"price_in": 3.0, "price_out": 15.0}, (1000, None, None), None),
        ({"price_out": 15.0}, (1000, 200, None), None),
        ({}, (1000, 200, None), None),
        ({"price_in": 3.0, "price_out": 15.0, "price_reasoning": 20.0}, (1000, 200, None), None),
        ({"price_in": 3.0, "price_out": 15.0, "price_reasoning": 20.0}, (1000, 200, 201), None),
    ],
)
def test_cost(prices, usage, dollars):
    cost = Card(**prices).cost(*usage)
    assert cost is None if dollars is None else cost == pytest.approx(dollars, rel=1e-12)


def test_the_most_that_tokens_can_cost():
    assert Card(price_in=3.0, price_out=15.0).most_cost(1000, 200) == pytest.approx(0.006)
    dear = Card(price_in=3.0, price_out=15.0, price_reasoning=20.0)
    assert dear.most_cost(1000, 200) == pytest.approx(0.003 + 0.004)
    assert Card(price_in=3.0).most_cost(1000, 200) is None


def test_our_file_is_read_by_the_same_rules():
    assert read_cards(data("models.toml"))["hf:tiny"]["context"] == 512
