// WebSocket, in TLS or not. A message is a message.

import { now } from "crosswind/clock.js";
import { NetworkFailure } from "crosswind/failure.js";
import { closed } from "crosswind/failure.mjs";

/** Opens a connection. `origin` is the server's, as http: or https:. */
export function open({ origin }) {
  const socket = new WebSocket(origin.replace(/^http/, "ws"));
  socket.binaryType = "arraybuffer";
  const connection = new WebSocketConnection(socket);
  return {
    connection,
    opened: new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onclose = () => {
        reject(new NetworkFailure("cannot connect"));
        connection.end();
      };
    }),
  };
}

class WebSocketConnection {
  constructor(socket) {
    this.socket = socket;
  }

  /** What is in use, as Crosswind calls it. */
  async inUse() {
    return this.socket.url.startsWith("wss:") ? "wss" : "websocket";
  }

  /** The only stream. `onReply(message, receivedNs)` is called for each message, `onEnd(failure)` at the end. */
  async stream({ onReply, onEnd }) {
    const { socket } = this;
    this.onEnd = onEnd;
    socket.onmessage = ({ data }) => {
      const receivedNs = now();
      onReply(typeof data === "string" ? data : new Uint8Array(data), receivedNs);
    };
    if (socket.readyState !== WebSocket.OPEN) throw closed("open a stream");
    return { send: (message) => socket.send(message), finish: async () => {} };
  }

  end() {
    this.onEnd?.(closed("receive"));
  }

  /** The orderly end. */
  close() {
    const { socket } = this;
    return new Promise((resolve) => {
      socket.onclose = resolve;
      if (socket.readyState === WebSocket.CLOSED) resolve();
      socket.close(1000);
    });
  }

  /** The end at once: pages have no other than this. */
  abort() {
    this.socket.onmessage = null;
    this.socket.onclose = null;
    this.socket.close();
  }
}
