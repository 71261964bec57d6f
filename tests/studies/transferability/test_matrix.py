"""The transfer matrix: means by class against the paper's Table 3, neighbours by factor, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stockade.core.errors import DataError, OptionError
from stockade.studies.transferability.matrix import (
    TransferMatrix,
    class_means,
    differing_factor,
    factor_effects,
    traits_of,
)
from tests.studies.published import published_matrix


def test_class_means_reproduce_the_published_table_3() -> None:
    means = class_means(
        published_matrix(), lambda name: traits_of(name).architecture, ("LSTM", "BiLSTM", "CNN", "BERT")
    )
    expected = {
        ("LSTM", "CNN"): 0.3531,
        ("LSTM", "BERT"): 0.1900,
        ("BiLSTM", "CNN"): 0.3369,
        ("BiLSTM", "BERT"): 0.1833,
        ("CNN", "CNN"): 0.4421,
        ("CNN", "BERT"): 0.1690,
        ("BERT", "CNN"): 0.3485,
        ("BERT", "BERT"): 0.3956,
    }
    for (source, target), mean in expected.items():
        assert means[source][target] == pytest.approx(mean, abs=5e-5)
    assert means["CNN"]["LSTM"] is None  # those columns cannot be read in the paper's text


@pytest.mark.parametrize(
    ("first", "second", "factor"),
    [
        ("LSTM-W-Random-2", "BiLSTM-W-Random-2", "architecture"),
        ("LSTM-W-Random-2", "LSTM-W-GloVe-2", "embedding"),
        ("LSTM-W-Random-2", "LSTM-W-Random-4", "capacity"),
        ("LSTM-W-GloVe-2", "LSTM-C-Random-2", "input form"),
        ("LSTM-C-Random-2", "LSTM-WC-ELMo-2", "input form"),
        ("LSTM-W-Random-2", "CNN-W-GloVe-2", None),
        ("BERT", "RoBERTa", None),
        ("LSTM-W-Random-2", "LSTM-W-Random-2", None),
        ("somebody-else", "LSTM-W-Random-2", None),
    ],
)
def test_the_factor_in_which_two_models_differ(first: str, second: str, factor: str | None) -> None:
    assert differing_factor(first, second) == factor
    assert differing_factor(second, first) == factor


def test_effects_are_distances_to_the_base_rate_of_the_target() -> None:
    names = ("CNN-W-Random-1", "CNN-W-GloVe-1", "BERT")
    matrix = TransferMatrix(names, names, np.array([[0.5, 0.3, 0.1], [0.45, 0.6, 0.1], [0.2, 0.2, np.nan]]))
    effects = factor_effects(matrix)
    expected: list[object] = [
        ("CNN-W-GloVe-1", "CNN-W-Random-1", pytest.approx(0.05)),
        ("CNN-W-Random-1", "CNN-W-GloVe-1", pytest.approx(0.3)),
    ]
    assert effects["embedding"] == expected
    assert not effects["architecture"]
    assert np.isnan(matrix.base_rate("BERT"))


def test_a_written_matrix_is_read_again(tmp_path: Path) -> None:
    matrix = TransferMatrix(("a", "b"), ("a", "b", "c"), np.array([[0.25, np.nan, 1], [0, 0.125, 0.3333]]))
    matrix.write(tmp_path / "matrix.csv")
    again = TransferMatrix.read(tmp_path / "matrix.csv")
    assert (again.sources, again.targets) == (matrix.sources, matrix.targets)
    np.testing.assert_array_equal(again.rates, matrix.rates)
    with pytest.raises(OptionError, match="There is no model in this transfer matrix"):
        again.rate("d", "a")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is empty, expected a transfer matrix"),
        ("source,a\nb,0.5,0.5\n", "row 2: 3 cells, expected 2"),
        ("source,a\nb,much\n", "row 2: expected rates between 0 and 1"),
        ("source,a\nb,1.5\n", "a rate outside of 0 to 1"),
    ],
)
def test_a_file_that_is_no_matrix_is_refused(content: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "matrix.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        TransferMatrix.read(file)
