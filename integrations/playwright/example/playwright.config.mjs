import { defineConfig } from "@playwright/test";

// Without it Playwright's own browser, from `npx playwright install chromium`.
const executablePath = process.env.CHROMIUM;

export default defineConfig({
  outputDir: process.env.RESULTS ?? "test-results",
  use: { launchOptions: { executablePath } },
});
