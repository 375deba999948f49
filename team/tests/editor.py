"""A small editor: it opens documents in `hone lsp`, asks for completions and judges them."""

import json
import os
import subprocess
from pathlib import Path


class Editor:
    def __init__(self, hone: str, home: Path) -> None:
        self.process = subprocess.Popen(
            [hone, "lsp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HONE_HOME": str(home)},
        )
        self.asked = 0
        self.request("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {}})
        self.notify("initialized", {})

    def request(self, method: str, params: dict) -> object:
        self.asked += 1
        self._send({"id": self.asked, "method": method, "params": params})
        while True:
            message = self._read()
            if "method" in message and "id" in message:
                self._send({"id": message["id"], "result": None})
            elif message.get("id") == self.asked:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message["result"]

    def notify(self, method: str, params: dict) -> None:
        self._send({"method": method, "params": params})

    def judge(self, uri: str, text: str, accepts: bool) -> bool:
        """Opens a document, asks for a completion at its end, and accepts or rejects the offer."""
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        lines = text.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1])}
        answer = self.request(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": uri},
                "position": position,
                "context": {"triggerKind": 1},
            },
        )
        items = answer["items"] if isinstance(answer, dict) else answer or []
        if not items:
            return False
        item = items[0]
        offer = item["command"]["arguments"][0]
        self.notify("textDocument/didShowCompletion", {"item": item})
        if accepts:
            change = {"range": item["range"], "text": item["insertText"]}
            version = {"uri": uri, "version": 2}
            changes = {"textDocument": version, "contentChanges": [change]}
            self.notify("textDocument/didChange", changes)
            command = {"command": "hone.accept", "arguments": [offer]}
            self.request("workspace/executeCommand", command)
        else:
            self.notify("hone/didReject", {"id": offer, "reason": "esc"})
        return True

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=20)

    def _send(self, message: dict) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _read(self) -> dict:
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = self.process.stdout.read(length)
        if not body:
            raise RuntimeError("hone lsp has ended")
        return json.loads(body)
