"""Run one TextAttack recipe on one victim, offline, and write what happened to each text.

Executed by the Python of TextAttack's own environment (``requirements.txt`` beside this file), never by
Stockade's::

    python run_textattack.py --examples in.jsonl --victim FOLDER --wrapper dynamic --recipe pwws \\
        --nltk-data FOLDER --out out.jsonl [--encoder FOLDER] [--masked-lm FOLDER] [--function-words] \\
        [--careful]

``in.jsonl`` holds one ``{"id", "text", "label"}`` a line. ``out.jsonl`` gets one row per text in the same
order and a last row ``{"summary": ...}`` whose seconds cover the attack loop alone: not the imports, not the
loading of the victim, of WordNet or of the recipe. The recipe is TextAttack's own ``build`` and the loop is
its own serial ``attack.attack(text, label)``. One text is attacked before the clock starts, so that no model
answers for the first time inside it.

Of Stockade the classes of its CNN and LSTM victims are imported for ``--wrapper zoo``, and its lexicon (neighbour
table, tagger, stop words) by ``components.py``, which gives the recipes what they would download.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import importlib.metadata
import json
import os
import pstats
import random
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any, TextIO

REPOSITORY_SOURCE = Path(__file__).resolve().parents[2] / "src"
WRAPPERS = ("stock", "dynamic", "zoo")
RECIPES = ("pwws", "deepwordbug", "textfooler", "bae-r", "bert-attack", "genetic")
WARM_UP = "one good text so that the first call 's one-off costs stay out of the loop that is measured here"


def prepare_offline(nltk_data: Path, cache: Path) -> None:
    """Set what TextAttack and its dependencies read at import, so that nothing tries to reach the network."""
    cache.mkdir(parents=True, exist_ok=True)
    # TextAttack downloads NLTK corpora once after its installation; this file tells it that the step is done.
    (cache / "post_install_check_3").touch()
    os.environ.update(
        NLTK_DATA=str(nltk_data),
        TA_CACHE_DIR=str(cache),
        TA_DEVICE="cpu",
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        HF_DATASETS_OFFLINE="1",
        CUDA_VISIBLE_DEVICES="",
        # One thread everywhere: TextAttack switches on the tokenizers' own thread pool when it is imported.
        OMP_NUM_THREADS="1",
        MKL_NUM_THREADS="1",
        RAYON_NUM_THREADS="1",
    )
    stand_in_for_flair()
    import nltk

    # The WordNet transformation asks for omw-1.4 on every construction, finds no network and goes on.
    nltk.download = lambda *args, **kwargs: False


def stand_in_for_flair() -> None:
    """Register an empty ``flair``: TextAttack imports it at module level, these recipes never call it.

    The last flair (0.15.1) wants transformers < 5 and fails to import with the version that saves
    the victims.
    """
    flair, data, models = (types.ModuleType(name) for name in ("flair", "flair.data", "flair.models"))
    for module, name in ((data, "Tokenizer"), (data, "Sentence"), (models, "SequenceTagger")):
        setattr(module, name, type(name, (), {}))
    vars(flair).update(data=data, models=models, device=None)
    sys.modules.update({"flair": flair, "flair.data": data, "flair.models": models})


def register_zoo() -> None:
    """Make the Auto classes know ``stockade-cnn`` and ``stockade-lstm``."""
    importlib.import_module("stockade.models.zoo").register_zoo()


def load_victim(folder: Path) -> tuple[Any, Any]:
    """The model, in evaluation mode, and the tokenizer of a Hugging Face folder."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return model.eval(), tokenizer


def build_wrapper(kind: str, folder: Path) -> Any:
    """A TextAttack model wrapper around the victim in ``folder``.

    ``stock`` is TextAttack's own (it pads every text to the model's maximum); ``dynamic`` and ``zoo`` pad to
    the longest text of the batch and return probabilities.
    """
    import torch
    from textattack.models.wrappers import HuggingFaceModelWrapper, ModelWrapper

    class DynamicWrapper(ModelWrapper):  # type: ignore[misc]
        def __init__(self, model: Any, tokenizer: Any) -> None:
            self.model = model
            self.tokenizer = tokenizer
            limit = tokenizer.model_max_length
            self.max_length = limit if limit < 100_000 else 512

        def __call__(self, text_input_list: list[str], **kwargs: Any) -> torch.Tensor:
            batch = self.tokenizer(
                text_input_list,
                padding=True,
                truncation=True,
                max_length=self.max_length,
                return_tensors="pt",
            )
            with torch.no_grad():
                return torch.softmax(self.model(**batch).logits, dim=-1)

    if kind == "zoo":
        register_zoo()
    model, tokenizer = load_victim(folder)
    return HuggingFaceModelWrapper(model, tokenizer) if kind == "stock" else DynamicWrapper(model, tokenizer)


class Meter:
    """Stands in front of the wrapper the goal function calls and counts calls and rows.

    It reads no clock: one reading can cost as much as a small victim's forward pass in a sandboxed container.
    """

    def __init__(self, wrapper: Any) -> None:
        self.wrapper = wrapper
        self.calls = 0
        self.rows = 0

    def __call__(self, texts: list[str]) -> Any:
        """Pass the texts on."""
        self.calls += 1
        self.rows += len(texts)
        return self.wrapper(texts)


