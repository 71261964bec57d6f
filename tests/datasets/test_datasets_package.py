"""The package's face: what it exports, and that importing it is cheap."""

from __future__ import annotations

import subprocess
import sys

import stockade.datasets


def test_the_exported_names_are_sorted_and_exist() -> None:
    names = stockade.datasets.__all__
    assert names == sorted(names)
    assert all(hasattr(stockade.datasets, name) for name in names)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, stockade.datasets\n"
        "heavy = {'pyarrow', 'pandas', 'datasets', 'torch', 'transformers', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
