"""Every defense on the same data, texts and attacks, over several trained seeds, beside the undefended model.

    python benchmarks/defenses.py TRAIN TEST --arch CNN-W-GloVe-1 [--texts 200] [--seeds 0 1 2] [--copies 100] \\
        [--epochs 2 --masked-epochs 6] [--glove FILE] [--rows FACT RanMASK …] [--attacks textfooler …] \\
        [--textfooler-only FuSE FIVE] [--out FOLDER] [--json FILE]

For each seed the architecture is trained undefended, once more from another seed (*retrained*), and with each training
defense; FACT has the seed of the retrained twin, so that only the defense is between them. TextFooler's successes
against the undefended model, on --premade texts, are the pre-made set. Every row is then evaluated as `stockade
evaluate` does: directly and in all ways that apply to it, on the same test texts. A cell is the mean over seeds, with a
95 % t-interval; under an attack robust accuracy the direct way / by text over all ways; *worst* is the share of texts
that survive everything. p is an exact test of the worst case against the undefended model, by text: the trained seeds
of a text go together (sign flips of how many more seeds it survives with; of one seed that is McNemar's test), and `+8
−1` are texts that survive with more seeds in the defense, and without it. It speaks of other texts for these models,
the intervals of other models for these texts. Below the table, the same test for what the papers claim of single
attacks, attacked directly as they did, and with a text counted as robust only if no way of that attack fools it.
DeepWordBug comes as its paper describes it (words chosen once, up to 30 letters changed) and as TextAttack has it,
which is what RanMASK's authors attacked with. What is finished in --out is read, not repeated, so several processes can
share the seeds, and a last one prints the table.
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
from typing import Any

import torch
from scipy.stats import t as student

import stockade as st
from stockade.core.records import Record
from stockade.evaluation.grid import folder_names
from stockade.evaluation.measures import compared
from stockade.evaluation.outcomes import cell_fates, fates

TEXTFOOLER = "textfooler"
ATTACKS = (TEXTFOOLER, "bert-attack", "deepwordbug", "deepwordbug@textattack")
RETRAINED_SEED = 1000
FACT = "fact:perturb_words=4,similarity=off"
FUSE = "fuse:similarity=off"
"""Without the sentence encoder, which would take nearly all of the time; FACT with four of a sentence's 20 words."""


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


