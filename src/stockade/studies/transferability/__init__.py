"""What the studies of transfer, ensembles and rules share: the matrix, models that may fail, scores across models."""
