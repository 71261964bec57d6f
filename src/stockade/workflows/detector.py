"""Fit a detector of adversarial texts on attacks: what they attacked is clean, what fooled their model is attacked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stockade.core.errors import ModelError, OptionError
from stockade.core.text import TextInput
from stockade.defenses import detector
from stockade.defenses.detector import Detector
from stockade.defenses.detector_features import FEATURES
from stockade.experiment.inputs import ModelOptions, check_answers
from stockade.experiment.progress import Observer, Progress
from stockade.models.language import LanguageModels
from stockade.workflows.attack.result import AttackResult

Run = AttackResult | str | Path


def fit_detector(
    model: object,
    runs: Run | list[Run] | tuple[Run, ...],
    *,
    false_positives: float = 0.05,
    features: Sequence[str] = (),
    rate: float = 0.3,
    kept: int = 1,
    copies: int = 100,
    rare: int = 1,
    seed: int = 0,
    mlm: str | None = None,
    model_options: ModelOptions | None = None,
    observer: Observer | None = None,
) -> Detector:
    """Fit a detector of adversarial texts, for the defense route: `st.fit_detector(model, run).save("detector.json")`.

    Parameters
    ----------
    model
        What `st.attack` takes; its defenses are left out.
    runs
        Attacks on development texts: a folder, the result of `st.attack`, or a list of them. The texts that were
        attacked are the clean ones, the successes the attacked ones.
    false_positives
        The largest share of these clean texts that may be taken to be attacked.
    features
        The numbers to look at; all by default.
    rate, kept, copies
        How words are hidden in masked copies: the share of words, the fewest that stay, and how many copies per text.
    rare
        A word is rare if the clean texts have it up to so many times.
    seed
        Decides every masked copy.
    mlm
        Another masked LM to be surprised: a folder or hub name.
    model_options
        How the model is loaded.
    observer
        Called with a `Progress` after each text.
    """
    several: list[Run] = list(runs) if isinstance(runs, list | tuple) else [runs]
    if not several:
        raise OptionError("No run was named: attack the model on development texts first, then give that run.")
    attacks = [run if isinstance(run, AttackResult) else AttackResult.open(run) for run in several]
    clean, attacked = _development_texts(attacks)
    bare = (model_options or ModelOptions()).load(model)
    for text in clean[:1]:
        check_answers(bare, text)
    for attack in attacks:
        if set(attack.labels) != set(bare.labels):
            raise ModelError(
                f"The model has the classes {', '.join(bare.labels)}, but {attack.folder} is an attack on one with "
                f"{', '.join(attack.labels)}; expected the same. Give runs of attacks on this model."
            )

    def show(done: int, total: int) -> None:
        if observer is not None:
            observer(Progress(part="detector", done=done, total=total))

    return detector.fit_detector(
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
        observer=show,
    )


def _development_texts(attacks: Sequence[AttackResult]) -> tuple[list[TextInput], list[TextInput]]:
    """The texts that were attacked and those that fooled the model, each once."""
    clean: dict[TextInput, None] = {}
    attacked: dict[TextInput, None] = {}
    for attack in attacks:
        for record in attack.records():
            if record.status in ("success", "failed"):
                clean[record.original_input] = None
            if record.status == "success" and record.adversarial_input is not None:
                attacked[record.adversarial_input] = None
    return list(clean), list(attacked)
