"""The numbers of a run: counts, rates with 95 % intervals, means, and warnings when they cannot mean what
they seem to.

Clean accuracy = attacked / n, robust accuracy = failed / n, success = succeeded / attacked = 1 - robust / clean,
which is asserted. Examples that ended in an error leave n. Where an attack had nothing to try on most of the texts,
there is no robust accuracy: that it fooled few says nothing about the model.

For a randomised model these count what fools it repeatedly, and `first_flip_…` counts what fools it once, as papers do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from stockade.core.records import Record
from stockade.core.statistics import RunningMean, below_chance, wilson
from stockade.experiment.store import Effort
from stockade.workflows.attack.both_rules import BothRules, first_flip_shares

SCHEMA = 1
ASKED_TWICE = 4
"""How many texts a black box is asked about twice before it is attacked."""
_MANY_UNANIMOUS = 0.5
_FEWEST_ANSWERS = 20
"""With fewer texts nothing is said about what the model has learnt."""
_SKILL = 0.25
"""The least part of the way from always saying the most frequent class to always being right."""
_MANY_UNTRIED = 0.1
_MANY_CHANGED = 100 / 3
"""Percent of changed words: from here on it is another text rather than the same one, slightly changed."""


def summarise_attack(
    records: Iterable[Record], effort: Effort, similarity_scale: str | None = None, *, labelled: bool = True
) -> dict[str, Any]:
    """The summary of one attack; an empty or all-error attack has rates of null, never of zero.

    Parameters
    ----------
    records, effort
        Its results, and what they cost.
    similarity_scale
        How a similarity is to be read.
    labelled
        Whether the data have labels; without them nothing is known of accuracies, which are null.
    """
    statuses: Counter[str] = Counter()
    queries, rows, changed, similarity, flips = (
        RunningMean(),
        RunningMean(),
        RunningMean(),
        RunningMean(),
        RunningMean(),
    )
    shares: list[float] = []
    untried: Counter[str] = Counter()
    failed_queries, decision_based = 0, False
    rules = BothRules()
    for record in records:
        rules.add(record)
        decision_based = decision_based or record.decision_based
        statuses[record.status] += 1
        if record.status in ("success", "failed"):
            queries.add(record.queries)
            rows.add(record.rows)
            flips.add(record.flip_share)
            failed_queries += record.failed_queries
        if record.untried:
            untried[record.reason or ""] += 1
        if record.status == "success":
            changed.add(record.perturbed_percent)
            shares.append(record.perturbed_percent or 0.0)
            similarity.add(record.similarity)
    succeeded, failed, skipped = statuses["success"], statuses["failed"], statuses["skipped"]
    attacked = succeeded + failed
    n = attacked + skipped
    summary = {
        "n": n,
        "attacked": attacked,
        "skipped": skipped,
        "succeeded": succeeded,
        "failed": failed,
        "untried": untried.total(),
        "untried_reason": untried.most_common(1)[0][0] if untried else None,
        "errors": statuses["error"],
        "clean_accuracy": wilson(attacked, n if labelled else 0),
        "robust_accuracy": wilson(failed, n if labelled and not mostly_untried(untried.total(), attacked) else 0),
        "success_rate": wilson(succeeded, attacked),
        **rules.numbers(n if labelled else 0, attacked, mostly_untried(untried.total(), attacked)),
        "mean_queries": queries.value,
        "mean_rows": rows.value,
        "cache_hits": int(queries.total - rows.total),
        "failed_queries": failed_queries,
        "mean_perturbed_percent": changed.value,
        "median_perturbed_percent": round(median(shares), 6) if shares else None,
        "mean_similarity": similarity.value,
        "similarity_scale": similarity_scale,
        "mean_flip_share": flips.value,
        **({"decision_based": True} if decision_based else {}),
        "seconds": round(effort.seconds, 3),
        "model_seconds": round(effort.model_seconds, 3),
        "model_rows": effort.model_rows,
    }
    assert_identity(summary)
    return summary


def mostly_untried(untried: int, attacked: int) -> bool:
    """Whether an attack that had nothing to try on so many of the texts cannot say how robust the model is."""
    return 2 * untried > attacked


def assert_identity(summary: Mapping[str, Any]) -> None:
    """success = 1 - robust / clean, for every row this package reports a robust accuracy of, by either rule."""
    clean, robust = summary["clean_accuracy"]["value"], summary["robust_accuracy"]["value"]
    success = summary["success_rate"]["value"]
    if clean and robust is not None:
        assert abs((success or 0.0) - (1 - robust / clean)) < 1e-9, summary
    if clean and "first_flip_robust_accuracy" in summary:
        robust, flipped = (summary[f"first_flip_{name}"]["value"] for name in ("robust_accuracy", "success_rate"))
        assert robust is None or abs((flipped or 0.0) - (1 - robust / clean)) < 1e-9, summary


def warnings_for(
    summaries: Mapping[str, Mapping[str, Any]],
    labels: Sequence[str],
    unanimous: float | None = None,
    unlimited: Collection[str] = (),
) -> list[str]:
    """What a reader must know before believing the numbers.

    Parameters
    ----------
    summaries
        The numbers of each attack.
    labels
        The classes of the model.
    unanimous
        The share of clean texts on which all copies of a voting defense agree; None if nothing votes.
    unlimited
        The attacks that may change any share of the words.
    """
    if not summaries:
        return []
    first = next(iter(summaries.values()))
    warnings = []
    if swapped := swapped_labels(first["attacked"], first["n"], labels):
        warnings.append(f"The model is {swapped}")
    elif first["n"] and not first["attacked"]:
        warnings.append("The model is wrong on every clean text, so nothing was attacked: are the labels swapped?")
    if unanimous is not None and unanimous >= _MANY_UNANIMOUS:
        warnings.append(
            f"All copies vote alike on {unanimous:.0%} of the clean texts. Such votes starve attacks that follow "
            "scores, so what they could not fool is no evidence of robustness: see the other views of `stockade "
            "evaluate`."
        )
    for name, summary in summaries.items():
        if summary["errors"]:
            warnings.append(f"{name}: {summary['errors']} examples ended in an error and are left out of all rates.")
        warnings += _of_attack(name, summary, name in unlimited)
    return warnings


def summarise_classes(records: Iterable[Record], labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What became of the texts of each class, in the order of the model's classes; errors are left out.

    Parameters
    ----------
    records
        The results of one attack.
    labels
        The classes of the model.
    """
    counts: dict[str, Counter[str]] = {label: Counter() for label in labels}
    for record in records:
        if record.status != "error" and record.label in counts:
            counts[record.label][record.status] += 1
            counts[record.label]["untried"] += record.untried
            counts[record.label]["both rules"] += record.first_flip is not None
            counts[record.label]["first flip"] += bool(record.first_flip)
            if record.original_prediction in counts:
                counts[record.original_prediction]["predicted"] += 1
    return {label: _class_numbers(counted) for label, counted in counts.items()}


