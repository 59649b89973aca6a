"""What a run leaves: `reader` reads traces, `journal` writes them, `check` looks at them again."""
