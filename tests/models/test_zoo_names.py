"""The names of the zoo: 63 in the pool, numbered as in the study, and nothing heavy behind them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from stockade.cli.ls import command
from stockade.core.errors import OptionError
from stockade.models.zoo.names import FAMILIES, POOL, ZOO_NAMES, ZooName, parse_zoo_name, pool_id


def test_the_pool_is_63_different_models_numbered_in_order() -> None:
    assert len(POOL) == len(set(POOL)) == 63
    assert [pool_id(name) for name in POOL] == list(range(1, 64))
    assert len(set(map(str, ZOO_NAMES))) == len(ZOO_NAMES) == 70


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("LSTM-W-Random-1", 1),
        ("LSTM-C-Random-1", 5),
        ("LSTM-WC-ELMo-4", 18),
        ("BiLSTM-W-Random-1", 19),
        ("BiLSTM-W-fastText-2", 28),
        ("CNN-W-Random-1", 37),
        ("CNN-WC-ELMo-6", 60),
        ("BERT", 61),
        ("RoBERTa", 62),
        ("ALBERT", 63),
    ],
)
def test_numbers_of_the_study(name: str, number: int) -> None:
    assert pool_id(name) == number
    assert str(POOL[number - 1]) == name


def test_case_does_not_matter_and_a_name_comes_back_as_it_is_written() -> None:
    assert parse_zoo_name("bilstm-w-GLOVE-2") == ZooName("BiLSTM", "W", "GloVe", 2)
    assert parse_zoo_name(" bert-nopt ") == ZooName("BERT-NOPT")
    assert all(parse_zoo_name(str(name).upper()) == name for name in ZOO_NAMES)


def test_an_unknown_name_is_answered_with_the_nearest_and_the_patterns() -> None:
    with pytest.raises(OptionError, match=r'no model "CNN-W-GloVe-5" .*BERT-NOPT.* Did you mean "CNN-W-GloVe-[1246]"'):
        parse_zoo_name("CNN-W-GloVe-5")
    with pytest.raises(OptionError, match="has no number"):
        pool_id("BERT-NOPT")


def test_names_are_known_without_torch() -> None:
    code = "import sys, stockade.models.zoo.names; print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_ls_shows_a_line_for_each_family_and_all_names_to_programs() -> None:
    shown = CliRunner().invoke(command, ["models"]).output
    assert all(family.pattern in shown for family in FAMILIES)
    assert len(shown.splitlines()) < 20
    listed = json.loads(CliRunner().invoke(command, ["models", "--json"]).output)
    assert {str(name) for name in ZOO_NAMES} < {entry["name"] for entry in listed}
