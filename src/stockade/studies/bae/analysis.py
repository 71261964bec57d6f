"""The study of BAE (Garg and Ramakrishnan, EMNLP 2020): its four modes and TextFooler on the same texts.

    attacks    Tables 1 and 2: accuracy before and after, success, similarity, changed words, queries
    splits     Table 5: what inserting adds to replacing, and replacing to inserting
    curve      Figure 2: accuracy after the attack against the largest perturbation allowed
    orders     what the paper says of these numbers, and whether it holds here
    antonyms   how many successes turn a word into its opposite
    fluency    pseudo-perplexity of the texts before and after

Differences to the paper: queries, antonyms and pseudo-perplexity are not in it; its human evaluation is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stockade.attacks.constraints import MaxChanged
from stockade.core.errors import RunError
from stockade.models.language import LanguageModels
from stockade.runs.run import Run
from stockade.studies.bae.antonyms import measure_antonyms
from stockade.studies.bae.curve import CAPS, accuracy_curve
from stockade.studies.bae.fluency import Measure, masked_lm_measure, measure_fluency, measure_texts, texts_of
from stockade.studies.bae.orders import BASELINE, MODES, check_orders, pair_similarities
from stockade.studies.bae.splits import measure_splits
from stockade.studies.orders import as_rows
from stockade.studies.results import Results, read_results, successes

NAME = "bae"
SUMMARY = "BAE's four modes and TextFooler: main table, Table 5, Figure 2, the paper's orders, antonyms, fluency."
ATTACKS = (*MODES, BASELINE)
SCHEMA = 1
_FEW = 30


def check_run(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse a run that this study cannot be read from."""
    described = {attack["key"]: attack for attack in manifest["config"]["attacks"]}
    missing = [attack for attack in ATTACKS if attack not in described]
    if missing:
        raise RunError(
            f"{folder} is no run of the study {NAME}: it has no results of {', '.join(missing)} "
            f"(found: {', '.join(described)}). Make one with: stockade study {NAME} MODEL DATA --out …"
        )
    capped = [attack for attack in ATTACKS if _is_capped(described[attack]["options"])]
    if capped:
        raise RunError(
            f"{folder} was attacked with a cap on changed words ({', '.join(capped)}), nothing is known beyond it. "
            f"Make a run without one: stockade study {NAME} MODEL DATA --out …"
        )


def _is_capped(options: Mapping[str, Any]) -> bool:
    return options.get("max_changed") is not None or MaxChanged.name in str(options.get("constraint"))


def analyse(run: Run, *, fluency: bool = True, measure: Measure | None = None) -> dict[str, Any]:
    """Every number of the study, from the run's results alone; `measure` stands in for the run's masked LM."""
    check_run(run.folder, run.manifest)
    results, summary, config = read_results(run, ATTACKS), run.summary, run.manifest["config"]
    language = LanguageModels(config["mlm"], config["encoder"])
    splits = measure_splits(results)
    paired = {mode: pair_similarities(results, mode) for mode in MODES}
    return {
        "schema": SCHEMA,
        "study": NAME,
        "run": run.name,
        "model": summary["model"],
        "data": summary["data"],
        "created": run.manifest["created"],
        "seed": config["seed"],
        "budget": config["budget"],
        "complete": summary["complete"],
        "examples": summary["examples"],
        "encoder": language.encoder_name if config["similarity"] else None,
        "similarity_scale": config["similarity"],
        "masked_lm": language.masked_lm_name,
        "warnings": [*summary["warnings"], *_warnings(run)],
        "attacks": {attack: summary["attacks"][attack] for attack in ATTACKS},
        "splits": splits,
        "curve": {
            "caps": list(CAPS),
            "attacks": {attack: accuracy_curve(results[attack].values()) for attack in ATTACKS},
        },
        "paired_similarity": paired,
        "orders": as_rows(check_orders(results, splits, paired)),
        "antonyms": {attack: measure_antonyms(successes(results[attack])) for attack in ATTACKS},
        "fluency": _fluency(run, results, language, measure) if fluency else None,
    }


def _fluency(run: Run, results: Results, language: LanguageModels, measure: Measure | None) -> dict[str, Any]:
    texts = [text for attack in ATTACKS for text in texts_of(successes(results[attack]))]
    name = language.masked_lm_name
    values = measure_texts(run.folder, name, texts, measure or masked_lm_measure(language))
    attacks = {attack: measure_fluency(successes(results[attack]), values) for attack in ATTACKS}
    return {"masked_lm": name, "attacks": attacks}


def _warnings(run: Run) -> list[str]:
    """What this study adds to the warnings of the run."""
    warnings = []
    attacked = max(run.summary["attacks"][attack]["attacked"] for attack in ATTACKS)
    if 0 < attacked < _FEW:
        counted = "1 text was" if attacked == 1 else f"{attacked} texts were"
        warnings.append(f"Only {counted} attacked: read the intervals, the orders may be chance.")
    if not run.manifest["model"]["deterministic"]:
        warnings.append("The model is randomised: the curve over the allowed perturbation is only an estimate.")
    if any(attack["options"].get("repair_articles") for attack in run.manifest["config"]["attacks"]):
        warnings.append("Articles were put right, which caps count as well: the curve is only an estimate.")
    return warnings