def recipes(rate: float, base: Path) -> dict[str, Recipe]:
    masked = f"ranmask:rate={rate}"
    return {
        "undefended": Recipe(),
        "retrained": Recipe(seed=RETRAINED_SEED),
        "FACT": Recipe((f"{FACT},reference_model={base}",), seed=RETRAINED_SEED),
        "RanMASK": Recipe((masked,)),
        "RanMASK + FreeLB": Recipe((masked, "freelb")),
        "SAFER": Recipe(("safer",)),
        "PGD": Recipe(("pgd",)),
        "FreeLB": Recipe(("freelb",)),
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
        Row("RanMASK, vote", "RanMASK", f"{masked},combine=vote"),
        Row("RanMASK + FreeLB", "RanMASK + FreeLB", f"{masked}+freelb"),
        Row("SAFER", "SAFER", f"safer:copies={copies}"),
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
    folder = options.out / f"seed-{seed}" / "models" / name.replace(" ", "")
    base = options.out / f"seed-{seed}" / "models" / "undefended"
    recipe = recipes(options.rate, base)[name]
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
    folder = options.out / f"seed-{seed}"
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
        rows = [{"text": one.adversarial, "label": one.label} for one in premade_records(options, seed)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def premade_records(options: argparse.Namespace, seed: int) -> list[Record]:
    return list(st.Run(options.out / f"seed-{seed}" / "premade").records("textfooler", "success"))


def evaluation_folder(options: argparse.Namespace, row: Row, seed: int) -> Path:
    name = "".join(c if c.isalnum() else "-" for c in row.name)
    return Path(options.out) / f"seed-{seed}" / "evaluations" / name


def evaluated(options: argparse.Namespace, row: Row, seed: int) -> st.Evaluation:
    folder = evaluation_folder(options, row, seed)
    return st.evaluate(
        str(trained(options, row.model, seed)),
        options.test,
        attacks=attacks_on(options, row),
        defenses=[row.chain],
        premade=[premade(options, seed)],
        limit=options.texts,
        out=folder,
        resume=folder.exists(),
        expectation=options.expectation,
    )


Survivors = Mapping[tuple[int, str], bool]
"""Whether a text survives, by seed and id."""


def tested(before: Survivors, after: Survivors) -> str:
    more: Counter[str] = Counter()
    for (seed, text), survives in after.items():
        more[text] += survives - before[seed, text]
    found = compared(more)
    return f"{found['p']:.2g} (+{found['gained']} −{found['lost']})"


def paired(before: Survivors, after: Survivors) -> str:
    """Two shares of the same texts, and the test between them."""
    shares = f"{100 * fmean(before.values()):.1f} → {100 * fmean(after.values()):.1f}"
    return f"{shares}, p = {tested(before, after)}"


def robust(options: argparse.Namespace, row: Row, attack: str, direct: bool) -> Survivors:
    """Whether each text survives an attack the direct way, or in all ways: what the table counts."""
    found: dict[tuple[int, str], bool] = {}
    for seed in options.seeds:
        (place,) = evaluation_folder(options, row, seed).glob(f"models/*/{folder_names([row.chain])[0]}")
        answers = json.loads((place / "answers-0.json").read_text(encoding="utf-8"))
        cells = {
            way: {one.id: one.status for one in st.Run(place / attack / f"{way}-0").records(attack)}
            for way in (["direct"] if direct else answers["ways"])
        }
        came_of = cell_fates(cells["direct"]) if direct else fates(answers, list(cells.values()))
        found |= {(seed, text): fate == "robust" for text, fate in came_of.items()}
    return found


def right_on_premade(options: argparse.Namespace, name: str) -> Survivors:
    """Whether a model gets each pre-made text right, known by its original, of which each seed has its own version."""
    found: dict[tuple[int, str], bool] = {}
    for seed in options.seeds:
        model = st.load_model(str(trained(options, name, seed)))
        rows = premade_records(options, seed)
        answers = model.predict_proba([row.adversarial or "" for row in rows]).argmax(1)
        found |= {(seed, row.id): model.labels[at] == row.label for at, row in zip(answers, rows, strict=True)}
    return found


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
            before = robust(options, bare, attack, direct=True)
            for direct, told in ((True, "directly"), (False, "in all ways")):
                pair = paired(before, robust(options, rows[name], attack, direct))
                yield f"undefended → {name}, {attack} {told}: {pair}"


def measure(options: argparse.Namespace, row: Row) -> dict[str, Any]:
    found = {seed: evaluated(options, row, seed) for seed in options.seeds}
    attacks = attacks_on(options, row)
    base = {seed: evaluated(options, Row("undefended"), seed) for seed in found}
    numbers = {seed: one.row(row.chain) for seed, one in found.items()}
    before, after = (
        {(seed, text): fate == "robust" for seed, one in rows.items() for text, fate in one.fates(chain).items()}
        for rows, chain in ((base, "none"), (found, row.chain))
    )
    worst = {
        "worst": over_seeds([one["worst"]["robust_accuracy"]["value"] for one in numbers.values()]),
        "p": tested(before, after) if row.name != "undefended" else "–",
    }
    return {
        "defense": row.name,
        "clean": over_seeds([one["clean"]["accuracy"]["value"] for one in numbers.values()]),
        "macro F1": over_seeds([one["clean"]["macro_f1"]["value"] for one in numbers.values()]),
        "pre-made": over_seeds([next(iter(one["premade"].values()))["value"] for one in numbers.values()]),
        **{
            attack: under_attack([one["attacks"][attack] for one in numbers.values()]) if attack in attacks else "–"
            for attack in options.attacks
        },
        **({"worst": "–", "p": "–"} if attacks != tuple(options.attacks) else worst),
    }


def under_attack(found: Sequence[Mapping[str, Any]]) -> str:
    """Robust accuracy the direct way, and over all ways where there are others."""
    direct = over_seeds([one["ways"]["direct"]["robust_accuracy"]["value"] for one in found])
    if len(found[0]["ways"]) == 1:
        return direct
    return f"{direct} / {over_seeds([one['robust_accuracy']['value'] for one in found])}"


def over_seeds(values: Sequence[float]) -> str:
    mean = 100 * fmean(values)
    if len(values) < 2:
        return f"{mean:.1f}"
    half = 100 * student.ppf(0.975, len(values) - 1) * stdev(values) / len(values) ** 0.5
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
    parser.add_argument("--expectation", type=int, default=5)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--masked-epochs", type=int, help="of RanMASK, whose texts are never twice the same")
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
    found = []
    for row in rows:
        found.append(measure(options, row))
        if len(found) == 1:
            show({name: name for name in found[0]})
            show(dict.fromkeys(found[0], "---"))
        show(found[-1])
    print("\n" + "\n".join(f"- {line}" for line in claims(options, {row.name: row for row in rows})), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
