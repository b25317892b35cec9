// The official Socket.IO server over WebSocket, with HTTP long polling before it where a client begins so.
import { once } from "node:events";
import http from "node:http";
import { implementation, npm } from "../job.mjs";
import { answerer, sizes, textAnswerer } from "../messages.mjs";
import { giveMessages } from "../transfer.mjs";
import { listen } from "./listen.mjs";

/** The default of Socket.IO's `maxHttpBufferSize`, which a larger message needs to be larger. */
const DEFAULT_BUFFER_BYTES = 1e6;

export async function serve(job) {
  const server = http.createServer();
  socketio(server, job, ["polling", "websocket"]);
  await listen(server, job);
  return implementation("socket.io", "ws");
}

/** Socket.IO on `server`, which answers the workload's messages. */
export function socketio(server, job, transports) {
  const { Server } = npm("socket.io");
  // An event is a little longer than its argument.
  const maxHttpBufferSize = Math.max(DEFAULT_BUFFER_BYTES, sizes(job.workload).request + 1000);
  const io = new Server(server, { transports, maxHttpBufferSize, serveClient: false });
  // Pages from anywhere may be clients. The option `cors` would be middleware, and with middleware engine.io closes every
  // session over WebTransport.
  io.engine.on("headers", (headers) => (headers["access-control-allow-origin"] = "*"));
  const serveSocket = job.workload.kind === "transfer" ? transfers(job.workload) : answers(job.workload);
  io.on("connection", serveSocket);
  return io;
}

function answers(workload) {
  const [answerBytes, answerText] = [answerer(workload), textAnswerer(workload)];
  return (socket) => {
    socket.onAny((name, argument) => socket.emit(name, (typeof argument === "string" ? answerText : answerBytes)(argument)));
  };
}

function transfers(workload) {
  const argument = (part) => (workload.payload === "text" ? part.toString("latin1") : part);
  return async (socket) => {
    // As Crosswind's own server: nothing is sent by polling that is to go by WebSocket.
    if (workload.polling) await once(socket.conn, "upgrade");
    await giveMessages((part) => sendAndDrain(socket, argument(part)), workload);
  };
}

/** Sends an event, and waits until the transport has sent it: Socket.IO queues without a limit. */
async function sendAndDrain(socket, argument) {
  const engine = socket.conn;
  const waiting = new AbortController();
  const { signal } = waiting;
  // The transport is another one after an upgrade.
  const drained = Promise.race([once(engine.transport, "drain", { signal }), once(engine, "upgrade", { signal })]);
  const closed = once(engine, "close", { signal }).then(([reason]) => {
    throw new Error(reason);
  });
  socket.emit("message", argument);
  await Promise.race([drained, closed]).finally(() => waiting.abort());
}
