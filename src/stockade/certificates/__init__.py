"""Certificates: what is proved about a model's answer to a text, whatever an attacker with a budget does to it.

The mathematics is in `bounds`, `exact`, `confidence`, `sequential` and `medians`, which know no model; certificates and
the evidence they rest on (`certificate`, `evidence`) can be checked without one. Only `running` and what it calls ask a
model.
"""
