"""The way of parallel sentences from search to store: every sentence under every attack, committed as it ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from stockade.attacks.registry import NamedAttack
from stockade.attacks.translation_trial import TranslationTrial, attack_translation
from stockade.core.attacked_translation import TranslationAttack, TranslationExample, TranslationRecord
from stockade.core.errors import ModelError
from stockade.core.seeds import derive_rng
from stockade.core.text import Text
from stockade.core.translation import InspectableTranslator, Translator
from stockade.datasets.examples import UnlabelledSet, prepare_texts
from stockade.datasets.parallel import LANGUAGES, ParallelSource
from stockade.engine.language import EmbeddingService, FillingService
from stockade.engine.scheduler import Finished, Scheduler, Search
from stockade.engine.translation import TranslationService, translator_services
from stockade.experiment.inputs import ModelOptions, describe_data, findable, reference_of
from stockade.experiment.progress import Runtime
from stockade.experiment.result import Workflow
from stockade.experiment.store import ResultStore
from stockade.experiment.workspace import begin
from stockade.lexicon.neighbours import read_neighbours, use_neighbours
from stockade.models.translation.bleu import sacrebleu_metrics
from stockade.models.translation.load import load_translator
from stockade.workflows.attack.common import measure_similarities, store_searches, unfinished
from stockade.workflows.translation.result import CODEC, TranslationResult
from stockade.workflows.translation.spec import TranslationSpec

_SHORTEST_KEYWORD = 3


def run(spec: TranslationSpec, folder: Path, runtime: Runtime, resume: bool) -> TranslationResult:
    """Load the translator and the sentences, then attack."""
    sacrebleu_metrics()  # without it nothing could be reported
    translator = load_victim(findable(spec.model, "The model"), spec.model_options)
    source = spec.data_options.load_parallel(findable(spec.data, "The data"))
    return attack_pairs(spec, folder, runtime, resume, translator, source)


def load_victim(model: object, options: ModelOptions) -> Translator:
    """The translator that is attacked; a classifier is refused.

    Parameters
    ----------
    model
        A reference or the translator itself.
    options
        How it is loaded.
    """
    if hasattr(model, "predict_proba") or str(model).startswith(("builtin:", "ensemble:")):
        raise ModelError(
            f"{reference_of(model)} is a classifier, and these attacks are for translators. Give a translator (docs: "
            "translation), or attacks for classifiers, such as pwws."
        )
    return load_translator(
        model,
        device=options.device,
        allow_pickle=options.allow_pickle,
        trust_remote_code=options.trust_remote_code,
    )


def attack_pairs(
    spec: TranslationSpec,
    folder: Path,
    runtime: Runtime,
    resume: bool,
    translator: Translator,
    source: ParallelSource,
) -> TranslationResult:
    """Attack sentences with a translator that is loaded already; the arguments are those of `run`."""
    pairs = Sentences.of(source, limit=spec.limit, seed=spec.seed)
    pairs.check_answers(translator)
    neighbours = None if spec.neighbours is None else read_neighbours(spec.neighbours)
    inputs = {
        "model": describe_translator(spec.model, translator),
        "data": {**describe_data(spec.data, pairs.chosen), "columns": [source.source_column, source.target_column]},
        "neighbours": None if neighbours is None else neighbours.fingerprint(),
    }
    with begin(folder, spec, inputs, resume=resume) as workspace:
        result = TranslationResult.of(workspace)
        try:
            with use_neighbours(neighbours):
                run_searches(workspace.store, translator, pairs, spec, runtime)
            if spec.similarity:
                measure_similarities(workspace.store, spec.attacks, CODEC, spec.language, None)
        finally:
            result.write_summary()
    return result


def describe_translator(reference: object, translator: Translator) -> dict[str, Any]:
    """What a manifest records of a translator."""
    return {
        "reference": reference_of(reference),
        "deterministic": translator.deterministic,
        "white_box": isinstance(translator, InspectableTranslator),
        "fingerprint": translator.fingerprint(),
    }


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentences of a run: iterate over it as often as you like.

    Parameters
    ----------
    chosen
        The rows of the sample.
    keywords
        The words of all references, also of rows outside of the sample, from which keywords are drawn.
    language
        The language of the sources, if the column is named after one.
    """

    chosen: UnlabelledSet
    keywords: tuple[str, ...]
    language: str | None

    @classmethod
    def of(cls, source: ParallelSource, *, limit: int | None, seed: int) -> Sentences:
        """Check every row, take the sample, and collect the keywords."""
        words = dict.fromkeys(
            word
            for pair in source.pairs()
            for word in Text.parse(pair.target).words
            if len(word) >= _SHORTEST_KEYWORD and word.isalpha()
        )
        column = source.source_column.strip().lower()
        return cls(prepare_texts(source, limit=limit, seed=seed), tuple(words), column if column in LANGUAGES else None)

    def __iter__(self) -> Iterator[TranslationExample]:
        for row in self.chosen:
            yield TranslationExample(
                id=row.id,
                text=Text.parse(row.text.premise or ""),
                reference=str(row.text),
                keywords=self.keywords,
                language=self.language,
            )

    def check_answers(self, translator: Translator) -> None:
        """Ask for one translation, so that a model that gives something else ends the command before it is begun."""
        example = next(iter(self))
        try:
            answer = translator.translate([str(example.text)])
        except ModelError:
            raise
        except Exception:  # a sentence the model cannot take is recorded with that sentence, by the engine
            return
        if not isinstance(answer, list) or len(answer) != 1 or not isinstance(answer[0], str):
            raise ModelError(
                f"The model answered one sentence with {answer!r:.80}; expected a list of one translation."
            )


