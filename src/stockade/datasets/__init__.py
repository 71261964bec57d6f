"""Data to attack: files, hub data sets, built-in reviews and Python objects, all as streams of checked rows.

`load_data` turns a reference into a `DataSource`, `prepare_examples` turns that into examples for a model's classes.
"""

from stockade.datasets.examples import ExampleSet, UnlabelledExample, UnlabelledSet, prepare_examples, prepare_texts
from stockade.datasets.labels import align_labels
from stockade.datasets.load import load_data
from stockade.datasets.source import DataSource, Row

__all__ = [
    "DataSource",
    "ExampleSet",
    "Row",
    "UnlabelledExample",
    "UnlabelledSet",
    "align_labels",
    "load_data",
    "prepare_examples",
    "prepare_texts",
]
