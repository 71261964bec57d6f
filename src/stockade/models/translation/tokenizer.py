"""The sub-words of a translator: byte pairs that source and target share, trained on both.

Words are cut into bytes before pairs are merged, so there is no unknown token: what an attack writes, the model reads.
The trainer of `tokenizers` breaks ties by the numbers of the pieces, and those are fixed as long as all single pieces
are in the alphabet from the beginning, as bytes are: the same sentences give the same tokenizer every time.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from stockade.core.errors import OptionError

PADDING, START, END, UNKNOWN = SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
"""Numbered 0 to 3. The unknown token is never produced; users may put it in."""
_BYTES = 256
SMALLEST = len(SPECIAL) + _BYTES


def train_tokenizer(texts: Iterable[str], size: int, maximum: int) -> PreTrainedTokenizerFast:
    """Byte pairs of some texts; every text it reads ends with the end-of-sentence token.

    Parameters
    ----------
    texts
        The sentences of both sides.
    size
        The most entries of the vocabulary; small data have fewer pairs that occur twice.
    maximum
        Longer texts are cut to so many tokens.
    """
    if size < SMALLEST:
        raise OptionError(
            f"The vocabulary of a translator is {size}, expected {SMALLEST} or more: it has {_BYTES} bytes and "
            f"{len(SPECIAL)} special tokens besides sub-words."
        )
    backend = Tokenizer(BPE(unk_token=UNKNOWN))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    backend.post_processor = TemplateProcessing(single=f"$A {END}", special_tokens=[(END, SPECIAL.index(END))])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PADDING,
        bos_token=START,
        eos_token=END,
        unk_token=UNKNOWN,
        model_max_length=maximum,
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
