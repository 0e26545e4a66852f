// A page to try settings on: asks the simulator, which is compiled into the page, and shows its answer.

import { draw } from "./chart";
import type { Chart } from "./model";

interface State {
  rate: string;
  rtt: string;
  loss: string;
  queue: string;
  from: string;
  to: string;
  set: string;
  bytes: string;
}

interface Choices {
  first: State;
  presets: [string, State][];
  platforms: string[];
  settings: [string, string][];
}

interface Answer {
  rate: string;
  rate_bps: number;
  limit: string;
  limiter: string;
  share: number;
  can_be_lifted: boolean;
  evidence: string[];
  action: string;
  shares: Record<string, number>;
  seconds: number | null;
  retransmissions: number;
  queue_delay: string;
  memory: string;
  product: string;
  failure: string | null;
  plans: { role: string; platform: string; changes: { do: string; why: string }[]; notes: string[] }[];
  chart: Chart | null;
}

interface Simulator {
  memory: WebAssembly.Memory;
  room(length: number): number;
  answer(): number;
  place(): number;
}

const KEYS = ["rate", "rtt", "loss", "queue", "from", "to", "set", "bytes"] as const;
/** The settings that have a field of their own. */
const OWN: Record<string, string> = { window: "receiver.window", buffer: "sender.buffer", mtu: "path.mtu", message: "sender.message" };
/** What the sliders reach from and to. Loss begins with none at all; a queue is in bandwidth-delay products. */
const RANGES: Record<string, [number, number]> = {
  rate: [64e3, 10e9],
  rtt: [1e-4, 1],
  loss: [1e-6, 0.1],
  queue: [0.05, 10],
  window: [2048, 33554432],
  buffer: [2048, 33554432],
  mtu: [576, 9216],
  message: [16, 1048576],
};
/** Where a slider stands while its field is empty. */
const EMPTY: Record<string, number> = { mtu: 1500, queue: 1 };
/** Bits that a question may carry: some seconds of computing at most. */
const MOST_BITS = 2e9;

const byId = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const field = (id: string): HTMLInputElement => byId<HTMLInputElement>(id);
const choices = JSON.parse(byId("choices").textContent ?? "{}") as Choices;

