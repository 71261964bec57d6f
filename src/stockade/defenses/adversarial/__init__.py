"""What adversarial training computes on tensors. Everything here needs torch, so defenses import it when they train."""
