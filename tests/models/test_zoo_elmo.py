"""The language model: published weights against the published equations in numpy, labels, a loss that falls."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from stockade.core.errors import DataError, ResourceMissing
from stockade.models.adapters import load_model
from stockade.models.zoo.bilm import BiLmWords
from stockade.models.zoo.build import Sources, build_bilm, build_model
from stockade.models.zoo.elmo import load_elmo_weights
from stockade.models.zoo.tokenizers import byte_tokenizer
from tests.models.zoo_kit import LABELS, LANGUAGE, TEXTS

SIZE, CELLS, CHARACTERS, LONGEST = 3, 5, 4, 9
FILTERS = [[1, 2], [2, 3], [3, 2]]
OPTIONS: dict[str, Any] = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": SIZE,
        "cell_clip": 0.4,
        "proj_clip": 0.3,
        "dim": CELLS,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": FILTERS,
        "n_highway": 2,
        "embedding": {"dim": CHARACTERS},
        "n_characters": 262,
        "max_characters_per_token": LONGEST,
    },
}


def published_arrays() -> dict[str, np.ndarray]:
    """Random weights under the names and shapes of the published file."""
    rng, total = np.random.default_rng(0), sum(count for _, count in FILTERS)
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, CHARACTERS)}
    for number, (width, count) in enumerate(FILTERS):
        shapes |= {f"CNN/W_cnn_{number}": (1, width, CHARACTERS, count), f"CNN/b_cnn_{number}": (count,)}
    for number in range(2):
        for kind in ("carry", "transform"):
            shapes |= {f"CNN_high_{number}/W_{kind}": (total, total), f"CNN_high_{number}/b_{kind}": (total,)}
    shapes |= {"CNN_proj/W_proj": (total, SIZE), "CNN_proj/b_proj": (SIZE,)}
    for direction in range(2):
        for layer in range(2):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {f"{cell}/W_0": (2 * SIZE, 4 * CELLS), f"{cell}/B": (4 * CELLS,), f"{cell}/W_P_0": (CELLS, SIZE)}
    return {name: rng.normal(0, 0.9, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    (tmp_path / "tiny_options.json").write_text(json.dumps(OPTIONS), encoding="utf-8")
    with h5py.File(tmp_path / "tiny_weights.hdf5", "w") as file:
        for name, array in published_arrays().items():
            file[name] = array
    return tmp_path


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def word_vector(arrays: dict[str, np.ndarray], characters: list[int]) -> np.ndarray:
    """A word from its bytes (or the one mark that stands for a text's begin, 256, or end, 257)."""
    ids = [258, *characters[: LONGEST - 2], 259]
    ids += [260] * (LONGEST - len(ids))
    table = arrays["char_embed"][ids]
    maxima = []
    for number, (width, _) in enumerate(FILTERS):
        filters = arrays[f"CNN/W_cnn_{number}"][0]
        windows = [np.einsum("wc,wcf->f", table[at : at + width], filters) for at in range(LONGEST - width + 1)]
        maxima.append(np.maximum(np.max(windows, axis=0) + arrays[f"CNN/b_cnn_{number}"], 0))
    vector = np.concatenate(maxima)
    for number in range(2):
        carry, transform = (
            vector @ arrays[f"CNN_high_{number}/W_{kind}"] + arrays[f"CNN_high_{number}/b_{kind}"]
            for kind in ("carry", "transform")
        )
        vector = sigmoid(carry) * np.maximum(transform, 0) + (1 - sigmoid(carry)) * vector
    return vector @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]


