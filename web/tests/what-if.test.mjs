// The page with the simulator in it: its answers are the command's, to the digit.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { chromium } from "playwright-core";

const file = join(process.env.PAGES, "try", "what-if.html");
const axe = createRequire(import.meta.url)("axe-core");
let browser;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
});
after(() => browser?.close());

const command = (words) => JSON.parse(execFileSync(process.env.FULLPIPE, [...words, "--json"], { encoding: "utf8" }));

const open = async (hash = "", options = {}) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const heard = [];
  page.on("console", (message) => heard.push(message.text()));
  page.on("pageerror", (error) => heard.push(error.message));
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) heard.push(`asked for ${request.url()}`);
  });
  await page.goto(`${pathToFileURL(file).href}${hash}`);
  await page.waitForFunction(() => document.querySelector("#answer dl"));
  return { page, heard };
};

test("the simulator in the page answers as the command does", async () => {
  const html = readFileSync(file, "utf8");
  const packed = /<script id="simulator" type="application\/gzip">([^<]*)</.exec(html)[1];
  const { instance } = await WebAssembly.instantiate(gunzipSync(Buffer.from(packed, "base64")), {});
  const { memory, room, answer, place } = instance.exports;
  const ask = (question) => {
    const text = new TextEncoder().encode(JSON.stringify(question));
    // First the room: it may move the memory.
    const at = room(text.length);
    new Uint8Array(memory.buffer, at, text.length).set(text);
    const length = answer();
    return JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, place(), length)));
  };
  const usual = { rate: "100M", rtt: "80ms", loss: "0", queue: "1bdp", from: "linux-6.18", to: "linux-6.18", set: [], bytes: null, seconds: 4, seed: 1 };
  for (const change of [
    {},
    { set: [["receiver.window", "64512"]] },
    { rate: "7M", rtt: "36ms", to: "windows-xp" },
    { loss: "0.01%", seed: 7, set: [["sender.congestion", "reno"]] },
    { rate: "25M", rtt: "8ms", from: "netburner", set: [["sender.buffers", "5"]], bytes: "1MB" },
    { queue: "20p", from: "freebsd-14", to: "windows-11" },
  ]) {
    const question = { ...usual, ...change };
    const { answer: found, error } = ask(question);
    assert.equal(error, undefined);
    const words = ["what-if"];
    for (const key of ["rate", "rtt", "loss", "queue", "from", "to", "seed", "seconds"]) words.push(`--${key}`, String(question[key]));
    if (question.bytes) words.push("--bytes", question.bytes);
    if (question.set.length > 0) words.push("--set", question.set.map((pair) => pair.join("=")).join(","));
    const told = command(words).predictions.at(-1);
    const of = ({ rate_bps, limiter, retransmissions, seconds }) => ({ rate_bps, limiter, retransmissions, seconds });
    assert.deepEqual(of(found), of(told), words.join(" "));
  }
  // The whole series, as it is outside of a browser (`bindings/wasm`).
  for (const { question, digest } of JSON.parse(readFileSync(new URL("simulations.json", import.meta.url), "utf8"))) {
    assert.equal(ask(question).answer.digest, digest, JSON.stringify(question));
  }
  assert.match(ask({ ...usual, rate: "fast" }).error, /rate/);
});

