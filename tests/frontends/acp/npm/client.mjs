// The client of the TypeScript SDK: calls every method of an agent, and prints all messages, [is it ours, message] a line.
//   node client.mjs FOLDER COMMAND...
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import { Readable, Writable } from "node:stream";

const sdk = `${process.env.NPM_FOLDER}/node_modules/@agentclientprotocol/sdk`;
const acp = await import(pathToFileURL(`${sdk}/dist/v1/unstable/acp.js`));
const [folder, command, ...words] = process.argv.slice(2);
const agent = spawn(command, words, { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });

function tapped(isOurs) {
  let rest = "";
  const decoder = new TextDecoder();
  return new TransformStream({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.trim()) console.log(`[${isOurs}, ${line}]`);
      controller.enqueue(chunk);
    },
  });
}
const out = tapped(true);
out.readable.pipeTo(Writable.toWeb(agent.stdin));
const stream = acp.ndJsonStream(out.writable, Readable.toWeb(agent.stdout).pipeThrough(tapped(false)));

const texts = { "a.txt": "typed\n" };
let asked;
const hasAsked = new Promise((resolve) => (asked = resolve));
const app = acp
  .client({ name: "test" })
  .onNotification("session/update", () => {})
  .onRequest("session/request_permission", ({ params }) => {
    asked();
    const option = params.options.find((each) => each.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onRequest("fs/read_text_file", ({ params }) => ({ content: texts[params.path.split("/").pop()] ?? "" }))
  .onRequest("fs/write_text_file", ({ params }) => {
    texts[params.path.split("/").pop()] = params.content;
    return {};
  })
  .onRequest("elicitation/create", () => ({ action: "accept", content: { answer: "0" } }));

await app.connectWith(stream, async (editor) => {
  const clientCapabilities = { fs: { readTextFile: true, writeTextFile: true }, elicitation: { form: {} } };
  await editor.request("initialize", { protocolVersion: 1, clientCapabilities });
  await editor.request("authenticate", { methodId: "setup" });
  const where = { cwd: folder, mcpServers: [] };
  const { sessionId } = await editor.request("session/new", where);
  const say = (text, id = sessionId) =>
    editor.request("session/prompt", { sessionId: id, prompt: [{ type: "text", text }] });
  await editor.request("session/set_mode", { sessionId, modeId: "ask" });
  await editor.request("session/set_config_option", { sessionId, configId: "effort", value: "low" });
  await say("Edit a.txt, ask, note the steps, run a command.");
  await hasAsked;
  await say("/context");
  const slow = say("Wait.");
  setTimeout(() => editor.notify("session/cancel", { sessionId }), 300);
  const { stopReason } = await slow;
  if (stopReason !== "cancelled") throw new Error(stopReason);
  await editor.request("session/close", { sessionId });
  await editor.request("session/list", { cwd: folder });
  await editor.request("session/load", { ...where, sessionId });
  const fork = await editor.request("session/fork", { ...where, sessionId });
  await say("Here?", fork.sessionId);
  await editor.request("session/close", { sessionId });
  await editor.request("session/resume", { ...where, sessionId });
  await editor.request("session/list", { cursor: "nonsense" }).catch(() => {});
  process.exit(0); // what was printed is out: a pipe takes it at once
});
