import { PeerError } from "../job.mjs";
export async function call() { throw new PeerError("not yet", "not yet"); }
