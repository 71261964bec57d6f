"""Studies: several attacks on the same texts, and what can be learned from them together.

`st.study(NAME, model, data)` runs one; each study is a module here with its attacks and its analysis.
"""

from stockade.studies.running import STUDIES, Study, study

__all__ = ["STUDIES", "Study", "study"]
