"""The study of transferability: which adversarial texts of one model fool which others, and what that depends on."""
