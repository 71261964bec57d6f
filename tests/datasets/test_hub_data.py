"""`hf:` references: against a stand-in for the `datasets` package, and against the package where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from stockade.core.errors import DataError, ResourceMissing
from stockade.datasets.examples import prepare_examples
from stockade.datasets.load import load_data
from stockade.datasets.source import Row

needs_datasets = pytest.mark.skipif(find_spec("datasets") is None, reason="the package datasets is not installed")


@dataclass(frozen=True)
class FakeDataset:
    """As much of `datasets.Dataset` as is asked of it."""

    table: pa.Table
    features: dict[str, Any] = field(default_factory=dict)

    @property
    def column_names(self) -> list[str]:
        return list(self.table.column_names)

    def select_columns(self, columns: list[str]) -> FakeDataset:
        return FakeDataset(self.table.select(columns), self.features)

    def with_format(self, kind: str) -> FakeDataset:
        assert kind == "arrow"
        return self

    def iter(self, batch_size: int) -> Iterator[pa.Table]:
        return (self.table.slice(start, batch_size) for start in range(0, self.table.num_rows, batch_size))


def sentences(count: int) -> FakeDataset:
    table = pa.table({"sentence": [f"film {n}" for n in range(count)], "label": [n % 2 for n in range(count)]})
    return FakeDataset(table, {"label": SimpleNamespace(names=["neg", "pos"])})


DATASETS = {
    "org/films": {"train": sentences(5), "validation": sentences(3), "test": sentences(2)},
    "plain": {"train": sentences(4)},
    "odd": {"fold1": sentences(1), "fold2": sentences(1)},
}


class FakeLibrary:
    """The functions of `datasets`, over the data sets above."""

    def get_dataset_split_names(self, name: str, config: str | None) -> list[str]:
        return list(self._named(name, config))

    def load_dataset(self, name: str, config: str | None, split: str | None = None) -> Any:
        splits = self._named(name, config)
        return splits if split is None else splits[split]

    def _named(self, name: str, config: str | None) -> dict[str, FakeDataset]:
        if name == "away":
            raise ConnectionError("Couldn't reach the hub\nwith a long trace")
        if name not in DATASETS or config not in (None, "small"):
            raise FileNotFoundError(f"Dataset '{name}' doesn't exist on the Hub\nand more")
        return DATASETS[name]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", FakeLibrary())


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("reference", "name", "rows"),
    [
        ("hf:org/films", "hf:org/films:test", 2),
        ("hf:org/films:train", "hf:org/films:train", 5),
        ("hf:org/films:small:validation", "hf:org/films:small:validation", 3),
        ("hf:plain", "hf:plain:train", 4),
    ],
)
def test_references_name_a_data_set_and_a_split(reference: str, name: str, rows: int) -> None:
    source = load_data(reference)
    assert (source.name, source.label_names) == (name, ("neg", "pos"))
    assert [row.label for row in source.rows()] == [number % 2 for number in range(rows)]
    assert next(source.rows()) == Row("0", "film 0", None, 0)
    assert source.fingerprint() == load_data(reference).fingerprint()


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("hf:org/films:tset", 'has no split "tset" (found: train, validation, test). Name one of them'),
        ("hf:odd", "hf:odd has no test split (found: fold1, fold2). Name one of them, as in hf:odd:fold1."),
        ("hf:nothing", "hf:nothing cannot be loaded (FileNotFoundError: Dataset 'nothing' doesn't exist on the Hub)"),
        (
            "hf:away:test",
            "hf:away:test cannot be downloaded (ConnectionError: Couldn't reach the hub). Check the network",
        ),
        ("hf:", "names no data set, expected hf:NAME"),
        ("hf:a:b:c:d", "names no data set, expected hf:NAME"),
    ],
)
def test_what_cannot_be_loaded_is_one_sentence(reference: str, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        load_data(reference)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("library")
def test_class_names_decide_the_class() -> None:
    examples = prepare_examples(load_data("hf:org/films"), ("POSITIVE", "NEGATIVE"))
    assert [example.label for example in examples] == [1, 0]


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ResourceMissing) as caught:
        load_data("hf:imdb")
    assert str(caught.value) == (
        'hf:imdb needs the package datasets, which is not installed. Install it with: pip install "stockade[hf]"'
    )


def test_a_dictionary_of_splits_asks_for_one() -> None:
    with pytest.raises(DataError, match=r'several splits \(found: train, test\)\. Give one, as in data\["train"\]'):
        load_data({"train": sentences(1), "test": sentences(1)})


@needs_datasets
def test_the_package_itself_gives_rows_names_and_streams(tmp_path: Path) -> None:
    import datasets

    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])})
    dataset = datasets.Dataset.from_dict({"text": ["dull film", "fine film"], "label": [0, 1]}, features=features)
    expected = [Row("0", "dull film", None, 0), Row("1", "fine film", None, 1)]
    for data in (dataset, dataset.to_iterable_dataset(), dataset.shuffle(seed=1).sort("label")):
        source = load_data(data)
        assert list(source.rows()) == list(source.rows()) == expected
        assert source.label_names == ("neg", "pos")
    dataset.save_to_disk(str(tmp_path / "one"))
    assert list(load_data(f"hf:{tmp_path / 'one'}").rows()) == expected
    datasets.DatasetDict(train=dataset, test=dataset).save_to_disk(str(tmp_path / "splits"))
    assert load_data(f"hf:{tmp_path / 'splits'}").name.endswith(":test")
    dataset.to_parquet(str(tmp_path / "reviews.parquet"))
    assert load_data(tmp_path / "reviews.parquet").label_names == ("neg", "pos")


@needs_datasets
def test_the_package_itself_offline_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError) as caught:
        load_data("hf:no-such-org/no-such-data:test")
    assert str(caught.value).startswith("hf:no-such-org/no-such-data:test cannot be")
    assert "\n" not in str(caught.value)
