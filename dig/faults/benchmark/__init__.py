"""Sets of faulty runs with known causes: made, read, and answers about them scored."""
