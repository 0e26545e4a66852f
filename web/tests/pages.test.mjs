// Pages that fullpipe wrote, in a real browser. The folder with them is in PAGES; crates/cli/tests/pages.rs makes them.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const folder = process.env.PAGES;
const axe = createRequire(import.meta.url)("axe-core");
const names = readdirSync(folder).filter((name) => name.endsWith(".html"));
let browser;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
});
after(() => browser?.close());

/** Opens a page; what it complains of, and what it asks the network for, lands in `heard`. */
const open = async (name, options = {}) => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const heard = [];
  page.on("console", (message) => heard.push(message.text()));
  page.on("pageerror", (error) => heard.push(error.message));
  page.on("dialog", (dialog) => heard.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) heard.push(`asked for ${request.url()}`);
  });
  await page.goto(pathToFileURL(join(folder, name)).href);
  return { page, heard };
};

/** Draws what is drawn only in sight. */
const drawAll = async (page) => {
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".chart .canvas")].every((place) => place.querySelector("canvas")),
  );
};

const documentOf = (page) => page.evaluate(() => JSON.parse(document.getElementById("document").textContent));

for (const name of names) {
  for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]]) {
    // Narrow and dark: those with a chart of each sort.
    if (width === 390 && !["load.html", "loop.html", "loss.html", "mesh.html", "sim.html", "sizes.html", "sweep.html"].includes(name)) continue;
    test(`${name} at ${width} px, ${colorScheme}`, async () => {
      const { page, heard } = await open(name, { viewport: { width, height: 900 }, colorScheme });
      await drawAll(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${wide} px wide`);
      // Two seconds each: one of each sort.
      if (["load.html", "loop.html", "loss.html", "mesh.html", "sim.html", "sizes.html", "sweep.html", "empty.html"].includes(name)) {
        await page.evaluate(axe.source);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
      }
      assert.deepEqual(heard, []);
      await page.close();
    });
  }

  test(`${name} says what its JSON says`, async () => {
    const { page } = await open(name);
    const told = await page.locator("main").innerText();
    const document = await documentOf(page);
    const texts = (document.transfers ?? []).concat(document.connections?.slice(0, 20) ?? []).flatMap(({ diagnosis }) => [
      diagnosis.action,
      ...diagnosis.evidence.map(({ text }) => text),
      ...diagnosis.blind,
    ]);
    for (const change of document.plan?.changes ?? []) texts.push(change.knob, change.reason, change.undo);
    for (const host of document.hosts ?? []) texts.push(host.platform ?? host.name, ...(host.not_default ?? []).flatMap(({ knob, value }) => [knob, value]));
    for (const proof of document.proofs ?? []) texts.push(`\u00d7${proof.ratio.toFixed(2)}`, ...proof.knobs);
    for (const { text } of document.conclusions ?? []) texts.push(text.replaceAll("`", ""));
    for (const row of document.sizes ?? []) texts.push(`${row.size.toLocaleString("en")} B`);
    const plain = (text) => text.replace(/\s+/g, " ").trim();
    assert.notEqual(await page.locator("h1").innerText(), "result");
    for (const text of texts) assert.ok(plain(told).includes(plain(text)), text);
    // A rate to the digit: three of them, in the unit that fits.
    const sides = (document.sizes ?? []).flatMap(({ up, down }) => [up, down]);
    const sums = (document.streams ?? []).flatMap(({ up_bps, down_bps }) => [{ rate_bps: up_bps }, { rate_bps: down_bps }]);
    const loads = document.under_load?.loaded ?? [];
    const measured = document.transfers ?? document.connections ?? document.directions ?? [...sides, ...sums, ...loads];
    for (const { rate_bps: rate } of measured) {
      if (rate === null) continue;
      const digits = Number(rate.toPrecision(3)) / 1000 ** Math.floor(Math.log10(rate) / 3);
      assert.ok(told.includes(String(+digits.toPrecision(3)).slice(0, 3)), `${rate} bit/s`);
    }
    await page.close();
  });

  test(`${name} says it without script, too`, async () => {
    const { page } = await open(name, { javaScriptEnabled: false });
    assert.ok((await page.locator("h1").innerText()).length > 5);
    await page.close();
  });
}

test("a capture's graph is zoomed to a packet, whose number is the capture's", async () => {
  const { page, heard } = await open("loss.html");
  const graph = page.locator("[data-trace] .canvas");
  await graph.scrollIntoViewIfNeeded();
  const over = graph.locator(".u-over");
  await over.waitFor();
  const readout = page.locator("[data-trace] .readout");
  const box = await over.boundingBox();
  const ticks = async () => (await graph.locator("canvas").screenshot()).toString("base64");
  const whole = await ticks();
  const drag = async (from, to) => {
    await page.mouse.move(box.x + box.width * from, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, box.y + box.height / 2, { steps: 4 });
    await page.mouse.up();
  };
  await drag(0, 0.12);
  assert.notEqual(await ticks(), whole);
  const numbers = new Set();
  for (let x = 0.02; x < 1; x += 0.01) {
    for (const y of [0.25, 0.5, 0.75]) {
      await page.mouse.move(box.x + box.width * x, box.y + box.height * y);
      const said = await readout.innerText();
      const found = /^Packet ([\d,]+), .*frame\.number == (\d+)$/.exec(said);
      if (found) {
        assert.equal(found[1].replaceAll(",", ""), found[2]);
        numbers.add(Number(found[2]));
      }
    }
  }
  const { files } = await documentOf(page);
  assert.ok(numbers.size >= 10 && Math.max(...numbers) <= files[0].packets, [...numbers].join(" "));
  await over.dblclick();
  await page.mouse.move(0, 0);
  await graph.focus();
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("0");
  assert.deepEqual(heard, []);
  await page.close();
});

test("panels share one cursor and one zoom", async () => {
  const { page } = await open("sim.html");
  const chart = page.locator("[data-chart] .canvas").first();
  await chart.scrollIntoViewIfNeeded();
  await chart.locator(".u-over").first().waitFor();
  const box = await chart.locator(".u-over").first().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const values = await chart.locator(".panel .value").allInnerTexts();
  assert.ok(values.filter((value) => /\d/.test(value)).length >= 5, values.join(" | "));
  const before = await chart.locator("canvas").nth(2).screenshot();
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  await page.waitForTimeout(50);
  assert.notDeepEqual(await chart.locator("canvas").nth(2).screenshot(), before);
  await page.close();
});

test("the charts of a connection show the same part of it, and its legend hides", async () => {
  const { page, heard } = await open("loss.html", { viewport: { width: 1280, height: 2400 } });
  const over = page.locator("[data-trace] .u-over");
  await over.scrollIntoViewIfNeeded();
  await over.waitFor();
  const panels = page.locator("[data-chart] .canvas").first();
  const picture = async (place) => (await place.locator("canvas").first().screenshot()).toString("base64");
  const graph = page.locator("[data-trace] .canvas");
  const whole = [await picture(panels), await picture(graph)];
  const box = await over.boundingBox();
  const middle = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.4, middle);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, middle, { steps: 4 });
  await page.mouse.up();
  // The time under the pointer is the panels' time, to the nearest of their samples.
  const time = async () => Number(/([\d.]+)/.exec(await panels.locator(".panel .time").innerText())?.[1]);
  const ends = [];
  for (const part of [0.02, 0.98]) {
    await page.mouse.move(box.x + box.width * part, middle);
    ends.push(await time());
  }
  const { connections } = await documentOf(page);
  const expected = connections[0].seconds * 0.1 * 0.96;
  assert.ok(Math.abs(ends[1] - ends[0] - expected) < 0.3 * expected, `${ends} of ${expected}`);
  assert.equal(await panels.locator(".panel .value", { hasText: /\d/ }).count(), await panels.locator(".panel .value").count());
  await page.mouse.move(0, 0);
  await page.waitForTimeout(50);
  const zoomed = [await picture(panels), await picture(graph)];
  zoomed.forEach((one, place) => assert.notEqual(one, whole[place]));
  const name = page.locator("[data-trace] .legend button", { hasText: "offered window" });
  await name.press("Enter");
  assert.equal(await name.getAttribute("aria-pressed"), "false");
  assert.notEqual(await picture(graph), zoomed[1]);
  await name.press("Enter");
  await panels.locator(".u-over").first().dblclick();
  await page.mouse.move(0, 0);
  await page.waitForTimeout(50);
  assert.equal(await picture(panels), whole[0]);
  assert.notEqual(await picture(graph), zoomed[1]);
  assert.deepEqual(heard, []);
  await page.close();
});

