"""`python -m stockade`: the same as the command `stockade`."""

from stockade.cli.main import main

main()
