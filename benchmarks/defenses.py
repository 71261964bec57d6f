"""Every defense on the same data, texts and attacks, over several trained seeds, beside the undefended model.

    python benchmarks/defenses.py TRAIN TEST --arch CNN-W-GloVe-1 [--texts 200] [--seeds 0 1 2] [--copies 100] \\
        [--epochs 2 --masked-epochs 6] [--norm auto] [--glove FILE] [--rows FACT RanMASK …] [--attacks textfooler …] \\
        [--textfooler-only FuSE FIVE] [--out FOLDER] [--json FILE]

For each seed the architecture is trained undefended, once more from another seed (*retrained*), and with each training
defense; FACT has the seed of the retrained twin, so that only the defense is between them. TextFooler's successes
against the undefended model, on --premade texts, are the pre-made set. Every row is then evaluated as `stockade
evaluate` does: directly and in all views that apply to it, on the same test texts. A cell is the mean over seeds, with
a 95 % t-interval; under an attack robust accuracy in the direct view / by text over all views. Every attack has two
columns: by the *first flip*, where one wrong answer of a randomised defense is a success, as the papers count, and by
what is *repeatable*, where the text found must fool at least half of its answers; for models that always answer alike
they are the same. *worst* is the share of texts that survive everything, by either rule. p is an exact test of the
repeatable worst case against the undefended model, by text: the trained seeds of a text go together (sign flips of how
many more seeds it survives with; of one seed that is McNemar's test), and `+8 −1` are texts that survive with more
seeds in the defense, and without it. It speaks of other texts for these models, the intervals of other models for these
texts. Below the table, the same test for what the papers claim of single attacks, attacked directly as they did and
counted by the first flip as they did, then by what is repeatable, and with a text counted as robust only if no view of
that attack fools it. DeepWordBug comes as its paper describes it (words chosen once, up to 30 letters changed) and as
TextAttack has it, which is what RanMASK's authors attacked with. Then, of each row, the options of its defenses that
are not those of the preset `paper`, and what PGD and FreeLB measured of the model. What is finished in --out is read,
not repeated, so several processes can share the seeds, and a last one prints the table.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, get_args

import torch
from scipy.stats import t as student

import stockade as st
from stockade.core.records import Record
from stockade.defenses.pgd import Norm
from stockade.defenses.registry import NamedDefense, make_defense
from stockade.workflows.evaluate.analysis import AttackShares
from stockade.workflows.evaluate.measures import Shares, compared
from stockade.workflows.evaluate.outcomes import cell_outcomes, row_outcomes
from stockade.workflows.evaluate.spec import make_chains

TEXTFOOLER = "textfooler"
ATTACKS = (TEXTFOOLER, "bert-attack", "deepwordbug", "deepwordbug@textattack")
RETRAINED_SEED = 1000
FIRST_FLIP, REPEATABLE = "first flip", "repeatable"
RULES = (FIRST_FLIP, REPEATABLE)
"""What counts as a success against a randomised defense: one wrong answer, as published, or half of them."""
FACT = "fact:perturb_words=4,similarity=off"
FUSE = "fuse:similarity=off"
"""Without the sentence encoder, which would take nearly all of the time; FACT with four of a sentence's 20 words."""
FILES = ("reference_model", "model")
"""Options that name a file: no settings of a paper."""


@dataclass(frozen=True)
class Row:
    """A line of the table: how its model is trained, and the chain of defenses it is asked in."""

    name: str
    model: str = "undefended"
    chain: str = "none"


@dataclass(frozen=True)
class Recipe:
    """How a model is trained: with which defenses, and how far its seed is from the undefended one's."""

    defenses: tuple[str, ...] = ()
    seed: int = 0


def recipes(rate: float, base: Path, norm: str) -> dict[str, Recipe]:
    masked, freelb = f"ranmask:rate={rate}", f"freelb:norm={norm}"
    return {
        "undefended": Recipe(),
        "retrained": Recipe(seed=RETRAINED_SEED),
        "FACT": Recipe((f"{FACT},reference_model={base}",), seed=RETRAINED_SEED),
        "RanMASK": Recipe((masked,)),
        "RanMASK + FreeLB": Recipe((masked, freelb)),
        "SAFER": Recipe(("safer",)),
        "PGD": Recipe((f"pgd:norm={norm}",)),
        "FreeLB": Recipe((freelb,)),
        "Adv-HotFlip": Recipe(("adv-hotflip",)),
        "augmentation": Recipe((f"augmentation:model={base}",)),
        "hull": Recipe(("hull",)),
    }


