"""Blind sheets for human raters: adversarial texts side by side, without a word about which model or attack made them.

A comparison names two or more methods, each a model and an attack (`bert:gs-ec` against `lstm:gs-ec`). Every text on
which all of them succeed, and not with the same words, is a group of rows, one per method. The rater marks the most
readable row of each group and gives every row a label. Groups, rows and their ids are in an order that says nothing;
the key says what is what. `ratings` reads sheets that come back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pydantic import TypeAdapter

from stockade.core.errors import OptionError, RunError, unknown_name
from stockade.core.files import write_json
from stockade.core.records import Record
from stockade.experiment.store import Codec
from stockade.studies.attention.inputs import GREEDY, GREEDY_EC, LIST, Victim
from stockade.studies.rating_sheet.sheet import beside, random_name, refuse_written, write_rows
from stockade.studies.records import Results, succeeded

COLUMNS, PREMISE = ("group", "id", "text", "preferred", "label"), "premise"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Method:
    """A model under an attack."""

    model: str
    attack: str

    def __str__(self) -> str:
        return f"{self.model}:{self.attack}"


Comparison = tuple[Method, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What a row of a sheet is: `shown` is the text that a rater reads, `text` the id of its original."""

    id: str
    group: str
    comparison: tuple[str, ...]
    method: str
    text: str
    gold: str
    shown: str | None
    premise: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What the rows of a sheet are, by their id; to be kept from the raters."""

    schema: int = SCHEMA
    study: str
    created: str
    labels: tuple[str, ...]
    comparisons: tuple[tuple[str, ...], ...]
    items: Mapping[str, Item]


KEY_CODEC: Codec[Key] = Codec(dataclasses.asdict, TypeAdapter(Key).validate_python)


def check_sheet(path: Path, victims: Sequence[Victim], compare: Sequence[str]) -> list[Comparison]:
    """What a sheet will compare; refused before anything is attacked if it cannot be made.

    Parameters
    ----------
    path
        The sheet; neither it nor its key may exist.
    victims
        The models of the study.
    compare
        Comparisons such as `bert:gs-ec,lstm:gs-ec`; the paper's if there are none.
    """
    refuse_written(path, _key_path(path))
    attacks = {victim.name: victim.attacks for victim in victims}
    comparisons = [_parse(text, attacks) for text in compare] or default_comparisons(victims)
    if not comparisons:
        raise RunError("There is nothing to compare: no model of the study allows gs-gr and gs-ec. Use --compare.")
    return comparisons


def default_comparisons(victims: Sequence[Victim]) -> list[Comparison]:
    """The paper's two: gs-ec on a self-attentive and a recurrent model (or the first two), gs-gr and gs-ec on one."""
    able = [victim for victim in victims if not {GREEDY, GREEDY_EC} & victim.missing.keys()]
    if not able:
        return []
    attentive = next((victim for victim in able if victim.kind == "self-attentive"), able[0])
    others = [victim for victim in able if victim is not attentive]
    rival = next((victim for victim in others if victim.kind == "recurrent"), others[0] if others else None)
    within = (Method(attentive.name, GREEDY), Method(attentive.name, GREEDY_EC))
    if rival is None:
        return [within]
    return [(Method(rival.name, GREEDY_EC), Method(attentive.name, GREEDY_EC)), within]


def make_key(
    comparisons: Sequence[Comparison],
    results: Mapping[str, Results],
    *,
    study: str,
    created: str,
    seed: int,
    labels: tuple[str, ...],
) -> Key:
    """Lay out a sheet: what its rows are, in their order.

    Parameters
    ----------
    comparisons
        What is compared.
    results
        What each attack did on each model.
    study, created, seed
        What the study is called, when it was begun, and its seed; the last two decide the order.
    labels
        The classes that raters may give: those of the first model.
    """
    rng = Random(f"rating sheet {seed} {created}")
    first = next(iter(results.values()))[LIST]  # models may call the same class differently
    gold = {text: record.label for text, record in first.items()}
    groups = [group for comparison in comparisons for group in _groups(comparison, results, gold, rng)]
    if not groups:
        listed = "; ".join(" against ".join(map(str, comparison)) for comparison in comparisons)
        raise RunError(
            f"No text is fooled in different ways by the methods of a comparison ({listed}): there is nothing to rate."
        )
    rng.shuffle(groups)
    return Key(
        study=study,
        created=created,
        labels=labels,
        comparisons=tuple(tuple(map(str, comparison)) for comparison in comparisons),
        items={item.id: item for group in groups for item in group},
    )


def write_sheet(path: Path, key: Key) -> None:
    """Write a sheet with empty columns for the rater, and its key beside it."""
    paired = any(item.premise is not None for item in key.items.values())
    columns = (*COLUMNS[:2], PREMISE, *COLUMNS[2:]) if paired else COLUMNS
    write_rows(path, columns, ({**dataclasses.asdict(item), "text": item.shown} for item in key.items.values()))
    write_json(_key_path(path), KEY_CODEC.encode(key))


def _key_path(path: Path) -> Path:
    return beside(path, "key.json")


def _parse(text: str, attacks: Mapping[str, Sequence[str]]) -> Comparison:
    """`MODEL:ATTACK,MODEL:ATTACK`, of the models and attacks of the study."""
    methods = []
    for part in filter(None, text.split(",")):
        model, colon, attack = part.strip().rpartition(":")
        if not colon:
            raise OptionError(f"--compare {text} is not of the form MODEL:ATTACK,MODEL:ATTACK.")
        if model not in attacks:
            raise unknown_name("model in this study", model, attacks)
        if attack not in attacks[model]:
            raise unknown_name(f"attack on {model} in this study", attack, attacks[model])
        methods.append(Method(model, attack))
    if len(set(methods)) < max(2, len(methods)):
        raise OptionError(
            f"--compare {text} names fewer than two different methods, expected MODEL:ATTACK,MODEL:ATTACK."
        )
    return tuple(methods)


def _groups(
    comparison: Comparison, results: Mapping[str, Results], gold: Mapping[str, str], rng: Random
) -> Iterator[list[Item]]:
    """The rows of each text that all methods fool, in an order that says nothing."""
    records = {method: results[method.model][method.attack] for method in comparison}
    for text in records[comparison[0]]:
        if not all(succeeded(by_text.get(text)) for by_text in records.values()):
            continue
        if len({by_text[text].adversarial for by_text in records.values()}) == 1:
            continue  # nobody can prefer one of two equal texts
        name = random_name(rng)
        group = [_item(name, comparison, method, records[method][text], gold[text], rng) for method in comparison]
        rng.shuffle(group)
        yield group


def _item(group: str, comparison: Comparison, method: Method, record: Record, gold: str, rng: Random) -> Item:
    return Item(
        id=random_name(rng),
        group=group,
        comparison=tuple(map(str, comparison)),
        method=str(method),
        text=record.id,
        gold=gold,
        shown=record.adversarial,
        premise=record.adversarial_premise or record.premise,
    )
