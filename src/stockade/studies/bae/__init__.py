"""The study of BAE: its four modes and TextFooler on the same texts."""

from stockade.studies.bae.analysis import ATTACKS, NAME, SUMMARY, analyse, check_run
from stockade.studies.bae.orders import MODES

__all__ = ["ATTACKS", "MODES", "NAME", "SUMMARY", "analyse", "check_run"]
