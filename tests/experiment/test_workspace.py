"""One folder, one job: the lock comes before the manifest, and a resume is the same job or is refused."""

from __future__ import annotations

import gc
import json
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from stockade.core.errors import OptionError, RunError
from stockade.experiment.inputs import ModelOptions
from stockade.experiment.spec import Count, ModelSpec, Reference, Spec
from stockade.experiment.workspace import (
    begin,
    check_trust,
    differences,
    in_temporary_folder,
    locked,
    read_manifest,
)


class ToySpec(ModelSpec):
    """A job that only has a number."""

    kind: ClassVar[str] = "toy"
    model: Reference = "builtin:sentiment-cnn"
    number: Count = 1


def toy(**values: Any) -> ToySpec:
    return ToySpec.of(data="builtin:reviews", **values)


def test_a_spec_comes_back_from_its_manifest(tmp_path: Path) -> None:
    spec = toy(number=7, seed=3, model_options=ModelOptions(labels=["a", "b"]))
    with begin(tmp_path / "job", spec, {"size": 2}, resume=False) as workspace:
        assert read_manifest(tmp_path / "job") == workspace.manifest
    manifest = read_manifest(tmp_path / "job")
    assert manifest.kind == "toy"
    assert manifest.inputs == {"size": 2}
    assert ToySpec.read(manifest.spec, tmp_path) == spec


def test_objects_are_recorded_as_what_they_were_and_reported_lost() -> None:
    spec = toy(model=len)
    assert spec.described()["model"] == "a Python object (len)"
    again = ToySpec.read(spec.described(), Path("manifest.json"))
    assert spec.lost_objects() == []
    assert again.lost_objects() == ["model"]


@pytest.mark.parametrize(("option", "value"), [("number", 0), ("limit", "many"), ("seed", -1), ("number", 2.5)])
def test_an_option_that_cannot_be_is_one_sentence(option: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"--{option}") as raised:
        toy(**{option: value})
    assert "\n" not in str(raised.value)


def test_another_configuration_is_refused_with_the_difference(tmp_path: Path) -> None:
    with begin(tmp_path / "job", toy(), {"data": {"fingerprint": "a"}}, resume=False):
        pass
    for spec, inputs, difference in (
        (toy(number=2), {"data": {"fingerprint": "a"}}, "number was 1, now 2"),
        (toy(), {"data": {"fingerprint": "b"}}, r'data\.fingerprint was "a", now "b"'),
    ):
        with pytest.raises(RunError, match=difference), begin(tmp_path / "job", spec, inputs, resume=True):
            pass
    other_device = toy(model_options=ModelOptions(device="cpu"))
    with begin(tmp_path / "job", other_device, {"data": {"fingerprint": "a"}}, resume=True):
        pass


def test_finished_work_and_other_peoples_files_are_never_overwritten(tmp_path: Path) -> None:
    with begin(tmp_path / "job", toy(), {}, resume=False):
        pass
    with pytest.raises(RunError, match="--resume"), begin(tmp_path / "job", toy(), {}, resume=False):
        pass
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    for resume in (False, True):
        with pytest.raises(RunError, match="not empty"), begin(tmp_path / "mine", toy(), {}, resume=resume):
            pass
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) in (["notes.txt"], ["notes.txt", "run.lock"])


def _hold(folder: Path, number: int, taken: Any, release: Any) -> None:
    with begin(folder, toy(number=number), {}, resume=False):
        taken.set()
        release.wait(60)


def test_a_second_job_is_refused_while_the_first_holds_the_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    taken, release = context.Event(), context.Event()
    first = context.Process(target=_hold, args=(tmp_path / "job", 1, taken, release))
    first.start()
    try:
        assert taken.wait(120)
        for resume in (False, True):
            with (
                pytest.raises(RunError, match="Another process"),
                begin(tmp_path / "job", toy(number=2), {}, resume=resume),
            ):
                pass
        assert read_manifest(tmp_path / "job").spec["number"] == 1
    finally:
        release.set()
        first.join(60)


