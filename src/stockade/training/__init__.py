"""Training: one plain loop, checkpoints that survive anything, and a seam where defenses change the loss.

`assembly.make_training` puts a training together, `loop.fit` runs it, `objective.Objective` is the seam for defenses;
`stockade.workflows.train` does the rest: folder, record, report.
"""