test("a line's name switches it off and on, with the keyboard as well", async () => {
  const { page, heard } = await open("loss.html");
  const chart = page.locator("[data-chart] .canvas").first();
  await chart.scrollIntoViewIfNeeded();
  await chart.locator(".u-over").first().waitFor();
  const picture = async () => {
    // Without the mark of what has the focus, which reaches into the picture.
    await page.evaluate(() => document.activeElement.blur());
    return (await chart.locator("canvas").nth(1).screenshot()).toString("base64");
  };
  const whole = await picture();
  const name = chart.locator(".panel button", { hasText: "offered window" });
  await name.press("Enter");
  assert.equal(await name.getAttribute("aria-pressed"), "false");
  const without = await picture();
  assert.notEqual(without, whole);
  // It stays off when the colours change, as they do for a print.
  const turn = async (colorScheme) => {
    const drawn = await chart.locator("canvas").nth(1).elementHandle();
    await page.emulateMedia({ colorScheme });
    await page.waitForFunction((canvas) => !canvas.isConnected, drawn);
    await chart.locator("canvas").nth(1).waitFor();
  };
  await turn("dark");
  assert.equal(await chart.locator(".panel button", { hasText: "offered window" }).getAttribute("aria-pressed"), "false");
  await turn("light");
  assert.equal(await picture(), without);
  await chart.locator(".panel button", { hasText: "offered window" }).click();
  await page.mouse.move(0, 0);
  assert.equal(await picture(), whole);
  assert.deepEqual(heard, []);
  await page.close();
});

