"""How adversarial texts move between models: the transfer matrix, what its models have in common, and means over it.

r(s, t) is the share of the adversarial texts made on the source s that the target t misclassifies. The transfer study
measures the matrix; the studies of ensembles and of rules read it, or one that was published.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import DataError, OptionError, unknown_name
from stockade.core.files import write_text
from stockade.core.sanitize import csv_cell, csv_text
from stockade.models.zoo.names import parse_zoo_name

FACTORS = ("architecture", "input form", "embedding", "capacity")
BERT_FAMILY = "BERT"
OTHER = "other"
INPUT_CLASSES = ("Random", "GloVe", "word2vec", "fastText", "Character", "ELMo", BERT_FAMILY)
"""The classes of the paper's Table 4."""
_TRANSFORMERS = ("BERT", "RoBERTa", "ALBERT", "BERT-NOPT", "MiniLM-L6", "MiniLM-L3")
_UNITS = {"W": "Word", "C": "Character", "WC": "ELMo"}
_EMBEDDINGS = {"W2vec": "word2vec"}


@dataclass(frozen=True, slots=True)
class Traits:
    """What the factors of the study say of a model; a model outside the zoo has the architecture "other" only.

    Parameters
    ----------
    architecture
        LSTM, BiLSTM, CNN, BERT (the whole family) or other.
    form
        Word, Character, ELMo, BERT or other: what the model reads.
    embedding
        What its input vectors begin at.
    layers
        How many there are; 0 where the name does not say.
    """

    architecture: str
    form: str
    embedding: str
    layers: int

    @property
    def input_class(self) -> str:
        """The row of Table 4: the embedding of a word model, the input form of any other."""
        return self.embedding if self.form == "Word" else self.form


def traits_of(name: str) -> Traits:
    """The traits of a model by its name: that of the zoo, with a number behind it (`CNN-W-GloVe-1-2`) or not."""
    for candidate in (name, name.rpartition("-")[0]):
        try:
            parsed = parse_zoo_name(candidate)
        except OptionError:
            continue
        if parsed.architecture in _TRANSFORMERS:
            return Traits(BERT_FAMILY, BERT_FAMILY, BERT_FAMILY, 0)
        if parsed.unit:
            embedding = _EMBEDDINGS.get(parsed.embedding, parsed.embedding)
            return Traits(parsed.architecture, _UNITS[parsed.unit], embedding, parsed.layers)
    return Traits(OTHER, OTHER, OTHER, 0)


@dataclass(frozen=True, slots=True, eq=False)
class TransferMatrix:
    """Transfer rates of every source to every target; NaN where one was not measured.

    Parameters
    ----------
    sources, targets
        Names of the models of the rows and of the columns.
    rates
        A row per source, a column per target. A rate of a model to itself is its base rate: between two trainings of it
        with different seeds.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    rates: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.rates.shape != (len(self.sources), len(self.targets)):
            raise DataError(
                f"The transfer matrix has the shape {self.rates.shape}, expected a row for each of "
                f"{len(self.sources)} sources and a column for each of {len(self.targets)} targets."
            )

    def rate(self, source: str, target: str) -> float:
        """r(source, target)."""
        return float(self.rates[_index(self.sources, source), _index(self.targets, target)])

    def base_rate(self, model: str) -> float:
        """The rate of a model to another training of itself; NaN where that was not measured."""
        return self.rate(model, model) if model in self.sources and model in self.targets else float("nan")

    def row(self, source: str) -> NDArray[np.float64]:
        """The rates of one source to all targets."""
        row: NDArray[np.float64] = self.rates[_index(self.sources, source)]
        return row

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The matrix in a csv file: a header `source,TARGET,…`, then a row for each source; an empty cell is NaN."""
        file = Path(path)
        try:
            with file.open(encoding="utf-8", newline="") as lines:
                header, *rows = [row for row in csv.reader(lines) if row]
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"The transfer matrix {file} cannot be read ({error}).") from None
        except ValueError:
            raise DataError(f"{file} is empty, expected a transfer matrix: source,TARGET,…") from None
        values = []
        for number, row in enumerate(rows, 2):
            if len(row) != len(header):
                raise DataError(f"{file}, row {number}: {len(row)} cells, expected {len(header)} as in the header.")
            try:
                values.append([float(cell) if cell else float("nan") for cell in row[1:]])
            except ValueError:
                raise DataError(f"{file}, row {number}: expected rates between 0 and 1 after the source.") from None
        rates = np.array(values, dtype=np.float64).reshape(len(values), len(header) - 1)
        if np.any((rates < 0) | (rates > 1)):
            raise DataError(f"{file} has a rate outside of 0 to 1.")
        return cls(tuple(csv_text(row[0]) for row in rows), tuple(map(csv_text, header[1:])), rates)

    def write(self, path: str | Path) -> None:
        """Write the matrix as `read` reads it, to four decimal places."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("source", *map(csv_cell, self.targets)))
        for source, row in zip(self.sources, self.rates, strict=True):
            writer.writerow((csv_cell(source), *("" if np.isnan(rate) else f"{rate:.4f}" for rate in row)))
        write_text(Path(path), stream.getvalue())


def class_means(
    matrix: TransferMatrix, class_of: Callable[[str], str], classes: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Mean rates from class to class, base rates among them (Tables 3 and 4); None where there is no pair.

    Parameters
    ----------
    matrix
        The rates.
    class_of
        The class of a model by its name.
    classes
        Which classes, in which order.
    """
    rows = [class_of(name) for name in matrix.sources]
    columns = [class_of(name) for name in matrix.targets]
    means: dict[str, dict[str, float | None]] = {}
    for source in classes:
        means[source] = {}
        for target in classes:
            cells = matrix.rates[np.ix_([name == source for name in rows], [name == target for name in columns])]
            measured = cells[~np.isnan(cells)]
            means[source][target] = float(measured.mean()) if measured.size else None
    return means


def factor_effects(matrix: TransferMatrix) -> Mapping[str, list[tuple[str, str, float]]]:
    """For each factor the pairs (source, target) that differ in it alone, with |r(s, t) − r0(t)| (Table 2).

    The mean of a factor's differences is its effect. The input form of a word model cannot change alone, because its
    embedding goes with it: its neighbours are the character and the ELMo model of the same architecture and size.
    """
    effects: dict[str, list[tuple[str, str, float]]] = {factor: [] for factor in FACTORS}
    for target in matrix.targets:
        base = matrix.base_rate(target)
        for source in matrix.sources:
            factor = differing_factor(source, target)
            difference = abs(matrix.rate(source, target) - base)
            if factor is not None and not np.isnan(difference):
                effects[factor].append((source, target, difference))
    return effects


def differing_factor(first: str, second: str) -> str | None:
    """The one factor in which two models differ; None if there is none or more than one."""
    one, other = traits_of(first), traits_of(second)
    if OTHER in (one.architecture, other.architecture) or BERT_FAMILY in (one.architecture, other.architecture):
        return None
    differ = [
        factor
        for factor, different in (
            ("architecture", one.architecture != other.architecture),
            ("input form", one.form != other.form),
            ("embedding", one.form == other.form and one.embedding != other.embedding),
            ("capacity", one.layers != other.layers),
        )
        if different
    ]
    return differ[0] if len(differ) == 1 else None


def _index(names: Sequence[str], name: str) -> int:
    if name not in names:
        raise unknown_name("model in this transfer matrix", name, names)
    return names.index(name)
