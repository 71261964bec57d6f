"""`stockade lexicon`: make a table of word neighbours or of named entities, or look at one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from stockade.cli.screen import say

if TYPE_CHECKING:
    from stockade.lexicon.neighbours import Observer

EXAMPLES = ("great", "bad", "movie", "quickly")
Item = TypeVar("Item")
_FILE = click.Path(path_type=Path)


@click.group("lexicon")
def command() -> None:
    """Word neighbours and named entities: make a table, or see what is in one."""


@command.command("build")
@click.argument("out", type=_FILE)
@click.option("--vectors", type=_FILE, help="GloVe or word2vec text, .bin or .npy.  [default: GloVe 6B, 50 dimensions]")
@click.option("--synonyms", type=_FILE, multiple=True, help="Two words a line; repeatable.  [default: WordNet]")
@click.option("--antonyms", type=_FILE, multiple=True, help="Two words a line; repeatable.  [default: WordNet]")
@click.option("--words", default=40_000, show_default=True, help="How many words, most frequent first.")
@click.option("--epochs", default=20, show_default=True, help="Steps of counter-fitting.")
@click.option(
    "--whiten/--plain", default=True, show_default=True, help="Rescale by what synonyms share, or as published."
)
def build(
    out: Path,
    vectors: Path | None,
    synonyms: tuple[Path, ...],
    antonyms: tuple[Path, ...],
    words: int,
    epochs: int,
    whiten: bool,
) -> None:
    """Counter-fit word vectors with synonyms and antonyms and write the table OUT (.npz)."""
    from stockade.core.errors import OptionError
    from stockade.lexicon.counterfit import CounterFitting
    from stockade.lexicon.neighbours import Recipe, write_neighbours

    if out.suffix != ".npz":
        raise OptionError(f'The table must be an .npz file, not "{out.name}"; give {out.with_suffix(".npz").name}.')
    _refuse_missing_folder(out)
    recipe = Recipe(
        vectors=vectors,
        synonyms=synonyms,
        antonyms=antonyms,
        words=words,
        whiten=whiten,
        options=CounterFitting(epochs=epochs),
    )
    with _watch() as observe:
        fitted, about = recipe.build(observe)
    write_neighbours(fitted, out, about)
    say(f"{len(fitted)} words written to {out}", err=True)


@command.command("info")
@click.argument("file", type=_FILE, required=False)
@click.option("--word", "words", multiple=True, help=f"Show this word; repeatable.  [default: {', '.join(EXAMPLES)}]")
@click.option("--count", default=8, show_default=True, help="Neighbours to show of each word.")
def info(file: Path | None, words: tuple[str, ...], count: int) -> None:
    """Say what the table FILE holds (the built-in one by default) and show neighbours of a few words."""
    import hashlib

    from stockade.artifacts import read_artifact
    from stockade.lexicon.neighbours import ARTIFACT, MADE_BY, load_neighbours, read_neighbours

    table = load_neighbours() if file is None else read_neighbours(file)
    content = read_artifact(ARTIFACT, MADE_BY) if file is None else file.read_bytes()
    say(f"table         {file or 'built in'}, {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")
    say(f"words         {len(table):,}")
    for key, value in sorted(table.about.items()):
        shown = ", ".join(value) if isinstance(value, list) else value
        say(f"{key.replace('_', ' '):<13} {shown}")
    for word in words or EXAMPLES:
        near = "  ".join(f"{name} {cosine:.2f}" for name, cosine in table.neighbours(word, count=count))
        say("", word, f"    {near or 'not in the table'}")


@command.command("entities")
@click.argument("data")
@click.option("--out", type=_FILE, required=True, help="The table to write (JSON).")
@click.option("--text-column", help="The column of the text.")
@click.option("--label-column", help="The column of the label.")
@click.option("--label-map", multiple=True, metavar="DATA=NAME", help="What the table calls a label; repeat.")
@click.option("--limit", type=int, help="Read a sample of this many rows.  [default: all]")
def entities(
    data: str,
    out: Path,
    text_column: str | None,
    label_column: str | None,
    label_map: tuple[str, ...],
    limit: int | None,
) -> None:
    """Count the named entities of labelled DATA and write which ones stand in for those of each class.

    Attack with the table: --attack pwws:entities=FILE

    \b
    stockade lexicon entities builtin:reviews:train --out entities.json
    """
    from stockade.core.errors import DataError
    from stockade.datasets.examples import by_own_classes
    from stockade.datasets.load import load_data
    from stockade.lexicon.entities import EntityTable, choose_entities, count_entities, finder_name, load_finder

    _refuse_missing_folder(out)
    about = {"finder": finder_name()}  # refuses before any work when there is none
    source = load_data(data, text_column=text_column, label_column=label_column)
    examples = by_own_classes(source, limit=limit, label_map=dict(map(_renamed, label_map)))
    with _watch() as observe:
        labelled = ((examples.labels[example.label], str(example.text)) for example in examples)
        counts = count_entities(_watched(labelled, examples.size, observe), load_finder())
    table = choose_entities(counts)
    if not any(table.values()):
        raise DataError(
            f"{source.name} gives no entity table: {counts.total:,} named entities were found in {examples.size:,} "
            "texts, and no single word among those of one class can stand in another. Give more data."
        )
    about |= {"data": source.name, "fingerprint": examples.fingerprint}
    EntityTable(table, {**about, "texts": dict(sorted(counts.texts.items())), "entities": counts.total}).write(out)
    for name, words in table.items():
        say(name, "    " + ("  ".join(f"{kind} {word}" for kind, word in words.items()) or "no entity"))
    say(f"{counts.total:,} named entities in {examples.size:,} texts; table written to {out}", err=True)


def _watched(items: Iterable[Item], total: int, observe: Observer | None) -> Iterator[Item]:
    for number, item in enumerate(items):
        if observe is not None:
            observe("finding entities", number, total)
        yield item


def _renamed(written: str) -> tuple[str, str]:
    from stockade.core.errors import OptionError

    label, equals, name = written.partition("=")
    if not (label.strip() and equals and name.strip()):
        raise OptionError(f'--label-map {written} is not of the form DATA=NAME, as in "--label-map 1=positive".')
    return label.strip(), name.strip()


def _refuse_missing_folder(out: Path) -> None:
    from stockade.core.errors import OptionError

    if not out.resolve().parent.is_dir():
        raise OptionError(f"There is no folder {out.resolve().parent} to write {out.name} to; make it first.")


@contextmanager
def _watch() -> Iterator[Observer | None]:
    """One line with a bar that names the stage, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<22}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task("starting", total=None)

        def show(stage: str, done: int, total: int) -> None:
            bars.update(task, description=stage, completed=done, total=total if done else None)

        yield show
