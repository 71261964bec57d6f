"""The study of FireBERT: neighbours of important words and noise around them (Figures 5 to 7)."""
