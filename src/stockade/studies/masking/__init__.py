"""The study of Zeng et al. (Certified Robustness to Text Adversarial Attacks by Randomized [MASK], 2021): what the mask
rate does to accuracy, to certificates and to robust accuracy.
"""
