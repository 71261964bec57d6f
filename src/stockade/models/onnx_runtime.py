"""ONNX models as victims: `onnx:FOLDER`, computed by ONNX Runtime.

A row must not depend on the other rows of its batch. Padding is masked where the network reads a mask; where it does
not, only texts of one length are computed together. Networks with dynamic int8 quantisation scale all rows of a batch
by one range, so their texts are computed one by one. Whatever else makes a batch differ from its single texts is found
by comparing them when the model is loaded.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stockade.core.errors import ModelError, missing_package
from stockade.core.masks import Keep
from stockade.core.protocols import Probabilities
from stockade.core.text import Text, TextInput
from stockade.datasets.wording import first_line, listing
from stockade.models.answers import read_answer
from stockade.models.black_box import class_names
from stockade.models.files import file_fingerprint
from stockade.models.onnx_files import OnnxFiles
from stockade.models.settings import make_settings

if TYPE_CHECKING:
    from stockade.models.adapters import LoadOptions
    from stockade.models.encoding import EncodedText, TextEncoder

SCHEME = "onnx:"
_INPUTS = {
    "input_ids": ("input_ids", "ids", "tokens"),
    "attention_mask": ("attention_mask", "mask", "input_mask"),
    "token_type_ids": ("token_type_ids", "type_ids", "segment_ids"),
    "position_ids": ("position_ids",),
}
"""What networks call what they read."""
_OUTPUTS = {"logits": "logits", "probabilities": "probabilities", "probs": "probabilities", "scores": None}
"""Outputs that hold a number per class, in order of preference, and what the numbers are."""
_PROBES = ("a", "it was not a good day, and the film was no better", "yes", "what a great film!")
_ALIKE = 1e-5
_BATCH_TOKENS, _BATCH_ROWS = 4096, 256


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxSettings:
    """The settings of an ONNX model.

    Parameters
    ----------
    max_length : int, optional
        The most tokens of a text, where tokenizer and config do not say what the model was trained with.
    output : str, optional
        The output with a number per class, if there are several and none is called logits or probabilities.
    """

    max_length: int | None = None
    output: str | None = None


class OnnxAdapter:
    """Reads `onnx:FOLDER`, `onnx:FILE` and `onnx:PACKAGE`."""

    takes_settings = True

    def matches(self, model: object) -> bool:
        """True for references of the scheme."""
        return isinstance(model, str | Path) and str(model).startswith(SCHEME)

    def load(self, model: object, options: LoadOptions) -> OnnxClassifier:
        """The network with its tokenizer."""
        files = OnnxFiles.find(str(model).removeprefix(SCHEME))
        settings = make_settings(OnnxSettings, "onnx models", options.settings)
        return OnnxClassifier(
            files, settings, labels=options.labels, outputs=options.outputs, device=options.device or "cpu"
        )


class OnnxClassifier:
    """A network in an ONNX file and its tokenizer.

    Parameters
    ----------
    files : OnnxFiles
        Where they are.
    settings : OnnxSettings
        What the files do not say.
    labels : sequence of str, optional
        Names of the classes, in place of the config's.
    outputs : str, optional
        What the numbers are, where the name of the output does not say.
    device : str
        "cpu", or "cuda" where ONNX Runtime has it.
    """

    deterministic = True

    def __init__(
        self,
        files: OnnxFiles,
        settings: OnnxSettings,
        *,
        labels: Sequence[str] | None = None,
        outputs: str | None = None,
        device: str = "cpu",
    ) -> None:
        self._files, self._settings = files, settings
        self._session = _session(files.model, device)
        self._inputs = _matched_inputs(self._session, files.model)
        self._output, kind = _chosen_output(self._session, settings.output, outputs, files.model)
        self.label_only = kind == "labels"
        self._kind = "logits" if self.label_only else kind  # the largest number names the class, whatever it is
        shape = self._inputs["input_ids"].shape
        self._rows, self._width = (size if isinstance(size, int) and size > 0 else None for size in shape[:2])
        self._encoder = self._make_encoder()
        self.workers = _cores()
        self._alone = self._rows == 1 or _quantised(files.model) or self._encoder.tokenizer.pad_token_id is None
        self.labels: tuple[str, ...] = ("0", "1")
        first = self._numbers(self.encode(_PROBES[:1]))
        self.labels = self._named(first, labels)
        self._alone = self._alone or not self._batches_are_alike()

    def encode(self, inputs: Sequence[TextInput]) -> list[EncodedText]:
        """Tokenise all texts at once, without padding."""
        return self._encoder.encode(inputs)

    def predict_encoded(self, batch: Sequence[EncodedText]) -> Probabilities:
        """Class probabilities of tokenised texts."""
        if not batch:
            return np.zeros((0, len(self.labels)))
        rows: Probabilities = np.zeros((len(batch), len(self.labels)))
        for indices in self._together(batch):
            numbers = self._numbers([batch[index] for index in indices])
            rows[indices] = read_answer(numbers, len(indices), self.labels, self._kind)[0]
        if self.label_only:
            winners = rows.argmax(axis=1)
            rows = np.where(np.isnan(rows), np.nan, np.eye(len(self.labels))[winners])
        return rows

    def predict_proba(self, inputs: Sequence[TextInput]) -> Probabilities:
        """Class probabilities of each text, computed in batches of like lengths."""
        from stockade.models.encoding import in_length_batches

        rows = in_length_batches(self.encode(inputs), self.predict_encoded, _BATCH_TOKENS, _BATCH_ROWS)
        return np.array(rows, dtype=np.float64).reshape(len(inputs), len(self.labels))

    def encode_masked(self, words: Sequence[str], premise: str | None, keep: Keep) -> list[EncodedText]:
        """Copies of a text with words hidden, made from one tokenisation."""
        from stockade.models.masking import encode_masked

        return encode_masked(self._encoder, words, premise, keep, self._encoder.maximum)

    def visible_words(self, texts: Sequence[Text]) -> list[Sequence[int]]:
        """The words of each text that are left when it is cut to what the model can read."""
        return self._encoder.visible_words(texts)

    def start_worker(self) -> None:
        """Nothing to prepare: every call is computed on one thread."""

    def fingerprint(self) -> str:
        """A hash of the network, the tokenizer and how both are used."""
        tokenizer = [
            path for path in self._files.folder.iterdir() if path.is_file() and path.suffix in _TOKENIZER_FILES
        ]
        used = (self._kind, self.label_only, self._output, self.labels, self._encoder.maximum)
        return file_fingerprint([*self._files.parts, *tokenizer], used)

    def _together(self, batch: Sequence[EncodedText]) -> Iterator[list[int]]:
        """Indices of the texts that may be computed in one call."""
        if self._alone:
            yield from ([index] for index in range(len(batch)))
        elif "attention_mask" in self._inputs:
            yield list(range(len(batch)))
        else:
            by_length: dict[int, list[int]] = {}
            for index, text in enumerate(batch):
                by_length.setdefault(len(text), []).append(index)
            yield from by_length.values()

    def _numbers(self, batch: Sequence[EncodedText]) -> NDArray[np.float64]:
        """What the network answers to one batch: a row per text, or a number per text for two classes."""
        arrays = self._encoder.arrays(batch, self._width)
        arrays["position_ids"] = np.broadcast_to(np.arange(arrays["input_ids"].shape[1]), arrays["input_ids"].shape)
        arrays.setdefault("token_type_ids", np.zeros_like(arrays["input_ids"]))
        feed = {
            read.name: np.ascontiguousarray(arrays[meaning], dtype=np.int32 if "int32" in read.type else np.int64)
            for meaning, read in self._inputs.items()
        }
        answer = np.asarray(self._session.run([self._output], feed)[0], dtype=np.float64)
        return answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 1 else answer

    def _batches_are_alike(self) -> bool:
        """Whether the probes have the same rows together as alone."""
        encoded = self.encode(_PROBES)
        together = self.predict_encoded(encoded)
        alone = np.concatenate([self.predict_encoded([text]) for text in encoded])
        return bool(np.allclose(together, alone, rtol=0.0, atol=_ALIKE, equal_nan=True))

    def _named(self, first: NDArray[np.float64], labels: Sequence[str] | None) -> tuple[str, ...]:
        if first.ndim > 2:
            raise ModelError(
                f"The output {self._output} of {self._files.model} has the shape {first.shape} for one text; expected "
                "a number per class. Export it as a sequence classifier."
            )
        named, count = self._files.labels, 2 if first.ndim == 1 else first.shape[1]
        classes = [named.get(number, str(number)) for number in range(count)]
        if first.ndim == 1 and len(named) == 1:
            classes = [f"not {named[0]}", named[0]] if named.get(0, "LABEL_0") != "LABEL_0" else ["0", "1"]
        return class_names(classes, labels, str(self._files.model))

    def _make_encoder(self) -> TextEncoder:
        from stockade.models.encoding import PieceMemory, TextEncoder

        tokenizer = _tokenizer(self._files.folder)
        limits = [
            tokenizer.model_max_length,
            self._files.config.get("max_position_embeddings"),
            self._settings.max_length,
            self._width,
        ]
        usable = [limit for limit in limits if isinstance(limit, int) and 0 < limit < _NO_LIMIT]
        with_types = "token_type_ids" in self._inputs and "token_type_ids" in tokenizer.model_input_names
        singles = with_types and any(tokenizer("a", truncation=True, max_length=8)["token_type_ids"])
        return TextEncoder(
            tokenizer,
            min(usable, default=None),
            with_types=with_types,
            singles_have_types=singles,
            pieces=PieceMemory.of(tokenizer),
        )


_NO_LIMIT = 1_000_000
_TOKENIZER_FILES = (".json", ".txt", ".model")


def _session(model: Path, device: str) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise missing_package("onnxruntime", "onnx", model) from None
    provider = "CUDAExecutionProvider" if device.startswith("cuda") else "CPUExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise ModelError(f"ONNX Runtime cannot compute on {device} here: install onnxruntime-gpu, or use --device cpu.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # several batches at once use the cores better
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=[provider])
    except Exception as error:  # its errors have no common base
        raise ModelError(f"{model} cannot be loaded as an ONNX model ({first_line(error, 200)}).") from error


def _matched_inputs(session: Any, model: Path) -> dict[str, Any]:
    """What the network reads, by what it means."""
    inputs = {read.name: read for read in session.get_inputs()}
    names = list(inputs)
    matched: dict[str, Any] = {}
    for meaning, aliases in _INPUTS.items():
        name = next((alias for alias in aliases if alias in inputs), None)
        if name is not None:
            matched[meaning] = inputs.pop(name)
    if inputs or "input_ids" not in matched:
        raise ModelError(
            f"{model} reads {listing(names)}; expected input_ids, and attention_mask, token_type_ids or position_ids."
        )
    return matched


def _chosen_output(session: Any, wanted: str | None, outputs: str | None, model: Path) -> tuple[str, str]:
    """The output with a number per class, and what the numbers are."""
    names = [answer.name for answer in session.get_outputs()]
    if wanted is not None and wanted not in names:
        raise ModelError(f"{model} has no output {wanted} (found: {listing(names)}).")
    name = wanted or next((name for name in _OUTPUTS if name in names), names[0] if len(names) == 1 else None)
    if name is None:
        raise ModelError(
            f"{model} has the outputs {listing(names)}: say which has a number per class, with --setting output=NAME."
        )
    kind = outputs or _OUTPUTS.get(name)
    if kind is None:
        raise ModelError(
            f"The output of {model} is called {name}, which does not say what its numbers are. Declare them with "
            "--outputs logits or --outputs probabilities."
        )
    return name, kind


def _tokenizer(folder: Path) -> Any:
    from transformers import PreTrainedTokenizerFast

    from stockade.models.pretrained import load_tokenizer, quiet

    with quiet():
        if (folder / "tokenizer_config.json").is_file() or not (folder / "tokenizer.json").is_file():
            return load_tokenizer(str(folder), trust_remote_code=False)
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        backend = tokenizer.backend_tokenizer
        pad = next((token for token in ("[PAD]", "<pad>") if backend.token_to_id(token) is not None), None)
        tokenizer.pad_token = (backend.padding or {}).get("pad_token") or pad
        return tokenizer


def _quantised(model: Path) -> bool:
    """Whether a network scales all rows of a batch by one range, by the names of its operators."""
    with model.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b"DynamicQuantize") >= 0


def _cores() -> int:
    """How many batches to compute at once: the cores that this process may use, or fewer if OMP_NUM_THREADS says so."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(available, int(limit))) if limit.isdigit() else available
