// Socket.IO by its official client, over WebSocket or WebTransport. A message is the event `message` with one argument.

import { io } from "socket.io-client";
import { now } from "crosswind/clock.js";
import { NetworkFailure } from "crosswind/failure.js";
import { closed } from "crosswind/failure.mjs";
import { certificateHash } from "crosswind/webtransport.js";

/** Opens a connection: a session of Engine.IO, and in it the namespace `/`. With `polling` it begins by HTTP and is upgraded. */
export function open({ origin, certificateSha256, workload }) {
  const carrier = workload.transport.replace("socketio-", "");
  const certificates = certificateSha256 === null ? {} : { serverCertificateHashes: [certificateHash(certificateSha256)] };
  const socket = io(origin, {
    transports: workload.polling ? ["polling", carrier] : [carrier],
    transportOptions: { webtransport: certificates },
    // A connection of its own, which stays closed once it is.
    forceNew: true,
    reconnection: false,
    // The session has a timeout of its own.
    timeout: false,
  });
  const { engine } = socket.io;
  const connected = new Promise((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("connect_error", () => reject(new NetworkFailure("cannot connect")));
  });
  const upgraded = workload.polling ? upgrade(engine) : Promise.resolve({});
  return {
    connection: new SocketIoConnection(socket),
    opened: Promise.all([upgraded, connected]).then(([phases]) => phases),
  };
}

/** How long the move from polling takes: from Engine.IO's handshake to the end of the move. */
function upgrade(engine) {
  let openedMs = null;
  engine.once("open", () => (openedMs = performance.now()));
  return new Promise((resolve) => {
    engine.once("upgrade", () => resolve({ upgradeMs: performance.now() - openedMs }));
  });
}

class SocketIoConnection {
  constructor(socket) {
    this.socket = socket;
  }

  /** What is in use, as Crosswind calls it. */
  async inUse() {
    return `socketio-${this.socket.io.engine.transport.name}`;
  }

  /** The only stream. `onReply(message, receivedNs)` is called for each message, `onEnd(failure)` at the end. */
  async stream({ onReply, onEnd }) {
    const { socket } = this;
    socket.on("message", (data) => {
      const receivedNs = now();
      onReply(typeof data === "string" ? data : new Uint8Array(data), receivedNs);
    });
    socket.on("disconnect", () => onEnd(closed("receive")));
    if (!socket.connected) throw closed("open a stream");
    return { send: (message) => void socket.emit("message", message), finish: async () => {} };
  }

  /** The orderly end: of the namespace, then of the session. */
  close() {
    const { socket } = this;
    const ended = new Promise((resolve) => socket.io.engine.once("close", resolve));
    socket.off();
    socket.disconnect();
    return ended;
  }

  /** The end at once. */
  abort() {
    this.socket.off();
    this.socket.io.engine.close();
  }
}
