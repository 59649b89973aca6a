"""`python -m dig` is the command `digmon`."""

from .cli import main

main()