def table_rows(rate: float, copies: int, five: str) -> list[Row]:
    masked = f"ranmask:rate={rate},copies={copies}"
    return [
        Row("undefended"),
        Row("retrained", "retrained"),
        Row("FuSE", chain=FUSE),
        Row("FIVE", chain=five),
        Row("mask-top", chain="mask-top"),
        Row("FACT", "FACT"),
        Row("FuSE(FACT)", "FACT", f"{FUSE}+fact"),
        Row("FIVE(FACT)", "FACT", f"{five}+fact"),
        Row("RanMASK, mean probability", "RanMASK", masked),
        Row("RanMASK, logit", "RanMASK", f"{masked},combine=logit"),
        Row("RanMASK, vote", "RanMASK", f"{masked},combine=vote"),
        Row("RanMASK, vote + LM", "RanMASK", f"{masked},combine=vote,sampling=lm"),
        Row("RanMASK + FreeLB", "RanMASK + FreeLB", f"{masked}+freelb"),
        Row("SAFER", "SAFER", f"safer:copies={copies}"),
        Row("SAFER, vote", "SAFER", f"safer:copies={copies},combine=vote"),
        Row("PGD", "PGD"),
        Row("FreeLB", "FreeLB"),
        Row("Adv-HotFlip", "Adv-HotFlip"),
        Row("augmentation", "augmentation"),
        Row("hull", "hull"),
    ]


def attacks_on(options: argparse.Namespace, row: Row) -> tuple[str, ...]:
    return (TEXTFOOLER,) if row.name in options.textfooler_only else tuple(options.attacks)


def trained(options: argparse.Namespace, name: str, seed: int) -> Path:
    """The folder of a model, trained now unless it is there."""
    folder: Path = options.out / f"seed-{seed}" / "models" / name.replace(" ", "")
    base = options.out / f"seed-{seed}" / "models" / "undefended"
    recipe = recipes(options.rate, base, options.norm)[name]
    sources = {"glove": str(options.glove)} if options.glove else {}
    masked = any(defense.startswith("ranmask") for defense in recipe.defenses)
    epochs = (options.masked_epochs if masked else None) or options.epochs
    more = {"epochs": epochs} if epochs else {}
    st.train(
        options.train,
        options.arch,
        out=folder,
        defenses=recipe.defenses,
        sources=sources,
        seed=seed + recipe.seed,
        resume=folder.exists(),
        device="cpu",
        **more,
    )
    return folder


