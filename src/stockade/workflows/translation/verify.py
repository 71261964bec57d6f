"""Check an attack on a translator: every changed source must be translated as recorded, every success reach its goal,
every number follow from the rows.

A randomised translator is asked many times about successes. One that always answers the same translates the original
sources again as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from stockade.attacks.registry import NamedAttack
from stockade.attacks.translation_goals import HasKeyword
from stockade.attacks.translation_trial import DRAWS
from stockade.core.attacked_translation import Goal, TranslationAttack, TranslationExample, TranslationRecord
from stockade.core.errors import ModelError, StockadeError
from stockade.core.text import Text
from stockade.core.translation import Translator
from stockade.experiment.inputs import findable
from stockade.experiment.integrity import RowFields, check_rows
from stockade.experiment.result import Verification
from stockade.workflows.attack.verify import FEWEST_HITS, edits_lead_to
from stockade.workflows.translation.result import TranslationResult
from stockade.workflows.translation.run import load_victim

_BATCH = 32
_FIELDS = RowFields(part="attack", text="reference", premise="original", label=None)


def verify_translation(result: TranslationResult, model: object = None, trust: bool = False) -> Verification:
    """Translate every changed source again, alone, and compare translations, goals, edits and the summary with the
    record; check that no row is missing or was exchanged.
    """
    spec = result.spec
    result.check_trust(trust, model)
    translator = load_victim(findable(spec.model, "The model") if model is None else model, spec.model_options)
    rows = {attack: result.store.rows(attack) for attack in result.attacks}
    stored = check_rows(rows, _FIELDS, result.manifest.inputs["data"], result.store.parts())
    problems = [*stored.problems]
    if translator.fingerprint() != result.manifest.inputs["model"]["fingerprint"]:
        problems.append("the model is not the one that was attacked: its fingerprint differs")
    attacks: dict[str, NamedAttack] = {attack.key: attack for attack in spec.attacks}
    for record in result.records():
        wrong = [*_inconsistencies(record)]
        if record.adversarial is not None and record.attack in attacks:
            wrong += _problems(record, translator, attacks[record.attack].attack)
        problems += [f"{record.attack}, example {record.id}: {problem}" for problem in wrong]
    if translator.deterministic:
        problems += _changed_translations(result, translator)
    return result.verified(stored.checked, problems, stored.incomplete)


def _inconsistencies(record: TranslationRecord) -> Iterator[str]:
    """Where the fields of a record contradict each other."""
    if (record.adversarial is None) != (record.adversarial_translation is None):
        yield "an adversarial source without its translation, or the other way round"
    if record.status == "success" and record.adversarial is None:
        yield "a success without an adversarial source"
    if record.status in ("skipped", "error") and record.adversarial is not None:
        yield f"recorded as {record.status}, with the adversarial source {record.adversarial}"
    if (record.status == "success") != (record.reason is None):
        yield f"recorded as {record.status}, and the reason is {record.reason}"


def _changed_translations(result: TranslationResult, translator: Translator) -> list[str]:
    """Where a source that was not changed is translated otherwise than recorded."""
    problems = []
    translated = (record for record in result.records() if record.original_translation is not None)
    while batch := list(islice(translated, _BATCH)):
        now = translations(translator, [record.original for record in batch])
        problems += [
            f"{record.attack}, example {record.id}: the original was translated as "
            f"{record.original_translation!r}, now {translation!r}"
            for record, translation in zip(batch, now, strict=True)
            if translation != record.original_translation
            and translations(translator, [record.original]) != [record.original_translation]  # not a tie of a batch
        ]
    return problems


def translations(translator: Translator, sources: Sequence[str]) -> list[str]:
    """The translations of sources; a model that cannot be asked is an error of one sentence."""
    try:
        return translator.translate(sources)
    except StockadeError:
        raise
    except Exception as error:
        raise ModelError(
            f"The model cannot be asked again: it raised {type(error).__name__} ({error}). Verify with a model that "
            "answers: --model on the command line, result.verify(model) in Python."
        ) from None


def _problems(record: TranslationRecord, translator: Translator, attack: object) -> Iterator[str]:
    """What the model, the edits and the goal say against a changed source."""
    assert record.adversarial is not None
    text, words = Text.parse(record.adversarial), len(Text.parse(record.original).words)
    if abs((record.perturbed_percent or 0.0) - 100.0 * len(record.edits) / max(1, words)) > 1e-6:
        yield f"recorded {record.perturbed_percent} % changed words, and there are {len(record.edits)} edits of {words}"
    if not edits_lead_to(record.original, record.edits, str(text)):
        yield "the recorded edits do not lead from the original to the adversarial source"
    goal = _goal(record, attack)
    if translator.deterministic:
        (translation,) = translations(translator, [record.adversarial])
        if translation != record.adversarial_translation:
            yield f"recorded {record.adversarial_translation!r}, now {translation!r}"
    elif record.status == "success":
        hits = sum(goal.reached(translations(translator, [record.adversarial])[0]) for _ in range(DRAWS))
        if hits < FEWEST_HITS:
            yield f"reached the goal in {hits} of {DRAWS} fresh translations only"
    if record.status == "success" and not goal.reached(record.adversarial_translation or ""):
        yield "the recorded translation does not reach the goal"


def _goal(record: TranslationRecord, attack: object) -> Goal:
    """What the attack wanted of this sentence."""
    if record.keyword is not None:
        return HasKeyword(record.keyword)
    assert isinstance(attack, TranslationAttack)
    example = TranslationExample(
        id=record.id,
        text=Text.parse(record.original),
        reference=record.reference,
        translation=record.original_translation or "",
    )
    goal = attack.goal_for(example, Random(0))
    assert goal is not None
    return goal
