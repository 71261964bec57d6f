"""What all tests rely on."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

os.environ["OMP_NUM_THREADS"] = "1"
"""For torch, before it is imported: threads of several test processes wait for each other where cores are few, and
weights that are compared to the last bit must not depend on how sums are split among threads."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell lets what it starts in the background ignore Ctrl-C, and so would every process that a test starts and
    # interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("stockade", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stockade")
"""No property has a time limit: the machine may be busy with other work."""
