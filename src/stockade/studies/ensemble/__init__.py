"""The study of ensembles: which few models make adversarial texts that fool most others."""
