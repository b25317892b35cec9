import type { PlaywrightTestArgs, PlaywrightTestOptions, PlaywrightWorkerArgs, PlaywrightWorkerOptions, TestInfo, TestType } from "@playwright/test";

export { expect } from "@playwright/test";

/** What lies between browser and server. All but numbers and lists are texts, as on the command line of `crosswind exec`. */
export interface PathOptions {
  /** The server's command, in which {address} and {port} stand for what it shall listen on. */
  server: string;
  network: string;
  delay: string;
  loss: string;
  rate: string;
  queue: string;
  /** "virtual", or "real", which takes root or user namespaces. */
  clock: string;
  /** As "wifi rate=50mbit delay=2ms"; the browser's first. */
  hops: string[];
  /** As "outage start=5s for=1s loss=100%". */
  changes: string[];
  /** Flows of Crosswind, as "transfer --transport tcp". */
  beside: string[];
  repetitions: number;
  seed: number;
  /** Conditions, as "p95(client_time) > 2s". Each has to be shown not to hold. */
  failIf: string[];
  /** Variables that the test needs: in virtual time it gets none but PATH and HOME. */
  environment: string[];
  /** Further settings, by their names in a study: { forward_loss: "2%" }. */
  settings: Record<string, string | number>;
}

export interface Net {
  address: string;
  port: number;
  /** http://server:PORT, which is the base of addresses, too. */
  url: string;
  /** Seconds that the test's own exchanges took: the metric client_time. */
  times: number[];
}

type Fixtures = PlaywrightTestArgs & PlaywrightTestOptions & PathOptions & { net: Net };
export const test: TestType<Fixtures, PlaywrightWorkerArgs & PlaywrightWorkerOptions>;

type Body<Args> = (args: Args & PlaywrightWorkerArgs & PlaywrightWorkerOptions, testInfo: TestInfo) => Promise<void> | void;
/** The body of a test, which runs on the path. */
export function onPath<Args = Fixtures>(body: Body<Args>): Body<Args>;
/** A hook of tests on a path, which has nothing to do outside. */
export function inside<Args = Fixtures>(hook: Body<Args>): Body<Args>;
