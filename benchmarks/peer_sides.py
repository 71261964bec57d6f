"""The two sides of the peer benchmark: one attack on one victim and one set of texts, by TextAttack and by Stockade.

Both answer with the same figures and with what became of each text. The clock of either side covers the attack alone:
not imports, not the loading of models, not the reading of data, and not the first call of a model, because each side
attacks other texts before the clock starts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import stockade
from export_masked_lm import export_masked_lm
from stockade.attacks.registry import make_attack
from stockade.core.protocols import MaskedLanguageModel, SentenceEncoder
from stockade.core.records import Record
from stockade.datasets.examples import ExampleSet, prepare_examples
from stockade.datasets.load import load_data
from stockade.experiment.progress import Runtime
from stockade.experiment.store import ResultStore
from stockade.models.adapters import load_model
from stockade.models.language import LanguageModels, minilm_folder
from stockade.workflows.attack.result import CODEC
from stockade.workflows.attack.searches import run_searches
from stockade.workflows.attack.spec import AttackSpec

HERE = Path(__file__).parent
SIDE = HERE / "textattack_side"
ENVIRONMENT = HERE.parent / ".venv-textattack"
SOURCE = Path(stockade.__file__).parents[1]
WARM_UP_TEXTS = 16

Status = Literal["success", "failed", "skipped"]


@dataclass(frozen=True)
class Ending:
    """What became of one text."""

    id: str
    status: Status
    queries: int
    changed: int
    text: str | None


@dataclass(frozen=True)
class Side:
    """One tool's figures on one set of texts: means over attacked texts, and over seeds."""

    cpu_seconds_per_text: float
    queries: float
    success: float
    changed_words: float
    attacked: int


@dataclass(frozen=True)
class Attempt:
    """One run of one tool."""

    cpu_seconds: float
    endings: tuple[Ending, ...]

    @property
    def side(self) -> Side:
        attacked = [ending for ending in self.endings if ending.status != "skipped"]
        won = [ending for ending in attacked if ending.status == "success"]
        return Side(
            self.cpu_seconds / len(self.endings),
            fmean(ending.queries for ending in attacked) if attacked else 0.0,
            len(won) / max(1, len(attacked)),
            fmean(ending.changed for ending in won) if won else 0.0,
            len(attacked),
        )


def mean(attempts: list[Attempt]) -> Side:
    """The figures of several seeds as one."""
    sides = [attempt.side for attempt in attempts]
    return Side(
        fmean(side.cpu_seconds_per_text for side in sides),
        fmean(side.queries for side in sides),
        fmean(side.success for side in sides),
        fmean(side.changed_words for side in sides),
        sides[0].attacked,
    )


@dataclass(frozen=True)
class Task:
    """A victim, the texts to attack, and others to attack before the clock starts."""

    victim: str
    classifier: Any
    examples: ExampleSet
    warm_up: ExampleSet


@lru_cache(maxsize=1)
def default_masked_lm() -> MaskedLanguageModel:
    return LanguageModels(device="cpu").make_masked_lm()


@lru_cache(maxsize=1)
def default_encoder() -> SentenceEncoder:
    return LanguageModels(device="cpu").make_encoder()


@dataclass(frozen=True)
class Loaded(LanguageModels):
    """Stockade's default language models, loaded once: TextAttack's are not loaded inside its clock either."""

    def make_encoder(self) -> SentenceEncoder:
        return default_encoder()

    def make_masked_lm(self) -> MaskedLanguageModel:
        return default_masked_lm()


class StockadeSide:
    """Runs Stockade in this process."""

    def __init__(self) -> None:
        self._warm: set[tuple[str, str]] = set()

    def attack(self, task: Task, attack: str, seed: int) -> Attempt:
        """One run; the attack has been at work on other texts before, once for each victim."""
        if (task.victim, attack) not in self._warm:
            self._run(task.classifier, task.warm_up, attack, 0)
            self._warm.add((task.victim, attack))
        return self._run(task.classifier, task.examples, attack, seed)

    def _run(self, classifier: Any, examples: ExampleSet, attack: str, seed: int) -> Attempt:
        named = make_attack(attack)
        with tempfile.TemporaryDirectory() as folder:
            store = ResultStore(Path(folder), writable=True)
            spec = AttackSpec.of(model="", data="", attacks=named, seed=seed)
            started = time.process_time()
            run_searches(store, classifier, examples, spec, Runtime(), language=Loaded())
            seconds = time.process_time() - started
            endings = tuple(ending_of(CODEC.read(document)) for document in store.documents(named.key))
        return Attempt(seconds, endings)


