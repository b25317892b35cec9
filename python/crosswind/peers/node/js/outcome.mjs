// How an exchange ended (docs/result.md).

/** An exchange that failed. */
export class Failure extends Error {
  constructor(outcome, message) {
    super(message);
    this.outcome = outcome;
  }
}

const BY_CODE = {
  ECONNREFUSED: "refused",
  ECONNRESET: "reset",
  EPIPE: "reset",
  ETIMEDOUT: "timeout",
  ERR_HTTP2_STREAM_CANCEL: "closed",
  ERR_STREAM_PREMATURE_CLOSE: "closed",
};

/** A failure, whatever a library threw. */
export function failure(error) {
  if (error instanceof Failure) return error;
  const text = `${error?.code ?? ""} ${error?.message ?? error}`.trim();
  if (/certificate|CERT_|ERR_TLS|SELF_SIGNED|ISSUER/i.test(text)) return new Failure("certificate", text);
  return new Failure(BY_CODE[error?.code] ?? "error", text);
}

/** Writes into a sample how its exchange failed. */
export function fill(sample, error) {
  const { outcome, message, connection = sample.connection } = failure(error);
  Object.assign(sample, { connection, outcome, error: message });
}

/** `promise`, or a timeout after so many nanoseconds, in which `late` is called. */
export function within(promise, timeoutNs, late = () => {}) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => {
      late();
      reject(new Failure("timeout", `nothing came within ${timeoutNs / 1e9} s`));
    }, timeoutNs / 1e6);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}
