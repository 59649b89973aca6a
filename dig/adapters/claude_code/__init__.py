"""Claude Code, live: its hooks, and the monitor of its sessions.

- `hook`: the program that Claude Code runs at each hook; it imports the standard library only.
- `hook_settings`: the hooks of dig in a settings file of Claude Code.
- `session`: a session as a team with a journal, and the monitor that listens to the hooks.
"""