def premade(options: argparse.Namespace, seed: int) -> Path:
    """TextFooler's successes against the undefended model."""
    folder: Path = options.out / f"seed-{seed}"
    path = folder / "textfooler-on-undefended.jsonl"
    if not path.exists():
        st.attack(
            str(trained(options, "undefended", seed)),
            options.test,
            "textfooler",
            limit=options.premade,
            out=folder / "premade",
            resume=(folder / "premade").exists(),
            similarity=False,
        )
        rows = [{"text": record.adversarial, "label": record.label} for record in premade_records(options, seed)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def premade_records(options: argparse.Namespace, seed: int) -> list[Record]:
    run = st.load(options.out / f"seed-{seed}" / "premade")
    assert isinstance(run, st.AttackResult)
    return list(run.records("textfooler", "success"))


def evaluation_folder(options: argparse.Namespace, row: Row, seed: int) -> Path:
    name = "".join(c if c.isalnum() else "-" for c in row.name)
    return Path(options.out) / f"seed-{seed}" / "evaluations" / name


def evaluated(options: argparse.Namespace, row: Row, seed: int) -> st.EvaluateResult:
    folder = evaluation_folder(options, row, seed)
    return st.evaluate(
        str(trained(options, row.model, seed)),
        options.test,
        attacks_on(options, row),
        row.chain,
        premade=premade(options, seed),
        limit=options.texts,
        out=folder,
        resume=folder.exists(),
        eot_samples=options.eot_samples,
    )


Survivors = Mapping[tuple[int, str], bool]
"""Whether a text survives, by seed and id."""


def tested(before: Survivors, after: Survivors) -> str:
    more: Counter[str] = Counter()
    for (seed, text), survives in after.items():
        more[text] += survives - before[seed, text]
    test = compared(more)
    return f"{test.p:.2g} (+{test.gained} −{test.lost})"


def paired(before: Survivors, after: Survivors) -> str:
    """Two shares of the same texts, and the test between them."""
    shares = f"{100 * fmean(before.values()):.1f} → {100 * fmean(after.values()):.1f}"
    return f"{shares}, p = {tested(before, after)}"


def robust(options: argparse.Namespace, row: Row, attack: str, direct: bool, rule: str) -> Survivors:
    """Whether each text survives an attack in the direct view, or in all views, by a rule: what the table counts."""
    survivors: dict[tuple[int, str], bool] = {}
    for seed in options.seeds:
        result = st.load(evaluation_folder(options, row, seed))
        assert isinstance(result, st.EvaluateResult)
        (grid_row,) = (grid_row for grid_row in result.grid_rows if grid_row.defense == row.chain)
        if rule == FIRST_FLIP:
            grid_row = grid_row.by_first_flip or grid_row  # of a model that always answers alike it is the same
        if direct:
            outcomes = cell_outcomes(grid_row.cells[attack, "direct", result.grid.seeds[0]].statuses)
        else:
            outcomes = row_outcomes(grid_row, result.grid.seeds[0], [attack]) or {}
        survivors |= {(seed, text): outcome == "robust" for text, outcome in outcomes.items()}
    return survivors


def right_on_premade(options: argparse.Namespace, name: str) -> Survivors:
    """Whether a model gets each pre-made text right, known by its original, of which each seed has its own version."""
    survivors: dict[tuple[int, str], bool] = {}
    for seed in options.seeds:
        model = st.load_model(str(trained(options, name, seed)))
        rows = premade_records(options, seed)
        answers = model.predict_proba([row.adversarial or "" for row in rows]).argmax(1)
        survivors |= {(seed, row.id): model.labels[at] == row.label for at, row in zip(answers, rows, strict=True)}
    return survivors


def claims(options: argparse.Namespace, rows: Mapping[str, Row]) -> Iterator[str]:
    """What the papers say of single attacks, for those rows that were measured."""
    bare = Row("undefended")
    if {"FACT", "retrained"} <= rows.keys():
        pair = paired(right_on_premade(options, "retrained"), right_on_premade(options, "FACT"))
        yield f"retrained → FACT, pre-made TextFooler: {pair}"
    for name in ("FIVE", "FuSE", "FACT", "RanMASK, mean probability"):
        for attack in options.attacks if name.startswith("RanMASK") else (TEXTFOOLER,):
            if name not in rows or attack not in attacks_on(options, rows[name]):
                continue
            before = robust(options, bare, attack, direct=True, rule=REPEATABLE)  # the same by either rule
            for direct, how in ((True, "directly"), (False, "in all views")):
                for rule in RULES:
                    pair = paired(before, robust(options, rows[name], attack, direct, rule))
                    yield f"undefended → {name}, {attack} {how}, {rule}: {pair}"


def defenses_of(row: Row, recipe: Recipe) -> list[NamedDefense]:
    """Those that only train its model, and those that answer."""
    training = [named for named in map(make_defense, recipe.defenses) if not named.entry.answers]
    answering = [named for named in make_chains(row.chain)[-1].defenses or () if named.entry.answers]
    return training + answering


def changed_options(named: NamedDefense) -> str:
    """The options that are not those of the preset `paper`, as "similarity off (paper: filter)"."""
    published = make_defense(f"{named.name}@paper").options
    return ", ".join(
        f"{option} {value} (paper: {published[option]})"
        for option, value in named.options.items()
        if value != published[option] and option not in FILES
    )


def settings(options: argparse.Namespace, row: Row) -> Iterator[str]:
    """What of a row is not as published, and what its defenses measured of the trained models."""
    recipe = recipes(options.rate, Path("models/undefended"), options.norm)[row.model]
    for named in defenses_of(row, recipe):
        changed = changed_options(named)
        yield f"{row.name}: {named.name} with {changed}" if changed else f"{row.name}: {named.name}@paper"
    for seed in options.seeds:
        result = st.load(trained(options, row.model, seed))
        assert isinstance(result, st.TrainResult)
        yield from (f"{row.name}, seed {seed}: {remark}" for remark in result.remarks)


def measure(options: argparse.Namespace, row: Row) -> dict[str, Any]:
    defended = {seed: evaluated(options, row, seed) for seed in options.seeds}
    attacks = attacks_on(options, row)
    base = {seed: evaluated(options, Row("undefended"), seed) for seed in defended}
    rows = [result.row(row.chain) for result in defended.values()]
    before, after = (
        {
            (seed, text): outcome == "robust"
            for seed, result in results.items()
            for text, outcome in result.outcomes(chain).items()
        }
        for results, chain in ((base, "none"), (defended, row.chain))
    )
    worst = {
        **{f"worst, {rule}": over_seeds([robust_by(numbers.worst, rule) for numbers in rows]) for rule in RULES},
        "p": tested(before, after) if row.name != "undefended" else "–",
    }
    return {
        "defense": row.name,
        "clean": over_seeds([numbers.clean.accuracy.value for numbers in rows]),
        "macro F1": over_seeds([numbers.clean.macro_f1.value for numbers in rows]),
        "pre-made": over_seeds([next(iter(numbers.premade.values())).accuracy.value for numbers in rows]),
        **{
            f"{attack}, {rule}": under_attack([numbers.attacks[attack] for numbers in rows], rule)
            if attack in attacks
            else "–"
            for attack in options.attacks
            for rule in RULES
        },
        **(dict.fromkeys(worst, "–") if attacks != tuple(options.attacks) else worst),
    }


def under_attack(shares: Sequence[AttackShares], rule: str) -> str:
    """Robust accuracy by a rule in the direct view, and over all views where there are others."""
    direct = over_seeds([robust_by(attack.views["direct"], rule) for attack in shares])
    if len(shares[0].views) == 1:
        return direct
    return f"{direct} / {over_seeds([robust_by(attack, rule) for attack in shares])}"


def robust_by(shares: Shares, rule: str) -> float | None:
    """Robust accuracy by a rule; a model that always answers alike has one number for both."""
    flipped = shares.first_flip if rule == FIRST_FLIP else None
    return (flipped or shares).robust_accuracy.value


def over_seeds(values: Sequence[float | None]) -> str:
    measured = [value for value in values if value is not None]
    if not measured:
        return "n/a"
    mean = 100 * fmean(measured)
    if len(measured) < 2:
        return f"{mean:.1f}"
    half = 100 * student.ppf(0.975, len(measured) - 1) * stdev(measured) / len(measured) ** 0.5
    return f"{mean:.1f} ± {half:.1f}"


def show(row: Mapping[str, Any]) -> None:
    print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--arch", default="CNN-W-Random-1")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--premade", type=int, default=500, help="texts that TextFooler's pre-made set is made from")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--copies", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--five", default="five", help="FIVE with options for the model, as `stockade tune` finds them")
    parser.add_argument("--eot-samples", type=int, default=5)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--masked-epochs", type=int, help="of RanMASK, whose texts are never twice the same")
    parser.add_argument("--norm", default="auto", choices=get_args(Norm), help="of PGD and FreeLB")
    parser.add_argument("--glove", type=Path)
    parser.add_argument("--rows", nargs="*")
    parser.add_argument("--attacks", nargs="+", default=ATTACKS)
    parser.add_argument("--textfooler-only", nargs="*", default=[], help="rows that are too dear for the other attacks")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "stockade-defenses")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [
        row
        for row in table_rows(options.rate, options.copies, options.five)
        if not options.rows or row.name in options.rows
    ]
    table = []
    for row in rows:
        table.append(measure(options, row))
        if len(table) == 1:
            show({name: name for name in table[0]})
            show(dict.fromkeys(table[0], "---"))
        show(table[-1])
    print("\n" + "\n".join(f"- {line}" for line in claims(options, {row.name: row for row in rows})), flush=True)
    print("\nSettings, beside those of the presets `paper`:\n", flush=True)
    for line in (line for row in rows for line in settings(options, row)):
        print(f"- {line}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
