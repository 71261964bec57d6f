"""The built-in victims: light to list, right often enough, and exactly what their cards say."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys

import numpy as np
import pytest

from stockade.core.protocols import EncodingClassifier
from stockade.datasets.builtin import reviews
from stockade.models.adapters import load_model
from stockade.models.builtin import BUILTIN_MODELS, builtin_model

SLOW = pytest.mark.slow
FLOORS = {"sentiment-cnn": 0.73, "sentiment-lstm": 0.73, "sentiment-bert": 0.81}
EVERY = 8
"""Of the test reviews, which are sorted by label, the quick test reads one in so many."""


@pytest.mark.parametrize("module", ["stockade.models.builtin", "stockade.models.adapters"])
def test_listing_victims_imports_neither_torch_nor_transformers(module: str) -> None:
    heavy = ("torch", "transformers", "sklearn")
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def accuracy(name: str, every: int) -> float:
    rows = reviews("test")[::every]
    predicted = load_model(f"builtin:{name}").predict_proba([row.text for row in rows]).argmax(1)
    return float(np.mean(predicted == [row.label for row in rows]))


@pytest.mark.parametrize("name", ["sentiment-cnn", "sentiment-lstm", pytest.param("sentiment-bert", marks=SLOW)])
def test_victims_are_right_often_enough(name: str) -> None:
    assert accuracy(name, 1) >= FLOORS[name]


def test_the_slow_victim_is_right_often_enough_on_a_part() -> None:
    assert accuracy("sentiment-bert", EVERY) >= FLOORS["sentiment-bert"]


@pytest.mark.parametrize("name", FLOORS)
def test_victims_do_not_see_their_neighbours(name: str) -> None:
    classifier = load_model(f"builtin:{name}")
    assert isinstance(classifier, EncodingClassifier)
    assert classifier.labels == builtin_model(name).labels == ("negative", "positive")
    mixed = classifier.encode(["", "great", *(row.text for row in reviews("test")[:15]), "a very long one " * 20])
    alone = np.concatenate([classifier.predict_encoded([text]) for text in mixed])
    np.testing.assert_allclose(classifier.predict_encoded(mixed), alone, atol=2e-6)


@pytest.mark.parametrize("name", BUILTIN_MODELS)
def test_cards_state_the_hash_of_every_file(name: str) -> None:
    folder = builtin_model(name).folder
    stated = dict(
        re.findall(r"^\| (\S+) \| \d+ \| `([0-9a-f]{64})` \|$", (folder / "README.md").read_text(), re.MULTILINE)
    )
    files = [path for path in folder.iterdir() if path.name != "README.md"]
    assert stated == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert sum(path.stat().st_size for path in files) < 2_100_000
