"""Check an attack against its model: every success must fool the model again, every number follow from the rows.

A randomised model is asked many times, with fresh random choices.
"""

from __future__ import annotations

from stockade.attacks.trial import DRAWS
from stockade.core.errors import SearchStopped
from stockade.core.example import Scores
from stockade.core.protocols import Classifier
from stockade.core.records import Record
from stockade.core.seeds import derive_seed
from stockade.core.text import Text
from stockade.defenses.defended import Defended
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Confirm, Draw
from stockade.experiment.inputs import fingerprint_of
from stockade.experiment.pool import ModelPool
from stockade.experiment.result import Verification
from stockade.models.language import LanguageModels
from stockade.workflows.attack.result import AttackResult

_TOLERANCE = 1e-3
_FEWEST_HITS = 4
"""A text that fools in half of all draws has fewer hits among 20 once in 800 times."""


def verify_attack(result: AttackResult, model: object = None, trust: bool = False) -> Verification:
    """Ask the model again about every success, alone, and compare labels, scores, edits and the summary."""
    spec = result.spec
    result.check_trust(trust, model)
    pool = ModelPool({"": spec.model if model is None else model}, spec.model_options, language=spec.language)
    classifier = pool.defended("", spec.defenses, seed=spec.seed)
    problems = result.wrong_summary("attacks")
    if fingerprint_of(classifier) != result.manifest.inputs["model"]["fingerprint"]:
        problems.append("the model is not the one that was attacked: its fingerprint differs")
    checked = 0
    for record in result.records(None, "success"):
        checked += 1
        problems += [
            f"{record.attack}, example {record.id}: {problem}"
            for problem in _problems(record, classifier, spec.targeted)
        ]
    return Verification(checked, tuple(problems))


def _problems(record: Record, classifier: Classifier, targeted: str | None) -> list[str]:
    problems = []
    if record.adversarial is None or record.adversarial_scores is None:
        return ["a success without an adversarial text"]
    text = Text.parse(record.adversarial, record.premise)
    if all(edit.op == "replace" for edit in record.edits) and not _edits_lead_to(record, text):
        problems.append("the recorded edits do not lead from the original to the adversarial text")
    if not classifier.deterministic:
        hits = _count_hits(classifier, text, record, targeted)
        if hits < _FEWEST_HITS:
            problems.append(f"fooled the model in {hits} of {DRAWS} fresh draws only")
    else:
        scores = Scores(tuple(classifier.predict_proba([text.input])[0].tolist()))
        if classifier.labels[scores.label] != record.adversarial_prediction:
            problems.append(f"recorded {record.adversarial_prediction}, now {classifier.labels[scores.label]}")
        elif max(abs(a - b) for a, b in zip(scores.probabilities, record.adversarial_scores, strict=True)) > _TOLERANCE:
            problems.append("the scores differ from the recorded ones")
    if record.adversarial_prediction == record.label:
        problems.append("the recorded prediction is the true label")
    return problems


def _count_hits(classifier: Classifier, text: Text, record: Record, targeted: str | None) -> int:
    """How often the text fools a randomised model."""
    request = Confirm(text, DRAWS, Draw(derive_seed("verify", record.attack, record.id), 0))
    language = classifier.language if isinstance(classifier, Defended) else LanguageModels()
    scoring = make_scoring(
        classifier,
        filling=FillingService(language.make_masked_lm),
        embedding=EmbeddingService(language.make_encoder),
    )
    (answers,) = scoring.answer_confirmations([request])
    if isinstance(answers, SearchStopped):
        return 0
    predictions = [classifier.labels[scores.label] for scores in answers]
    return sum(label != record.label if targeted is None else label == targeted for label in predictions)


def _edits_lead_to(record: Record, text: Text) -> bool:
    edited = Text.parse(record.original).replace_all({edit.index: edit.after for edit in record.edits})
    return str(edited) == str(text)
