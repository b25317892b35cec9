// What goes wrong with an exchange: an outcome (docs/result.md) and a sentence.

export class Failure extends Error {
  constructor(outcome, message) {
    super(message);
    this.outcome = outcome;
  }
}

export const timedOut = (what, timeoutNs) => new Failure("timeout", `cannot ${what}: timed out after ${timeoutNs / 1e9} s`);

export const changed = () => new Failure("error", "cannot exchange: the reply is not what it should be");

export const closed = (what) => new Failure("closed", `cannot ${what}: the connection is closed`);

/** Any error as a failure. */
export const failureOf = (error) => (error instanceof Failure ? error : new Failure("error", String(error?.message ?? error)));

/** The promise, or a rejection with `failure` after `timeoutNs`. */
export function within(promise, timeoutNs, failure) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(failure), timeoutNs / 1e6);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