def layer_states(arrays: dict[str, np.ndarray], cell: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    hidden, memory, states = np.zeros(SIZE), np.zeros(CELLS), []
    for vector in inputs:
        gates = np.concatenate([vector, hidden]) @ arrays[f"{cell}/W_0"] + arrays[f"{cell}/B"]
        enter, new, forget, out = np.split(gates, 4)
        memory = np.clip(sigmoid(enter) * np.tanh(new) + sigmoid(forget + 1) * memory, -0.4, 0.4)
        hidden = np.clip((sigmoid(out) * np.tanh(memory)) @ arrays[f"{cell}/W_P_0"], -0.3, 0.3)
        states.append(hidden)
    return states


def expected_layers(words: list[str]) -> list[np.ndarray]:
    arrays = published_arrays()
    sequence = [word_vector(arrays, word) for word in ([256], *(list(word.encode()) for word in words), [257])]
    layers = [[np.concatenate([vector, vector]) for vector in sequence]]
    ahead, behind = sequence, sequence[::-1]
    for layer in range(2):
        states = [
            layer_states(arrays, f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell", read)
            for direction, read in enumerate((ahead, behind))
        ]
        ahead, behind = (
            [new + old for new, old in zip(computed, read, strict=True)] if layer else computed
            for computed, read in zip(states, (ahead, behind), strict=True)
        )
        layers.append([np.concatenate(both) for both in zip(ahead, behind[::-1], strict=True)])
    return [np.stack(layer[1:-1]) for layer in layers]


def test_published_weights_give_what_the_published_equations_give(published: Path) -> None:
    model = load_elmo_weights(published / "tiny_options.json", published / "tiny_weights.hdf5")
    texts = ["Hi Hï a", "extraordinarily seventh eighthly x", "one"]
    inputs = byte_tokenizer(lowercase=False)(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        output = model(**inputs)
    for row, text in enumerate(texts):
        words = text.split()
        for states, expected in zip(output.hidden_states, expected_layers(words), strict=True):
            np.testing.assert_allclose(states[row, : len(words)].numpy(), expected, atol=1e-5)
    assert output.mask.sum(1).tolist() == [3, 4, 1]


def test_a_classifier_over_published_weights_is_saved_whole(published: Path, tmp_path_factory: Any) -> None:
    model, tokenizer = build_model(
        "BiLSTM-WC-ELMo-1", TEXTS, LABELS, sources=Sources(elmo=published), options={"hidden_size": 4}
    )
    folder = tmp_path_factory.mktemp("whole")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    before, after = load_model((model, tokenizer)), load_model(folder)
    np.testing.assert_allclose(after.predict_proba(TEXTS), before.predict_proba(TEXTS), atol=1e-7)
    apart = after.predict_proba(["Great film", "great film"])
    assert not np.allclose(apart[0], apart[1], atol=1e-9)  # published ELMo knows capitals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lstm": {**OPTIONS["lstm"], "use_skip_connections": False}}, "use_skip_connections false"),
        ({"lstm": {}}, "is no ELMo options file: KeyError"),
        ({"char_cnn": {**OPTIONS["char_cnn"], "filters": [[1]]}}, "is no ELMo options file"),
        ({"char_cnn": {**OPTIONS["char_cnn"], "activation": "gelu"}}, 'activation "gelu".*relu, tanh'),
        ({"char_cnn": {**OPTIONS["char_cnn"], "n_highway": 3}}, "cannot be read as ELMo weights"),
        ({"lstm": {**OPTIONS["lstm"], "dim": 7}}, "does not fit its options: forwards.0"),
    ],
)
def test_options_that_do_not_fit_are_refused(published: Path, change: dict[str, Any], message: str) -> None:
    path = published / "other.json"
    path.write_text(json.dumps({**OPTIONS, **change}), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_elmo_weights(path, published / "tiny_weights.hdf5")


def test_files_that_are_missing_or_of_another_kind_are_named(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options, weights = published / "tiny_options.json", published / "tiny_weights.hdf5"
    with pytest.raises(DataError, match="no ELMo options file"):
        load_elmo_weights(published / "none.json", weights)
    with pytest.raises(DataError, match="is no ELMo options file"):
        load_elmo_weights(weights, weights)
    with pytest.raises(DataError, match="no ELMo weights file"):
        load_elmo_weights(options, published / "none.hdf5")
    with pytest.raises(DataError, match="cannot be read as ELMo weights"):
        load_elmo_weights(options, options)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ResourceMissing, match=r"h5py.*stockade\[elmo\]"):
        load_elmo_weights(options, weights)


def test_labels_follow_the_models_own_cut_and_the_loss_falls() -> None:
    model, tokenizer = build_bilm(TEXTS, options=LANGUAGE)
    words = BiLmWords.of(tokenizer, TEXTS, model.config.words)
    assert len(words) == model.config.words
    labels = words.labels(TEXTS)
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    assert model(**inputs).mask.sum(1).tolist() == [len(numbers) for numbers in labels]
    assert words.labels(["xyzzy great"]) == [[-1, words.numbers["great"]]]
    width = max(map(len, labels))
    wanted = torch.tensor([numbers + [-1] * (width - len(numbers)) for numbers in labels])
    optimiser = torch.optim.Adam(model.train().parameters(), lr=0.02)
    losses = []
    for _ in range(40):
        loss = model(**inputs, labels=wanted).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.85 * losses[0]


def test_the_loss_is_the_mean_over_known_words_in_both_directions() -> None:
    model, tokenizer = build_bilm(TEXTS, options=LANGUAGE)
    model.eval()
    inputs = tokenizer(["great film", "a bad"], padding=True, return_tensors="pt")
    together = model(**inputs, labels=torch.tensor([[2, 3], [4, -1]])).loss
    # 3 + 3 predictions of the first text; of the second the unknown word is left out, 2 + 2
    parts = [
        model(**tokenizer([text], return_tensors="pt"), labels=torch.tensor([labels])).loss
        for text, labels in (("great film", [2, 3]), ("a bad", [4, -1]))
    ]
    torch.testing.assert_close(together, (6 * parts[0] + 4 * parts[1]) / 10)


def test_a_headless_language_model_says_so(published: Path) -> None:
    from stockade.core.errors import ModelError

    model = load_elmo_weights(published / "tiny_options.json", published / "tiny_weights.hdf5")
    with pytest.raises(ModelError, match="no words to predict"):
        model(input_ids=torch.tensor([[98]]), labels=torch.tensor([[2]]))
