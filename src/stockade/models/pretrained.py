"""Hugging Face models: folders, hub names, `(model, tokenizer)`, pipelines.

What would run a stranger's code or answer with random weights is refused:

- Pickled weights (`pytorch_model.bin`) can run code when they are opened: refused unless `allow_pickle=True`.
- Models with code of their own: refused unless `trust_remote_code=True`.
- A checkpoint without a classification head would get a random one: refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stockade.core.errors import ModelError
from stockade.core.limits import MOST_LABELS, MOST_LAYERS
from stockade.datasets.wording import first_line
from stockade.models.files import check_links
from stockade.models.zoo import register_zoo

if TYPE_CHECKING:
    from stockade.models.adapters import LoadOptions
    from stockade.models.huggingface import HuggingFaceClassifier

_SCHEME = "huggingface:"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_TASKS = ("text-classification", "sentiment-analysis")


class HuggingFaceAdapter:
    """Reads every name without a scheme (or with `huggingface:`), and the objects of transformers."""

    def matches(self, model: object) -> bool:
        """True for names, for networks, pairs, and pipelines of a network and a tokenizer."""
        if isinstance(model, str | Path):
            return True
        if isinstance(model, type):
            return False
        if hasattr(model, "predict_proba"):  # a classifier already: of the user's making, or ours
            return _is_wrapped(model) and _wrapper() is type(model)
        return isinstance(model, tuple | list) or _is_network(model) or _is_wrapped(model)

    def load(self, model: Any, options: LoadOptions) -> HuggingFaceClassifier:
        """The classifier; one of ours stays itself unless it is to have other labels or stand on another device."""
        if isinstance(model, str | Path):
            reference = model.removeprefix(_SCHEME) if isinstance(model, str) else model
            return _wrapper().from_pretrained(
                reference,
                labels=options.labels,
                device=options.device,
                allow_pickle=options.allow_pickle,
                trust_remote_code=options.trust_remote_code,
            )
        labels = options.labels
        if isinstance(model, _wrapper()):
            if labels is None and options.device is None:
                return model
            labels = labels or model.labels
        network, tokenizer = _parts(model)
        return _wrapper()(network, tokenizer, labels=labels, device=options.device)


def _wrapper() -> type[HuggingFaceClassifier]:
    """The classifier around such models; it imports torch, so it is imported when it is needed."""
    from stockade.models.huggingface import HuggingFaceClassifier

    return HuggingFaceClassifier


def _is_network(model: object) -> bool:
    """A Hugging Face model: something with a config and a forward pass."""
    return hasattr(model, "config") and hasattr(model, "forward")


def _is_wrapped(model: object) -> bool:
    return _is_network(getattr(model, "model", None)) and hasattr(model, "tokenizer")


def _parts(model: Any) -> tuple[Any, Any]:
    """The network and the tokenizer of a pair, a pipeline or a classifier of ours."""
    if isinstance(model, tuple | list):
        if len(model) != 2 or not _is_network(model[0]):
            raise ModelError(f"A {type(model).__name__} of {len(model)} is not a model; expected (model, tokenizer).")
        return model[0], model[1]
    if not _is_wrapped(model):
        raise ModelError(f"A {type(model).__name__} alone cannot read text: pass (model, tokenizer).")
    task = getattr(model, "task", _TASKS[0])
    if task not in _TASKS:
        raise ModelError(f"The pipeline is for {task}; expected a text-classification pipeline.")
    return model.model, model.tokenizer


def load_pretrained(
    reference: str | Path, *, allow_pickle: bool = False, trust_remote_code: bool = False
) -> tuple[Any, Any]:
    """The classifier (float32, in evaluation mode) and the tokenizer of a folder or hub name."""
    from transformers import AutoModelForSequenceClassification

    register_zoo()
    return _load(reference, AutoModelForSequenceClassification, _CLASSIFIER, allow_pickle, trust_remote_code)


def load_sequence_to_sequence(
    reference: str | Path, *, allow_pickle: bool = False, trust_remote_code: bool = False
) -> tuple[Any, Any]:
    """The sequence-to-sequence model (float32, in evaluation mode) and the tokenizer of a folder or hub name."""
    from transformers import AutoModelForSeq2SeqLM

    from stockade.models.translation import register_translators

    register_translators()
    return _load(reference, AutoModelForSeq2SeqLM, _TRANSLATOR, allow_pickle, trust_remote_code)


@dataclass(frozen=True, slots=True)
class _Task:
    """How errors speak of the models of a task."""

    model: str
    trained: str
    training: str


_CLASSIFIER = _Task("a text classifier", "a trained classifier", "Fine-tune it for classification first")
_TRANSLATOR = _Task("a translator", "a trained translator", "Train it for translation first")


def _load(
    reference: str | Path, auto_class: Any, task: _Task, allow_pickle: bool, trust_remote_code: bool
) -> tuple[Any, Any]:
    import torch
    from transformers import AutoConfig

    name = str(reference)
    folder = _folder(reference)
    if folder is not None:
        name = str(folder)
        _check_folder(folder, allow_pickle)
    with quiet():
        try:
            check_sizes(name)
            config = AutoConfig.from_pretrained(name, trust_remote_code=trust_remote_code)
            if not trust_remote_code:
                check_config(name, config)
            model, info = auto_class.from_pretrained(
                name,
                config=config,
                use_safetensors=None if allow_pickle else True,
                trust_remote_code=trust_remote_code,
                dtype=torch.float32,
                output_loading_info=True,
            )
        except ModelError:
            raise
        except Exception as problem:
            raise _cannot_load(name, folder, problem, task) from problem
        missing = sorted(str(key) for key in (*info["missing_keys"], *info["mismatched_keys"]))
        if missing:
            made_as = ", ".join(getattr(config, "architectures", None) or []) or "an unnamed architecture"
            raise ModelError(
                f"{name} is not {task.trained}: it was saved as {made_as} and has no weights for "
                f"{_few(missing)}, which would be random. {task.training}, or name a model that is."
            )
        return model.eval(), load_tokenizer(name, trust_remote_code)


def check_sizes(name: str) -> None:
    """Refuse a config whose numbers would fill the memory before a single weight is read.

    Parameters
    ----------
    name
        A folder, or a name of the hub.
    """
    from transformers import PreTrainedConfig

    content, _ = PreTrainedConfig.get_config_dict(name)
    for key, value in content.items():
        most = MOST_LABELS if key in ("num_labels", "_num_labels") else MOST_LAYERS if "layers" in key else None
        if most is not None and isinstance(value, int | float) and value > most:
            raise ModelError(f"{name} has {key} {value:.0f} in its config.json, expected at most {most:,}. Repair it.")
    for key in ("id2label", "label2id"):
        if len(content.get(key) or ()) > MOST_LABELS:
            raise ModelError(
                f"{name} names {len(content[key]):,} classes in its config.json, expected at most {MOST_LABELS:,}."
            )


def check_config(name: str, config: Any) -> None:
    """Refuse a model whose config names code to be fetched and run: an attention kernel of the hub.

    Parameters
    ----------
    name
        What the user called the model.
    config
        The config, with those of its parts.
    """
    for part in (config, *vars(config).values()):
        kernel = getattr(part, "_attn_implementation", None)
        if isinstance(kernel, str) and "/" in kernel:
            raise ModelError(
                f"{name} names the attention kernel {kernel}, which is code and is not run unasked. If you trust its "
                "maker, allow it with trust_remote_code=True / --trust-remote-code."
            )


@contextmanager
def quiet() -> Iterator[None]:
    """Without the log lines and progress bars of transformers and of the hub, which retries aloud when offline."""
    import logging as levels

    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    hub = levels.getLogger("huggingface_hub")
    hub_level = hub.level
    logging.set_verbosity(levels.CRITICAL)
    logging.disable_progress_bar()
    hub.setLevel(levels.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(level)
        hub.setLevel(hub_level)
        if bars:
            logging.enable_progress_bar()


def _folder(reference: str | Path) -> Path | None:
    """The local folder a reference means, or None for a hub name."""
    path = Path(reference).expanduser()
    if path.is_dir():
        return path
    if path.exists():
        raise ModelError(
            f"{reference} is a file; expected the Hugging Face folder with config.json, weights and tokenizer. A "
            f"saved scikit-learn pipeline is named sklearn:{reference}."
        )
    text = str(reference)
    if (
        isinstance(reference, Path)
        or text.startswith((".", "/", "~"))
        or "\\" in text
        or text.count("/") > 1
        or not text
    ):
        raise ModelError(
            f'There is no folder "{reference}". Give a folder with config.json, weights and tokenizer, or a hub name.'
        )
    return None


def _check_folder(folder: Path, allow_pickle: bool) -> None:
    check_links(folder)
    inside = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} is not a Hugging Face model: it has no config.json (found: {inside}).")
    if any(folder.glob("*.safetensors")):
        return
    pickles = sorted({path.name for pattern in _PICKLES for path in folder.glob(pattern)} - {"training_args.bin"})
    if not pickles:
        raise ModelError(f"{folder} has no weights (found: {inside}); expected model.safetensors.")
    if not allow_pickle:
        raise ModelError(
            f"{folder} has only pickled weights ({pickles[0]}), and a pickle can run code when it is opened. "
            "If you trust its maker, allow it with allow_pickle=True / --allow-pickle, or save the model "
            "again as safetensors."
        )


def load_tokenizer(name: str, trust_remote_code: bool) -> Any:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=trust_remote_code)
    except BaseException as problem:  # Rust's panics are no Exception
        if not (isinstance(problem, Exception) or type(problem).__name__ == "PanicException"):
            raise
        raise ModelError(
            f"{name} has no tokenizer that can be loaded ({first_line(problem, 200)}). {_SAVE_TOKENIZER}"
        ) from problem
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise ModelError(f"{name} has no tokenizer: no vocabulary was found beside the weights. {_SAVE_TOKENIZER}")
    return tokenizer


_SAVE_TOKENIZER = "Save it into the same folder with tokenizer.save_pretrained(...)."


def _cannot_load(name: str, folder: Path | None, problem: Exception, task: _Task) -> ModelError:
    message = str(problem)
    if "trust_remote_code" in message:
        return ModelError(
            f"{name} needs code of its own to be loaded, which is not run unasked. If you trust its maker, "
            "allow it with trust_remote_code=True / --trust-remote-code."
        )
    if folder is not None:
        return ModelError(f"{name} cannot be loaded as {task.model}: {first_line(problem, 200)}")
    if "safetensors" in message:
        return ModelError(
            f"The hub model {name} has no safetensors weights, only pickled ones, and a pickle can run code "
            "when it is opened. If you trust its maker, allow it with allow_pickle=True / --allow-pickle."
        )
    return ModelError(
        f'"{name}" is no folder here and cannot be had from the Hugging Face hub ({first_line(problem, 200)}). '
        "Check the spelling and the network, or give a local folder or builtin:NAME (see: stockade ls "
        "models)."
    )


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
