"""What every study shares: the fields of its spec, how it begins and resumes, what comes out, and its page.

A study runs other jobs (attacks, certificates) in folders inside its own, measures what they do not, and analyses them
together. Those jobs are results like any other: they can be opened, exported and verified on their own.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import BeforeValidator, ConfigDict, field_validator

from stockade.core.errors import OptionError, RunError
from stockade.experiment.export import Layout
from stockade.experiment.inputs import models_by_name
from stockade.experiment.result import Result, Verification
from stockade.experiment.spec import Count, ModelSpec, Reference
from stockade.experiment.store import ResultStore
from stockade.experiment.workspace import MANIFEST, Manifest, Workspace, begin, check_same, read_manifest
from stockade.report.document import Block, Details, Document, Heading, Note, Plot, Prose, code
from stockade.report.render_json import indented
from stockade.studies.claims import Claim

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA = 1
KIND = "study-"
"""How the kind of every study begins."""
REPORTS = {"html": "report.html", "md": "report.md"}


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of a spec is written on the command line, where that is not its name.

    Parameters
    ----------
    flag
        Such as `--attack` for the field `attacks`.
    metavar
        What help shows for the value.
    """

    flag: str = ""
    metavar: str = ""


class StudySpec(ModelSpec):
    """What decides a study. Each study adds its options as fields with a docstring, which becomes their help.

    Parameters
    ----------
    models
        References or objects by name; a single one and a list are named here.
    budget
        The most queries per text.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    summary: ClassVar[str]
    """What the study is about, in a line."""
    several_models: ClassVar[bool] = False
    parallel: ClassVar[bool] = False
    """Whether the data are parallel sentences, for translators."""
    uses_workers: ClassVar[bool] = False
    """Whether several processes can work on it."""

    models: Annotated[Mapping[str, Reference], BeforeValidator(models_by_name)]
    budget: Count | None = None

    @classmethod
    def study(cls) -> str:
        """The name of the study."""
        return cls.kind.removeprefix(KIND)

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """The fields that only this study has."""
        return tuple(name for name in cls.model_fields if name not in StudySpec.model_fields)

    @classmethod
    def find_inputs(cls, models: object, data: object, options: Mapping[str, Any]) -> tuple[object, object]:
        """The models and data of a new study, which must both have been named.

        A study whose options can say where they are (a pool, the folder of another study) finds them here.

        Parameters
        ----------
        models, data
            What the user named; None for what is missing. A single name on the command line is that of a model.
        options
            The options of this study that were set, and `trust`: whether code that a folder names may be run.
        """
        if models is None or data is None:
            missing = "MODEL and DATA are" if models is None else "DATA is"
            example = f"stockade study {cls.study()} builtin:sentiment-cnn builtin:reviews"
            raise OptionError(f"{missing} missing, as in: {example}")
        return models, data

    def references(self) -> list[object]:
        """The data and every model, as they were given."""
        return [self.data, *self.models.values()]

    @field_validator("models")
    @classmethod
    def _as_many_as_it_takes(cls, models: Mapping[str, object]) -> Mapping[str, object]:
        if not models:
            raise OptionError(f"The study {cls.study()} needs a model before the data.")
        if len(models) > 1 and not cls.several_models:
            raise OptionError(f"The study {cls.study()} takes one model (found: {', '.join(models)}), then the data.")
        return models


AnyNumbers = TypeVar("AnyNumbers", bound="DataclassInstance")
AnyResult = TypeVar("AnyResult", bound=Result)


def _without_one_rule(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a dataclass; those by the first flip only where both rules of success are known."""
    return {name: value for name, value in pairs if value is not None or not name.startswith("first_flip_")}


