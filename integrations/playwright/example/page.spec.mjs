import { expect, inside, onPath, test } from "../index.mjs";

test.use({ server: "python3 -m http.server {port}", delay: "50ms", environment: ["CHROMIUM"] });

test.beforeEach(inside(async ({ page }) => { await page.goto("about:blank"); }));

test("the page is there after two round trips", onPath(async ({ page }) => {
  const begun = performance.now();
  await page.goto("/");
  await expect(page.getByRole("heading")).toHaveText("Directory listing for /");
  // A handshake and the page. Computing takes no time, and Chromium waits for little else.
  const elapsed = performance.now() - begun;
  expect(elapsed).toBeGreaterThanOrEqual(200);
  expect(elapsed).toBeLessThan(300);
}));
