"""Training: one plain loop, checkpoints that survive anything, and a place where a defense puts its own loss.

`job.train` does the whole of it; `loop.fit` is the loop; `objective.Objective` is the seam for defenses.
"""
