"""What every adapter is built from: the session, turns, capabilities, payloads."""
