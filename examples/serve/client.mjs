// A client of `ybs serve`: `node client.mjs "What does this project do?"`; questions are answered with no.
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { homedir } from "node:os";

const path = process.env.YBS_SOCKET ?? `${homedir()}/.local/state/ybs/serve/serve.sock`;
const socket = connect(path);
const waiting = new Map();
let number = 0;

function call(method, params = {}) {
  socket.write(JSON.stringify({ jsonrpc: "2.0", id: ++number, method, params }) + "\n");
  return new Promise((done, failed) => waiting.set(number, { done, failed }));
}

createInterface({ input: socket }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.method) return told(message.method, message.params);
  const { done, failed } = waiting.get(message.id);
  message.error ? failed(new Error(message.error.message)) : done(message.result);
});

function told(method, { session, line = {} }) {
  if (line.type === "text_delta") process.stdout.write(line.text);
  for (const question of line.questions ?? [])
    call("answer", { session, question: question.id, is_allowed: false });
}

await call("hello", { version: 1, client: "javascript" });
const { session } = await call("open", { folder: process.cwd(), environ: process.env });
await call("subscribe", { session });
const { outcome } = await call("send", { session, text: process.argv[2] ?? "What is this?" });
console.log(`\n[${outcome.finished.reason}]`);
socket.end();