def _class_numbers(counted: Counter[str]) -> dict[str, Any]:
    succeeded, failed = counted["success"], counted["failed"]
    attacked = succeeded + failed
    n = attacked + counted["skipped"]
    return {
        "n": n,
        "predicted": counted["predicted"],
        "clean_accuracy": wilson(attacked, n),
        "robust_accuracy": wilson(failed, 0 if mostly_untried(counted["untried"], attacked) else n),
        "success_rate": wilson(succeeded, attacked),
        **first_flip_shares(counted, n, attacked, mostly_untried(counted["untried"], attacked)),
    }


def without_scores(summaries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The warning for attacks that follow scores on a model that has declared that it has none.

    Parameters
    ----------
    summaries
        The numbers of each attack.
    """
    following = [name for name, numbers in summaries.items() if numbers["attacked"] and "decision_based" not in numbers]
    if not following:
        return []
    return [
        f"The model only names classes, and {', '.join(following)} follow scores: what they could not fool is no "
        "evidence of robustness. Attacks with a decision-based variant are named in docs/models.md."
    ]


def warnings_of_answers(records: Iterable[Record], labelled: bool, label_only: bool = False) -> list[str]:
    """What the model's answers to the clean texts say about the worth of the numbers.

    Parameters
    ----------
    records
        The results of one attack.
    labelled
        Whether the labels are the data's, not the model's.
    label_only
        Whether the model has declared that it has no scores.
    """
    answered = [record for record in records if record.original_scores is not None]
    if len(answered) < _FEWEST_ANSWERS:
        return []
    warnings = []
    if not label_only and all(max(record.original_scores or (0.0,)) == 1.0 for record in answered):
        warnings.append(
            "The model answers with hard labels (probabilities of 0 and 1 alone). Attacks that follow scores have "
            "nothing to follow, so what they could not fool is no evidence of robustness. Declare it with --outputs "
            "labels for attacks that follow labels."
        )
    if labelled:
        right = sum(record.label == record.original_prediction for record in answered)
        truth = Counter(record.label for record in answered)
        predicted = Counter(record.original_prediction or "" for record in answered)
        warnings += majority_warning(right, truth, predicted)
    return warnings


def majority_warning(right: int, truth: Mapping[str, int], predicted: Mapping[str, int]) -> list[str]:
    """The warning for a model that is hardly better than always saying the most frequent class; none for others.

    Parameters
    ----------
    right
        How many texts the model gets right.
    truth, predicted
        How many texts have each class, and how many the model gives it.
    """
    texts = sum(truth.values())
    if len(truth) < 2 or texts < _FEWEST_ANSWERS:
        return []
    most = max(truth, key=lambda label: truth[label])
    share, accuracy = truth[most] / texts, right / texts
    if (accuracy - share) / (1 - share) >= _SKILL or below_chance(right, texts, len(truth)):
        return []  # below chance there is another warning: the labels may be swapped
    often = predicted.get(most, 0) / texts
    return [
        f"The model is right on {accuracy:.1%} of the clean texts, and always saying {most} would be right on "
        f"{share:.1%} (it says {most} on {often:.0%}): it has hardly learnt the task, and what an attack does to it "
        "says little. Look at the classes one by one."
    ]


def _of_attack(name: str, summary: Mapping[str, Any], unlimited: bool) -> Iterable[str]:
    """What the numbers of one attack cannot mean."""
    untried, attacked = summary["untried"], summary["attacked"]
    if mostly_untried(untried, attacked):
        yield (
            f"{name}: not attacked. On {untried:,} of {attacked:,} texts there was nothing to try "
            f"({summary['untried_reason']}), so this says nothing about how robust the model is. Use another attack."
        )
    elif untried >= _MANY_UNTRIED * attacked > 0:
        yield (
            f"{name}: on {untried:,} of {attacked:,} texts there was nothing to try ({summary['untried_reason']}); "
            "they count as robust."
        )
    changed = summary["median_perturbed_percent"]
    if unlimited and changed is not None and changed > _MANY_CHANGED:
        yield (
            f"{name}: half of the successes change {changed:.0f} % of the words or more, so people may not read them "
            "like the originals. Limit the share with --max-changed, such as 0.2."
        )
    if summary["failed_queries"]:
        yield (
            f"{name}: the model failed on {summary['failed_queries']:,} queries; the searches went on without those "
            "texts."
        )


def unsteady_warning(unsteady: int, unconfirmed: int) -> list[str]:
    """The warning for a model that is taken to always answer alike and does not; none for others.

    Parameters
    ----------
    unsteady
        How many of a few texts it answered differently when it was asked twice.
    unconfirmed
        How many texts that fooled it did not when it was asked again.
    """
    if not unsteady and not unconfirmed:
        return []
    seen = [f"{unsteady} of {ASKED_TWICE} texts asked twice"] if unsteady else []
    seen += [f"{unconfirmed} found to fool it that did not do so again"] if unconfirmed else []
    return [
        f"The model does not always answer the same text alike ({', '.join(seen)}), so a run cannot be repeated and "
        "success is partly chance. Give an object with predict_proba, labels and deterministic = False: then a success "
        "is what fools it in at least half of its answers."
    ]


def swapped_labels(right: int, texts: int, labels: Sequence[str]) -> str | None:
    """The warning for a model that is right less often than by chance; None for others."""
    if not texts or not below_chance(right, texts, len(labels)):
        return None
    return (
        f"right on only {right / texts:.0%} of the clean texts, below chance ({1 / len(labels):.0%}): "
        "are the labels swapped? "
        f"The model's classes are {', '.join(labels)}; set the order with --label-map."
    )


def unanimous_votes(records: Iterable[Record]) -> float | None:
    """The share of clean texts on which a defense that votes is unanimous; None if nothing was scored."""
    answers = [record.original_scores for record in records if record.original_scores is not None]
    return sum(max(scores) == 1.0 for scores in answers) / len(answers) if answers else None
