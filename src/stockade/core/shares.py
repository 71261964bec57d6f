"""A share of a number of things as a whole number, free of the rounding of floats.

`int(0.7 * 90)` is 62: the float 0.7 is a little less than 7/10, and the product stays below 63. Here k of n things are
within a share if k / n, as a float, is at most that share. Division rounds correctly, so 63 / 90 is the very float that
"0.7" is read as, and 1 of 3 is within 1 / 3. For shares of up to eight decimals this is floor and ceil of the product
of the decimal number itself (`tests/core/test_shares.py` compares it with fractions).
"""

from __future__ import annotations


def at_most(share: float, total: int) -> int:
    """The greatest whole number that is no more than a share of a total: floor(share * total).

    Parameters
    ----------
    share
        Such as 0.7; not negative.
    total
        Of how many.
    """
    count = int(share * total)
    while total and (count + 1) / total <= share:
        count += 1
    while count and count / total > share:
        count -= 1
    return count


def at_least(share: float, total: int) -> int:
    """The smallest whole number that is no less than a share of a total: ceil(share * total).

    Parameters
    ----------
    share, total
        As for `at_most`.
    """
    count = at_most(share, total)
    return count + 1 if total and count / total < share else count
