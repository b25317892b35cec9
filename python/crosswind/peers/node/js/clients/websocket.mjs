// A WebSocket client: the npm package ws.
import { once } from "node:events";
import { now } from "../clock.mjs";
import { authority, implementation as describe, npm } from "../job.mjs";
import { Failure } from "../../../workloads/failure.mjs";
import { trust } from "./bytes.mjs";

const WebSocket = npm("ws");

export const implementation = () => describe("ws");

export async function connect(job, signal) {
  const { transport, payload } = job.workload;
  const binary = payload !== "text";
  const scheme = transport === "wss" ? "wss" : "ws";
  const times = {};
  const socket = new WebSocket(`${scheme}://${authority(job)}/`, {
    ...trust(job),
    // Every reply is as large as the job says, whatever the default.
    maxPayload: 0,
    // As Crosswind's own client: it offers no compression.
    perMessageDeflate: false,
    finishRequest: (request) => {
      request.once("socket", (tcp) => noteTimes(tcp, times));
      request.end();
    },
  });
  signal.addEventListener("abort", () => socket.terminate());
  const stream = { send: (message) => socket.send(message, { binary }), finish: () => {} };
  socket.on("message", (reply) => stream.onReply?.(binary ? reply : reply.toString("latin1")));
  await once(socket, "open");
  socket.on("error", (error) => stream.onEnd?.(error));
  socket.on("close", (code) => stream.onEnd?.(new Failure("closed", `the server closed the connection: ${code}`)));
  return {
    transport,
    phases: phases(times, now()),
    open: () => stream,
    close: () => {
      const closed = once(socket, "close");
      socket.close(1000);
      return closed;
    },
    abort: () => socket.terminate(),
  };
}

function noteTimes(tcp, times) {
  times.began = now();
  tcp.once("connect", () => (times.connected = now()));
  tcp.once("secureConnect", () => (times.secured = now()));
}

function phases({ began, connected, secured }, opened) {
  const transport_ns = connected - began;
  if (secured === undefined) return { transport_ns, upgrade_ns: opened - connected };
  return { transport_ns, security_ns: secured - connected, upgrade_ns: opened - secured };
}
