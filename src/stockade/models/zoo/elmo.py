"""Reads published ELMo weights: an options file and an HDF5 file in the layout of AllenNLP.

| in the file | here |
|---|---|
| `char_embed` | rows 1 and up of the byte vectors; row 0, padding, is zeros |
| `CNN/W_cnn_i` (1, width, size, filters), `CNN/b_cnn_i` | convolution i |
| `CNN_high_i/W_carry`, `W_transform` (in, out), `b_…` | gate and transform of highway layer i |
| `CNN_proj/W_proj` (in, out), `b_proj` | the projection |
| `RNN_d/RNN/MultiRNNCell/Celll/LSTMCell/W_0` (size + size, 4 · cells), `B`, `W_P_0` | layer l of direction d |

Gates stand in the order i, j, f, o there, and one is added to the bias of the forget gate f when the model is run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from stockade.core.errors import DataError, ResourceMissing
from stockade.models.pretrained import quiet
from stockade.models.zoo.bilm import BiLm, BiLmConfig
from stockade.models.zoo.bilm_encoder import ACTIVATIONS, CHARACTERS, BiLmSizes, sizes_as_dict
from stockade.models.zoo.tokenizers import blank_and_marks, byte_tokenizer


def load_elmo_weights(options: str | Path, weights: str | Path) -> BiLm:
    """The language model of a published options and weights file; it has no head, so it cannot be trained further."""
    sizes = _sizes(Path(options))
    blank, marks = blank_and_marks(byte_tokenizer(lowercase=False))
    config = BiLmConfig(sizes=sizes_as_dict(sizes), blank_token_id=blank, mark_token_ids=marks)
    model = BiLm(config)
    model.encoder.load_state_dict(_weights(Path(weights), sizes, model.encoder.state_dict()))
    model.train(False)
    return model


def read_language_model(folder: str | Path) -> tuple[BiLm, PreTrainedTokenizerFast]:
    """The language model in a folder, with its tokenizer: a saved `BiLm`, or published options and weights files."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder} with a language model.")
    if _is_saved_bilm(folder / "config.json"):
        with quiet():
            model = BiLm.from_pretrained(folder, use_safetensors=True)
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        return model, tokenizer
    options, weights = sorted(folder.glob("*options*.json")), sorted(folder.glob("*weights*.hdf5"))
    if len(options) != 1 or len(weights) != 1:
        inside = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
        raise DataError(
            f"{folder} has no language model: expected a saved biLM, or one *options*.json and one *weights*.hdf5 "
            f"(found: {inside})."
        )
    return load_elmo_weights(options[0], weights[0]), byte_tokenizer(lowercase=False)


def _is_saved_bilm(config: Path) -> bool:
    try:
        return bool(json.loads(config.read_text(encoding="utf-8")).get("model_type") == BiLmConfig.model_type)
    except (OSError, ValueError, AttributeError):
        return False


def _sizes(path: Path) -> BiLmSizes:
    try:
        options = json.loads(path.read_text(encoding="utf-8"))
        characters, recurrent = options["char_cnn"], options["lstm"]
        sizes = BiLmSizes(
            character_size=int(characters["embedding"]["dim"]),
            filters=[(int(width), int(count)) for width, count in characters["filters"]],
            highways=int(characters["n_highway"]),
            activation=str(characters["activation"]),
            projection_size=int(recurrent["projection_dim"]),
            cell_size=int(recurrent["dim"]),
            layers=int(recurrent["n_layers"]),
            longest_word=int(characters["max_characters_per_token"]),
            cell_clip=recurrent.get("cell_clip"),
            projection_clip=recurrent.get("proj_clip"),
        )
    except FileNotFoundError:
        raise DataError(f"There is no ELMo options file {path}.") from None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise DataError(
            f"{path} is no ELMo options file: {problem!r} (expected JSON with char_cnn and lstm as AllenNLP writes it)."
        ) from None
    if recurrent.get("use_skip_connections") is False:
        raise DataError(f"{path} says use_skip_connections false; only models with skip connections can be read.")
    if sizes.activation not in ACTIVATIONS:
        raise DataError(f'{path} asks for the activation "{sizes.activation}" (expected: {", ".join(ACTIVATIONS)}).')
    return sizes


def _weights(path: Path, sizes: BiLmSizes, expected: dict[str, Tensor]) -> dict[str, Tensor]:
    try:
        import h5py
    except ImportError:
        raise ResourceMissing(
            "Reading published ELMo weights needs the package h5py, which is not installed. Run pip install "
            "'stockade[elmo]'."
        ) from None
    try:
        with h5py.File(path, "r") as file:
            arrays = _arrays(file, sizes)
    except FileNotFoundError:
        raise DataError(f"There is no ELMo weights file {path}.") from None
    except (OSError, KeyError) as problem:
        raise DataError(f"{path} cannot be read as ELMo weights: {problem} (expected AllenNLP's HDF5 file).") from None
    tensors = {name: torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)) for name, array in arrays.items()}
    for name, tensor in tensors.items():
        if name not in expected or tensor.shape != expected[name].shape:
            wanted = tuple(expected[name].shape) if name in expected else "none"
            raise DataError(f"{path} does not fit its options: {name} is {tuple(tensor.shape)}, expected {wanted}.")
    return tensors


def _arrays(file: Any, sizes: BiLmSizes) -> dict[str, Any]:
    """The arrays of the file under the names and in the layout of a `BiLmEncoder`."""
    table = np.zeros((CHARACTERS, file["char_embed"].shape[1]), dtype=np.float32)
    vectors = file["char_embed"][...]
    table[1 : 1 + len(vectors)] = vectors[: CHARACTERS - 1]
    arrays = {
        "embedding.weight": table,
        "projection.weight": file["CNN_proj/W_proj"][...].T,
        "projection.bias": file["CNN_proj/b_proj"][...],
    }
    for number in range(len(sizes.filters)):
        arrays[f"convolutions.{number}.weight"] = file[f"CNN/W_cnn_{number}"][...][0].transpose(2, 1, 0)
        arrays[f"convolutions.{number}.bias"] = file[f"CNN/b_cnn_{number}"][...]
    for number in range(sizes.highways):
        for name, attribute in (("carry", "gate"), ("transform", "transform")):
            arrays[f"highways.{number}.{attribute}.weight"] = file[f"CNN_high_{number}/W_{name}"][...].T
            arrays[f"highways.{number}.{attribute}.bias"] = file[f"CNN_high_{number}/b_{name}"][...]
    for direction, attribute in enumerate(("forwards", "backwards")):
        for layer in range(sizes.layers):
            cell = file[f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"]
            arrays |= _cell(f"{attribute}.{layer}", cell, sizes)
    return arrays


def _cell(prefix: str, cell: Any, sizes: BiLmSizes) -> dict[str, Any]:
    both, bias = _reordered(cell["W_0"][...]), _reordered(cell["B"][...])
    bias[len(bias) // 4 : len(bias) // 2] += 1.0
    return {
        f"{prefix}.inputs.weight": both[: sizes.projection_size].T,
        f"{prefix}.states.weight": both[sizes.projection_size :].T,
        f"{prefix}.states.bias": bias,
        f"{prefix}.projection.weight": cell["W_P_0"][...].T,
    }


def _reordered(gates: Any) -> Any:
    """Gates i, j, f, o along the last axis as i, f, j, o."""
    enter, new, forget, out = np.split(gates, 4, axis=-1)
    return np.concatenate([enter, forget, new, out], axis=-1)