def run_searches(
    store: ResultStore, translator: Translator, sentences: Sentences, spec: TranslationSpec, runtime: Runtime
) -> None:
    """Attack every sentence that the store has no result for yet."""
    service = TranslationService(translator)
    language = spec.language
    services = translator_services(
        service,
        filling=FillingService(language.make_masked_lm),
        embedding=EmbeddingService(language.make_encoder),
    )
    scheduler = Scheduler(services, runtime.concurrency)
    for attack in spec.attacks:

        def searches(
            finished: set[str], attack: NamedAttack = attack
        ) -> Iterator[Search[tuple[int, tuple[TranslationExample, TranslationTrial]]]]:
            for position, example in unfinished(sentences, finished, runtime):
                yield _search(position, example, translator.deterministic, spec, attack)

        def encoded(
            ended: Finished[Any], outcome: tuple[TranslationExample, TranslationTrial], key: str = attack.key
        ) -> tuple[TranslationRecord, Any]:
            record = make_record(key, *outcome, queries=ended.queries, rows=ended.rows)
            return record, CODEC.encode(record)

        store_searches(store, scheduler, attack, sentences.chosen.size, runtime, service, searches, encoded)


def _search(
    position: int, example: TranslationExample, deterministic: bool, spec: TranslationSpec, attack: NamedAttack
) -> Search[tuple[int, tuple[TranslationExample, TranslationTrial]]]:
    async def trial() -> tuple[int, tuple[TranslationExample, TranslationTrial]]:
        outcome = await attack_translation(
            cast(TranslationAttack, attack.attack),
            example,
            derive_rng(spec.seed, example.id, attack.name),
            deterministic=deterministic,
            max_words=spec.max_words,
        )
        return position, (example, outcome)

    return Search(trial, spec.budget, len(example.text) * len(str(example.text)))


def make_record(
    attack: str, example: TranslationExample, trial: TranslationTrial, *, queries: int, rows: int
) -> TranslationRecord:
    """What is stored of a trial."""
    adversarial = trial.text
    return TranslationRecord(
        id=example.id,
        attack=attack,
        status=trial.status,
        reason=trial.reason,
        original=str(example.text),
        adversarial=None if adversarial is None else str(adversarial),
        reference=example.reference,
        original_translation=trial.translation,
        adversarial_translation=trial.adversarial_translation,
        keyword=None if trial.goal is None else trial.goal.keyword,
        queries=queries,
        rows=rows,
        edits=() if adversarial is None else adversarial.edits,
        perturbed_percent=None if adversarial is None else adversarial.perturbed_percent,
        hit_rate=trial.hit_rate,
        truncated_words=trial.truncated_words,
    )


WORKFLOW: Workflow[Any] = Workflow(TranslationSpec, run, TranslationResult)
