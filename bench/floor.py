"""The least that a Python agent can be: a loop over http.client with three tools. The floor to compare with."""

import http.client
import json
import subprocess
import sys
from urllib.parse import urlsplit

PARAMETERS = {
    "read_file": ["path"],
    "edit_file": ["path", "old_text", "new_text"],
    "run_shell": ["command"],
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": "string"} for key in keys},
                "required": keys,
            },
        },
    }
    for name, keys in PARAMETERS.items()
]


def use(name, arguments):
    if name == "run_shell":
        return subprocess.run(
            arguments["command"], shell=True, capture_output=True, text=True, check=False
        ).stdout
    with open(arguments["path"]) as file:  # noqa: PTH123  (pathlib would be dearer than the loop)
        text = file.read()
    if name == "read_file":
        return text
    with open(arguments["path"], "w") as file:  # noqa: PTH123  (likewise)
        file.write(text.replace(arguments["old_text"], arguments["new_text"], 1))
    return "edited"


def ask(connection, path, messages):
    body = json.dumps({"model": "fake", "stream": True, "messages": messages, "tools": TOOLS})
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    text, call = "", None
    for line in connection.getresponse():
        if not line.startswith(b"data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            text += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls", ()):
                if call is None:
                    call = piece
                else:
                    call["function"]["arguments"] += piece["function"]["arguments"]
    return text, call


def main(endpoint, prompt):
    url = urlsplit(endpoint)
    connection = http.client.HTTPConnection(url.netloc)
    messages = [
        {"role": "system", "content": "You edit code."},
        {"role": "user", "content": prompt},
    ]
    while True:
        text, call = ask(connection, url.path + "/chat/completions", messages)
        if call is None:
            print(text)
            return
        result = use(call["function"]["name"], json.loads(call["function"]["arguments"]))
        messages.append({"role": "assistant", "content": text, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


main(*sys.argv[1:])
