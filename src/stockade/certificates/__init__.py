"""Certificates: what is proved about a model's answer to a text, whatever an attacker with a budget does to it.

    bounds, exact              how large a lead must be for d changes
    confidence, sequential     how large it is at least: from votes, with looks that were fixed beforehand
    betting                    the same from bets on rounds of copies
    medians                    what the radii of many texts say together
    evidence, certificate      what a certificate rests on, in a file and in words; a radius follows by arithmetic
    method, registry, methods/ how a model in a defense is certified, a file for each defense
    sampled_method, sampling, betting_sampler    what methods that draw random copies share

The first six know no model, and a certificate is checked without one.
"""
