// The official Socket.IO server over WebTransport, in Deno: Node has no WebTransport.
import http from "node:http";
import { implementation } from "../job.mjs";
import { close } from "../session.mjs";
import { socketio } from "./socketio.mjs";
import { listenWebTransport } from "./sessions.mjs";

export async function serve(job) {
  // It has to have a server for HTTP, which never listens.
  const io = socketio(http.createServer(), job, ["webtransport"]);
  listenWebTransport(job, (session) => io.engine.onWebTransportSession(whoseEndIsNoError(session)));
  return implementation("socket.io");
}

/** engine.io 6.6 leaves the rejection uncaught by which a session says that it was not closed in an orderly way. */
function whoseEndIsNoError(session) {
  const closed = session.closed.catch(() => {});
  return { closed, incomingBidirectionalStreams: session.incomingBidirectionalStreams, close: () => close(session) };
}
