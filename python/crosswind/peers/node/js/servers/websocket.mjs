// A WebSocket server: the npm package ws.
import http from "node:http";
import https from "node:https";
import { implementation, npm } from "../job.mjs";
import { answerer, sizes } from "../messages.mjs";
import { giveMessages, takeMessages } from "../transfer.mjs";
import { identity, listen } from "./listen.mjs";

export async function serve(job) {
  const { transport, kind, direction, payload } = job.workload;
  const { WebSocketServer } = npm("ws");
  const server = transport === "wss" ? https.createServer(identity(job)) : http.createServer();
  const maxPayload = Math.max(sizes(job.workload).request, 2 ** 20);
  const sockets = new WebSocketServer({ server, perMessageDeflate: false, maxPayload });
  const answer = answerer(job.workload);
  sockets.on("connection", (socket) => {
    // What a client does wrong ends its connection, which the client sees.
    socket.on("error", () => {});
    if (kind === "transfer") {
      const stream = messages(socket, payload);
      if (direction === "download") giveMessages(stream, job.workload);
      else takeMessages(stream, job.workload);
      return;
    }
    socket.on("message", (received, binary) => socket.send(answer(received), { binary }));
  });
  await listen(server, job);
  return implementation("ws");
}

/** A WebSocket as transfers use it. */
function messages(socket, payload) {
  const binary = payload !== "text";
  return {
    onMessage: (handle) => socket.on("message", (received) => handle(received.length)),
    send: (part) => new Promise((sent, failed) => socket.send(part, { binary }, (error) => (error ? failed(error) : sent()))),
    finish: () => socket.close(1000),
  };
}
