"""The command line of the laboratory is called as that of the monitor is."""

from tests.cli.conftest import call as call
