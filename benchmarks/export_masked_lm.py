"""Write Stockade's default masked LM as a plain transformers folder, so that other tools can load the same model.

    python benchmarks/export_masked_lm.py FOLDER

Stockade's masked LM is the packaged MiniLM with an adapter and a head of its own, of which a plain `BertForMaskedLM`
knows two things not: the mask token has one vector where it is read and another where it is written, and the logits
are scaled before the bias is added. Both fit when the decoder is not tied to the input embeddings: the adapter is
merged into the weights, the mask's vector is put into the input side alone, the scale into the decoder alone. The
script ends with an error if the folder then guesses differently.
"""

from __future__ import annotations

import argparse
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, BertForMaskedLM

from stockade.models.language import minilm_folder
from stockade.models.lora import load_adapter, merge_adapter
from stockade.models.masked_lm import ADAPTER, MaskedLM
from stockade.models.pretrained import quiet

PLACES = [("the film is a ", " of wit and feeling ."), ("", " acting cannot save it ."), ("it 's a ", "")]
GUESSES = 50
TOLERANCE = 1e-3


def merged_model(mask_token: int) -> Any:
    """The packaged MiniLM with the adapter merged in and a decoder of its own."""
    adapter = load_adapter(Path(str(resources.files("stockade.artifacts").joinpath(ADAPTER))))
    mask_vector, scale = adapter.replaced.pop("mask_vector"), adapter.replaced.pop("output_scale")
    with quiet():
        model = BertForMaskedLM.from_pretrained(minilm_folder(), use_safetensors=True, dtype=torch.float32)
    merge_adapter(model, adapter)
    words = model.bert.embeddings.word_embeddings.weight
    decoder = model.cls.predictions.decoder
    decoder.weight = torch.nn.Parameter(words.detach() * scale)
    decoder.bias = torch.nn.Parameter(model.cls.predictions.bias.detach().clone())
    with torch.no_grad():
        words[mask_token] = mask_vector
    model.config.tie_word_embeddings = False
    return model


def export_masked_lm(folder: Path) -> Path:
    """Write the folder, check that it guesses what the original guesses, and return it."""
    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
        merged_model(tokenizer.mask_token_id).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    difference = largest_difference(folder)
    if difference > TOLERANCE:
        sys.exit(f"The exported masked LM in {folder} guesses differently (scores differ by up to {difference:.4f}).")
    return folder


def largest_difference(folder: Path) -> float:
    """How far the scores of the exported model are from the original's, over the original's best guesses."""
    guesses = []
    for model in (MaskedLM.default("cpu"), MaskedLM.from_pretrained(folder, "cpu")):
        rows = model.fill(model.encode(PLACES), GUESSES)
        guesses.append([{filling.token: filling.score for filling in row} for row in rows])
    largest = 0.0
    for mine, its in zip(*guesses, strict=True):
        for token, score in list(mine.items())[:-5]:  # the last ones may fall just outside the other's best
            largest = max(largest, abs(score - its.get(token, float("inf"))))
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(export_masked_lm(options.folder))


if __name__ == "__main__":
    main()
