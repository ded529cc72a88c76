#!/usr/bin/env python3
"""Stands in for llama.cpp's own server program: takes its arguments, and answers /health after a few looks."""

import argparse
import json
import os
import sys
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingUnixStreamServer

parser = argparse.ArgumentParser()
parser.add_argument("--jinja", action="store_true")
for name in ("model", "alias", "host", "chat-template-file", "slot-save-path"):
    parser.add_argument(f"--{name}")
for name in ("parallel", "ctx-size", "n-gpu-layers", "threads", "threads-batch"):
    parser.add_argument(f"--{name}", type=int)
job = parser.parse_args()
key = os.environ["LLAMA_API_KEY"]
looks = {"health": 0}


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        looks["health"] += 1
        is_ready = looks["health"] > 2 and self.headers["Authorization"] == f"Bearer {key}"
        if self.path == "/quote":
            say("request: my secret words")
        if self.path == "/crash":
            os._exit(7)
        body = json.dumps({"pid": os.getpid(), **vars(job)}).encode()
        self.send_response(200 if is_ready else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


say("loading the model")
if job.alias == "broken":
    sys.exit("0.00.003.310 E model: no such file")


class Server(ThreadingUnixStreamServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Write nothing to the log: a client may hang up at any moment."""


Server(job.host, Handler).serve_forever()
