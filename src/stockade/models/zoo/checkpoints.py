"""The transformers of the zoo: checkpoints with a new head, and a small BERT that was never pre-trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece
from tokenizers.processors import TemplateProcessing
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from stockade.core.errors import ModelError, OptionError
from stockade.datasets.wording import first_line
from stockade.models.language import minilm_folder
from stockade.models.pretrained import check_config, check_sizes, quiet

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_NEW = ("classifier.", "pooler.")
"""Weights a checkpoint need not have: they stand between the encoder and the answer."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a name asks of its checkpoint: the model type of its config and, if fixed, the number of layers."""

    model_type: str
    layers: int | None = None
    packaged: bool = False


CHECKPOINTS = {
    "BERT": Checkpoint("bert"),
    "RoBERTa": Checkpoint("roberta"),
    "ALBERT": Checkpoint("albert"),
    "MiniLM-L6": Checkpoint("bert", 6, packaged=True),
    "MiniLM-L3": Checkpoint("bert", 3),
}
NOPT_OPTIONS: Mapping[str, Any] = {
    "hidden_size": 384,
    "layers": 3,
    "heads": 12,
    "intermediate_size": 1536,
    "dropout": 0.1,
    "vocabulary": 8_000,
    "maximum": 512,
}


def from_checkpoint(name: str, source: str | Path | None, fields: Mapping[str, Any]) -> tuple[PreTrainedModel, Any]:
    """The checkpoint of a name with a new head and its tokenizer; `fields` replace those of its config."""
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    wanted = CHECKPOINTS[name]
    reference = str(source) if source is not None else str(minilm_folder()) if wanted.packaged else None
    if reference is None:
        raise OptionError(
            f"{name} begins at a checkpoint, and none was given. Give a folder or a hub name as checkpoint; without "
            "a network the packaged MiniLM-L6, or BERT-NOPT, can be trained under their own names."
        )
    with quiet():
        try:
            check_sizes(reference)
            config = AutoConfig.from_pretrained(reference, trust_remote_code=False, **fields)
            check_config(reference, config)
            _check(name, wanted, config)
            model, info = AutoModelForSequenceClassification.from_pretrained(
                reference,
                config=config,
                variant=_variant(Path(reference)),
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
            tokenizer = AutoTokenizer.from_pretrained(reference, trust_remote_code=False)
        except ModelError:
            raise
        except Exception as problem:
            raise ModelError(
                f"The checkpoint {reference} of {name} cannot be loaded ({first_line(problem, 200)}). Give a folder "
                "with config.json, safetensors weights and a tokenizer, or check the hub name and the network."
            ) from problem
    missing = sorted(key for key in map(str, info["missing_keys"]) if not any(new in key for new in _NEW))
    if missing:
        raise ModelError(
            f"The checkpoint {reference} of {name} lacks weights of its encoder ({', '.join(missing[:3])})."
        )
    _renew(model)
    return model, tokenizer


def never_pretrained(
    texts: Sequence[str], settings: Mapping[str, Any], labels: Mapping[str, Any]
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A small BERT with random weights: nothing but its word pieces comes from elsewhere."""
    from transformers import BertConfig, BertForSequenceClassification

    if settings["hidden_size"] % settings["heads"]:
        raise OptionError(
            f"hidden_size {settings['hidden_size']} cannot be shared out among {settings['heads']} heads; expected a "
            "multiple."
        )
    tokenizer = _word_pieces(texts, settings["vocabulary"], settings["maximum"])
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings["hidden_size"],
        num_hidden_layers=settings["layers"],
        num_attention_heads=settings["heads"],
        intermediate_size=settings["intermediate_size"],
        hidden_dropout_prob=settings["dropout"],
        attention_probs_dropout_prob=settings["dropout"],
        max_position_embeddings=settings["maximum"],
        pad_token_id=0,
        **labels,
    )
    return BertForSequenceClassification(config), tokenizer


def _check(name: str, wanted: Checkpoint, config: Any) -> None:
    layers = getattr(config, "num_hidden_layers", None)
    if config.model_type != wanted.model_type:
        raise ModelError(f"The checkpoint of {name} is of type {config.model_type}; expected {wanted.model_type}.")
    if wanted.layers is not None and layers != wanted.layers:
        raise ModelError(f"The checkpoint of {name} has {layers} layers; expected {wanted.layers}.")


def _variant(folder: Path) -> str | None:
    """The x of model.x.safetensors, if there are no other weights in the folder."""
    files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else []
    parts = files[0].name.split(".") if len(files) == 1 else []
    return parts[1] if len(parts) == 3 and parts[0] == "model" else None


def _renew(model: PreTrainedModel) -> None:
    """Random numbers in the head, also where the checkpoint brought a trained one."""
    head = model.get_submodule("classifier")
    for layer in (module for module in head.modules() if isinstance(module, nn.Linear)):
        nn.init.normal_(layer.weight, std=getattr(model.config, "initializer_range", 0.02))
        nn.init.zeros_(layer.bias)


def _word_pieces(texts: Sequence[str], size: int, maximum: int) -> PreTrainedTokenizerFast:
    """BERT's word pieces as far as the texts use them, and all its single characters, so that no word is unknown.

    Pieces trained on the texts alone would be purer, but the trainer of `tokenizers` breaks ties by chance, and a seed
    would not give the same model twice.
    """
    bert = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    bert.no_truncation()
    bert.no_padding()
    encodings = bert.encode_batch(list(texts), add_special_tokens=False)
    counts = Counter(piece for encoding in encodings for piece in encoding.tokens)
    numbers = bert.get_vocab()
    single = [piece for piece in numbers if len(piece.removeprefix("##")) == 1]
    frequent = sorted(counts, key=lambda piece: (-counts[piece], numbers[piece]))[:size]
    pieces = sorted({*frequent, *single} - set(_SPECIAL), key=numbers.__getitem__)
    vocabulary = {piece: number for number, piece in enumerate([*_SPECIAL, *pieces])}
    backend = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=maximum,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