test("paper is light, whatever the screen is", async () => {
  const { page } = await open("loss.html", { colorScheme: "dark" });
  const colours = () => page.evaluate(() => {
    const { color, backgroundColor } = getComputedStyle(document.body);
    return [color, backgroundColor, getComputedStyle(document.documentElement).getPropertyValue("--grid").trim()];
  });
  const dark = await colours();
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  assert.deepEqual(await colours(), ["rgb(0, 0, 0)", "rgb(255, 255, 255)", "#e7eaf0"]);
  assert.equal(await page.locator("#save").isVisible(), false);
  await page.emulateMedia({ media: "screen", colorScheme: "dark" });
  assert.deepEqual(await colours(), dark);
  await page.close();
});

test("a long page has a bar with its parts", async () => {
  const { page, heard } = await open("sizes.html");
  const links = page.getByRole("navigation", { name: "On this page" }).getByRole("link");
  assert.deepEqual(await links.allInnerTexts(), await page.locator("main > section > h2").allInnerTexts());
  await links.last().click();
  assert.ok(await page.locator("main > section > h2").last().evaluate((heading) => heading.getBoundingClientRect().top < innerHeight));
  assert.deepEqual(heard, []);
  await page.close();
});

test("a command that failed leaves a page that says why", async () => {
  for (const [name, words] of [["dead.html", /refused/], ["cut.html", /not a fullpipe document/]]) {
    const { page, heard } = await open(`failed/${name}`);
    assert.match(await page.locator("[role=alert]").innerText(), words);
    assert.match(await page.locator("h1").innerText(), words);
    assert.deepEqual(heard, []);
    await page.close();
  }
});

test("a page whose numbers were cut still says what it can", async () => {
  const whole = readFileSync(join(folder, "loss.html"), "utf8");
  const at = whole.indexOf('<script id="charts"');
  const cut = whole.slice(0, at + 4000) + whole.slice(whole.indexOf("</script>", at));
  // The points of the graph alone are no base64 any more.
  const garbled = whole.replace(/("points":")[^"]*/, "$1!");
  for (const [name, text, count] of [["cut", cut, 2], ["garbled", garbled, 1]]) {
    const path = join(folder, "failed", `${name}.html`);
    writeFileSync(path, text);
    const { page, heard } = await open(`failed/${name}.html`);
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await page.locator(".chart .problem").count(), count, name);
    assert.match(await page.locator("h1").innerText(), /congestion window/);
    assert.ok(await page.locator("#save").isVisible());
    assert.deepEqual(heard, []);
    await page.close();
  }
});

