"""Stands in for the server's process: reads its Job as the real one does, and answers at once."""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

job = json.load(sys.stdin)
behaviour = os.environ.get("FAKE_SERVE", "")
if behaviour == "missing":
    sys.exit("ModuleNotFoundError: No module named 'xllamacpp'")
if behaviour == "crash":
    sys.exit("error loading model: tensors do not fit\nout of memory")
if behaviour == "traceback":
    sys.exit(
        "0.00.003.250 I srv load_model: loading\n0.00.003.310 E gguf_init: invalid magic characters\n"
        "Traceback (most recent call last):\n  File\n  File\n  File\nRuntimeError: failed"
    )
if behaviour.startswith("memory") and job["window"] > int(behaviour.split()[1]):
    sys.exit("0.00.003.310 E ggml_aligned_malloc: failed to allocate 9000 MB")
if behaviour == "no card" and job["gpu_layers"]:
    sys.exit("0.00.003.310 E ggml_cuda: cudaMalloc failed: out of memory")
if behaviour == "killed":
    os.kill(os.getpid(), 9)
looks = {"health": 0}
slot = {"text": "", "reads": 0}
busy = threading.Lock()  # the one slot answers one request after the other


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def is_allowed(self):
        return self.headers["Authorization"] == f"Bearer {job['key']}"

    def do_GET(self):
        looks["health"] += 1
        is_loading = behaviour == "slow" and looks["health"] < 4
        self.reply(503 if is_loading else 200, b"[]" if self.path == "/slots" else b"{}")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.is_allowed():
            self.reply(401, b'{"error":{"message":"wrong key"}}')
            return
        if behaviour.startswith("dies") and job["window"] > int(behaviour.split()[1]):
            os._exit(1)
        if not self.path.startswith("/v1/"):
            self.keep(request)
            return
        with busy:
            slot["text"] = json.dumps(request["messages"])
        marker = behaviour.removeprefix("calls ")
        if (
            behaviour.startswith("calls")
            and request.get("tools")
            and marker in (job["template"] or "own")
        ):
            call = {
                "index": 0,
                "id": "1",
                "function": {"name": "read_file", "arguments": '{"path": "notes.txt"}'},
            }
            self.say({"tool_calls": [call]}, "tool_calls")
            return
        if behaviour == "writes":
            self.say(
                {
                    "content": '```json\n{"name": "read_file", "arguments": {"path": "notes.txt"}}\n```'
                },
                "stop",
            )
            return
        if behaviour == "breaks" and request["stream"]:
            self.reply(200, b'data: {"choices": []}\n\n', "text/event-stream")
            return
        if not request["stream"]:
            message = {"role": "assistant", "content": "In one piece."}
            whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
            self.reply(200, json.dumps(whole).encode())
            return
        delta = {"content": f"I am {request['model']} at {request.get('temperature')}."}
        self.say(delta, "stop")

    def keep(self, request):
        """Do as llama.cpp does with slots: the text that was read goes to a file, and comes back from it."""
        path, _, action = self.path.partition("?action=")
        if path == "/apply-template":
            text = "".join(f"<{m['role']}>{m['content']}" for m in request["messages"])
            self.reply(200, json.dumps({"prompt": f"{text}<end>"}).encode())
        elif path == "/completion":
            with busy:
                slot["text"], slot["reads"] = request["prompt"], slot["reads"] + 1
                if behaviour == "reads slowly":
                    time.sleep(0.5)
            time.sleep(0.05 if behaviour == "reads slowly" else 0)  # what waits goes first
            self.reply(200, b"{}")
        elif action == "save":
            file = Path(job["slots_folder"], request["filename"])
            with file.open("w") as out:
                out.write(slot["text"])
            self.reply(200, b"{}")
        else:
            with Path(job["slots_folder"], request["filename"]).open() as kept:
                slot["text"] = kept.read()
            is_good = slot["text"].startswith("<system>")
            self.reply(200 if is_good else 400, b"{}")

    def say(self, delta, reason):
        frames = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        ]
        text = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"
        self.reply(200, text.encode(), "text/event-stream")


class Server(ThreadingUnixStreamServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Write nothing to the log, as the real one once it is ready: a client may hang up at any moment."""


Server(str(Path(job["state_file"]).with_name("llama.sock")), Handler).serve_forever()
