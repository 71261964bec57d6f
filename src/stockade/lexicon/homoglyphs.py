"""Characters that look like a Latin letter or a digit (used by DeepWordBug's homoglyph transform).

Chosen by us from the Cyrillic, Greek, Armenian, Coptic, Cherokee and Latin-extended blocks, closest look first: letters
with one code point in the basic plane that fonts carry. Left out on purpose: full-width and mathematical letters and
Roman numerals, because Unicode's compatibility normalisation (NFKC), which many tokenisers apply, turns them back into
the letter, so that the edit would vanish. Written as escapes, so that a reader of this file sees which character it is.
"""

from __future__ import annotations

from types import MappingProxyType

_LOOK_ALIKES = {
    "a": "\u0430\u0251\u03b1",  # Cyrillic a, Latin alpha, Greek alpha
    "b": "\u042c\u0184",  # Cyrillic soft sign, Latin tone six
    "c": "\u0441\u1d04\u2ca5",  # Cyrillic es, small capital c, Coptic sima
    "d": "\u0501",  # Cyrillic komi de
    "e": "\u0435\u04bd\uab32",  # Cyrillic ie, Abkhasian che, blackletter e
    "f": "\u0192\ua799\u0584",  # Latin f with hook, f with stroke, Armenian keh
    "g": "\u0261\u0581\u018d",  # Latin script g, Armenian co, turned delta
    "h": "\u04bb\u0570",  # Cyrillic shha, Armenian ho
    "i": "\u0456\u0131\u026a",  # Cyrillic i, dotless i, small capital i
    "j": "\u0458\u03f3",  # Cyrillic je, Greek yot
    "k": "\u043a\u03ba\u1d0b",  # Cyrillic ka, Greek kappa, small capital k
    "l": "\u04cf\u0406I\u01c0",  # Cyrillic palochka, Cyrillic I, capital I, dental click
    "m": "\u043c\u1d0d",  # Cyrillic em, small capital m
    "n": "\u0578\u057c",  # Armenian vo, ra
    "o": "\u043e\u03bf\u0585\u1d0f",  # Cyrillic o, Greek omicron, Armenian oh, small capital o
    "p": "\u0440\u03c1\u2ca3",  # Cyrillic er, Greek rho, Coptic ro
    "q": "\u051b\u0563",  # Cyrillic qa, Armenian gim
    "r": "\u0433\u1d26\u2c85",  # Cyrillic ghe, Greek small capital gamma, Coptic gamma
    "s": "\u0455\ua731\u01bd",  # Cyrillic dze, small capital s, tone five
    "t": "\u0442\u03c4\u1d1b",  # Cyrillic te, Greek tau, small capital t
    "u": "\u057d\u03c5\u1d1c",  # Armenian seh, Greek upsilon, small capital u
    "v": "\u0475\u03bd\u1d20",  # Cyrillic izhitsa, Greek nu, small capital v
    "w": "\u051d\u1d21\u0461",  # Cyrillic we, small capital w, Cyrillic omega
    "x": "\u0445\u04b3",  # Cyrillic ha, ha with descender
    "y": "\u0443\u04af\u0263",  # Cyrillic u, straight u, Latin gamma
    "z": "\u1d22\u0290",  # small capital z, z with retroflex hook
    "A": "\u0410\u0391",  # Cyrillic A, Greek Alpha
    "B": "\u0412\u0392",  # Cyrillic Ve, Greek Beta
    "C": "\u0421\u2ca4",  # Cyrillic Es, Coptic Sima
    "D": "\u13a0\u0110",  # Cherokee A, D with stroke
    "E": "\u0415\u0395",  # Cyrillic Ie, Greek Epsilon
    "F": "\u03dc\ua798",  # Greek Digamma, F with stroke
    "G": "\u050c\u13c0",  # Cyrillic Komi Sje, Cherokee Nah
    "H": "\u041d\u0397",  # Cyrillic En, Greek Eta
    "I": "\u0406\u0399\u04c0l",  # Cyrillic I, Greek Iota, Palochka, small l
    "J": "\u0408\u037f",  # Cyrillic Je, Greek Yot
    "K": "\u041a\u039a",  # Cyrillic Ka, Greek Kappa
    "L": "\u13de\u2cd0",  # Cherokee Tle, Coptic L-shaped Ha
    "M": "\u041c\u039c",  # Cyrillic Em, Greek Mu
    "N": "\u039d\u2c9a",  # Greek Nu, Coptic Ni
    "O": "\u041e\u039f\u05550",  # Cyrillic O, Greek Omicron, Armenian Oh, zero
    "P": "\u0420\u03a1",  # Cyrillic Er, Greek Rho
    "Q": "\u051a",  # Cyrillic Qa
    "R": "\u13a1\u01a6",  # Cherokee E, Latin Yr
    "S": "\u0405\u054f",  # Cyrillic Dze, Armenian Tiwn
    "T": "\u0422\u03a4",  # Cyrillic Te, Greek Tau
    "U": "\u054d",  # Armenian Seh
    "V": "\u0474\u13d9",  # Cyrillic Izhitsa, Cherokee Do
    "W": "\u051c\u13b3",  # Cyrillic We, Cherokee La
    "X": "\u0425\u03a7",  # Cyrillic Ha, Greek Chi
    "Y": "\u04ae\u03a5",  # Cyrillic straight U, Greek Upsilon
    "Z": "\u0396\u13c3",  # Greek Zeta, Cherokee No
    "0": "O\u041e\u039f",  # capital O, Cyrillic O, Greek Omicron
    "1": "l\u04cf\u0406",  # small l, palochka, Cyrillic I
    "2": "\u01a7\u03e8",  # Latin tone two, Coptic Hori
    "3": "\u0417\u01b7\u04e0",  # Cyrillic Ze, Latin Ezh, Abkhasian Dze
    "4": "\u13ce",  # Cherokee Se
    "5": "\u01bc",  # Latin tone five
    "6": "\u0431\u2cd2",  # Cyrillic be, Coptic Hei
    "8": "\u0222",  # Latin Ou
    "9": "\u2cca\ua76e",  # Coptic dialect-p Hori, Latin Con
}

HOMOGLYPHS = MappingProxyType({letter: tuple(others) for letter, others in _LOOK_ALIKES.items()})


def homoglyphs(char: str) -> tuple[str, ...]:
    """The look-alikes of an ASCII letter or digit, closest first; none for any other character (nor for 7)."""
    return HOMOGLYPHS.get(char, ())
