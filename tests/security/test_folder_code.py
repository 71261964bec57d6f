"""A folder that somebody else made runs no code, whatever it holds and whichever command reads it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stockade as st
from stockade.core.errors import RunError, StockadeError
from stockade.models.adapters import MODEL_ADAPTERS, LoadOptions
from tests.e2e.conftest import in_process
from tests.security import kit
from tests.security.kit import CANARY, RAN, edit_json, edit_manifest, in_store, link, other_model, pickled

CODE = f"python:{CANARY}:run"
COMMANDS = {
    "verify": ("verify", "run"),
    "verify with a model": ("verify", "run", "--model", kit.MODEL),
    "resample": ("verify", "run", "--resample"),
    "resume": ("resume", "run"),
    "attack --resume": ("attack", "--resume", "--out", "run"),
    "show": ("show", "run"),
    "html": ("report", "run"),
    "markdown": ("report", "run", "--format", "md"),
    "json": ("report", "run", "--format", "json"),
    "jsonl": ("export", "run"),
    "csv": ("export", "run", "--format", "csv", "--out", "rows.csv"),
    "ensemble": ("study", "ensemble", "--matrix", "run", "--out", "made"),
}
LOADING = ("verify", "resume")
EVERY = ("verify", "resume", "show", "html", "jsonl")


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory with an honest folder of each kind."""
    folder = tmp_path_factory.mktemp("honest")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        kit.lay_out(folder)
        for kind, make in kit.MAKERS.items():
            make(folder / "runs" / kind)
        yield folder
    assert not (folder / RAN).exists()