class StudyResult(Result, Generic[AnyNumbers]):
    """A study that was run: `numbers` is the analysis, `runs` are the jobs inside, `document()` is the page."""

    spec_type: ClassVar[type[StudySpec]]

    def __init__(
        self, folder: Path, manifest: Manifest, store: ResultStore, runs: Mapping[str, Result] | None = None
    ) -> None:
        super().__init__(folder, manifest, store)
        self._runs = runs

    @classmethod
    def of_runs(cls, workspace: Workspace, runs: Mapping[str, Result]) -> Self:
        """The result of a study whose jobs have just been run."""
        return cls(workspace.folder, workspace.manifest, workspace.store, runs)

    @property
    def study(self) -> str:
        """The name of the study."""
        return self.spec_type.study()

    @property
    def runs(self) -> Mapping[str, Result]:
        """The jobs inside by name."""
        if self._runs is None:
            try:
                self._runs = self.open_runs()
            except RunError as error:
                raise RunError(f"The study in {self.folder} is not complete: {error}") from None
        return self._runs

    @property
    def run(self) -> Result:
        """The job of a study that has only one."""
        if len(self.runs) > 1:
            raise OptionError(f"The study {self.study} has several runs: choose one of runs ({', '.join(self.runs)}).")
        return next(iter(self.runs.values()))

    @abstractmethod
    def open_runs(self) -> Mapping[str, Result]:
        """Open the jobs in the folder."""

    @property
    @abstractmethod
    def numbers(self) -> AnyNumbers:
        """The analysis, from the results alone."""

    @property
    @abstractmethod
    def claims(self) -> Sequence[Claim]:
        """What the paper claims, held against the numbers."""

    @property
    @abstractmethod
    def warnings(self) -> Sequence[str]:
        """What a reader must know before believing the numbers."""

    @abstractmethod
    def make_document(self) -> Document:
        """Make the page."""

    def document(self) -> Document:
        """The page."""
        return self._document

    @cached_property
    def _document(self) -> Document:
        return self.make_document()

    def facts(self) -> Mapping[str, object]:
        """What the summary says of the study besides what every study's says."""
        return {}

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of `summary.json`."""
        return {
            "schema": SCHEMA,
            "study": self.study,
            "run": self.name,
            "data": self.manifest.inputs["data"]["reference"],
            "created": self.manifest.created,
            **{name: self.manifest.spec[name] for name in ("seed", "limit", "budget")},
            "complete": self.complete,
            **self.facts(),
            "warnings": list(self.warnings),
            **dataclasses.asdict(self.numbers, dict_factory=_without_one_rule),
            "claims": [claim.described() for claim in self.claims],
        }

    @property
    def complete(self) -> bool:
        """Whether no job inside has anything left to do."""
        try:
            return all(run.complete for run in self.runs.values())
        except RunError:
            return False

    def problem(self) -> str | None:
        return next(filter(None, (run.problem() for run in self.runs.values())), None)

    def records(self) -> Iterator[object]:
        """The results of all jobs inside, job by job."""
        return chain.from_iterable(run.records() for run in self.runs.values())

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """The rows of all jobs inside; with the column `run` in front, if there are several."""
        for name, run in self.runs.items():
            yield from ({"run": name, **row} for row in run.rows()) if len(self.runs) > 1 else run.rows()

    @property
    def layout(self) -> Layout:
        inner = next(iter(self.runs.values())).layout
        return dataclasses.replace(inner, columns=("run", *inner.columns)) if len(self.runs) > 1 else inner

    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Verify every job inside, and that the written summary follows from them.

        Parameters
        ----------
        model
            The model, if it is not where the study found it; a mapping from the names of runs for several.
        trust
            Whether code that the folder names, such as a `python:` model, may be run.
        """
        self.check_trust(trust, model)
        runs = Verification(0, ())
        for name, run in self.runs.items():
            inner = run.verify(model.get(name) if isinstance(model, Mapping) else model, trust=trust)
            runs = runs.with_part(name, inner)
        return self.verified(runs.checked, runs.problems, runs.incomplete)

    def write_summary(self) -> None:
        """Write `summary.json`, and the page as HTML and Markdown, into the folder."""
        super().write_summary()
        document = self.document()
        for format, name in REPORTS.items():
            document.write(self.folder / name, format)


@contextmanager
def begin_study(
    folder: Path, spec: StudySpec, describe: Callable[[], Mapping[str, Any]], *, resume: bool
) -> Iterator[Workspace]:
    """Begin a study, or resume one without looking at its models and data until a job inside needs them.

    Python objects that are given again are looked at all the same: only their content tells whether they are the same.

    Parameters
    ----------
    folder, spec, resume
        As for `begin`.
    describe
        Loads the models and data of a new study and says what the manifest records of them, under "data" and whatever
        names the study likes; what cannot be used is an error before anything is written.
    """
    resumed = resume and (folder / MANIFEST).exists()
    named = all(isinstance(reference, str | Path) for reference in spec.references())
    if resumed and named:
        recorded = read_manifest(folder)
        inputs = recorded.inputs
        # What is recorded of models and data would hide that others are named now.
        check_same(folder, recorded.model_copy(update={"inputs": {}}), spec, {})
    else:
        inputs = describe()
    with begin(folder, spec, inputs, resume=resume) as workspace:
        yield workspace


def finished(kind: type[AnyResult], folder: Path) -> AnyResult | None:
    """A job inside a study that has ended, which needs neither model nor data; None if something is left to do.

    One that was killed between its last result and its summary gets the summary now.
    """
    try:
        result = kind.open(folder)
    except RunError:  # not begun, or interrupted before its first result; if it is damaged, going on will say so
        return None
    if not result.complete:
        return None
    result.complete_summary()
    return result


def study_document(
    result: StudyResult[Any], *, about: Prose, findings: Sequence[str], blocks: Iterable[Block]
) -> Document:
    """The page of a study.

    Parameters
    ----------
    result
        What it is about.
    about
        What was studied, below the title.
    findings
        The study in a few sentences, for readers who read nothing else.
    blocks
        Everything else.
    """
    opening = [Note(sentence, kind="finding") for sentence in findings]
    if not result.complete:
        opening.append(Note(("Not complete. Resume it with ", code(f"stockade resume {result.folder}")), "warning"))
    opening += [Note(warning, kind="warning") for warning in result.warnings]
    closing = (Heading("Manifest"), Details(result.name, indented(result.manifest.described())))
    return Document(
        title=_title(result),
        about=about,
        blocks=(*opening, *map(_drawn_once, blocks), *closing),
        data=result.summary,
    )


def _title(result: StudyResult[Any]) -> str:
    """The study, and how many claims of its paper are held here."""
    verdicts = [claim.verdict for claim in result.claims]
    counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("held", "not held", "undecided"))
    return f"Study {result.study}: of {len(verdicts)} claims {counted}" if verdicts else f"Study {result.study}"


def _drawn_once(block: Block) -> Block:
    """A plot that remembers its picture: a study writes its page, and so does the command that ran it."""
    if isinstance(block, Plot) and not isinstance(block.svg, str):
        return dataclasses.replace(block, svg=cache(block.svg))
    return block
