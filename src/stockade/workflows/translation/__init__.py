"""Attack a translator: one search per sentence and attack, each success confirmed, everything stored as it ends.

`st.attack` and `stockade attack` come here when the attacks are for translators.
"""