const load = async (): Promise<Simulator> => {
  const packed = Uint8Array.from(atob(byId("simulator").textContent!.trim()), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const code = await new Response(stream).arrayBuffer();
  const { instance } = await WebAssembly.instantiate(code, {});
  return instance.exports as unknown as Simulator;
};

const ask = (simulator: Simulator, question: unknown): { answer?: Answer; error?: string } => {
  const text = new TextEncoder().encode(JSON.stringify(question));
  const at = simulator.room(text.length);
  new Uint8Array(simulator.memory.buffer, at, text.length).set(text);
  const length = simulator.answer();
  return JSON.parse(new TextDecoder().decode(new Uint8Array(simulator.memory.buffer, simulator.place(), length)));
};

const FACTORS: Record<string, number> = { k: 1e3, m: 1e6, g: 1e9 };
const bits = (rate: string): number => {
  const found = /^\s*([\d.]+)\s*([kmg]?)/i.exec(rate);
  return found ? Number(found[1]) * (FACTORS[found[2].toLowerCase()] ?? 1) : 100e6;
};
const secondsOf = (time: string): number => {
  const found = /^\s*([\d.]+)\s*(us|ms|s)?/i.exec(time);
  const unit = found?.[2]?.toLowerCase() ?? "s";
  return found ? Number(found[1]) * (unit === "us" ? 1e-6 : unit === "ms" ? 1e-3 : 1) : 0.08;
};

/** A value as the flags take it, three digits of it. */
const written = (name: string, value: number): string => {
  const digits = (x: number): string => String(Number(x.toPrecision(3)));
  if (name === "rtt") return value < 1e-3 ? `${digits(value * 1e6)}us` : `${digits(value * 1e3)}ms`;
  if (name === "loss") return value <= RANGES.loss[0] ? "0" : `${digits(value * 100)}%`;
  if (name === "queue") return `${digits(value)}bdp`;
  if (name === "rate") return value >= 1e9 ? `${digits(value / 1e9)}G` : value >= 1e6 ? `${digits(value / 1e6)}M` : `${digits(value / 1e3)}k`;
  return String(Math.round(value));
};
const SIZES: Record<string, number> = { k: 1024, m: 1048576, g: 1073741824, kb: 1e3, mb: 1e6, gb: 1e9 };
const bytesOf = (size: string): number => {
  const found = /^\s*([\d.]+)\s*([kmg]b?)?/i.exec(size);
  return found ? Number(found[1]) * (SIZES[found[2]?.toLowerCase() ?? ""] ?? 1) : 0;
};
/** A part: `0.01%`, `0.0001`; none is the smallest that the slider has. */
const partOf = (part: string): number => Math.max(RANGES.loss[0], (Number.parseFloat(part) || 0) / (part.trim().endsWith("%") ? 100 : 1));
/** A queue in bandwidth-delay products; one of another unit depends on the path. */
const productsOf = (queue: string): number => (/^\s*[\d.]+\s*bdp\s*$/.test(queue) ? Number.parseFloat(queue) : 0);
const NUMBERS: Record<string, (text: string) => number> = { rate: bits, rtt: secondsOf, loss: partOf, queue: productsOf };
const numberOf = (name: string, text: string): number => (NUMBERS[name] ?? bytesOf)(text);

/** What is chosen; fields of their own are settings as well. */
const state = (): State => {
  const chosen = Object.fromEntries(KEYS.map((key) => [key, field(key).value.trim()])) as unknown as State;
  const own = Object.entries(OWN).flatMap(([id, key]) => (field(id).value.trim() ? [`${key}=${field(id).value.trim()}`] : []));
  const others = chosen.set.split(",").map((one) => one.trim()).filter((one) => one !== "");
  return { ...chosen, set: [...own, ...others].join(",") };
};

const choose = (chosen: Partial<State>): void => {
  const all = { ...choices.first, ...chosen };
  const settings = all.set.split(",").map((one) => one.trim()).filter((one) => one !== "");
  for (const [id, key] of Object.entries(OWN)) {
    const place = settings.findIndex((one) => one.startsWith(`${key}=`));
    field(id).value = place < 0 ? "" : settings.splice(place, 1)[0].slice(key.length + 1);
  }
  for (const key of KEYS) field(key).value = key === "set" ? settings.join(",") : all[key];
  slide();
};

/** Moves the sliders to what the fields say. */
const slide = (): void => {
  for (const slider of document.querySelectorAll<HTMLInputElement>("[data-for]")) {
    const name = slider.dataset.for!;
    const [low, high] = RANGES[name];
    const value = numberOf(name, field(name).value) || (EMPTY[name] ?? high);
    slider.value = String(Math.round((200 * Math.log(value / low)) / Math.log(high / low)));
    slider.setAttribute("aria-valuetext", field(name).value || "as the platform has it");
  }
};

const timeFor = (chosen: State): number => Math.min(10, Math.max(MOST_BITS / bits(chosen.rate), 25 * secondsOf(chosen.rtt), 0.5));

const quoted = (text: string): string => (/^[\w.,=%:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

const commands = (chosen: State, seconds: number): void => {
  const flags: string[] = [];
  for (const key of ["rate", "rtt", "loss", "queue", "from", "to", "set", "bytes"] as const) {
    if (chosen[key] !== "") flags.push(`--${key} ${quoted(chosen[key])}`);
  }
  if (seconds !== 10) flags.push(`--seconds ${Number(seconds.toFixed(3))}`);
  byId("command").textContent = `fullpipe what-if ${flags.join(" ")}`;
  byId("plan").textContent = `fullpipe plan --platform ${chosen.to} --rate ${quoted(chosen.rate)} --rtt ${quoted(chosen.rtt)}`;
};

const element = (name: string, text: string, className = ""): HTMLElement => {
  const made = document.createElement(name);
  made.textContent = text;
  if (className !== "") made.className = className;
  return made;
};

/** What to set at each end, as it is typed. */
const showPlans = (plans: Answer["plans"]): void => {
  const articles = plans.map(({ role, platform, changes, notes }) => {
    const article = element("article", "", "change");
    article.append(element("h3", plans.length === 1 ? platform : `${role}, ${platform}`));
    if (changes.length > 0) {
      const typed = document.createElement("pre");
      const code = element("code", changes.map((change) => change.do).join("\n"));
      code.id = `plan-${role}`;
      typed.tabIndex = 0;
      typed.append(code);
      const copy = element("button", "copy") as HTMLButtonElement;
      copy.type = "button";
      copy.dataset.copy = code.id;
      article.append(typed, copy);
    } else {
      article.append(element("p", "Nothing to set."));
    }
    const why = document.createElement("ul");
    for (const text of new Set([...changes.map((change) => change.why), ...notes])) why.append(element("li", text));
    article.append(why);
    return article;
  });
  byId("plans").replaceChildren(...articles);
};

const show = (told: { answer?: Answer; error?: string }, seconds: number): void => {
  const place = byId("answer");
  const found = told.answer;
  if (!found) {
    byId("headline").textContent = "That can't be simulated";
    place.className = "verdict open";
    place.replaceChildren(element("p", told.error ?? "no answer"));
    byId("chart").replaceChildren();
    return;
  }
  const share = `${Math.round(found.share * 100)} % of the time`;
  byId("headline").textContent = `${found.rate}, limited by ${found.limit}, ${share}`;
  place.className = `verdict ${found.limiter === "path" ? "good" : found.can_be_lifted ? "bad" : "open"}`;
  const facts = element("dl", "", "facts");
  const fact = (name: string, text: string): void => {
    const pair = document.createElement("div");
    pair.append(element("dt", name), element("dd", text));
    facts.append(pair);
  };
  fact("payload rate", found.rate);
  if (found.seconds !== null) fact("transfer", `${found.seconds.toFixed(3)} s`);
  fact("bandwidth-delay product", found.product);
  fact("memory at most", found.memory);
  fact("wait in the queue", found.queue_delay);
  fact("retransmitted", String(found.retransmissions));
  fact("virtual time", `${Number(seconds.toFixed(3))} s`);
  const why = document.createElement("ul");
  for (const text of found.evidence) why.append(element("li", text));
  place.replaceChildren(facts, element("p", `Do: ${found.action}`, "action"), element("h2", "Why", "small"), why);
  if (found.failure) place.append(element("p", found.failure, "problem"));
  showPlans(found.plans);
  const canvas = byId("chart").cloneNode(false) as HTMLElement;
  byId("chart").replaceWith(canvas);
  if (found.chart) draw(canvas, { ...found.chart, id: "answer" });
};

const start = async (): Promise<void> => {
  choose(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
  const simulator = await load();
  let waiting: number | undefined;
  const answer = (): void => {
    const chosen = state();
    const seconds = timeFor(chosen);
    const set = chosen.set === "" ? [] : chosen.set.split(",").map((one) => {
      const [key, ...value] = one.split("=");
      return [key.trim(), value.join("=").trim()];
    });
    const question = { ...chosen, loss: chosen.loss || "0", queue: chosen.queue || "1bdp", set, bytes: chosen.bytes || null, seconds, seed: 1 };
    show(ask(simulator, question), seconds);
    commands(chosen, seconds);
    const differing = KEYS.filter((key) => chosen[key] !== choices.first[key]).map((key) => [key, chosen[key]]);
    history.replaceState(null, "", `#${new URLSearchParams(differing)}`);
  };
  const later = (): void => {
    clearTimeout(waiting);
    waiting = setTimeout(answer, 40);
  };
  const form = byId("form");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const from = event.target as HTMLInputElement;
    const name = from.dataset.for;
    if (name !== undefined) {
      const [low, high] = RANGES[name];
      field(name).value = written(name, low * (high / low) ** (Number(from.value) / 200));
      from.setAttribute("aria-valuetext", field(name).value);
    } else {
      slide();
    }
    later();
  });
  form.addEventListener("click", (event) => {
    const preset = (event.target as HTMLElement).dataset.preset;
    if (preset === undefined) return;
    choose(choices.presets[Number(preset)][1]);
    later();
  });
  addEventListener("hashchange", () => {
    choose(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
    later();
  });
  document.addEventListener("click", (event) => {
    const from = (event.target as HTMLElement).dataset.copy;
    if (from !== undefined) void navigator.clipboard?.writeText(byId(from).textContent ?? "");
  });
  answer();
};

start().catch((error: unknown) => show({ error: `The simulator can't start: ${String(error)}` }, 0));
