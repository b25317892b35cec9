// How an exchange ended (docs/result.md), where a library says why.
import { Failure } from "../../workloads/failure.mjs";

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
