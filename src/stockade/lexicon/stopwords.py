"""Words an attack leaves alone: two lists, because "stop word" means different things to different papers.

`ENGLISH_FUNCTION_WORDS` is our own list of closed-class English words, by grammatical class, for general use; a word
that also has a meaning of its own ("like", "well") is in it only where the grammatical use is by far the more frequent
one. `NLTK_STOP_WORDS` are the 179 English stop words of NLTK's data package (`corpora/stopwords`, file `english`),
needed word for word by presets that reproduce TextAttack's recipes.
"""

from __future__ import annotations

from typing import Literal

_BY_CLASS = {
    "articles and determiners": """
        a an the this that these those each every either neither some any no all both half such another other
        others much many more most few fewer fewest less least several enough whatever whichever which what whose""",
    "personal pronouns": """
        i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
        we us our ours ourselves they them their theirs themselves themself one oneself thou thee thy thine ye y'all""",
    "indefinite, interrogative and relative pronouns": """
        someone somebody something anyone anybody anything everyone everybody everything nobody nothing none
        who whom whoever whomever whosoever whatsoever""",
    "be, have, do": """
        am is are was were be been being have has had having do does did doing done ain't isn't aren't wasn't weren't
        haven't hasn't hadn't don't doesn't didn't""",
    "modals": """
        can could may might must shall should will would ought need dare cannot can't couldn't mayn't mightn't mustn't
        shan't shouldn't won't wouldn't oughtn't needn't daren't""",
    "pronoun and verb in one": """
        i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'd it'll we're we've we'd
        we'll they're they've they'd they'll that's that'd that'll there's there'd there'll here's who's who'd who'll
        who've what's what're what'll where's when's why's how's let's gonna gotta wanna""",
    "prepositions": """
        aboard about above across after against along alongside amid amidst among amongst around as at atop before
        behind below beneath beside besides between beyond by despite down during except for from in inside into near
        nearby of off on onto out outside over past per since than through throughout till to toward towards under
        underneath unlike until unto up upon versus via vs with within without notwithstanding""",
    "conjunctions": """
        and but or nor so yet because although though while whilst whereas if unless lest once whether provided
        whenever wherever whereby wherein whereupon albeit""",
    "adverbs of place, time and manner that stand for others": """
        here there where when why how then now thus hence thence therefore thereby therein thereafter thereof
        thereupon hereby herein hereafter elsewhere anywhere everywhere somewhere nowhere anyhow anyway somehow
        otherwise meanwhile moreover furthermore however nevertheless nonetheless instead else afterwards beforehand
        sometimes always never ever again also too only just even still already almost quite rather very""",
    "negation and particles": """not n't neither nor away back forth aside apart together""",
    "written clitics": """'s 'm 're 've 'd 'll s t d ll m re ve""",
}

_NLTK = """
    i me my myself we our ours ourselves you you're you've you'll you'd your yours yourself yourselves
    he him his himself she she's her hers herself it it's its itself they them their theirs themselves
    what which who whom this that that'll these those am is are was were be been being have has had
    having do does did doing a an the and but if or because as until while of at by for with about
    against between into through during before after above below to from up down in out on off over
    under again further then once here there when where why how all any both each few more most other
    some such no nor not only own same so than too very s t can will just don don't should should've now
    d ll m o re ve y ain aren aren't couldn couldn't didn didn't doesn doesn't hadn hadn't hasn hasn't
    haven haven't isn isn't ma mightn mightn't mustn mustn't needn needn't shan shan't shouldn shouldn't
    wasn wasn't weren weren't won won't wouldn wouldn't
"""

ENGLISH_FUNCTION_WORDS = frozenset(word for words in _BY_CLASS.values() for word in words.split())
NLTK_STOP_WORDS = frozenset(_NLTK.split())

StopList = Literal["none", "nltk", "nltk-cased", "function", "function-cased"]
_LISTS = {"function": ENGLISH_FUNCTION_WORDS, "nltk": NLTK_STOP_WORDS}
_CASED = "-cased"
_STRAIGHT = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'"})


def is_stop_word(word: str, which: StopList = "nltk") -> bool:
    """Whether the word is on a list, whatever its case and the form of its apostrophe.

    In TextAttack, and so on the lists that end in "-cased", "The" is no stop word; "none" is empty.
    """
    if which == "none":
        return False
    straight = word.translate(_STRAIGHT)
    return (straight if which.endswith(_CASED) else straight.lower()) in _LISTS[which.removesuffix(_CASED)]
