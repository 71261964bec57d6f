"""The built-in reviews overlap with published evaluation sets; the text hash finds every such sentence (needs the
data folder).
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from stockade.datasets.builtin import SPLITS, reviews, text_hash

DATA = Path(__file__).parent.parent.parent / "shared" / "data"


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared evaluation data are not on this machine")
@pytest.mark.parametrize(
    ("file", "overlap"), [("textfooler_eval/mr", 810), ("sst2_ranmask/test", 1431), ("sst2_ranmask/validation", 691)]
)
def test_sentences_of_evaluation_sets_are_recognised_among_the_built_in_ones(file: str, overlap: int) -> None:
    known = {text_hash(review.text) for split in SPLITS for review in reviews(split)}
    with gzip.open(DATA / f"{file}.jsonl.gz", "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for line in stream]
    found = sum(text_hash(text) in known for text in texts)
    assert found == pytest.approx(overlap, rel=0.02)
