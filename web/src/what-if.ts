// A page to try settings on: asks the simulator, which is compiled into the page, and shows its answer.

import { refuse, showAnswer, type Answer } from "./answer";
import { showPool, type Shares } from "./pool";

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

/** A device's packet buffers, and what they are shared out over. */
interface Pool {
  buffers: string;
  sockets: string;
  reserve: string;
  per_packet: string;
  link: string;
  max_wait: string;
}

interface Choices {
  first: State;
  pool: Pool;
  presets: [string, State | Pool][];
  platforms: string[];
  settings: [string, string][];
}

interface Simulator {
  memory: WebAssembly.Memory;
  room(length: number): number;
  answer(): number;
  place(): number;
}

/** What the simulator says: of a connection, of a pool, or why it can't. */
interface Told {
  answer?: Answer;
  pool?: Shares;
  error?: string;
}

const KEYS = ["rate", "rtt", "loss", "queue", "from", "to", "set", "bytes"] as const;
const POOL_KEYS = ["buffers", "sockets", "reserve", "per_packet", "link", "max_wait"] as const;
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
  buffers: [16, 4096],
  per_packet: [5e-6, 2e-3],
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

const ask = (simulator: Simulator, question: unknown): Told => {
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
  if (name === "rtt" || name === "per_packet") return value < 1e-3 ? `${digits(value * 1e6)}us` : `${digits(value * 1e3)}ms`;
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
const NUMBERS: Record<string, (text: string) => number> = { rate: bits, rtt: secondsOf, per_packet: secondsOf, loss: partOf, queue: productsOf };
const numberOf = (name: string, text: string): number => (NUMBERS[name] ?? bytesOf)(text);

/** What is chosen; fields of their own are settings as well. */
const state = (): State => {
  const chosen = Object.fromEntries(KEYS.map((key) => [key, field(key).value.trim()])) as unknown as State;
  const own = Object.entries(OWN).flatMap(([id, key]) => (field(id).value.trim() ? [`${key}=${field(id).value.trim()}`] : []));
  const others = chosen.set.split(",").map((one) => one.trim()).filter((one) => one !== "");
  return { ...chosen, set: [...own, ...others].join(",") };
};

/** Which of the two is tried. */
const isPool = (): boolean => document.querySelector<HTMLInputElement>('[name="mode"]:checked')?.value === "pool";

const turn = (toPool: boolean): void => {
  for (const radio of document.querySelectorAll<HTMLInputElement>('[name="mode"]')) radio.checked = (radio.value === "pool") === toPool;
  for (const id of ["of-path", "drawn", "planned", "settings"]) byId(id).hidden = toPool;
  byId("of-pool").hidden = !toPool;
};

const choosePool = (chosen: Partial<Pool>): void => {
  const all = { ...choices.pool, ...chosen };
  for (const key of POOL_KEYS) field(key).value = all[key];
  turn(true);
  slide();
};

/** What a link or a situation says: of a pool, where it has sockets. */
const chooseAny = (chosen: Partial<State> & Partial<Pool>): void => (chosen.sockets === undefined ? choose(chosen) : choosePool(chosen));

const choose = (chosen: Partial<State>): void => {
  const all = { ...choices.first, ...chosen };
  const settings = all.set.split(",").map((one) => one.trim()).filter((one) => one !== "");
  for (const [id, key] of Object.entries(OWN)) {
    const place = settings.findIndex((one) => one.startsWith(`${key}=`));
    field(id).value = place < 0 ? "" : settings.splice(place, 1)[0].slice(key.length + 1);
  }
  for (const key of KEYS) field(key).value = key === "set" ? settings.join(",") : all[key];
  turn(false);
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

/** The flags of `share`; what is empty or usual is left out. */
const poolCommand = (chosen: Pool): string => {
  const flags = POOL_KEYS.flatMap((key) => {
    const isUsual = key !== "buffers" && key !== "sockets" && chosen[key] === choices.pool[key];
    return chosen[key] === "" || isUsual ? [] : [`--${key.replace("_", "-")} ${quoted(chosen[key])}`];
  });
  return `fullpipe share ${flags.join(" ")}`;
};

/** The address holds what is chosen. */
const remember = (pairs: [string, string][]): void => history.replaceState(null, "", `#${new URLSearchParams(pairs)}`);

const start = async (): Promise<void> => {
  const fromLink = (): void => chooseAny(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
  fromLink();
  const simulator = await load();
  let waiting: number | undefined;
  const answerPool = (): void => {
    const chosen = Object.fromEntries(POOL_KEYS.map((key) => [key, field(key).value.trim()])) as unknown as Pool;
    const { pool, error } = ask(simulator, { pool: chosen });
    if (pool) showPool(pool);
    else refuse(error);
    byId("command").textContent = poolCommand(chosen);
    remember(POOL_KEYS.filter((key) => key === "sockets" || chosen[key] !== choices.pool[key]).map((key) => [key, chosen[key]]));
  };
  const answerPath = (): void => {
    const chosen = state();
    const seconds = timeFor(chosen);
    const set = chosen.set === "" ? [] : chosen.set.split(",").map((one) => {
      const [key, ...value] = one.split("=");
      return [key.trim(), value.join("=").trim()];
    });
    const question = { ...chosen, loss: chosen.loss || "0", queue: chosen.queue || "1bdp", set, bytes: chosen.bytes || null, seconds, seed: 1 };
    const { answer, error } = ask(simulator, question);
    if (answer) showAnswer(answer, seconds);
    else refuse(error);
    commands(chosen, seconds);
    remember(KEYS.filter((key) => chosen[key] !== choices.first[key]).map((key) => [key, chosen[key]]));
  };
  const answer = (): void => {
    if (isPool()) answerPool();
    else answerPath();
    mark();
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
    if (from.name === "mode") {
      if (from.value === "pool") choosePool({});
      else choose({});
    } else if (name !== undefined) {
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
    chooseAny(choices.presets[Number(preset)][1]);
    later();
  });
  addEventListener("hashchange", () => {
    fromLink();
    later();
  });
  document.addEventListener("click", (event) => {
    const from = event.target as HTMLElement;
    if (from.dataset.copy !== undefined) copy(from, byId(from.dataset.copy).textContent ?? "");
  });
  answer();
};

/** Marks the situation that is chosen, if one is. */
const mark = (): void => {
  const chosen: Record<string, string> = isPool() ? Object.fromEntries(POOL_KEYS.map((key) => [key, field(key).value.trim()])) : { ...state() };
  for (const button of document.querySelectorAll<HTMLElement>("[data-preset]")) {
    const preset = Object.entries(choices.presets[Number(button.dataset.preset)][1]);
    button.ariaPressed = String(preset.every(([key, value]) => chosen[key] === value));
  }
};

/** Copies, and says on the button whether that went well: a page from a disk may not be allowed to. */
const copy = (button: HTMLElement, text: string): void => {
  const say = (word: string): void => {
    button.textContent = word;
    setTimeout(() => (button.textContent = "copy"), 1500);
  };
  const denied = (): void => {
    getSelection()?.selectAllChildren(byId(button.dataset.copy!));
    say("selected: copy it with the keyboard");
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => say("copied"), denied);
  else denied();
};

start().catch((error: unknown) => refuse(`The simulator can't start: ${String(error)}`));
