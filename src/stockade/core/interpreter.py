"""The command of a fresh interpreter that runs a function of ours, with the import path of this process."""

from __future__ import annotations

import sys

_CODE = """
import sys
end = 2 + int(sys.argv[1])
sys.path[:], sys.argv[1:] = sys.argv[2:end], sys.argv[end:]
from {module} import main
main()
"""


def interpreter_command(module: str, *arguments: str) -> list[str]:
    """The command that imports a module in a fresh interpreter and calls its `main`.

    Nothing is imported from the current folder unless this process does so too.

    Parameters
    ----------
    module
        Whose `main` is called.
    arguments
        What `main` finds in `sys.argv[1:]`.
    """
    paths = [str(entry) for entry in sys.path]
    return [sys.executable, "-P", "-c", _CODE.format(module=module), str(len(paths)), *paths, *arguments]
