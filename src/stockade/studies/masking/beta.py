"""What masked copies of a text say of β (Zeng et al. 2021, section 3.2): measured for each text, kept in the store.

Theorem 1 bounds how far p_c falls when the words of a set D change: by β Δ, with β = P(f = c | a word of D is shown).
The paper takes p_c for β, because the mean of β over random sets D is close to p_c (Algorithm 1, Figure 2). It cannot
be otherwise: every copy shows k words, so the sets of r words that it meets are the same share of all sets, whatever
the classifier says, and the mean of β over all sets is p_c exactly. An attacker takes no mean: he chooses the set.

Differences to the paper: one pool of copies serves all sets (there each set has its own), and where a text has no more
copies than that, all of them are asked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stockade.certificates.methods.ranmask import MaskedCopies
from stockade.certificates.sampling import votes_of
from stockade.certificates.sequential import choose_class
from stockade.core.errors import SearchStopped
from stockade.core.example import Example
from stockade.core.masks import Keep, draw_masks, masks_by_number
from stockade.core.protocols import Classifier
from stockade.core.seeds import derive_seed
from stockade.datasets.examples import ExampleSet
from stockade.engine.batching import TokenBudget
from stockade.engine.requests import Masked
from stockade.engine.scheduler import Scheduler, Search
from stockade.engine.scoring import ScoringService
from stockade.engine.services import innermost
from stockade.experiment.inputs import tuning_memory
from stockade.experiment.progress import Progress, Runtime
from stockade.experiment.store import Codec, ResultStore

if TYPE_CHECKING:
    from stockade.studies.masking.study import MaskingSpec
    from stockade.studies.masking.victims import Victim

SIZES = (1, 2, 5, 10)
"""Numbers of changed words."""
SETS = 200
"""Random sets of each size, as in the paper."""
PART = "β"
"""What progress calls these estimates."""
Hits = NDArray[np.bool_]
"""For each copy whether it votes for the class in question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaEstimate:
    """What the copies of one text show about β.

    Parameters
    ----------
    share
        p_c, the share of copies that vote for the class.
    mean_betas
        The mean of β over random sets, for each of `SIZES`; sets are no larger than the text.
    position
        Of the word that β is largest for.
    beta
        β of that word alone.
    share_beside
        p_c on the copies that β of the word was measured on.
    touched
        Δ_1: the share of copies that show any one word.
    """

    share: float
    mean_betas: tuple[float | None, ...]
    position: int
    beta: float
    share_beside: float
    touched: float

    @property
    def excess(self) -> float:
        """How far β of the chosen word is above p_c."""
        return self.beta - self.share_beside

    @property
    def random_excess(self) -> float | None:
        """How far the mean of β over random words is above p_c; None if no copy shows any of them."""
        return None if self.mean_betas[0] is None else self.mean_betas[0] - self.share

    def passes(self, beta: float) -> bool:
        """Whether the published test says that one word may change if β is this, sampling apart."""
        return self.share_beside - beta * self.touched > 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEstimate:
    """The estimate of one text, or the reason why there is none.

    Parameters
    ----------
    id
        Of the text.
    words
        How many it has.
    copies
        How many were asked.
    complete
        Whether those are all there are.
    word
        The one at the estimate's position.
    estimate
        None if the text could not be asked about.
    reason
        Why not.
    """

    id: str
    words: int
    copies: int = 0
    complete: bool = False
    word: str | None = None
    estimate: BetaEstimate | None = None
    reason: str | None = None


def _read(document: Mapping[str, Any]) -> TextEstimate:
    stored = document["estimate"]
    estimate = None if stored is None else BetaEstimate(**{**stored, "mean_betas": tuple(stored["mean_betas"])})
    return TextEstimate(**{**document, "estimate": estimate})


CODEC: Codec[TextEstimate] = Codec(dataclasses.asdict, _read)


def store_part(model: str) -> str:
    """The part of a study's store that holds the estimates of a model."""
    return f"{model}: {PART}"


def read_estimates(store: ResultStore, model: str) -> list[TextEstimate]:
    """The estimates of a model, in the order of the data."""
    return [CODEC.read(document) for document in store.documents(store_part(model))]