TWO_JOBS = """
import sys, time
from pathlib import Path
import stockade as st
rows = [("a good film", 1), ("a bad film", 0)] * 10
def predict(texts):
    time.sleep(0.01)
    return [[0.2, 0.8] if "good" in text else [0.8, 0.2] for text in texts]
while not Path("start").exists():
    time.sleep(0.01)
try:
    st.attack(predict, rows, sys.argv[1], out="job", similarity=False)
except st.StockadeError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
"""


def test_two_jobs_started_at_once_on_one_folder_never_mix(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(TWO_JOBS)
    jobs = [
        subprocess.Popen([sys.executable, "job.py", attack], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        for attack in ("pwws", "deepwordbug")
    ]
    time.sleep(2)
    (tmp_path / "start").touch()
    errors = [job.communicate()[1] for job in jobs]
    assert sorted(job.returncode for job in jobs) == [0, 2], errors
    winner = ("pwws", "deepwordbug")[[job.returncode for job in jobs].index(0)]
    summary = json.loads((tmp_path / "job/summary.json").read_text())
    assert list(summary["attacks"]) == [winner]
    assert summary["complete"]


class Held:
    def __init__(self, folder: Path) -> None:
        self.folder = folder


def test_a_temporary_folder_is_there_as_long_as_what_was_made_in_it() -> None:
    made = in_temporary_folder(Held)
    folder = made.folder
    (folder / "file").write_text("kept")
    gc.collect()
    assert (folder / "file").read_text() == "kept"
    del made
    gc.collect()
    assert not folder.exists()


def test_a_temporary_folder_goes_when_nothing_could_be_made_in_it() -> None:
    folders = []

    def broken(folder: Path) -> Held:
        folders.append(folder)
        (folder / "file").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_temporary_folder(broken)
    assert [folder.exists() for folder in folders] == [False]


def test_the_lock_is_let_go_at_the_end(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path):
            pass


def test_a_folder_of_the_first_format_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 1, "config": {}, "model": {}, "data": {}}))
    with pytest.raises(RunError, match=r"format 1; this version of Stockade reads format 2"):
        read_manifest(tmp_path)
    for name in ("plan.json", "tune.json", "training.json"):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text("{}")
        with pytest.raises(RunError, match="format 1"):
            read_manifest(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": 2}', '{"schema": 2, "kind": 3}'])
def test_what_is_no_manifest_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(RunError, match=r"manifest\.json"):
        read_manifest(tmp_path)


def test_code_that_only_the_folder_names_is_not_run(tmp_path: Path) -> None:
    harmless, code = toy(), toy(model="python:victim:predict")
    check_trust(tmp_path, harmless, trusted=False)
    check_trust(tmp_path, code, trusted=True)
    check_trust(tmp_path, code, trusted=False, vouched={"model"})
    with pytest.raises(RunError, match=r"runs python:victim:predict.*--trust-run"):
        check_trust(tmp_path, code, trusted=False)
    for hidden in (
        "ensemble:builtin:sentiment-cnn,python:victim:predict",
        'ensemble:"ensemble:a, python:victim:predict",b',
    ):
        check_trust(tmp_path, toy(model=hidden), trusted=False, vouched={"model"})
        with pytest.raises(RunError, match=r"runs python:victim:predict.*--trust-run"):
            check_trust(tmp_path, toy(model=hidden), trusted=False)
    check_trust(tmp_path, toy(model="ensemble:builtin:sentiment-cnn,models/a"), trusted=False)
    pickled = toy(model_options=ModelOptions(allow_pickle=True))
    with pytest.raises(RunError, match="--allow-pickle"):
        check_trust(tmp_path, pickled, trusted=False)


def test_differences_are_named_by_their_path_and_few() -> None:
    assert differences({"a": 1}, {"a": 1}) is None
    assert differences({"a": {"b": 1}}, {"a": {"b": 2}}) == "a.b was 1, now 2"
    many = {str(number): number for number in range(9)}
    assert str(differences(many, dict.fromkeys(many))).endswith(" and 5 more")


def test_every_workflow_has_a_spec_that_names_its_kind() -> None:
    from stockade.kinds import WORKFLOWS, find_workflow

    for kind in WORKFLOWS:
        workflow = find_workflow(kind, Path())
        assert issubclass(workflow.spec, Spec)
        assert workflow.spec.kind == workflow.result.kind == kind
