"""Make, offline, the NLTK data folder that TextAttack's PWWS and DeepWordBug recipes need.

Usage::

    python setup_nltk.py OUT --wordnet DICT_FOLDER [--stopwords FILE]

What TextAttack asks NLTK for, and how each need is met here:

* ``corpora/stopwords/english``: read when ``textattack`` is *imported* (its augmentation module builds a
  stop-word constraint at module level), so without it even the import fails. Taken from ``--stopwords`` (one
  word a line) or, by default, from ``NLTK_STOP_WORDS`` in this repository's
  ``src/stockade/lexicon/stopwords.py``.
* ``corpora/wordnet``: WordNet 3.0, read by ``WordSwapWordNet``. The ``dict`` files come from Debian's
  ``wordnet-base`` package. NLTK's reader insists on two files which that package leaves out: ``lexnames``
  (the table of lexicographer files, written here from the list in the manual page lexnames(5WN)) and
  ``index.sense`` (only used to map sense keys between WordNet versions for other languages; empty is enough
  for English).
* ``corpora/omw-1.4``: ``WordSwapWordNet`` asks NLTK to download it and ignores the refusal; English never
  reads it. An empty folder is made so that a lookup by name succeeds.

Nothing else (Punkt, the perceptron tagger, the universal tag set) is read by these two recipes: TextAttack
only tries to download them once, after its installation, and ``run_textattack.py`` marks that step as done.

The script uses only the standard library and runs under any Python from 3.9 on.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
from pathlib import Path

WORDNET_FILES = (
    *(f"{kind}.{pos}" for kind in ("index", "data") for pos in ("adj", "adv", "noun", "verb")),
    *(f"{pos}.exc" for pos in ("adj", "adv", "noun", "verb")),
    "cntlist.rev",
)

# Lexicographer files in the order of their numbers 00 to 44, after lexnames(5WN), and the part-of-speech
# numbers of that file's third column.
NOUN_FILES = """
    Tops act animal artifact attribute body cognition communication event feeling food group location motive
    object person phenomenon plant possession process quantity relation shape state substance time"""
VERB_FILES = """
    body change cognition communication competition consumption contact creation emotion motion perception
    possession social stative weather"""
LEXICOGRAPHER_GROUPS = (
    ("adj", "all pert"),
    ("adv", "all"),
    ("noun", NOUN_FILES),
    ("verb", VERB_FILES),
    ("adj", "ppl"),
)
POS_NUMBERS = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}

DEFAULT_STOPWORDS = Path(__file__).resolve().parents[2] / "src" / "stockade" / "lexicon" / "stopwords.py"


def lexnames() -> str:
    """The text of WordNet's ``lexnames`` file: number, name and part-of-speech number, separated by tabs."""
    files = [(pos, name) for pos, names in LEXICOGRAPHER_GROUPS for name in names.split()]
    lines = [f"{i:02d}\t{pos}.{name}\t{POS_NUMBERS[pos]}" for i, (pos, name) in enumerate(files)]
    return "\n".join(lines) + "\n"


def make_wordnet(dict_folder: Path, out: Path) -> None:
    """Copy the WordNet database into ``out`` and add the files NLTK misses there."""
    missing = [name for name in WORDNET_FILES if not (dict_folder / name).is_file()]
    if missing:
        raise SystemExit(f"{dict_folder} is not a WordNet 3.0 dict folder: it has no {', '.join(missing)}")
    out.mkdir(parents=True, exist_ok=True)
    for name in WORDNET_FILES:
        shutil.copyfile(dict_folder / name, out / name)
    (out / "lexnames").write_text(lexnames(), encoding="utf-8")
    sense_index = dict_folder / "index.sense"
    if sense_index.is_file():
        shutil.copyfile(sense_index, out / "index.sense")
    else:
        (out / "index.sense").write_text("", encoding="utf-8")


def read_stopwords(source: Path) -> list[str]:
    """English stop words from a word list, or from a Python file that defines ``NLTK_STOP_WORDS``."""
    if source.suffix != ".py":
        return [line.strip() for line in source.read_text(encoding="utf-8").splitlines() if line.strip()]
    spec = importlib.util.spec_from_file_location("stopword_table", source)
    if spec is None or spec.loader is None:
        raise SystemExit(f"cannot read {source} as a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return sorted(module.NLTK_STOP_WORDS)


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("out", type=Path, help="folder to make; give it to TextAttack as NLTK_DATA")
    parser.add_argument("--wordnet", type=Path, required=True, help="folder of Debian's wordnet-base dict files")
    parser.add_argument("--stopwords", type=Path, default=DEFAULT_STOPWORDS, help="word list, one a line")
    args = parser.parse_args()
    if not args.stopwords.is_file():
        raise SystemExit(f"no stop-word list at {args.stopwords}: give one with --stopwords")

    corpora = args.out / "corpora"
    make_wordnet(args.wordnet, corpora / "wordnet")
    (corpora / "omw-1.4").mkdir(parents=True, exist_ok=True)
    words = read_stopwords(args.stopwords)
    (corpora / "stopwords").mkdir(parents=True, exist_ok=True)
    (corpora / "stopwords" / "english").write_text("\n".join(words) + "\n", encoding="utf-8")
    print(f"{args.out}: WordNet 3.0, {len(words)} stop words")


if __name__ == "__main__":
    main()