test("a hostile name is text", async () => {
  const { page, heard } = await open("hostile.html");
  await drawAll(page);
  assert.equal(await page.locator("main img").count(), 0);
  assert.ok((await page.locator("main").innerText()).includes("<img src=x onerror=alert(1)>"));
  assert.deepEqual(heard, []);
  await page.close();
});

test("the JSON that a page saves is the document", async () => {
  const { page } = await open("sim.html");
  const waiting = page.waitForEvent("download");
  await page.locator("#save").click();
  const download = await waiting;
  assert.equal(download.suggestedFilename(), "fullpipe.json");
  const chunks = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk);
  assert.deepEqual(JSON.parse(Buffer.concat(chunks).toString()), await documentOf(page));
  await page.close();
});

test("the connections of a capture are put in another order", async () => {
  const { page, heard } = await open("several.html");
  const { connections } = await documentOf(page);
  assert.ok(connections.length >= 2);
  const rates = () => page.locator("table.sorts tbody tr td:nth-child(4)").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.value)));
  const expected = connections.map(({ rate_bps: rate }) => rate).sort((a, b) => b - a);
  await page.getByRole("button", { name: "Rate" }).click();
  assert.deepEqual(await rates(), expected);
  assert.equal(await page.locator("th[aria-sort]").getAttribute("aria-sort"), "descending");
  await page.getByRole("button", { name: "Rate" }).press("Enter");
  assert.deepEqual(await rates(), expected.toReversed());
  assert.deepEqual(heard, []);
  await page.close();
});

test("a capture of a million packets", async () => {
  const begun = performance.now();
  const { page, heard } = await open("large/million.html");
  const graph = page.locator("[data-trace] .canvas");
  await graph.scrollIntoViewIfNeeded();
  const over = graph.locator(".u-over");
  await over.waitFor();
  const ready = performance.now() - begun;
  const { files } = await documentOf(page);
  assert.ok(files[0].packets > 1_000_000, `${files[0].packets} packets`);
  const counted = await page.locator("[data-trace] .legend").innerText();
  const points = [...counted.matchAll(/\(([\d,]+)\)/g)].reduce((sum, [, count]) => sum + Number(count.replaceAll(",", "")), 0);
  assert.ok(points > 1_000_000, counted);

  // Moved along as by a hand, a step with every frame; the browser's own tracing says which frames were drawn.
  for (const key of "+++++") await graph.press(key);
  const cdp = await page.context().newCDPSession(page);
  const drawn = [];
  cdp.on("Tracing.dataCollected", ({ value }) => drawn.push(...value.filter(({ name }) => name === "DrawFrame").map(({ ts }) => ts)));
  await cdp.send("Tracing.start", { transferMode: "ReportEvents", categories: "devtools.timeline,disabled-by-default-devtools.timeline.frame" });
  const box = await over.boundingBox();
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + box.width - 10, box.y + box.height / 2);
  await page.mouse.down();
  for (let step = 0; step < 90; step += 1) await page.mouse.move(box.x + box.width - 10 - step * 5, box.y + box.height / 2);
  await page.mouse.up();
  await page.keyboard.up("Shift");
  const ended = new Promise((resolve) => cdp.once("Tracing.tracingComplete", resolve));
  await cdp.send("Tracing.end");
  await ended;
  drawn.sort((a, b) => a - b);
  assert.ok(drawn.length > 10, `${drawn.length} frames`);
  const rate = (drawn.length - 1) / ((drawn.at(-1) - drawn[0]) / 1e6);
  // What a busy machine makes of it is no fault of the page.
  console.log(`${files[0].packets} packets, ${points} points: drawn after ${ready.toFixed(0)} ms, moved at ${rate.toFixed(0)} frames a second`);
  assert.deepEqual(heard, []);
  await page.close();
});
