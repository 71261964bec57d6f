"""Language resources that attacks ask: synonyms, part of speech, stop words, look-alike characters."""

from stockade.lexicon.counterfit import CounterFitting, counterfit
from stockade.lexicon.homoglyphs import homoglyphs
from stockade.lexicon.neighbours import Neighbour, Neighbours, load_neighbours, read_neighbours, use_neighbours
from stockade.lexicon.pos import (
    PENN_TO_UNIVERSAL,
    UNIVERSAL_TAGS,
    Tagger,
    compatible,
    load_tagger,
    universal_tag,
    wordnet_pos,
)
from stockade.lexicon.stopwords import ENGLISH_FUNCTION_WORDS, NLTK_STOP_WORDS, StopList, is_stop_word
from stockade.lexicon.vectors import WordVectors, read_vectors
from stockade.lexicon.wordnet import WordNet, load_wordnet

__all__ = [
    "ENGLISH_FUNCTION_WORDS",
    "NLTK_STOP_WORDS",
    "PENN_TO_UNIVERSAL",
    "UNIVERSAL_TAGS",
    "CounterFitting",
    "Neighbour",
    "Neighbours",
    "StopList",
    "Tagger",
    "WordNet",
    "WordVectors",
    "compatible",
    "counterfit",
    "homoglyphs",
    "is_stop_word",
    "load_neighbours",
    "load_tagger",
    "load_wordnet",
    "read_neighbours",
    "read_vectors",
    "universal_tag",
    "use_neighbours",
    "wordnet_pos",
]
