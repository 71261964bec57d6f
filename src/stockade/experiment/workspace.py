"""The folder of a job: its lock, its manifest, the comparison on resume, and what a folder is trusted to run.

The lock is taken before the manifest is looked at or written, so two jobs can never share a folder.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stockade.core.errors import RunError
from stockade.core.files import make_folder, read_json, unreadable, write_json
from stockade.core.trust import untrusted
from stockade.experiment.integrity import checksum
from stockade.experiment.spec import Spec
from stockade.experiment.store import SCHEMA, ResultStore, other_format
from stockade.models.code import code_fingerprint

MANIFEST, LOCK = "manifest.json", "run.lock"
SUMMARY, DIGEST = "summary.json", "rows.sha256"
"""The numbers, and a hash of the rows that they were computed from."""
_PACKAGES = ("stockade", "torch", "transformers", "tokenizers", "numpy")
_MOST_DIFFERENCES, _LONGEST_VALUE = 4, 40
_OLDER_FILES = ("plan.json", "tune.json", "training.json")
"""What told format 1 of an evaluation or study, a search and a training from other folders."""
_FILES = (MANIFEST, LOCK, SUMMARY, DIGEST)
_DEEPEST_JOB = 4
"""How many folders a job inside a study or an evaluation is below it, at most."""
Made = TypeVar("Made")


class Manifest(BaseModel):
    """What a job is: versions, every option given or defaulted, and what was found behind the names in it.

    Parameters
    ----------
    kind
        attack, certify, evaluate, tune, train or study.
    spec
        Everything that decides the results, as `Spec.described` tells it.
    inputs
        Fingerprints, classes, sizes and sampled ids of the models and data.
    created, versions, platform
        When, and with what, the job was begun.
    checksum
        Of all the rest; None in folders of versions that made none.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    format: int = Field(default=SCHEMA, alias="schema")
    kind: str
    created: str
    versions: Mapping[str, str | None]
    platform: str
    spec: Mapping[str, Any]
    inputs: Mapping[str, Any]
    checksum: str | None = None

    @classmethod
    def of(cls, spec: Spec, inputs: Mapping[str, Any]) -> Manifest:
        """The manifest of a job that is about to start."""
        return cls(
            kind=spec.kind,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=package_versions(),
            platform=platform.platform(),
            spec=spec.described(),
            inputs=json.loads(json.dumps(inputs)),
        ).sealed()

    @property
    def intact(self) -> bool:
        """Whether it says what it said when its checksum was made; not, if it has none."""
        return self.checksum == checksum(self.described())

    def sealed(self) -> Manifest:
        """The same with the checksum of what it says now."""
        return self.model_copy(update={"checksum": checksum(self.described())})

    def described(self) -> dict[str, Any]:
        """As `manifest.json` holds it."""
        return self.model_dump(by_alias=True)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The locked folder of a job that is running."""

    folder: Path
    manifest: Manifest
    store: ResultStore


@contextmanager
def begin(folder: Path, spec: Spec, inputs: Mapping[str, Any], *, resume: bool) -> Iterator[Workspace]:
    """Lock the folder, then write the manifest of a new job or compare it with that of the job to resume.

    Options that are free to change on a resume are recorded as they are now.

    Parameters
    ----------
    folder
        Where the job keeps everything; made if it does not exist.
    spec, inputs
        What decides the results, and what was found behind the names in it.
    resume
        Whether the folder may hold an interrupted job, which must be the same one.
    """
    manifest = Manifest.of(spec, inputs)  # what cannot be described leaves no folder behind
    make_folder(folder)
    with locked(folder):
        if not resume:
            refuse_existing(folder)
        if (folder / MANIFEST).exists():
            recorded = read_manifest(folder)
            check_same(folder, recorded, spec, manifest.inputs)
            free = {name: value for name, value in manifest.spec.items() if name in spec.free}
            manifest = recorded.model_copy(update={"spec": {**recorded.spec, **free}})
            manifest = manifest.sealed() if recorded.intact else manifest  # what was changed by hand stays changed
            if manifest != recorded:
                write_json(folder / MANIFEST, manifest.described())
            for file in (SUMMARY, DIGEST):  # what an earlier session wrote will not be true of the rows to come
                (folder / file).unlink(missing_ok=True)
        else:
            refuse_existing(folder)
            write_json(folder / MANIFEST, manifest.described())
        store = ResultStore(folder, writable=True)
        try:
            yield Workspace(folder, manifest, store)
        finally:
            store.settle()


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder; what is not a job, or was made by another version, is refused in one sentence."""
    if not folder.is_dir():
        raise RunError(f"{folder} is not a run: there is no such folder.")
    path = folder / MANIFEST
    refuse_links(folder)
    for older in _OLDER_FILES:
        if (folder / older).exists() and not path.exists():
            raise other_format(folder / older, 1)
    content = read_json(path, f"{folder} is not a run: it has no {MANIFEST}.")
    if not isinstance(content, dict):
        raise unreadable(path, "it is not a manifest of Stockade")
    if content.get("schema") != SCHEMA:
        if {"config", "schema"} <= content.keys():
            raise other_format(path, content["schema"])
        raise unreadable(path, "it is not a manifest of Stockade")
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        raise unreadable(path, f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None


def refuse_links(folder: Path) -> None:
    """Refuse a folder whose files stand elsewhere: going on would read, and write, what nobody has named.

    The folder that a user names may be a link itself; one inside another job may not lead out of it.
    """
    for name in _FILES:
        if (folder / name).is_symlink():
            raise RunError(f"{folder / name} is a link to another place, which no run has. Put the file itself there.")
    real = folder.resolve()
    for outer in list(folder.absolute().parents)[:_DEEPEST_JOB]:
        if (outer / MANIFEST).is_file() and not real.is_relative_to(outer.resolve()):
            raise RunError(f"{folder} leads out of the run in {outer}, which no run does. Put the folder itself there.")


def check_same(folder: Path, recorded: Manifest, spec: Spec, inputs: Mapping[str, Any]) -> None:
    """Refuse to resume a job under another kind, configuration, model or data; say what differs."""
    if recorded.kind != spec.kind:
        raise RunError(f"{folder} holds a job of the kind {recorded.kind}, not {spec.kind}. Choose another folder.")
    # As recorded, not as read: what a spec says of the files it uses must be what it was.
    before = {**spec.decisive(recorded.spec), **_without_commitment(recorded.inputs)}
    now = {**spec.decisive(spec.described()), **_without_commitment(inputs)}
    differing = differences(_without_code(before), _without_code(now))
    if differing is not None:
        raise RunError(
            f"{folder} was made with another configuration: {differing}. Resume with the same options, models and "
            "data, or use another folder."
        )


def _without_commitment(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What was found behind the names, but for the hash of it all: fingerprint and options say better what differs."""
    data = inputs.get("data")
    if not isinstance(data, Mapping):
        return dict(inputs)
    return {**inputs, "data": {name: value for name, value in data.items() if name != "commitment"}}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first few differences by dotted name, "seed was 0, now 1; …"; None where there is none."""
    old, new = dict(_leaves(before)), dict(_leaves(now))
    changes = [
        f"{name} was {_short(old.get(name))}, now {_short(new.get(name))}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]
    if not changes:
        return None
    more = f" and {len(changes) - _MOST_DIFFERENCES} more" if len(changes) > _MOST_DIFFERENCES else ""
    return "; ".join(changes[:_MOST_DIFFERENCES]) + more


def check_trust(
    folder: Path, spec: Spec, trusted: bool, vouched: Collection[str] = (), inputs: Mapping[str, Any] | None = None
) -> None:
    """A folder is untrusted input: what it names must not run code unless the user says so, or gives it again.

    Even then it must be the code that the job was begun with, where that can be told before it is run.

    Parameters
    ----------
    folder, spec
        The folder, and what its manifest says.
    trusted
        Whether the user trusts whoever made it.
    vouched
        Fields of the spec that the user has given again.
    inputs
        What the manifest records of the models and data.
    """
    risk = spec.runs_code(vouched)
    if risk is None:
        return
    if not trusted:
        raise untrusted(folder, risk)
    if not {"model", "models"} & set(vouched):
        _check_code(folder, inputs or {})


def _check_code(folder: Path, inputs: Mapping[str, Any]) -> None:
    """Refuse to load models whose code is not what it was, before any of it is run."""
    for recorded in _mappings(inputs):
        reference, before = recorded.get("reference"), recorded.get("code")
        if isinstance(reference, str) and before is not None and code_fingerprint(reference) != before:
            raise RunError(
                f"The code of the model {reference} is not what it was when {folder} was made (another fingerprint), "
                "and was not run. Restore it, or give the model again."
            )


def _without_code(described: Any) -> Any:
    """Without the hashes of a model's code: whoever names a model again may have edited the file around it."""
    if not isinstance(described, Mapping):
        return described
    return {name: _without_code(value) for name, value in described.items() if name != "code"}


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for item in value.values():
            yield from _mappings(item)


def refuse_existing(folder: Path) -> None:
    """Finished work, and other people's files, are never overwritten."""
    if not folder.exists():
        return
    if not folder.is_dir() or any(path.name != LOCK for path in folder.iterdir()):
        hint = "Resume it with --resume, or choose" if (folder / MANIFEST).exists() else "Choose"
        raise RunError(f"{folder} exists already and is not empty. {hint} another folder.")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes away from a folder; the system lets go of the lock when this one ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system: two processes in one folder are then the user's care
        yield
        return
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise RunError(f"{folder / LOCK} cannot be written ({error.strerror or error}). Use another folder.") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(
                f"Another process is working on {folder}. Wait for it to end, or use another folder."
            ) from None
        yield
    finally:
        os.close(handle)


def in_temporary_folder(make: Callable[[Path], Made]) -> Made:
    """What `make` makes in a new folder, which is there as long as that is."""
    folder = Path(tempfile.mkdtemp(prefix="stockade-"))
    try:
        made = make(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
    return made


def package_versions() -> dict[str, str | None]:
    """What a job runs on: Python and the packages that decide numbers."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not value:
        yield name, value
        return
    for key, item in value.items():
        yield from _leaves(item, f"{name}.{key}" if name else str(key))


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "…"
