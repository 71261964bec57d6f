"""A detector of attacked texts, fitted on runs: what they attacked is clean, what fooled their model is attacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from stockade.core.errors import ModelError, OptionError, RunError
from stockade.core.text import TextInput
from stockade.defenses.detector import Detector
from stockade.defenses.detector import fit_detector as fit
from stockade.defenses.detector_features import FEATURES
from stockade.jobs import ModelOptions
from stockade.models.language import LanguageModels
from stockade.runs.attack import check_answers
from stockade.runs.manifest import read_manifest
from stockade.runs.run import Run


def fit_detector(
    model: object,
    *runs: Run | str | Path,
    false_positives: float = 0.05,
    features: Sequence[str] = (),
    rate: float = 0.3,
    kept: int = 1,
    copies: int = 100,
    rare: int = 1,
    seed: int = 0,
    mlm: str | None = None,
    model_options: ModelOptions | None = None,
    observer: Callable[[int, int], None] | None = None,
) -> Detector:
    """Fit a detector of attacked texts, for the defense route: `st.fit_detector(model, run).save("detector.json")`.

    `runs` are attacks on development texts, as objects or folders. The texts that were attacked are the clean ones, the
    successes the attacked ones. `features` are the numbers to look at, by default all; `rate`, `kept` and `copies` say
    how words are hidden, and up to `rare` times in the clean texts a word is rare. At most the share `false_positives`
    of these clean texts is taken to be attacked. The model is taken without its defenses.
    """
    if not runs:
        raise OptionError("No run was named: attack the model on development texts first, then give that run.")
    opened = [one if isinstance(one, Run) else _open_attack(Path(one)) for one in runs]
    clean, attacked = _development_texts(opened)
    bare = (model_options or ModelOptions()).load_bare(model)
    for one in clean[:1]:
        check_answers(bare, one)
    for run in opened:
        if set(run.labels) != set(bare.labels):
            raise ModelError(
                f"The model has the classes {', '.join(bare.labels)}, but {run.folder} is an attack on one with "
                f"{', '.join(run.labels)}; expected the same. Give runs of attacks on this model."
            )
    return fit(
        bare,
        clean,
        attacked,
        false_positives=false_positives,
        features=tuple(features) or FEATURES,
        rate=rate,
        kept=kept,
        copies=copies,
        rare=rare,
        seed=seed,
        language=LanguageModels(mlm),
        observer=observer,
    )


def _open_attack(folder: Path) -> Run:
    if folder.is_dir() and read_manifest(folder).get("command") != "attack":
        raise RunError(f"{folder} holds certificates, expected an attack. Make one with: stockade attack MODEL DATA")
    return Run(folder)


def _development_texts(runs: Sequence[Run]) -> tuple[list[TextInput], list[TextInput]]:
    """The texts that were attacked and those that fooled the model, each once."""
    clean: dict[TextInput, None] = {}
    attacked: dict[TextInput, None] = {}
    for run in runs:
        for record in run.records():
            if record.status in ("success", "failed"):
                clean[_input(record.original, record.premise)] = None
            if record.status == "success" and record.adversarial is not None:
                attacked[_input(record.adversarial, record.premise)] = None
    return list(clean), list(attacked)


def _input(string: str, premise: str | None) -> TextInput:
    return string if premise is None else (premise, string)
