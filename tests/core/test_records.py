"""What a search returns, and what a record says of a search that had nothing to say."""

from __future__ import annotations

from stockade.core.records import Outcome, Record
from stockade.core.text import Text

TEXT = Text.parse("a film")


def test_an_outcome_is_a_text_or_a_reason() -> None:
    adversarial = Outcome.found(TEXT, flip_share=0.25)
    assert adversarial == Outcome(TEXT, None, 0.25)
    assert adversarial.is_found
    failed = Outcome.failed("nothing to replace", TEXT, flip_share=0.5)
    assert failed == Outcome(TEXT, "nothing to replace", 0.5)
    assert not failed.is_found  # the text is only the closest candidate
    assert Outcome.failed("nothing to replace").text is None


def test_a_record_without_edits_has_pushed_no_word_out() -> None:
    record = Record("0", "pwws", "skipped", "wrong already", "pos", "a film", None, "neg", None, (0.9, 0.1), None, 1, 1)
    assert record.edits == ()
    assert record.truncated_words == 0
    assert (record.perturbed_percent, record.similarity, record.hit_rate, record.flip_share) == (None,) * 4
