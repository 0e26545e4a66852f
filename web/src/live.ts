// The pages of `fullpipe web`: starts runs, follows them with live charts, hands captures to the server.

import uPlot from "uplot";
import { exact, short } from "./format";
import { Head } from "./head";
import type { Asked, Told } from "./reader";
import { colour, onThemeChange } from "./theme";

const secret = JSON.parse(document.getElementById("secret")?.textContent ?? '""') as string;
const at = <T extends HTMLElement>(id: string): T | null => document.getElementById(id) as T | null;

/** Asks the server for something that changes something. */
const ask = (path: string, method: string, body?: URLSearchParams): Promise<Response> =>
  fetch(path, { method, body, headers: { "x-fullpipe": secret } });

const say = (text: string): void => {
  const place = at("said");
  if (place) place.textContent = text;
};

/** Leads to the run that was started, or says why it wasn't. */
const follow = (status: number, text: string): void => {
  let answer: { run?: string; error?: string } = {};
  try {
    answer = JSON.parse(text) as typeof answer;
  } catch {
    answer = { error: text.trim() || `the server answered ${status}` };
  }
  if (answer.run) location.assign(answer.run);
  else say(answer.error ?? `the server answered ${status}`);
};

const lost = (): void => say("The server does not answer. Is `fullpipe web` still running?");

const form = at<HTMLFormElement>("start");
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) fields.append(name, String(value));
  ask("/runs", "POST", fields).then(async (response) => follow(response.status, await response.text()), lost);
});

for (const button of document.querySelectorAll<HTMLElement>("[data-remove]")) {
  button.addEventListener("click", () => {
    ask(`/reports/${button.dataset.remove}`, "DELETE").then((response) => {
      if (response.ok) button.closest("tr")?.remove();
      else say("The report could not be removed.");
    }, lost);
  });
}

