// A session of WebTransport, at either end.

/** Ends it. One that has ended already counts as ended. */
export function close(session) {
  try {
    session.close();
  } catch {
    // It is closed already.
  }
}
