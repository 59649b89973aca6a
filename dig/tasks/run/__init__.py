"""One run of a team: its configuration, how it is put together, carried out and measured."""
