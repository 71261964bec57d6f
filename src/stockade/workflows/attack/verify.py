"""Check an attack against its model: every success must fool the model again, every number follow from the rows.

A randomised model is asked many times about successes, with fresh random choices, and once about first flips: with
the random choices of the query that flipped, if those can be made again. One that always answers the same is asked
about the clean texts as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from stockade.attacks.repeatability import Tally
from stockade.core.errors import ModelError, SearchStopped
from stockade.core.example import Scores
from stockade.core.pairs import Sides
from stockade.core.protocols import Classifier, CompositeClassifier
from stockade.core.records import Record
from stockade.core.seeds import derive_seed
from stockade.core.text import Edit, Text
from stockade.defenses.defended import Defended
from stockade.engine.composite import make_scoring
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.requests import Confirm, Draw, confirmation_draw, draw_seed
from stockade.engine.services import innermost
from stockade.experiment.inputs import fingerprint_of
from stockade.experiment.integrity import RowFields, check_rows
from stockade.experiment.pool import asking, recorded_model
from stockade.experiment.result import Verification
from stockade.models.language import LanguageModels
from stockade.workflows.attack.result import AttackResult

_TOLERANCE = 1e-3
DRAWS, FEWEST_HITS = 20, 4
"""A text that fools in half of all draws has fewer hits among 20 once in 800 times."""
_BATCH = 32


def verify_attack(result: AttackResult, model: object = None, trust: bool = False) -> Verification:
    """Ask the model again about every success, alone, and about every clean text, and compare what it says, the edits
    and the summary with the record; check that no row is missing or was exchanged.
    """
    spec = result.spec
    result.check_trust(trust, model)
    classifier = recorded_model(
        spec.model if model is None else model,
        spec.model_options,
        spec.defenses,
        result.manifest.inputs["model"],
        seed=spec.seed,
        language=spec.language,
    )
    rows = {attack: result.store.rows(attack) for attack in result.attacks}
    fields = RowFields(part="attack", text="original", label="label" if result.labelled else None)
    stored = check_rows(rows, fields, result.manifest.inputs["data"], result.store.parts())
    problems = [*stored.problems]
    if fingerprint_of(classifier) != result.manifest.inputs["model"]["fingerprint"]:
        problems.append("the model is not the one that was attacked: its fingerprint differs")
    problems += _wrong_records(result, classifier)
    return result.verified(stored.checked, problems, stored.incomplete)


def _wrong_records(result: AttackResult, classifier: Classifier) -> list[str]:
    """What is wrong with single records, by themselves or by what the model says now."""
    targeted, problems = result.spec.targeted, []
    draws_again = isinstance(classifier, CompositeClassifier) and innermost(classifier).deterministic
    for record in result.records():
        wrong = [*_inconsistencies(record, result.labels, targeted)]
        if record.status == "success":
            wrong += _problems(record, classifier, targeted, result.spec.sides)
        if record.first_flip and draws_again:
            wrong += _first_flip_problems(record, classifier, targeted, _flip_draw(result, record))
        problems += [f"{record.attack}, example {record.id}: {problem}" for problem in wrong]
    if classifier.deterministic:
        problems += _changed_answers(result, classifier)
    return problems


def _inconsistencies(record: Record, labels: Sequence[str], targeted: str | None) -> Iterator[str]:
    """Where the fields of a record contradict each other."""
    for scores, prediction, which in (
        (record.original_scores, record.original_prediction, "original"),
        (record.adversarial_scores, record.adversarial_prediction, "adversarial"),
    ):
        if (None if scores is None else dict(enumerate(labels)).get(Scores(scores).label)) != prediction:
            yield f"the {which} scores do not say {prediction}"
    right = record.original_prediction == record.label
    if (record.status in ("success", "failed") and not right) or (record.status == "skipped" and right):
        yield f"recorded as {record.status}, and the model said {record.original_prediction} of the clean text"
    if (record.status == "success") != (record.adversarial is not None):
        yield f"recorded as {record.status}, with the adversarial text {record.adversarial}"
    if (record.status == "success") != (record.reason is None):
        yield f"recorded as {record.status}, and the reason is {record.reason}"
    if record.status == "success" and record.adversarial_prediction == record.label:
        yield "the recorded prediction is the true label"
    if record.status == "success" and targeted is not None and record.adversarial_prediction != targeted:
        yield f"the recorded prediction is not {targeted}, the target"
    yield from _contradictions(record)


def _contradictions(record: Record) -> Iterator[str]:
    """Where what is recorded by both rules of success, for a randomised model, contradicts itself."""
    if record.first_flip is None:
        return
    if record.first_flip != (record.first_flip_text is not None):
        yield f"recorded as {'a' if record.first_flip else 'no'} first flip, with the text {record.first_flip_text}"
    if record.status == "success" and not record.first_flip:
        yield "recorded as fooled repeatedly, and not once"
    if record.first_flip_queries is not None and record.first_flip_queries > record.queries:
        yield f"the first flip came after {record.first_flip_queries} queries, and there were {record.queries}"
    if record.draws and record.hits is not None:
        if record.hit_rate != record.hits / record.draws:
            yield f"recorded a hit rate of {record.hit_rate}, and {record.hits} hits in {record.draws} draws"
        elif Tally(record.hits, record.draws).repeatable != (record.status == "success"):
            yield f"recorded as {record.status}, with {record.hits} hits in {record.draws} draws"
    elif record.status == "success" or record.dismissed:
        yield "the draws of what was found are not recorded"


def _problems(record: Record, classifier: Classifier, targeted: str | None, sides: Sides) -> Iterator[str]:
    """What the model and the edits say against a success."""
    if record.adversarial is None or record.adversarial_scores is None:
        return
    text = Text.of(record.adversarial_input or "")
    words = len(Text.of(record.original_input, sides).words)
    if abs((record.perturbed_percent or 0.0) - 100.0 * len(record.edits) / max(1, words)) > 1e-6:
        yield f"recorded {record.perturbed_percent} % changed words, and there are {len(record.edits)} edits of {words}"
    if sides != "both" and any(edit.side not in (None, sides) for edit in record.edits):
        yield f"edits outside of the {sides}, which alone was attacked"
    if not all(edits_lead_to(*change) for change in _changes(record)):
        yield "the recorded edits do not lead from the original to the adversarial text"
    if not classifier.deterministic:
        hits = _count_hits(classifier, text, record, targeted)
        if hits < FEWEST_HITS:
            yield f"fooled the model in {hits} of {DRAWS} fresh draws only"
        return
    with asking():
        scores = Scores(tuple(classifier.predict_proba([text.input])[0].tolist()))
    if classifier.labels[scores.label] != record.adversarial_prediction:
        yield f"recorded {record.adversarial_prediction}, now {classifier.labels[scores.label]}"
    elif max(abs(a - b) for a, b in zip(scores.probabilities, record.adversarial_scores, strict=True)) > _TOLERANCE:
        yield "the scores differ from the recorded ones"


def _changed_answers(result: AttackResult, classifier: Classifier) -> list[str]:
    """Where a model says something else of a clean text than it is recorded to have said."""
    problems = []
    answered = (record for record in result.records() if record.original_scores is not None)
    while batch := list(islice(answered, _BATCH)):
        inputs = [record.original_input for record in batch]
        with asking():
            rows = classifier.predict_proba(inputs)
        for record, row in zip(batch, rows, strict=True):
            recorded = np.array(record.original_scores)
            if recorded.shape != row.shape or not np.allclose(row, recorded, rtol=0, atol=_TOLERANCE):
                problems.append(
                    f"{record.attack}, example {record.id}: the scores of the clean text differ from the recorded ones"
                )
    return problems


def _flip_draw(result: AttackResult, record: Record) -> Draw:
    """The random choices that were made when the first flip was seen: those of its query or, if the search had queried
    another model, those of the first answer when the text was sent to this one.
    """
    (name,) = (attack["name"] for attack in result.manifest.spec["attacks"] if attack["key"] == record.attack)
    search = draw_seed(result.spec.seed, record.id, name)
    query = record.first_flip_query
    return confirmation_draw(search, 0) if query is None else Draw(search, query)


def _first_flip_problems(record: Record, classifier: Classifier, targeted: str | None, draw: Draw) -> Iterator[str]:
    """What the model says against a first flip, asked with the same random choices."""
    repeats = record.first_flip_query is None and record.status == "success"
    if record.first_flip_text is None or repeats:
        return  # what fools repeatedly counts whatever the first answer was, and is asked about as a success
    text = Text.of(record.first_flip_input or "")
    if not _count_hits(classifier, text, record, targeted, Confirm(text, 1, draw)):
        yield "the first flip does not fool the model with the random choices of its query"


def _count_hits(
    classifier: Classifier, text: Text, record: Record, targeted: str | None, request: Confirm | None = None
) -> int:
    """How often the text fools a randomised model, in fresh draws or in those of a request."""
    request = request or Confirm(text, DRAWS, Draw(derive_seed("verify", record.attack, record.id), 0))
    language = classifier.language if isinstance(classifier, Defended) else LanguageModels()
    scoring = make_scoring(
        classifier,
        filling=FillingService(language.make_masked_lm),
        embedding=EmbeddingService(language.make_encoder),
    )
    (replies,) = scoring.answer_confirmations([request])
    if isinstance(replies, SearchStopped):
        raise ModelError(f"The model cannot be asked again about example {record.id}: {replies}")
    predictions = [classifier.labels[scores.label] for scores in replies]
    return sum(label != record.label if targeted is None else label == targeted for label in predictions)


def _changes(record: Record) -> Iterator[tuple[str, Sequence[Edit], str]]:
    """The text, or both sides of a pair: before, the edits, and after."""
    yield record.original, record.edits_of("hypothesis"), record.adversarial or ""
    if record.premise is not None:
        changed = record.premise if record.adversarial_premise is None else record.adversarial_premise
        yield record.premise, record.edits_of("premise"), changed


def edits_lead_to(original: str, edits: Sequence[Edit], changed: str) -> bool:
    """Whether edits lead from an original to a text; not looked into where they insert or delete words."""
    if not all(edit.op == "replace" for edit in edits):
        return True
    text = Text.parse(original)
    if not all(0 <= edit.index < len(text) and edit.after for edit in edits):
        return False
    return str(text.replace_all({edit.index: edit.after for edit in edits})) == changed
