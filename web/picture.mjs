// The picture in README.md: part of the page of a capture of the tests, with the cursor on its charts.
//
//   fullpipe read crates/capture/tests/data/wan-80ms-cubic-window-a.pcap --html page.html
//   cd web && node picture.mjs ../page.html ../docs/page.png
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [page, out] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const view = await browser.newPage({ viewport: { width: 1100, height: 1865 }, colorScheme: "light", bypassCSP: true });
await view.goto(pathToFileURL(page).href);
// A font as systems with a desktop have; the reasons would push the graph out of the picture.
await view.addStyleTag({ content: "body { font-family: Inter, system-ui, sans-serif } h4, h4 + ul { display: none }" });
await view.evaluate(() => dispatchEvent(new Event("beforeprint")));
const over = view.locator("[data-chart] .u-over").first();
await over.waitFor();
const box = await over.boundingBox();
await view.mouse.move(box.x + box.width * 0.48, box.y + box.height * 0.5);
await view.waitForTimeout(300);
await view.screenshot({ path: out });
await browser.close();
