// `fullpipe web` in a real browser. WEB is its address; crates/cli/tests/pages.rs starts it, and a server to measure against (FAR).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const { WEB: base, FAR: far, CAPTURE: capture } = process.env;
const axe = createRequire(import.meta.url)("axe-core");
let browser;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
});
after(() => browser?.close());

const open = async (path, options = {}) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const heard = [];
  page.on("console", (message) => heard.push(message.text()));
  page.on("pageerror", (error) => heard.push(error.message));
  page.on("dialog", (dialog) => heard.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(base) && !/^(data|blob):/.test(url)) heard.push(`asked for ${url}`);
  });
  await page.goto(base + path);
  return { page, heard };
};

const accessible = async (page) => {
  const { violations } = await page.evaluate(`${axe.source}; axe.run()`);
  assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
};

const documentOf = (page) => page.evaluate(() => JSON.parse(document.getElementById("document").textContent));

for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]]) {
  test(`the first page at ${width} px, ${colorScheme}`, async () => {
    const { page, heard } = await open("/", { viewport: { width, height: 900 }, colorScheme });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= width, `${wide} px wide`);
    await accessible(page);
    assert.deepEqual(heard, []);
    await page.close();
  });
}

test("a check started from the page is drawn live and ends in its report", async () => {
  const { page, heard } = await open("/");
  await page.fill("#host", far);
  await page.selectOption("#direction", "up");
  await page.fill("#seconds", "3");
  await page.click("#start button");
  await page.waitForURL(/\/runs\//);
  await page.waitForSelector("#live canvas", { timeout: 60_000 });
  assert.match(await page.textContent("#phase"), /bit\/s/);
  await page.waitForURL(/\/reports\//, { timeout: 120_000 });
  const document = await documentOf(page);
  assert.equal(document.command, "check");
  assert.equal(document.transfers.length, 1);
  assert.match(await page.textContent(".verdict"), /bit\/s/);
  // The back button leads to the list, and the run is in it.
  await page.goto(`${base}/`);
  assert.match(await page.textContent("tbody"), new RegExp(`check.*${far.replace(".", "\\.")}`));
  assert.deepEqual(heard, []);
  await page.close();
});

test("a capture that is dropped becomes a report", async () => {
  const { page, heard } = await open("/");
  const bytes = readFileSync(capture).toString("base64");
  // A hostile name is text.
  const data = await page.evaluateHandle((bytes) => {
    const transfer = new DataTransfer();
    const raw = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
    transfer.items.add(new File([raw], "<img src=x onerror=alert(1)>.pcap"));
    return transfer;
  }, bytes);
  await page.dispatchEvent("#drop", "drop", { dataTransfer: data });
  await page.waitForURL(/\/reports\//, { timeout: 60_000 });
  const document = await documentOf(page);
  assert.equal(document.command, "read");
  assert.ok(document.connections.length > 0);
  await page.waitForSelector("[data-trace] canvas");
  assert.deepEqual(heard, []);
  await page.close();
});

test("what is no capture is told, and a report can be removed", async () => {
  const { page, heard } = await open("/");
  await page.setInputFiles("#capture", { name: "x.pcap", mimeType: "", buffer: Buffer.from("no capture at all") });
  await page.waitForURL(/\/reports\//, { timeout: 60_000 });
  assert.match(await page.textContent("main"), /The command failed/);
  await page.goto(`${base}/`);
  const rows = await page.locator("tbody tr").count();
  await accessible(page);
  await page.locator("tbody tr").first().locator("button").click();
  await page.waitForFunction((count) => document.querySelectorAll("tbody tr").length === count, rows - 1);
  assert.deepEqual(heard, []);
  await page.close();
});

test("settings can be tried there, and changes looked at", async () => {
  const { page, heard } = await open("/what-if");
  await page.waitForFunction(() => document.querySelector("#answer dl"), undefined, { timeout: 60_000 });
  await page.goto(`${base}/changes`);
  assert.match(await page.textContent("body"), /history/);
  assert.deepEqual(heard, []);
  await page.close();
});

test("a server that is gone is told", async () => {
  const { page } = await open("/");
  await page.route("**/runs", (route) => route.abort());
  await page.fill("#host", far);
  await page.click("#start button");
  await page.waitForFunction(() => document.getElementById("said").textContent.includes("does not answer"));
  await page.close();
});
