"""The study of BAE: its four modes and TextFooler on the same texts.

spec.py, study.py            what decides it; the study of one model
analysis.py, claims.py       its numbers and the paper's claims
page.py, plots.py            its page
grid.py, grid_analysis.py, grid_claims.py, grid_page.py
                             the same for several models and data sets, each cell a study of one model
published.py                 the paper's Tables 1 and 2
rating_sheet.py, ratings.py, rating_page.py
                             human raters: what they get, what they say, how it is shown
"""