const drop = at("drop");
if (drop) {
  const sent = at<HTMLProgressElement>("sent")!;
  const choose = at<HTMLInputElement>("capture")!;
  const elsewhere = at<HTMLInputElement>("elsewhere")!;
  const seen = at("seen")!;
  const frame = seen.querySelector("iframe")!;
  const heading = seen.querySelector("h2")!;
  const reading = at("reading")!;
  let worker: Worker | undefined;

  /** The end of whatever was done with a capture. */
  const done = (text: string): void => {
    worker?.terminate();
    worker = undefined;
    sent.hidden = reading.hidden = true;
    choose.value = "";
    say(text);
  };

  const show = (name: string, page: string): void => {
    done("");
    heading.textContent = name;
    frame.srcdoc = page;
    seen.hidden = false;
    seen.scrollIntoView();
    heading.focus({ preventScroll: true });
  };
  at("close")!.addEventListener("click", () => {
    seen.hidden = true;
    frame.removeAttribute("srcdoc");
  });
  at("save")!.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([frame.srcdoc], { type: "text/html" }));
    link.download = `${heading.textContent}.html`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
  at("leave")!.addEventListener("click", () => done("Stopped."));

  /** Reads it here. */
  const read = (file: File): void => {
    worker?.terminate();
    worker = new Worker("/reader.js");
    sent.removeAttribute("value");
    sent.hidden = reading.hidden = false;
    say(`Reading ${file.name} in this browser.`);
    worker.addEventListener("message", ({ data }: MessageEvent<Told>) => {
      if (data.page) show(file.name, data.page);
      else done(data.error ?? "The reader failed.");
    });
    worker.addEventListener("error", () => done("The reader could not be started; this server can read it."));
    worker.postMessage({ name: file.name, file } satisfies Asked);
  };

  /** Has it read by the server. */
  const send = (file: File): void => {
    const largest = Number(drop.dataset.largest);
    if (file.size > largest) {
      say(`${file.name} has ${exact("bytes", file.size)}, more than the ${exact("bytes", largest)} that are taken: use \`fullpipe read\`.`);
      return;
    }
    say(`Reading ${file.name}.`);
    sent.hidden = false;
    // The only way to be told how much was sent.
    const request = new XMLHttpRequest();
    request.open("POST", `/captures?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("x-fullpipe", secret);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) sent.value = event.loaded / event.total;
    });
    request.addEventListener("loadend", () => {
      done("");
      if (request.status === 0) lost();
      else follow(request.status, request.responseText);
    });
    request.send(file);
  };
  const take = (file: File): void => {
    if (elsewhere.checked || file.size > Number(drop.dataset.here)) send(file);
    else read(file);
  };
  choose.addEventListener("change", () => {
    if (choose.files?.[0]) take(choose.files[0]);
  });
  // A file that falls beside the field must not replace the page.
  for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());
  drop.addEventListener("dragover", () => drop.classList.add("over"));
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    drop.classList.remove("over");
    const file = event.dataTransfer?.files[0];
    if (file) take(file);
  });
}

interface Progress {
  kind: "phase" | "tick" | "note" | "done";
  text?: string;
  elapsed_s?: number;
  expected_s?: number;
  rate_bps?: number;
  up_bps?: number;
  down_bps?: number;
  rtt_us?: number;
  report?: string;
}

const run = at("run");
if (run) {
  const place = at("live")!;
  const phase = at("phase")!;
  const bar = at<HTMLProgressElement>("progress")!;
  const log = at("log")!;
  // Seconds since the first figure; phases follow one another on one axis.
  const data: [number[], (number | null)[], (number | null)[], (number | null)[]] = [[], [], [], []];
  let plots: uPlot[] = [];
  let base = 0;
  let last = 0;
  let expected = 0;
  let words = "";

  const note = (text: string): void => {
    const item = document.createElement("li");
    item.textContent = text;
    log.append(item);
  };

  const linesOf = (isRate: boolean): { name: string; role: string; shape: "line" }[] => {
    const line = (name: string, role: string): { name: string; role: string; shape: "line" } => ({ name, role, shape: "line" });
    if (!isRate) return [line("round trip", "rtt")];
    return isBoth() ? [line("from here", "rate"), line("to here", "window")] : [line("payload", "rate")];
  };

  const options = (isRate: boolean, head: Head): uPlot.Options => {
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const unit = isRate ? "rate" : "micros";
    return {
      width: place.clientWidth,
      height: 190,
      cursor: { sync: { key: "live" } },
      legend: { show: false },
      padding: [6, 16, 0, 0],
      scales: { x: { time: false }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 1] } },
      axes: [
        { ...axis, size: 22, space: 70, values: (_, ticks) => ticks.map((tick) => short("seconds", tick)) },
        { ...axis, size: 74, space: 34, values: (_, ticks) => ticks.map((tick) => short(unit, tick)) },
      ],
      series: [
        {},
        ...linesOf(isRate).map(({ role }): uPlot.Series => ({
          stroke: colour(role),
          fill: role === "rate" ? `${colour(role)}2b` : undefined,
          width: 2,
          points: { show: false },
        })),
      ],
      hooks: { setLegend: [(plot) => tell(plot, head)], setData: [(plot) => tell(plot, head)] },
    };
  };

  /** The values under the cursor, or the newest. */
  const tell = (plot: uPlot, head: Head): void => {
    const [times, ...lines] = plot.data as [number[], ...(number | null)[][]];
    const at = plot.cursor.idx ?? times.length - 1;
    if (at >= 0) head.tell(exact("seconds", times[at]), lines.map((line) => line[at]));
  };

  /** Whether payload came here at the same time: a second line. */
  const isBoth = (): boolean => data[2].some((rate) => rate !== null);

  const shown = (isRate: boolean): uPlot.AlignedData =>
    isRate ? (lines === 2 ? [data[0], data[1], data[2]] : [data[0], data[1]]) : [data[0], data[3]];

  let lines = 0;
  const hidden = new Set<string>();
  // What it holds can be used: it is no picture as a whole.
  place.setAttribute("role", "group");
  const create = (): void => {
    lines = isBoth() ? 2 : 1;
    for (const plot of plots) plot.destroy();
    place.replaceChildren();
    plots = [true, false].map((isRate) => {
      const head = new Head({ label: isRate ? "throughput" : "round trip", unit: isRate ? "rate" : "micros", series: linesOf(isRate) }, isRate);
      place.append(head.element);
      const plot = new uPlot(options(isRate, head), shown(isRate), place);
      head.follow(plot, hidden, isRate ? 0 : 1);
      return plot;
    });
  };

  let due = false;
  const redraw = (): void => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      if (plots.length === 0 || lines !== (isBoth() ? 2 : 1)) create();
      else plots.forEach((plot, index) => plot.setData(shown(index === 0)));
    });
  };
  onThemeChange(place, () => {
    if (plots.length > 0) create();
  });
  addEventListener("resize", () => {
    for (const plot of plots) plot.setSize({ width: place.clientWidth, height: plot.height });
  });

  const source = new EventSource(`/runs/${run.dataset.run}/events`);
  source.addEventListener("message", (message) => {
    const event = JSON.parse(message.data as string) as Progress;
    if (event.kind === "phase") {
      words = event.text ?? "";
      phase.textContent = event.expected_s ? `${words}, about ${event.expected_s.toFixed(0)} s` : words;
      expected = event.expected_s ?? 0;
      bar.removeAttribute("value");
      base = last;
    } else if (event.kind === "tick") {
      const elapsed = event.elapsed_s ?? 0;
      // A new measurement begins again from nothing.
      if (base + elapsed < last) base = last;
      last = base + elapsed;
      data[0].push(last);
      data[1].push(event.up_bps ?? event.rate_bps ?? null);
      data[2].push(event.down_bps ?? null);
      data[3].push(event.rtt_us ?? null);
      const of = event.expected_s ?? expected;
      if (of > 0) bar.value = Math.min(elapsed / of, 1);
      const rates = [event.up_bps ?? event.rate_bps, event.down_bps].filter((rate) => rate !== undefined && rate !== null);
      phase.textContent = `${words || "measuring"}: ${elapsed.toFixed(1)}${of > 0 ? ` of ${of.toFixed(0)}` : ""} s, ${rates.map((rate) => exact("rate", rate)).join(", ")}`;
      redraw();
    } else if (event.kind === "note") {
      note(event.text ?? "");
    } else if (event.kind === "done") {
      source.close();
      if (event.report) location.replace(event.report);
      else phase.textContent = event.text ?? "It has ended.";
    }
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) lost();
    else say("The connection to the server is interrupted; trying again.");
  });
  source.addEventListener("open", () => {
    // All events come again.
    for (const list of data) list.length = 0;
    log.replaceChildren();
    base = last = 0;
    say("");
  });
  at("stop")?.addEventListener("click", () => {
    ask(`/runs/${run.dataset.run}/stop`, "POST").then(() => say("Stopping."), lost);
  });
}