test("a slider moves the answer, and the command on the page gives the same", async () => {
  const { page, heard } = await open();
  const headline = () => page.locator("#headline").innerText();
  const first = await headline();
  assert.match(first, /limited by path/);
  await page.locator('[data-for="window"]').evaluate((slider) => {
    slider.value = "70";
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await page.waitForFunction((before) => document.getElementById("headline").textContent !== before, first);
  const said = await headline();
  assert.match(said, /limited by receive window/);
  const words = (await page.locator("#command").innerText()).split(" ").slice(1);
  const told = command(words).predictions.at(-1);
  assert.equal(told.limiter, "receive_window");
  const rate = Number(/^([\d.]+) Mbit/.exec(said)[1]);
  assert.ok(Math.abs(rate * 1e6 - told.rate_bps) <= 5e3, `${said} against ${told.rate_bps}`);
  // The link holds what was chosen.
  const again = await open(await page.evaluate(() => location.hash));
  assert.equal(await again.page.locator("#headline").innerText(), said);
  await page.locator("[data-preset]").nth(2).click();
  await page.waitForFunction(() => document.getElementById("to").value === "windows-xp");
  await page.locator("#rate").fill("fast");
  await page.waitForFunction(() => document.getElementById("headline").textContent.includes("can't"));
  assert.deepEqual([...heard, ...again.heard], []);
  await page.close();
});

test("every situation of the page and every slider answers as the command below it", async () => {
  const { page, heard } = await open();
  const text = (id) => page.locator(id).innerText();
  const agrees = async (what) => {
    await page.waitForTimeout(400);
    const said = await text("#headline");
    const words = (await text("#command")).split(" ").slice(1);
    const told = command(words).predictions.at(-1);
    const [, rate, unit] = /^([\d.]+) ([kMG]?)bit/.exec(said);
    const bps = Number(rate) * { "": 1, k: 1e3, M: 1e6, G: 1e9 }[unit];
    assert.ok(Math.abs(bps - told.rate_bps) <= 0.006 * told.rate_bps, `${what}: ${said} against ${told.rate_bps}`);
  };
  // The plan for a platform is the command's, line by line.
  await page.locator("#to").selectOption("freebsd-6");
  await agrees("freebsd-6");
  const plan = (await text("#plan")).split(" ").slice(1);
  const lines = (await text("#plan-receiver")).split("\n");
  const changes = command(plan).changes;
  assert.deepEqual(lines, changes.map(({ knob, to }) => `sysctl -w ${knob}=${to}`));
  const presets = page.locator("[data-preset]");
  // The last is of a device's pool, not of a connection.
  for (let place = 0; place < (await presets.count()) - 1; place += 1) {
    await presets.nth(place).click();
    await agrees(await presets.nth(place).innerText());
    assert.equal(await presets.nth(place).getAttribute("aria-pressed"), "true");
  }
  await presets.nth(1).click();
  for (const [name, place, key] of [["loss", 120, "--loss"], ["loss", 0, "--loss 0 "], ["queue", 40, "--queue"], ["mtu", 20, "path.mtu="], ["message", 90, "sender.message="]]) {
    await page.locator(`[data-for="${name}"]`).evaluate((slider, value) => {
      slider.value = String(value);
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    }, place);
    await agrees(`${name} at ${place}`);
    assert.ok((await text("#command")).includes(key), name);
  }
  assert.deepEqual(heard, []);
  await page.close();
});

test("64,512 bytes at 80 ms become 92 Mbit/s", async () => {
  const { page } = await open();
  const press = async (name, words) => {
    await page.getByRole("button", { name, exact: true }).click();
    await page.waitForFunction((text) => document.getElementById("headline").textContent.includes(text), words);
    return Number(/^([\d.]+) Mbit/.exec(await page.locator("#headline").innerText())[1]);
  };
  const slow = await press("64,512 B at 80 ms", "receive window");
  // 64,512 B x 8 / 80 ms.
  assert.ok(slow > 5.9 && slow < 6.5, String(slow));
  assert.equal(Math.round(await press("... sized by the platform", "path")), 92);
  await page.close();
});

test("256 buffers are shared out as the command does", async () => {
  const { page, heard } = await open();
  const told = async () => {
    const words = /--sockets '([^']*)'/.exec(await page.locator("#command").innerText());
    const others = (await page.locator("#command").innerText()).replace(words[0], "").split(" ").slice(1).filter((word) => word !== "");
    return command([...others, "--sockets", words[1]]);
  };
  const rows = () => page.locator("#answer tbody tr").evaluateAll((lines) => lines.map((line) => [...line.cells].slice(1, 6).map(({ textContent }) => Number(textContent))));
  const agrees = async () => {
    const { shares, total_bps, pool } = await told();
    assert.deepEqual(await rows(), shares.map(({ receive, out_of_order, transmit, unacknowledged, buffers }) => [receive, out_of_order, transmit, unacknowledged, buffers]));
    const [, buffers, rate] = /^(\d+) buffers shared out: ([\d.]+) Mbit/.exec(await page.locator("#headline").innerText());
    assert.equal(Number(buffers), pool.buffers);
    assert.equal(Number(rate), Number((total_bps / 1e6).toPrecision(3)));
    const calls = (await page.locator("#plans pre").allInnerTexts()).map((text) => text.trim());
    assert.deepEqual(calls, shares.map((share) => share.calls.map(({ call }) => call).join("\n")));
  };
  await page.getByRole("button", { name: "256 buffers shared out" }).click();
  await page.waitForFunction(() => document.querySelector("#answer table"));
  await agrees();
  // A slider, and the link.
  const before = await page.locator("#headline").innerText();
  await page.locator('[data-for="buffers"]').evaluate((slider) => {
    slider.value = "120";
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await page.waitForFunction((text) => document.getElementById("headline").textContent !== text, before);
  await agrees();
  const again = await open(await page.evaluate(() => location.hash));
  assert.equal(await again.page.locator("#headline").innerText(), await page.locator("#headline").innerText());
  // What can't be, and back to a connection.
  await page.locator("#sockets").fill("4x bulk fast");
  await page.waitForFunction(() => document.getElementById("answer").textContent.includes("fast"));
  await page.getByRole("radio", { name: "One connection" }).check({ force: true });
  await page.waitForFunction(() => document.getElementById("headline").textContent.includes("limited by"));
  assert.deepEqual([...heard, ...again.heard], []);
  await page.close();
});

for (const [hash, width, colorScheme] of [["set=receiver.window%3D64512", 1280, "light"], ["set=receiver.window%3D64512", 390, "dark"], ["sockets=4x+bulk+25M+15ms", 390, "light"]]) {
  test(`it can be used at ${width} px, ${colorScheme}: ${hash}`, async () => {
    const { page, heard } = await open(`#${hash}`, { viewport: { width, height: 900 }, colorScheme });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
    assert.deepEqual(heard, []);
    await page.close();
  });
}
