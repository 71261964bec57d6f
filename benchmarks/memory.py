"""How much memory each attack takes at its peak: one process per attack, as `stockade attack` runs it.

python benchmarks/memory.py [--data FILE] [--model builtin:sentiment-cnn] [--attack pwws bae-r …] [--limit 1000]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ATTACKS = (
    "pwws",
    "deepwordbug",
    "hotflip",
    "gs-gr",
    "textfooler",
    "bert-attack",
    "genetic-fast",
    "bae-r:score_first=true",
    "bae-r+i:score_first=true",
)
CHILD = """
import resource, sys
import stockade as st
run = st.attack(sys.argv[1], sys.argv[2], sys.argv[3], limit=int(sys.argv[4]), out=sys.argv[5])
kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
summary = next(iter(run.summary["attacks"].values()))
print(f"| {sys.argv[3]} | {summary['n']:,} | {summary['attacked']:,} | {kilobytes / 1024:,.0f} |")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="builtin:reviews")
    parser.add_argument("--model", default="builtin:sentiment-cnn")
    parser.add_argument("--attack", nargs="*", default=ATTACKS)
    parser.add_argument("--limit", type=int, default=1000)
    options = parser.parse_args()
    print("| attack | texts | attacked | peak MB |\n|---|---|---|---|", flush=True)
    for attack in options.attack:
        with tempfile.TemporaryDirectory() as folder:
            arguments = [options.model, options.data, attack, str(options.limit), str(Path(folder) / "run")]
            subprocess.run([sys.executable, "-c", CHILD, *arguments], check=True)


if __name__ == "__main__":
    main()
