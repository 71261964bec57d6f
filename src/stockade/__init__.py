"""Stockade red-teams, hardens and certifies text classifiers.

    import stockade as st

    run = st.attack("builtin:sentiment-cnn", "builtin:reviews", "pwws", limit=50)
    run.summary

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stockade.attacks.registry import register_attack
    from stockade.certificates.registry import register_method
    from stockade.core.errors import StockadeError
    from stockade.core.example import Example, Scores
    from stockade.core.protocols import Classifier
    from stockade.core.records import Outcome, Record
    from stockade.core.text import Text
    from stockade.core.translation import Translator
    from stockade.datasets.load import load_data
    from stockade.defenses.registry import register_defense
    from stockade.engine.requests import Score
    from stockade.experiment.inputs import DataOptions, ModelOptions
    from stockade.experiment.progress import Progress
    from stockade.experiment.result import Result, Verification
    from stockade.kinds import load, resume
    from stockade.models.adapters import load_model, register_model
    from stockade.models.ensemble import ensemble
    from stockade.models.translation.load import load_translator
    from stockade.studies import study
    from stockade.studies.frame import StudyResult
    from stockade.workflows.attack import attack
    from stockade.workflows.attack.result import AttackResult
    from stockade.workflows.certify import certify
    from stockade.workflows.certify.result import CertifyResult
    from stockade.workflows.defend import defend
    from stockade.workflows.detector import fit_detector
    from stockade.workflows.evaluate import evaluate
    from stockade.workflows.evaluate.result import EvaluateResult
    from stockade.workflows.mine import mine_rules
    from stockade.workflows.mine.explain import explain_rules
    from stockade.workflows.mine.result import MineResult
    from stockade.workflows.rules import apply_rules
    from stockade.workflows.train import train
    from stockade.workflows.train.result import TrainResult
    from stockade.workflows.translation.result import TranslationResult
    from stockade.workflows.tune import tune
    from stockade.workflows.tune.result import TuneResult

__version__ = "0.1.0"

_HOMES = {
    "AttackResult": "stockade.workflows.attack.result",
    "CertifyResult": "stockade.workflows.certify.result",
    "Classifier": "stockade.core.protocols",
    "DataOptions": "stockade.experiment.inputs",
    "EvaluateResult": "stockade.workflows.evaluate.result",
    "Example": "stockade.core.example",
    "MineResult": "stockade.workflows.mine.result",
    "ModelOptions": "stockade.experiment.inputs",
    "Outcome": "stockade.core.records",
    "Progress": "stockade.experiment.progress",
    "Record": "stockade.core.records",
    "Result": "stockade.experiment.result",
    "Score": "stockade.engine.requests",
    "Scores": "stockade.core.example",
    "StockadeError": "stockade.core.errors",
    "StudyResult": "stockade.studies.frame",
    "Text": "stockade.core.text",
    "TrainResult": "stockade.workflows.train.result",
    "TranslationResult": "stockade.workflows.translation.result",
    "Translator": "stockade.core.translation",
    "TuneResult": "stockade.workflows.tune.result",
    "Verification": "stockade.experiment.result",
    "apply_rules": "stockade.workflows.rules",
    "attack": "stockade.workflows.attack",
    "certify": "stockade.workflows.certify",
    "defend": "stockade.workflows.defend",
    "ensemble": "stockade.models.ensemble",
    "evaluate": "stockade.workflows.evaluate",
    "explain_rules": "stockade.workflows.mine.explain",
    "fit_detector": "stockade.workflows.detector",
    "load": "stockade.kinds",
    "load_data": "stockade.datasets.load",
    "load_model": "stockade.models.adapters",
    "load_translator": "stockade.models.translation.load",
    "mine_rules": "stockade.workflows.mine",
    "register_attack": "stockade.attacks.registry",
    "register_defense": "stockade.defenses.registry",
    "register_method": "stockade.certificates.registry",
    "register_model": "stockade.models.adapters",
    "resume": "stockade.kinds",
    "study": "stockade.studies",
    "train": "stockade.workflows.train",
    "tune": "stockade.workflows.tune",
}

__all__ = [
    "AttackResult",
    "CertifyResult",
    "Classifier",
    "DataOptions",
    "EvaluateResult",
    "Example",
    "MineResult",
    "ModelOptions",
    "Outcome",
    "Progress",
    "Record",
    "Result",
    "Score",
    "Scores",
    "StockadeError",
    "StudyResult",
    "Text",
    "TrainResult",
    "TranslationResult",
    "Translator",
    "TuneResult",
    "Verification",
    "apply_rules",
    "attack",
    "certify",
    "defend",
    "ensemble",
    "evaluate",
    "explain_rules",
    "fit_detector",
    "load",
    "load_data",
    "load_model",
    "load_translator",
    "mine_rules",
    "register_attack",
    "register_defense",
    "register_method",
    "register_model",
    "resume",
    "study",
    "train",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'stockade' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
