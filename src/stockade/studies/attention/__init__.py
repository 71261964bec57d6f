"""The study of Hsieh et al. (On the Robustness of Self-Attentive Models, ACL 2019): one word replaced, several models,
the texts that all of them get right.
"""
