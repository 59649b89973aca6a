"""`python -m dig` is the command `digmon`."""

from dig.cli import main

main()
