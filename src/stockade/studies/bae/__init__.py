"""The study of BAE: its four modes and TextFooler on the same texts."""
