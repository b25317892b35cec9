// What goes wrong with an exchange: an outcome (docs/result.md) and a sentence.

export class Failure extends Error {
  constructor(outcome, message) {
    super(message);
    this.outcome = outcome;
  }
}

/** A failure of which the page is not told the cause; what the browser says of it to its developers is looked up later. */
export class NetworkFailure extends Failure {
  constructor(message) {
    super("network", message);
  }
}

export const timedOut = (what, timeoutMs) => new Failure("timeout", `cannot ${what}: timed out after ${timeoutMs / 1e3} s`);

export const changed = () => new Failure("error", "cannot exchange: the reply is not what it should be");

export const closed = (what) => new Failure("closed", `cannot ${what}: the connection is closed`);

/** Any error as a failure. */
export const failureOf = (error) => (error instanceof Failure ? error : new Failure("error", String(error?.message ?? error)));
