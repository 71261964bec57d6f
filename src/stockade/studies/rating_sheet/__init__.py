"""Sheets for human raters, for every study that has some: blind csv files that come back filled in.

    sheet.py       a csv file that says nothing of what made its texts, and the key that does
    filled.py      reading a filled sheet: every row once, every mistake named by row and column
    stored.py      where a study keeps the key and what raters said
    agreement.py   how far raters agree (Krippendorff's alpha)

What the rows are and what is asked of raters is the business of each study: `attention/rating_sheet.py` and
`attention/ratings.py` for the most readable of several texts, `bae/rating_sheet.py` and `bae/ratings.py` for
naturalness from 1 to 5.
"""
