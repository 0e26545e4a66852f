// `fullpipe web` in a real browser. WEB is its address; crates/cli/tests/pages.rs starts it, and a server to measure against (FAR).

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const { WEB: base, FAR: far, CAPTURE: capture, FULLPIPE: program } = process.env;
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

/** Drops a capture on the page, under a name that is text wherever it shows. */
const HOSTILE = "<img src=x onerror=alert(1)>.pcap";
const drop = async (page) => {
  const data = await page.evaluateHandle(({ bytes, name }) => {
    const transfer = new DataTransfer();
    const raw = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
    transfer.items.add(new File([raw], name));
    return transfer;
  }, { bytes: readFileSync(capture).toString("base64"), name: HOSTILE });
  await page.dispatchEvent("#drop", "drop", { dataTransfer: data });
};

test("a capture that is dropped is read in the browser, and says what the program says", async () => {
  const { page, heard } = await open("/");
  const sent = [];
  page.on("request", (request) => {
    if (request.method() !== "GET") sent.push(request.url());
  });
  await drop(page);
  const frame = page.frameLocator("#seen iframe");
  const graph = frame.locator("[data-trace] .canvas").first();
  await graph.scrollIntoViewIfNeeded({ timeout: 60_000 });
  await graph.locator("canvas").waitFor();
  assert.deepEqual(sent, [], "nothing leaves the browser");
  const document = JSON.parse(await frame.locator("#document").textContent());
  const folder = mkdtempSync(join(tmpdir(), "fullpipe-"));
  const named = join(folder, HOSTILE.replace("/", ""));
  copyFileSync(capture, named);
  const told = JSON.parse(execFileSync(program, ["read", "--json", named], { encoding: "utf8" }));
  rmSync(folder, { recursive: true });
  // The program names the file with its folder.
  for (const named of [...told.files, ...told.connections]) named.file = HOSTILE;
  assert.deepEqual(document, told);
  assert.equal(await page.textContent("#seen h2"), HOSTILE);
  // It has the style of its page, and no right on this one.
  assert.equal(await frame.locator("main").evaluate((main) => getComputedStyle(main.querySelector("article")).borderRadius !== "0px"), true);
  assert.equal(await frame.locator("main").evaluate(() => self.origin), "null");
  await accessible(page);
  const waiting = page.waitForEvent("download");
  await page.click("#save");
  assert.match((await waiting).suggestedFilename(), /\.html$/);
  await page.click("#close");
  assert.ok(!(await page.isVisible("#seen")));
  assert.deepEqual(heard, []);
  await page.close();
});

test("a capture that the server reads becomes a report", async () => {
  const { page, heard } = await open("/");
  await page.check("#elsewhere");
  await drop(page);
  await page.waitForURL(/\/reports\//, { timeout: 60_000 });
  const document = await documentOf(page);
  assert.equal(document.command, "read");
  assert.ok(document.connections.length > 0);
  await page.waitForSelector("[data-trace] canvas");
  assert.deepEqual(heard, []);
  await page.close();
});

test("what is no capture is told, here and by the server, and a report can be removed", async () => {
  const { page, heard } = await open("/");
  const nothing = { name: "x.pcap", mimeType: "", buffer: Buffer.from("no capture at all") };
  await page.setInputFiles("#capture", nothing);
  await page.waitForFunction(() => /x\.pcap.*not a capture|x\.pcap.*no capture/.test(document.getElementById("said").textContent), undefined, { timeout: 60_000 });
  await page.check("#elsewhere");
  await page.setInputFiles("#capture", nothing);
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
