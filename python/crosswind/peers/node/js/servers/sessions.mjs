// Sessions of WebTransport, as Deno accepts them.

/** As many streams at a time as a client opens for one workload. */
const MAX_STREAMS = 1000;

/** Listens, and calls `serve` with each session. */
export function listenWebTransport({ address, port, certificate_pem: cert, private_key_pem: key }, serve) {
  const endpoint = new Deno.QuicEndpoint({ hostname: address, port });
  const listener = endpoint.listen({ cert, key, alpnProtocols: ["h3"], maxConcurrentBidirectionalStreams: MAX_STREAMS });
  accept(listener, serve);
}

async function accept(listener, serve) {
  for (;;) {
    const incoming = await listener.incoming();
    // A client that leaves, or does not follow the protocol, is no reason to end.
    open(incoming).then(serve).catch(() => {});
  }
}

async function open(incoming) {
  const session = await Deno.upgradeWebTransport(await incoming.accept());
  await session.ready;
  session.closed.catch(() => {});
  return session;
}