def ending_of(record: Record) -> Ending:
    """A stored record as this benchmark counts it; an error would not be comparable with anything."""
    if record.status == "error":
        sys.exit(f"Stockade ended text {record.id} with an error: {record.reason}")
    return Ending(record.id, record.status, record.queries, len(record.edits), record.adversarial)


class TextAttackSide:
    """Runs TextAttack in its own environment, made when it is not there yet."""

    def __init__(self, folder: Path, wordnet: Path) -> None:
        self._folder, self._wordnet = folder, wordnet
        self._saved: dict[str, Path] = {}

    def attack(
        self, task: Task, wrapper: str, recipe: str, function_words: bool, seed: int, careful: bool = False
    ) -> Attempt:
        """One run in a process of its own; `careful` encodes each string once and pads the masked LM tightly."""
        examples = self._folder / f"{task.victim}-{len(task.examples)}.jsonl"
        rows = [{"id": e.id, "text": str(e.text), "label": e.label} for e in task.examples]
        examples.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        out = self._folder / "textattack.jsonl"
        out.unlink(missing_ok=True)
        options: dict[str, Any] = {
            "examples": examples, "victim": self._victim(task), "wrapper": wrapper, "recipe": recipe, "out": out,
            "nltk-data": self._nltk_data, "source": SOURCE, "encoder": minilm_folder(), "masked-lm": self._masked_lm,
            "seed": seed,
        }  # fmt: skip
        command: list[Any] = [self._python, SIDE / "run_textattack.py"]
        command += [part for name, value in options.items() for part in (f"--{name}", value)]
        command += ["--function-words"] if function_words else []
        command += ["--careful"] if careful else []
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"TextAttack failed:\n{done.stderr[-2000:]}")
        *found, last = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        endings = [Ending(r["id"], r["result"], r["num_queries"], r["changed"], r["perturbed_text"]) for r in found]
        return Attempt(last["summary"]["cpu_seconds"], tuple(endings))

    def _victim(self, task: Task) -> Path:
        """The victim as a folder that TextAttack can load."""
        if task.victim not in self._saved:
            saved = self._folder / task.victim
            task.classifier.model.save_pretrained(saved)
            task.classifier.tokenizer.save_pretrained(saved)
            self._saved[task.victim] = saved
        return self._saved[task.victim]

    @cached_property
    def _masked_lm(self) -> Path:
        return export_masked_lm(self._folder / "masked-lm")

    @cached_property
    def _python(self) -> Path:
        python, done = ENVIRONMENT / "bin" / "python", ENVIRONMENT / ".ready"
        if not done.exists():
            print("Making TextAttack's environment …", file=sys.stderr, flush=True)
            venv.create(ENVIRONMENT, with_pip=True, clear=True)
            requirements = SIDE / "requirements.txt"
            subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "-r", requirements], check=True)
            done.touch()
        return python

    @cached_property
    def _nltk_data(self) -> Path:
        nltk_data = ENVIRONMENT / "nltk_data"
        if not nltk_data.exists():
            if not self._wordnet.is_dir():
                sys.exit(f"{self._wordnet} is missing. Install Debian's wordnet-base, or name its folder (--wordnet).")
            subprocess.run([sys.executable, SIDE / "setup_nltk.py", nltk_data, "--wordnet", self._wordnet], check=True)
        return nltk_data


def load_task(victim: str, texts: list[tuple[str, int]] | str, limit: int) -> Task:
    """A victim and a sample of the data, drawn here so that no clock covers the reading of the rest.

    Parameters
    ----------
    victim
        The name of a built-in model, or the folder of a trained one.
    texts
        Rows, or data as `stockade attack` takes them.
    limit
        How many texts.
    """
    folder = Path(victim)
    classifier = load_model(victim if folder.is_dir() else f"builtin:{victim}", device="cpu")
    drawn = prepare_examples(load_data(texts), classifier.labels, limit=limit + WARM_UP_TEXTS)
    rows = [(str(example.text), classifier.labels[example.label]) for example in drawn]
    sampled, others = (
        prepare_examples(load_data(part), classifier.labels) for part in (rows[:limit], rows[limit:] or rows)
    )
    return Task(folder.name, classifier, sampled, others)
