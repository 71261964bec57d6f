"""Check a run against its model: every recorded success must fool the model again, and every number must follow from
the rows. A randomised model is asked many times, with fresh random choices.
"""

from __future__ import annotations

from collections.abc import Callable

from stockade.attacks.trial import DRAWS
from stockade.core.errors import SearchStopped
from stockade.core.example import Scores
from stockade.core.protocols import Classifier, Fingerprinted
from stockade.core.records import Record
from stockade.core.seeds import derive_seed
from stockade.core.text import Text, TextInput
from stockade.defenses.defended import Defended
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Confirm, Draw
from stockade.models.language import LanguageModels
from stockade.runs.run import Run
from stockade.runs.verification import Verification, wrong_summary

_TOLERANCE = 1e-3
_FEWEST = 4
"""A text that fools in half of all draws has fewer hits among 20 once in 800 times."""


def verify(run: Run, classifier: Classifier, observer: Callable[[int], None] | None = None) -> Verification:
    """Ask the model again about every success, alone, and compare labels, scores, edits and the summary with what was
    recorded.
    """
    problems = [*_other_model(run, classifier), *wrong_summary(run.folder, "attacks", run.summary, "results")]
    checked, target = 0, run.manifest["config"].get("target")
    for record in run.records(status="success"):
        problems += [
            f"{record.attack}, example {record.id}: {problem}" for problem in _check(record, classifier, target)
        ]
        checked += 1
        if observer is not None:
            observer(checked)
    return Verification(checked, tuple(problems))


def _other_model(run: Run, classifier: Classifier) -> list[str]:
    recorded = run.manifest["model"]["fingerprint"]
    found = classifier.fingerprint() if isinstance(classifier, Fingerprinted) else None
    return [] if recorded == found else ["the model is not the one that was attacked: its fingerprint differs"]


def _check(record: Record, classifier: Classifier, target: str | None) -> list[str]:
    problems = []
    if record.adversarial is None or record.adversarial_scores is None:
        return ["a success without an adversarial text"]
    text = Text.parse(record.adversarial, record.premise)
    if all(edit.op == "replace" for edit in record.edits) and not _explained(record, text):
        problems.append("the recorded edits do not lead from the original to the adversarial text")
    if not classifier.deterministic:
        hits = _hits(classifier, text, record, target)
        if hits < _FEWEST:
            problems.append(f"fooled the model in {hits} of {DRAWS} fresh draws only")
    else:
        scores = _ask(classifier, text.input)
        if classifier.labels[scores.label] != record.adversarial_prediction:
            problems.append(f"recorded {record.adversarial_prediction}, now {classifier.labels[scores.label]}")
        elif max(abs(a - b) for a, b in zip(scores.probabilities, record.adversarial_scores, strict=True)) > _TOLERANCE:
            problems.append("the scores differ from the recorded ones")
    if record.adversarial_prediction == record.label:
        problems.append("the recorded prediction is the true label")
    return problems


def _hits(classifier: Classifier, text: Text, record: Record, target: str | None) -> int:
    """How often the text fools a randomised model."""
    question = Confirm(text, DRAWS, Draw(derive_seed("verify", record.attack, record.id), 0))
    language = classifier.language if isinstance(classifier, Defended) else LanguageModels()
    scoring = make_scoring(
        classifier,
        filling=FillingService(language.make_masked_lm),
        embedding=EmbeddingService(language.make_encoder),
    )
    (answers,) = scoring.answer_confirmations([question])
    if isinstance(answers, SearchStopped):
        return 0
    said = [classifier.labels[scores.label] for scores in answers]
    return sum(one != record.label if target is None else one == target for one in said)


def _explained(record: Record, text: Text) -> bool:
    edited = Text.parse(record.original).replace_all({edit.index: edit.after for edit in record.edits})
    return str(edited) == str(text)


def _ask(classifier: Classifier, item: TextInput) -> Scores:
    return Scores(tuple(classifier.predict_proba([item])[0].tolist()))