@pytest.fixture
def folder(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it to change; the current directory."""
    here = tmp_path / "here"
    shutil.copytree(templates, here)
    monkeypatch.chdir(here)
    monkeypatch.setenv("STOCKADE_CACHE", str(tmp_path / "cache"))
    yield here
    sys.modules.pop(CANARY, None)


@dataclass(frozen=True)
class Way:
    """How a stranger tries to get code run.

    `refused` are the commands that must end with one sentence; all others may ignore what was changed, but not run it.
    """

    change: Callable[[Path], object]
    kind: str = "attack"
    refused: tuple[str, ...] = LOADING


def spec(**values: object) -> Callable[[Path], object]:
    return lambda run: edit_manifest(run, lambda manifest: manifest["spec"].update(values))


def model_options(**values: object) -> Callable[[Path], object]:
    return lambda run: edit_manifest(run, lambda manifest: manifest["spec"]["model_options"].update(values))


def named(field: str, home: str) -> Callable[[Path], object]:
    """A method by the place of its class, which is not a registered one."""
    item = {"key": "x", "name": home, "preset": "custom", "options": {}}
    return spec(**{field: [item]})


def model(change: Callable[[Path], object], **options: object) -> Callable[[Path], object]:
    """A model inside the run, which its manifest names."""

    def apply(run: Path) -> None:
        change(other_model(run))
        spec(model="run/theirs")(run)
        model_options(**options)(run)

    return apply


def language(field: str, change: Callable[[Path], object]) -> Callable[[Path], object]:
    def apply(run: Path) -> None:
        change(other_model(run))
        spec(**{field: "run/theirs"})(run)

    return apply


def remote_code(theirs: Path) -> None:
    shutil.copy(f"{CANARY}.py", theirs / "theirs.py")
    loaders = ("AutoConfig", "AutoModel", "AutoModelForSequenceClassification", "AutoModelForMaskedLM")
    classes = dict.fromkeys(loaders, "theirs.Transformer")
    edit_json(theirs / "config.json", auto_map=classes, model_type="theirs")


def remote_tokenizer(theirs: Path) -> None:
    shutil.copy(f"{CANARY}.py", theirs / "theirs.py")
    automatic = {"AutoTokenizer": ["theirs.Transformer", "theirs.Transformer"]}
    edit_json(theirs / "tokenizer_config.json", auto_map=automatic, tokenizer_class="Transformer")
    (theirs / "tokenizer.json").unlink()


def pickled_weights(theirs: Path) -> None:
    (theirs / "model.safetensors").unlink()
    (theirs / "pytorch_model.bin").write_bytes(pickled())


def pickle_as_safetensors(theirs: Path) -> None:
    (theirs / "model.safetensors").write_bytes(pickled())


def pickle_behind_an_index(theirs: Path) -> None:
    (theirs / "model.safetensors").unlink()
    (theirs / "part.bin").write_bytes(pickled())
    (theirs / "x.safetensors").write_bytes(b"")
    index = {"metadata": {"total_size": 1}, "weight_map": {"classifier.weight": "part.bin"}}
    (theirs / "model.safetensors.index.json").write_text(json.dumps(index))


def kernel_of_the_hub(theirs: Path) -> None:
    edit_json(theirs / "config.json", attn_implementation="theirs/kernel")


def defense_file(theirs: Path) -> None:
    item = {"key": "x", "name": f"{CANARY}:Defense", "preset": "custom", "options": {}}
    (theirs / "defense.json").write_text(json.dumps({"schema": 1, "defenses": [item]}))


def encoder_modules(theirs: Path) -> None:
    module = {"idx": 0, "name": "0", "path": "", "type": f"{CANARY}.Transformer"}
    (theirs / "modules.json").write_text(json.dumps([module]))


def array_of_objects(run: Path) -> None:
    np.savez(run / "table.npz", words=np.array([kit.Payload()], dtype=object), matrix=np.zeros(1), about=np.zeros(1))
    spec(neighbours="run/table.npz")(run)


def vectors_of_objects(run: Path) -> None:
    np.save(run / "table.npy", np.array([kit.Payload()], dtype=object))
    (run / "table.txt").write_text("film\n")
    spec(neighbours="run/table.npy")(run)


def shell_command(run: Path) -> None:
    """The adversarial text is a command, and the model a function that runs commands."""
    spec(model="python:subprocess:getoutput")(run)
    in_store(run, "UPDATE results SET document = replace(document, 'a big film', 'touch ran')")


def detector_file(run: Path) -> None:
    (run / "detector.json").write_bytes(pickled())
    item = {"key": "route", "name": "route", "preset": "default", "options": {"detector": "run/detector.json"}}
    spec(defenses=[item])(run)


def inner_job(run: Path, **values: object) -> None:
    """A job inside an evaluation or study names code; the manifest around it does not."""
    inner = sorted(path.parent for path in run.rglob("manifest.json") if path.parent != run)
    assert inner
    edit_manifest(
        run, lambda manifest: manifest["spec"].update(models=dict.fromkeys(manifest["spec"]["models"], "bert"))
    )
    for job in inner:
        edit_manifest(job, lambda manifest: manifest["spec"].update(values))


def inner_flag(run: Path) -> None:
    inner_job(run, model=kit.MODEL)
    for path in run.rglob("manifest.json"):
        if path.parent != run:
            model_options(trust_remote_code=True)(path.parent)


def inner_link(run: Path) -> None:
    cell = sorted(path.parent for path in run.rglob("manifest.json") if path.parent != run)[0]
    link(cell, "elsewhere")


def recorded_model(run: Path) -> None:
    """A transfer study records its models in its rows, and the ensemble study reads them there."""
    (run / "matrix.csv").write_text("source,a,b\na,,0.5\nb,0.5,\n")
    edit_manifest(run, lambda manifest: manifest["spec"].update(data=kit.DATA, models={"b": "bert"}))
    in_store(
        run,
        f"UPDATE results SET document = json_set(document, '$.reference', '{CODE}') WHERE part = 'models' AND id = 'a'",
    )


def journal(run: Path) -> None:
    (run / "run.sqlite-journal").write_bytes(b"\0" * 512 + b"run/manifest.json")


def view(run: Path) -> None:
    in_store(
        run,
        "ALTER TABLE results RENAME TO hidden",
        "CREATE VIEW results AS SELECT part, load_extension('theirs.so') AS id, position, status, document FROM hidden",
    )


def trigger(run: Path) -> None:
    in_store(run, "CREATE TRIGGER t AFTER INSERT ON results BEGIN SELECT load_extension('theirs.so'); END")


def generated_column(run: Path) -> None:
    in_store(run, "ALTER TABLE results ADD COLUMN extra TEXT AS (hex(document)) VIRTUAL")


def virtual_table(run: Path) -> None:
    in_store(run, "CREATE VIRTUAL TABLE t USING fts5(text)")


def text_as_template(run: Path) -> None:
    """Texts are data for the page's template, never a part of it."""
    template = "{{ cycler.__init__.__globals__.os.system('touch ran') }}{% include 'x' %}${1}"
    in_store(run, f"""UPDATE results SET document = json_set(document, '$.original', "{template}")""")
    spec(targeted=template)(run)


def tuned(run: Path) -> None:
    edit_manifest(run, lambda manifest: manifest["spec"]["defense"].update(name=f"{CANARY}:Defense", options={}))


WAYS = {
    "a Python function as the model": Way(spec(model=CODE)),
    "a function that runs shell commands": Way(shell_command),
    "a member of an ensemble": Way(spec(model=f"ensemble:{kit.MODEL},{CODE}")),
    "an ensemble inside an ensemble": Way(spec(model=f'ensemble:"ensemble:{kit.MODEL},{CODE}",{kit.MODEL}')),
    "an adapter of somebody else": Way(spec(model="theirs:anything")),
    "a Python function as the data": Way(spec(data=CODE)),
    "a Python function as the masked LM": Way(spec(mlm=CODE)),
    "a Python function as the encoder": Way(spec(encoder=CODE)),
    "code that comes with a model": Way(model(remote_code)),
    "code that comes with a model, allowed by the folder": Way(
        model(remote_code, trust_remote_code=True), refused=("verify", "resume", "verify with a model")
    ),
    "code that comes with a tokenizer": Way(model(remote_tokenizer)),
    "pickled weights": Way(model(pickled_weights)),
    "pickled weights, allowed by the folder": Way(
        model(pickled_weights, allow_pickle=True), refused=("verify", "resume", "verify with a model")
    ),
    "pickled weights called safetensors": Way(model(pickle_as_safetensors)),
    "pickled weights behind an index": Way(model(pickle_behind_an_index)),
    "an attention kernel of the hub": Way(model(kernel_of_the_hub)),
    "the defense file of a model": Way(model(defense_file)),
    "code that comes with a masked LM": Way(language("mlm", remote_code), refused=("resume",)),
    "a pickled masked LM": Way(language("mlm", pickled_weights), refused=("resume",)),
    "an attention kernel of a masked LM": Way(language("mlm", kernel_of_the_hub), refused=("resume",)),
    "a module of a sentence encoder": Way(language("encoder", encoder_modules), refused=("resume",)),
    "a pickled sentence encoder": Way(language("encoder", pickled_weights), refused=("resume",)),
    "an attention kernel of a sentence encoder": Way(language("encoder", kernel_of_the_hub), refused=("resume",)),
    "the class of an attack": Way(named("attacks", f"{CANARY}:Attack")),
    "the class of a defense": Way(named("defenses", f"{CANARY}:Defense")),
    "a class of the standard library": Way(named("attacks", "subprocess:Popen")),
    "the class of a certificate method": Way(named("methods", f"{CANARY}:Method"), "certify", ("verify", "resume")),
    "the model of certificates": Way(spec(model=CODE), "certify", ("resample",)),
    "the class of a tuned defense": Way(tuned, "tune"),
    "the model of a search": Way(spec(model=CODE), "tune", ("resume",)),
    "the model of a training": Way(spec(model=CODE), "train", ("resume",)),
    "the objective of a training": Way(spec(objective=CODE), "train", ("resume",)),
    "word vectors of a training": Way(spec(sources={"vectors": CODE}), "train", ("resume",)),
    "a job inside an evaluation": Way(lambda run: inner_job(run, model=CODE), "evaluate", ("verify",)),
    "a flag inside an evaluation": Way(inner_flag, "evaluate", ("verify", "verify with a model")),
    "the source of an evaluation": Way(spec(transfer_from=CODE), "evaluate", ("verify",)),
    "pre-made texts of an evaluation": Way(spec(premade={"p": CODE}), "evaluate", ("verify",)),
    "a job inside a study": Way(lambda run: inner_job(run, model=CODE), "study", ("verify",)),
    "a model in the rows of a study": Way(recorded_model, "study", ("ensemble",)),
    "a neighbour table of pickled objects": Way(array_of_objects, refused=("resume",)),
    "word vectors of pickled objects": Way(vectors_of_objects, refused=("resume",)),
    "a pickled detector": Way(detector_file),
    "a view in the place of a table": Way(view, refused=EVERY),
    "a trigger": Way(trigger, refused=EVERY),
    "a generated column": Way(generated_column, refused=EVERY),
    "a virtual table": Way(virtual_table, refused=EVERY),
    "a journal that names a file to delete": Way(journal, refused=EVERY),
    "a link in the place of the results": Way(lambda run: link(run / "run.sqlite", "moved.sqlite"), refused=EVERY),
    "a link in the place of the manifest": Way(lambda run: link(run / "manifest.json", "moved.json"), refused=EVERY),
    "a link in the place of the lock": Way(lambda run: link(run / "run.lock", "moved.lock"), refused=EVERY),
    "a job inside that is a link": Way(inner_link, "evaluate", ("verify",)),
    "a text that is a template": Way(text_as_template, refused=()),
}


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter that the user has installed, which runs what a reference names."""

    class Theirs:
        def matches(self, model: object) -> bool:
            return str(model).startswith("theirs:")

        def load(self, model: object, options: LoadOptions) -> Any:
            Path(RAN).touch()

    monkeypatch.setattr(MODEL_ADAPTERS, "_registered", {"theirs": Theirs()})


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_nothing_that_a_folder_holds_is_run(folder: Path, way: Way) -> None:
    shutil.copytree(folder / "runs" / way.kind, folder / "run")
    way.change(folder / "run")
    for name, words in COMMANDS.items():
        result = in_process(*words)
        assert not (folder / RAN).exists(), name
        assert "Traceback" not in result.stderr, name
        if name in way.refused:
            assert result.returncode == 2, (name, result.stdout, result.stderr)
            (line,) = result.stderr.strip().splitlines()
            assert line.startswith("stockade: "), name
    with suppress(StockadeError, LookupError):
        st.load(folder / "run").document().to_html()
    assert not (folder / RAN).exists()


def test_the_canary_sings_when_the_folder_is_trusted(folder: Path) -> None:
    shutil.copytree(folder / "runs" / "attack", folder / "run")
    spec(model=CODE)(folder / "run")
    assert "--trust-run" in in_process("verify", "run").stderr
    assert not (folder / RAN).exists()
    in_process("verify", "run", "--trust-run")
    assert (folder / RAN).exists()


def test_a_model_on_the_command_line_is_the_users_own(folder: Path) -> None:
    shutil.copytree(folder / "runs" / "attack", folder / "run")
    spec(model="python:theirs:run")(folder / "run")
    result = in_process("verify", "run", "--model", CODE)
    assert result.returncode == 1, result.stderr  # asked, and it gives other answers
    assert (folder / RAN).exists()


def test_code_that_was_changed_since_is_not_run_even_in_a_trusted_folder(folder: Path) -> None:
    (folder / "mine.py").write_text("def predict(texts):\n    return [[0.2, 0.8] for _ in texts]\n")
    made = in_process(
        "attack", "python:mine:predict", kit.DATA, "--attack", kit.ATTACK, "--no-similarity", "--out", "r"
    )
    assert made.returncode == 0, made.stderr
    sys.modules.pop("mine")
    assert in_process("verify", "r", "--trust-run").returncode == 0
    sys.modules.pop("mine")
    (folder / "mine.py").write_text((folder / "mine.py").read_text() + f"open({RAN!r}, 'w').close()\n")
    with pytest.raises(RunError, match=r"python:mine:predict is not what it was .* was not run"):
        st.load("r").verify(trust=True)
    assert "was not run" in in_process("verify", "r", "--trust-run").stderr
    assert not (folder / RAN).exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (f'model = "{CODE}"', "names python:canary:run, which is code"),
        (f'model = "ensemble:bert,{CODE}"', "names python:canary:run, which is code"),
        (f'mlm = "{CODE}"', "which is code"),
        ("trust-run = true\nresume = true", "sets trust-run, which may run code"),
        ("allow_pickle = true", "sets allow-pickle, which may run code"),
        ("trust-remote-code = true", "which may run code"),
    ],
)
def test_a_file_of_options_does_not_decide_whose_code_runs(folder: Path, content: str, sentence: str) -> None:
    (folder / "theirs.toml").write_text(content)
    result = in_process("attack", kit.MODEL, kit.DATA, "--attack", kit.ATTACK, "--config", "theirs.toml")
    assert result.returncode == 2
    assert sentence in result.stderr
    assert not (folder / RAN).exists()
