// What a page is not told.

import { Failure } from "crosswind/failure.mjs";

/** A failure of which the page is not told the cause; what the browser says of it to its developers is looked up later. */
export class NetworkFailure extends Failure {
  constructor(message) {
    super("network", message);
  }
}
