"""Work that is shared among processes of one machine, or the nodes of a Ray cluster.

`leases.py` gives out the work and takes in the results, whatever carries them; `local.py` and `cluster.py` carry them.
Nothing here knows what the work is about.
"""
