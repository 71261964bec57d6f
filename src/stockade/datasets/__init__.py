"""Data to attack: files, hub data sets, built-in reviews and Python objects, all as streams of checked rows.

load.py                                          from a reference or an object to a `DataSource`
files.py, streams.py                             data files: `delimited.py`, `jsonlines.py`, `arrow.py` read them
hub.py, builtin.py, memory.py                    other origins
source.py, columns.py                            rows of a table; which column is the text, which the label
examples.py, labels.py, sampling.py              examples for a model's classes, of all rows or a sample
wording.py                                       how errors quote what they found
"""