def estimate_betas(
    store: ResultStore,
    spec: MaskingSpec,
    victim: Victim,
    classifier: Classifier,
    examples: ExampleSet,
    runtime: Runtime,
) -> None:
    """Ask about masked copies of each text that the store has no estimate of, and keep each as it is found.

    Parameters
    ----------
    store
        Where they are kept.
    spec
        How many copies of each text are asked about, all if it has no more, and which.
    victim, classifier
        The model: how it hides words, and what answers.
    examples
        The texts.
    runtime
        How fast, and who watches.
    """
    base, part = innermost(classifier), store_part(victim.name)
    scoring = ScoringService(base, TokenBudget(runtime.batch_tokens, tuning_memory(base)))
    finished = store.ids(part)
    searches = (
        _search(position, example, spec, victim)
        for position, example in enumerate(examples)
        if example.id not in finished
    )
    for done, ended in enumerate(
        Scheduler.for_classifier(scoring, runtime.concurrency).run(searches), len(finished) + 1
    ):
        if isinstance(ended.result, SearchStopped):
            raise ended.result
        position, estimated = ended.result
        status = "error" if estimated.estimate is None else "estimated"
        store.add(part, estimated.id, CODEC.encode(estimated), position=position, status=status)
        if runtime.observer is not None:
            runtime.observer(Progress(part=PART, done=done, total=examples.size, status=status))


def _search(position: int, example: Example, spec: MaskingSpec, victim: Victim) -> Search[tuple[int, TextEstimate]]:
    words, masking = tuple(str(example.text).split()), victim.masking
    assert masking is not None, "a model without masking has no β"

    async def estimated() -> tuple[int, TextEstimate]:
        without = TextEstimate(id=example.id, words=len(words))
        if not 0 < len(words) <= spec.max_words:
            return position, dataclasses.replace(without, reason=f"the text has {len(words)} words")
        seed = derive_seed(spec.seed, "masking", example.id)
        kept = masking.kept_of(len(words))
        copies = MaskedCopies(words=words, premise=None, kept=kept, mask=masking.mask, seed=seed)
        keep, complete = choose_masks(copies, spec.copies)
        try:
            votes = votes_of(await Masked(words, example.text.premise, keep, masking.mask))
        except SearchStopped as reason:
            return position, dataclasses.replace(without, reason=str(reason))
        chosen = choose_class(np.bincount(votes[votes >= 0], minlength=len(victim.labels)).tolist())
        rng = np.random.default_rng(derive_seed(seed, "sets"))
        estimate = estimate_beta(keep, votes == chosen, complete, rng)
        word = words[estimate.position]
        return position, dataclasses.replace(without, copies=len(keep), complete=complete, word=word, estimate=estimate)

    return Search(estimated, weight=len(str(example.text)) * 1000)


def choose_masks(copies: MaskedCopies, most: int) -> tuple[Keep, bool]:
    """Every mask there is if these are not more than `most`, else so many at random; and whether it is every one."""
    number = copies.distribution.distinct_copies
    if number <= most:
        return masks_by_number(np.arange(number), len(copies.words), copies.kept), True
    return copies.masks("estimation", 0, most), False


def estimate_beta(keep: Keep, hits: Hits, complete: bool, rng: np.random.Generator) -> BetaEstimate:
    """What the copies of a text show about β.

    Unless they are all there are, the word is chosen on one half of them and its β measured on the other: the largest
    of many estimates would be too large.

    Parameters
    ----------
    keep
        Which words each copy shows.
    hits
        Which copies vote for the class.
    complete
        Whether these are all copies that there are.
    rng
        Draws the sets.
    """
    words, half = keep.shape[1], len(keep) // 2
    chosen_on, measured_on = (slice(None), slice(None)) if complete else (slice(0, half), slice(half, None))
    position = int(np.nanargmax(word_betas(keep[chosen_on], hits[chosen_on])))
    shown, measured_hits = keep[measured_on][:, position], hits[measured_on]
    beside = float(measured_hits.mean())
    return BetaEstimate(
        share=float(hits.mean()),
        mean_betas=tuple(mean_beta(keep, hits, draw_masks(rng, words, min(size, words), SETS)) for size in SIZES),
        position=position,
        beta=float(measured_hits[shown].mean()) if shown.any() else beside,
        share_beside=beside,
        touched=float(keep[0].sum()) / words,
    )


def word_betas(keep: Keep, hits: Hits) -> NDArray[np.float64]:
    """β of each word alone; NaN for a word that no copy shows."""
    shown, together = keep.sum(0), (keep & hits[:, None]).sum(0)
    betas: NDArray[np.float64] = np.where(shown > 0, together / np.maximum(shown, 1), np.nan)
    return betas


def mean_beta(keep: Keep, hits: Hits, sets: Keep) -> float | None:
    """Algorithm 1: the mean over the sets of the share of votes for c among the copies that show a word of the set.

    Sets of which no copy shows a word say nothing; None if that is so of all.
    """
    meets = keep.astype(np.float32) @ sets.T.astype(np.float32) > 0.5
    met = meets.sum(0)
    together = (meets & hits[:, None]).sum(0)
    return float((together[met > 0] / met[met > 0]).mean()) if met.any() else None
