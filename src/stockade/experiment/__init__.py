"""What every resumable job shares, written once: specification, folder, results, models, progress and result object.

A job is `Spec → Workspace → run → Result`: the spec is everything that decides the results; the workspace is the folder
with the lock, the manifest and the store; the result is what comes out, the same whether the job has just ended or its
folder was opened a year later.
"""
