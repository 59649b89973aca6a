"""Sessions on real servers: `make test-nats`."""
