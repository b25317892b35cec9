// The official Socket.IO client, over WebSocket, from the start or after HTTP long polling, and over WebTransport in Deno.
import { now } from "../clock.mjs";
import { authority, implementation as describe, npm, onUncaughtRejection } from "../job.mjs";
import { Failure } from "../../../workloads/failure.mjs";
import { webTransportOptions } from "./webtransport.mjs";

const { io } = npm("socket.io-client");

/** The package ws carries WebSocket in either runtime; WebTransport is Deno's own. */
export const implementation = (job) => describe("socket.io-client", ...(job.workload.transport === "socketio-websocket" ? ["ws"] : []));

export async function connect(job, signal) {
  const { transport, polling } = job.workload;
  const overWebTransport = transport === "socketio-webtransport";
  const last = overWebTransport ? "webtransport" : "websocket";
  if (overWebTransport) onUncaughtRejection(rejectOpening);
  const socket = io(`${overWebTransport ? "https" : "http"}://${authority(job)}`, {
    transports: polling ? ["polling", last] : [last],
    transportOptions: overWebTransport ? { webtransport: webTransportOptions(job) } : {},
    forceNew: true,
    reconnection: false,
    // Crosswind's own timeout comes first, and says so.
    timeout: 2 * (job.workload.timeout_ns / 1e6),
  });
  signal.addEventListener("abort", () => disconnect(socket));
  const phases = await setUp(socket, polling);
  const stream = {
    send: (message) => socket.emit("message", message),
    finish: () => {},
  };
  socket.on("message", (reply) => stream.onReply?.(reply));
  socket.on("disconnect", (reason) => stream.onEnd?.(new Failure("closed", reason)));
  return {
    transport: `socketio-${socket.io.engine.transport.name}`,
    phases,
    open: () => stream,
    close: () => leave(socket),
    abort: () => disconnect(socket),
  };
}

/** Ends of the connections that are being set up. */
const opening = new Set();

/** engine.io-client 6.6 catches no rejection by which a session over WebTransport fails to open, or its streams end with it. Of a
 *  session that was open, Socket.IO says so itself. */
function rejectOpening(error) {
  for (const reject of opening) reject(error);
}

/** Waits until messages go over the transport that is wanted. Says how long the upgrade from polling took. */
function setUp(socket, polling) {
  let fail;
  const done = new Promise((resolve, reject) => {
    fail = reject;
    opening.add(fail);
    let opened;
    let left = polling ? 2 : 1;
    const phases = {};
    const step = () => {
      left -= 1;
      if (left === 0) resolve(phases);
    };
    socket.io.once("open", () => (opened = now()));
    socket.io.engine.once("upgrade", () => {
      phases.upgrade_ns = now() - opened;
      step();
    });
    socket.once("connect", step);
    socket.once("connect_error", (error) => reject(explain(error)));
    socket.once("disconnect", (reason) => reject(new Failure("closed", reason)));
  });
  return done.finally(() => opening.delete(fail));
}

/** The cause is below what Socket.IO calls a "websocket error". */
function explain(error) {
  const cause = error.context?.error ?? error.description?.error ?? error.description;
  return cause instanceof Error ? cause : error;
}

function leave(socket) {
  const closed = new Promise((resolve) => socket.io.engine.once("close", resolve));
  disconnect(socket);
  return closed;
}

function disconnect(socket) {
  try {
    socket.disconnect();
  } catch {
    // Deno cannot close a session that was never open.
  }
}
