/** What Playwright says inside a path: what went wrong, and, in its last line, what Crosswind reads of a client. */
export default class Reporter {
  #times = [];
  #ran = 0;

  onTestEnd(test, result) {
    this.#ran += 1;
    for (const error of result.errors) console.error(error.stack ?? error.message ?? error.value);
    const attached = result.attachments.find(({ name }) => name === "crosswind-times");
    if (attached?.body) this.#times.push(...JSON.parse(attached.body.toString()));
  }

  onError(error) {
    console.error(error.stack ?? error.message ?? error.value);
  }

  onEnd() {
    if (this.#ran !== 1) {
      console.error(`${this.#ran} tests ran inside the path, not one`);
      return { status: "failed" };
    }
    if (this.#times.length) console.log(JSON.stringify({ times_s: this.#times }));
  }

  printsToStdio() {
    return true;
  }
}