def describe(example: dict[str, Any], result: Any) -> dict[str, Any]:
    """One output row."""
    kind = type(result).__name__.replace("AttackResult", "")
    before, after = result.original_result.attacked_text, result.perturbed_result.attacked_text
    return {
        "id": example["id"],
        "result": {"Successful": "success", "Failed": "failed", "Skipped": "skipped"}[kind],
        "num_queries": int(result.num_queries),
        "changed": len(before.all_words_diff(after)),
        "perturbed_text": after.text,
        "ground_truth_output": int(result.original_result.ground_truth_output),
        "original_probabilities": [float(p) for p in result.original_result.raw_output],
        "probabilities": [float(p) for p in result.perturbed_result.raw_output],
    }


def run(attack: Any, examples: list[dict[str, Any]], meter: Meter, out: TextIO) -> dict[str, Any]:
    """Attack the examples one after another; write the rows; return the summary."""
    results = []
    wall, cpu = time.perf_counter(), time.process_time()
    for example in examples:
        results.append(attack.attack(example["text"], int(example["label"])))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu

    rows = [describe(example, result) for example, result in zip(examples, results, strict=True)]
    out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    counts = {kind: sum(row["result"] == kind for row in rows) for kind in ("success", "failed", "skipped")}
    return {
        "texts": len(rows),
        **counts,
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "queries": sum(row["num_queries"] for row in rows),
        "model_rows": meter.rows,
        "model_calls": meter.calls,
    }


def build_attack(args: argparse.Namespace, wrapper: Any, texts: list[str]) -> Any:
    """The recipe's attack, after one text that is not measured."""
    recipes = importlib.import_module("recipes")
    resources = recipes.Resources(args.encoder, args.masked_lm, args.function_words, args.careful)
    attack = recipes.build(args.recipe, wrapper, resources, [*texts, WARM_UP])
    attack.attack(WARM_UP, int(wrapper([WARM_UP])[0].argmax()))
    attack.clear_cache()
    return attack


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--examples", type=Path, required=True, help="JSONL of {id, text, label}")
    parser.add_argument("--victim", type=Path, required=True, help="Hugging Face folder (safetensors)")
    parser.add_argument("--wrapper", choices=WRAPPERS, required=True)
    parser.add_argument("--recipe", choices=RECIPES, required=True)
    parser.add_argument("--out", type=Path, required=True, help="JSONL to write")
    parser.add_argument("--nltk-data", type=Path, required=True, help="folder made by setup_nltk.py")
    parser.add_argument("--cache", type=Path, help="TextAttack's cache folder (default: a temporary one)")
    parser.add_argument("--source", type=Path, default=REPOSITORY_SOURCE, help="Stockade's src")
    parser.add_argument("--encoder", type=Path, help="folder of the sentence encoder")
    parser.add_argument("--masked-lm", type=Path, help="folder of the masked LM")
    parser.add_argument("--function-words", action="store_true", help="Stockade's list as the recipe's stop words")
    parser.add_argument("--careful", action="store_true", help="encode each string once, pad the masked LM tightly")
    parser.add_argument("--limit", type=int, help="attack the first LIMIT examples only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="print where the time of the loop went (slows it)")
    return parser.parse_args()


def main() -> None:
    """Load everything, run, write."""
    args = parse_arguments()
    cache = args.cache or Path(tempfile.mkdtemp(prefix="textattack-"))
    prepare_offline(args.nltk_data.resolve(), cache.resolve())
    sys.path.insert(0, str(args.source))

    import numpy
    import torch
    import transformers

    torch.set_num_threads(1)
    lines = args.examples.read_text(encoding="utf-8").splitlines()
    examples = [json.loads(line) for line in lines if line.strip()][: args.limit]
    wrapper = build_wrapper(args.wrapper, args.victim)
    attack = build_attack(args, wrapper, [example["text"] for example in examples])
    meter = Meter(wrapper)
    attack.goal_function.model = meter

    random.seed(args.seed)
    numpy.random.seed(args.seed)
    torch.manual_seed(args.seed)
    profiler = cProfile.Profile() if args.profile else None
    with args.out.open("w", encoding="utf-8") as out:
        if profiler is not None:
            profiler.enable()
        summary = run(attack, examples, meter, out)
        if profiler is not None:
            profiler.disable()
        summary |= {
            "recipe": args.recipe,
            "wrapper": args.wrapper,
            "seed": args.seed,
            "profiled": args.profile,
            "versions": {
                "textattack": importlib.metadata.version("textattack"),
                "transformers": transformers.__version__,
                "torch": torch.__version__,
                "numpy": numpy.__version__,
            },
        }
        out.write(json.dumps({"summary": summary}) + "\n")
    print(json.dumps(summary))
    if profiler is not None:
        for order in ("tottime", "cumtime"):
            pstats.Stats(profiler).strip_dirs().sort_stats(order).print_stats(30)


if __name__ == "__main__":
    main()
