"""What all tests rely on."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell lets what it starts in the background ignore Ctrl-C, and so would every process that a test starts and
    # interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
