// HTTP by `fetch`. A message is the body of a POST, its answer that of the response. The browser chooses the connection, and opens
// one with the first request that needs it; what it did, resource timing tells, since the page has the server's origin.

import { now, toNs } from "crosswind/clock.js";
import { NetworkFailure } from "crosswind/failure.js";
import { closed, Failure, timedOut } from "crosswind/failure.mjs";

const PROTOCOLS = { "http/1.1": { "http:": "http1", "https:": "https1" }, h2: { "https:": "http2" }, h3: { "https:": "http3" } };

// Each request has a number of its own in its URL, by which resource timing is asked for it. Always as many digits, so that all
// requests are of one size.
const DIGITS = 6;
const MAX_ENTRIES = 10 ** DIGITS;
let requests = 0;
let underWay = 0;
performance.setResourceTimingBufferSize(MAX_ENTRIES);

/** Opens nothing: that is for the first request to do. Where each exchange is to have a new connection, the old ones are closed. */
export function open({ workload, virtualTime }) {
  const fresh = workload.connection === "new" || workload.kind === "connect";
  const connection = new FetchConnection();
  // In virtual time opening a connection may take no time at all.
  connection.mustOpen = fresh && !virtualTime;
  return { connection, opened: fresh ? globalThis.crosswind.closeConnections() : Promise.resolve({}) };
}

class FetchConnection {
  opensWithRequest = true;
  under = new Set();
  /** Of a connection that no request has been seen to open: what is known of it. */
  seen = null;

  /** Any number of requests. `onReply(message, receivedNs, details)`, `onEnd(failure, exchange)` for one that failed. */
  async stream({ onReply, onEnd }) {
    const send = (message, exchange) => {
      this.request("POST", "/echo", message).then(
        ({ body, receivedNs, details }) => onReply(body, receivedNs, details),
        (error) => onEnd(error, exchange),
      );
    };
    return { send, finish: async () => {} };
  }

  /** A request of the smallest kind, for its connection. Returns how that was opened. */
  async probe(timeoutNs) {
    const timer = setTimeout(() => this.abort(timedOut("connect", timeoutNs)), timeoutNs / 1e6);
    const { details } = await this.request("GET", "/bytes/0").finally(() => clearTimeout(timer));
    return details.connected ?? this.seen;
  }

  async request(method, path, body) {
    const controller = new AbortController();
    const url = `${location.origin}${path}?${String(requests++ % MAX_ENTRIES).padStart(DIGITS, "0")}`;
    this.under.add(controller);
    underWay += 1;
    try {
      const response = await fetch(url, { method, body, cache: "no-store", signal: controller.signal });
      const reply = new Uint8Array(await response.arrayBuffer());
      const receivedNs = now();
      if (!response.ok) throw new Failure("protocol", `cannot exchange: the server answered ${response.status}`);
      return { body: reply, receivedNs, details: this.details(url) };
    } catch (error) {
      if (error instanceof Failure) throw error;
      throw new NetworkFailure("cannot exchange");
    } finally {
      this.under.delete(controller);
      underWay -= 1;
      if (underWay === 0) performance.clearResourceTimings();
    }
  }

  /** What resource timing says of a request that was answered: with which connection, if it opened one. */
  details(url) {
    const [entry] = performance.getEntriesByName(url);
    if (entry === undefined) return {};
    const transport = PROTOCOLS[entry.nextHopProtocol]?.[location.protocol] ?? `http over ${entry.nextHopProtocol}`;
    if (entry.connectEnd === entry.connectStart) {
      if (this.mustOpen) throw new Failure("error", "cannot connect: Chromium used a connection that it had");
      // Of requests under way at once, another one opened it, or that took no time.
      this.seen = { transport, setupMs: 0 };
      return {};
    }
    const secureMs = entry.secureConnectionStart > 0 ? entry.connectEnd - entry.secureConnectionStart : null;
    const quic = entry.nextHopProtocol === "h3";
    return {
      // The time of the first exchange is without that of opening its connection.
      sentNs: toNs(entry.requestStart),
      connected: {
        transport,
        setupMs: entry.connectEnd - entry.connectStart,
        transportMs: quic ? null : entry.connectEnd - entry.connectStart - (secureMs ?? 0),
        securityMs: secureMs,
      },
    };
  }

  /** The browser keeps its connections; they end with it, or when a new one is wanted. */
  async close() {}

  /** Ends what is under way, and over HTTP/1.1 its connections. */
  abort(reason = closed("exchange")) {
    for (const controller of this.under) controller.abort(reason);
  }
}
