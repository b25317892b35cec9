// A WebSocket server: the npm package ws.
import http from "node:http";
import https from "node:https";
import { implementation, npm } from "../job.mjs";
import { sizesOf } from "../../../workloads/messages.mjs";
import { answerer } from "../messages.mjs";
import { identity, listen } from "./listen.mjs";

export async function serve(job) {
  const { transport } = job.workload;
  const { WebSocketServer } = npm("ws");
  const server = transport === "wss" ? https.createServer(identity(job)) : http.createServer();
  const maxPayload = Math.max(sizesOf(job.workload).request, 2 ** 20);
  const sockets = new WebSocketServer({ server, perMessageDeflate: false, maxPayload });
  const answer = answerer(job.workload);
  sockets.on("connection", (socket) => {
    // What a client does wrong ends its connection, which the client sees.
    socket.on("error", () => {});
    socket.on("message", (received, binary) => socket.send(answer(received), { binary }));
  });
  await listen(server, job);
  return implementation("ws");
}
