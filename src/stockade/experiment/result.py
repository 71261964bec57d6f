"""What every finished job can do, whatever made it; and how a kind of job is run."""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from stockade.core.errors import ResourceMissing, RunError
from stockade.core.files import replace_file, write_json
from stockade.core.trust import only_vouched
from stockade.experiment.export import Layout
from stockade.experiment.integrity import Verification
from stockade.experiment.progress import Runtime
from stockade.experiment.spec import Spec, references_in
from stockade.experiment.store import ResultStore
from stockade.experiment.workspace import (
    DIGEST,
    LOCK,
    MANIFEST,
    SUMMARY,
    Manifest,
    Workspace,
    check_trust,
    in_temporary_folder,
    read_manifest,
    refuse_existing,
)

if TYPE_CHECKING:
    import pandas

    from stockade.report.document import Document

REPORT = "report.html"
COMMITS_TO_NOTHING = (
    "the folder was made by a version that recorded no commitment to its texts, so nobody can tell whether rows are "
    "missing or were exchanged"
)
__all__ = ["DIGEST", "REPORT", "SUMMARY", "Result", "Verification", "Workflow"]


class Result(ABC):
    """A job that has ended, was interrupted, or was opened again from its folder.

    Every result has `summary` (the numbers), `records()` (the single results), `to_pandas()`, `document()` (the report,
    which renders to HTML, Markdown, JSON and the terminal), `verify()`, `save(folder)`, and shows itself in a notebook.
    """

    kind: ClassVar[str]
    spec_type: ClassVar[type[Spec]]

    def __init__(self, folder: Path, manifest: Manifest, store: ResultStore) -> None:
        self.folder, self.manifest, self.store = folder, manifest, store

    @classmethod
    def of(cls, workspace: Workspace) -> Self:
        """The result of a job that has just been run in this workspace."""
        return cls(workspace.folder, workspace.manifest, workspace.store)

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """The result in a folder."""
        path = Path(folder)
        manifest = read_manifest(path)
        if manifest.kind != cls.kind:
            raise RunError(f"{path} holds a job of the kind {manifest.kind}, expected {cls.kind}.")
        return cls(path, manifest, ResultStore(path))

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @cached_property
    def spec(self) -> Any:
        """Everything that decided the results."""
        return self.spec_type.read(self.manifest.spec, self.folder / MANIFEST)

    @property
    @abstractmethod
    def summary(self) -> Mapping[str, Any]:
        """The numbers, computed from the results."""

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether nothing is left to do."""

    def problem(self) -> str | None:
        """Why there is not a single usable result; None if there is one."""
        return None

    def shortfall(self) -> str | None:
        """What was asked for and is not among the results, in a sentence; None if nothing is missing.

        A command that ends with a shortfall says so and does not exit as if all were well.
        """
        return None

    @abstractmethod
    def records(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """The single results one by one; each kind of result says what they are and how to select some."""

    @abstractmethod
    def rows(self) -> Iterator[Mapping[str, Any]]:
        """The single results as plain values, as an export writes them."""

    @property
    def layout(self) -> Layout:
        """The columns of an export; by default those of the first row."""
        return Layout.of_row(next(iter(self.rows()), {}))

    @abstractmethod
    def document(self) -> Document:
        """The report."""

    @abstractmethod
    def verify(self, model: object = None, *, trust: bool = False) -> Verification:
        """Check that every number follows from the results and, where that needs the model, ask it again.

        Parameters
        ----------
        model
            The model, if it is not where the job found it.
        trust
            Whether code that the folder names, such as a `python:` model, may be run.
        """

    def to_pandas(self) -> pandas.DataFrame:
        """One row per single result."""
        try:
            import pandas
        except ImportError:
            raise ResourceMissing("to_pandas needs pandas. Install it with: pip install pandas") from None
        return pandas.DataFrame(list(self.rows()))

    def save(self, folder: str | Path) -> Self:
        """Copy the job to another folder, for jobs that were run without one; the copy is returned."""
        target = Path(folder)
        if target.exists():
            raise RunError(f"{target} exists already. Choose another folder.")
        shutil.copytree(self.folder, target, ignore=shutil.ignore_patterns(LOCK))
        return type(self).open(target)

    def write_summary(self) -> None:
        """Write `summary.json`, and beside it which rows it was made from."""
        write_json(self.folder / SUMMARY, self.summary)
        replace_file(self.folder / DIGEST, self._write_digest)

    def complete_summary(self) -> None:
        """Write the summary of a job that was killed between its last result and its summary."""
        path = self.folder / DIGEST
        written = path.exists() and path.read_bytes().strip() == self.store.digest().encode()
        if not written or not (self.folder / SUMMARY).exists():
            self.write_summary()

    def _write_digest(self, path: Path) -> None:
        path.write_text(f"{self.store.digest()}\n", encoding="ascii")

    def verified(self, checked: int, problems: Iterable[str], incomplete: Iterable[str] = ()) -> Verification:
        """What a check has shown, together with what every folder must be like.

        Parameters
        ----------
        checked
            How many results were checked.
        problems, incomplete
            What does not hold, and what could not be checked.
        """
        wrong, unfinished = [*problems], [*incomplete]
        if not self.complete and not unfinished:
            unfinished.append(f"the job is not finished: resume it with stockade resume {self.folder}")
        if self._commits_to_nothing:
            unfinished.append(COMMITS_TO_NOTHING)
        elif not self.manifest.intact:
            wrong.append(f"{MANIFEST} was changed: its checksum differs")
        (wrong if self.complete else unfinished).extend(self._missing_files())
        wrong += [*self._wrong_summary(), *self._wrong_rows()]
        return Verification(checked, tuple(wrong), tuple(unfinished))

    @property
    def _commits_to_nothing(self) -> bool:
        """Whether the folder was made before manifests had checksums and commitments."""
        data = self.manifest.inputs.get("data")
        committed = isinstance(data, Mapping) and "commitment" in data
        return self.manifest.checksum is None and not committed and not (self.folder / DIGEST).exists()

    def _missing_files(self) -> list[str]:
        """What is not there of what is written when a job ends, or is interrupted by Ctrl-C."""
        if not (self.folder / SUMMARY).exists():
            return [f"{SUMMARY} is missing: the job was interrupted before its end"]
        if not self._commits_to_nothing and not (self.folder / DIGEST).exists():
            return [f"{DIGEST} is missing, which tells what rows the summary was made from"]
        return []

    def _wrong_summary(self) -> list[str]:
        """What is wrong with the written summary; only the name of the folder in it may be an older one."""
        path = self.folder / SUMMARY
        if not path.exists():
            return []
        try:
            written = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"{path} cannot be read ({error}).") from None
        if not isinstance(written, dict):
            raise RunError(f"{path} cannot be read (it is not a summary of Stockade).")
        expected = json.loads(json.dumps(self.summary))
        parts = {*written} if self._commits_to_nothing else {*expected, *written}
        return [
            f"{SUMMARY}: {part} does not follow from the results"
            for part in sorted(parts - {"run"})
            if written.get(part) != expected.get(part)
        ]

    def _wrong_rows(self) -> list[str]:
        """Whether the stored rows are those that were there when the summary was written."""
        path = self.folder / DIGEST
        if not path.exists() or path.read_bytes().strip() == self.store.digest().encode():
            return []
        return [f"the stored rows are not those that the summary was made from: {DIGEST} differs"]

    def check_trust(self, trusted: bool, model: object = None) -> None:
        """Refuse to run code that only the folder names, unless the user trusts it.

        Parameters
        ----------
        trusted
            Whether the user trusts whoever made the folder.
        model
            The model, or several, that the user has named in place of those of the folder; None for none.
        """
        vouched = () if model is None else ("model", "models")
        check_trust(self.folder, self.spec, trusted, vouched, self.manifest.inputs)

    def _repr_html_(self) -> str:
        return self.document().to_html_fragment()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"


AnySpec = TypeVar("AnySpec", bound=Spec)


class Opens(Protocol):
    """Makes the result of a job of one kind from its folder: a class of results does."""

    @property
    def kind(self) -> str:
        """The kind of job."""

    def open(self, folder: str | Path) -> Result:
        """The result in a folder."""


@dataclass(frozen=True, slots=True)
class Workflow(Generic[AnySpec]):
    """One kind of job: its spec, how it is run in a folder, and what comes out."""

    spec: type[AnySpec]
    run: Callable[[AnySpec, Path, Runtime, bool], Result]
    """Called with the spec, the folder, how to run, and whether the folder may hold an interrupted job."""
    result: Opens
    """Opens a folder: the class of what comes out, or whatever knows which of several it is."""
    reopens: bool = False
    """Whether a finished job is opened by a resume without looking for its models and data, which may be gone."""

    def start(self, spec: AnySpec, out: str | Path | None, runtime: Runtime, *, resume: bool = False) -> Any:
        """Run a job in the folder `out`, or in a temporary one that lives as long as the result."""
        if out is None:
            if resume:
                raise RunError("There is nothing to resume without a folder: name it with --out.")
            return in_temporary_folder(lambda folder: self.run(spec, folder, runtime, False))
        folder = Path(out)
        if not resume:
            refuse_existing(folder)
        return self.run(spec, folder, runtime, resume)

    def resume(
        self,
        folder: Path,
        runtime: Runtime,
        *,
        trust: bool = False,
        options: Mapping[str, object] | None = None,
        **objects: object,
    ) -> Any:
        """Go on with the job in a folder, with what its manifest records.

        Parameters
        ----------
        folder, runtime
            Where and how.
        trust
            Whether code that the folder names may be run.
        options
            Fields of the spec that are set anew: free ones may change, the others must be what they were.
        **objects
            Models and data that are given again, by the name of their field in the spec.
        """
        again = {name: value for name, value in objects.items() if value is not None}
        finished = self._finished(folder) if self.reopens and not again else None
        if finished is not None and not options:
            finished.write_summary()
            return finished
        manifest = read_manifest(folder)
        recorded = self.spec.read(manifest.spec, folder / MANIFEST, trust=trust)
        spec = recorded.changed({**(options or {}), **again})
        if finished is None:
            lost = spec.lost_objects()
            if lost:
                raise RunError(
                    f"{folder} was made from Python objects ({', '.join(lost)}): resume it from Python, with the same "
                    "objects."
                )
            check_trust(folder, spec, trust, {*again, *(options or {})}, manifest.inputs)
        vouched = [text for value in (*again.values(), *(options or {}).values()) for text in references_in(value)]
        with only_vouched(folder, vouched, trust=trust):
            return self.run(spec, folder, runtime, True)

    def _finished(self, folder: Path) -> Result | None:
        try:
            opened = self.result.open(folder)
        except RunError:  # interrupted before its first result; if it is damaged, going on will say so
            return None
        return opened if opened.complete else None
