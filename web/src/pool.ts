// How a device's packet buffers are shared out, shown.

import { element, factsOf, typedText } from "./answer";

export interface Shares {
  buffers: number;
  memory: string;
  reserve: number;
  shared: number;
  left: number;
  total: string;
  total_bps: number;
  device: string;
  wait: string | null;
  stop: string;
  notes: string[];
  rows: Row[];
}

/** What some sockets of a group get. */
interface Row {
  sockets: string;
  group: number;
  count: number;
  of: number;
  /** Buffers of one of them. */
  each: number;
  /** Received in order, out of order, to send, unacknowledged. */
  numbers: number[];
  reasons: string[];
  calls: string[];
  reaches: string;
  held: string | null;
}

const LISTS = ["received", "out of order", "to send", "unacknowledged"];
/** The colours of the groups, in their order. */
const ROLES = ["receive-window", "path", "send-buffer", "congestion-window", "ack-delay", "segment-size", "handshake"];

const byId = (id: string): HTMLElement => document.getElementById(id)!;

const named = ({ sockets, count, of }: Row): string => (count === of ? sockets : `${count} of ${sockets}`);

/** The whole pool as a bar: a part for each group, what is left over, and the reserve. */
const bar = (found: Shares): HTMLElement => {
  const figure = element("figure", "", "shares");
  const parts = found.rows.map((row): [string, string, number] => [named(row), ROLES[row.group % ROLES.length], row.count * row.each]);
  if (found.left > 0) parts.push(["left over", "", found.left]);
  parts.push(["reserve", "insufficient-evidence", Math.min(found.reserve, found.buffers)]);
  const line = element("div", "", "pool");
  line.ariaHidden = "true";
  const legend = element("ul", "", "legend");
  for (const [name, role, buffers] of parts) {
    const part = element("span", "", role === "" ? "" : `fill-${role}`);
    part.style.flexGrow = String(buffers);
    line.append(part);
    const item = document.createElement("li");
    item.append(element("span", "", `swatch fill-${role}`), ` ${name} `, element("b", String(buffers)));
    legend.append(item);
  }
  figure.append(element("figcaption", `${found.buffers} packet buffers`), line, legend);
  return figure;
};

/** Every group with its four numbers. */
const table = (rows: Row[]): HTMLElement => {
  const scroll = element("div", "", "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "group");
  scroll.ariaLabel = "shares";
  const whole = document.createElement("table");
  const head = whole.createTHead().insertRow();
  for (const [place, name] of ["Sockets", ...LISTS, "each", "reaches"].entries()) {
    const cell = element("th", name, place > 0 ? "n" : "") as HTMLTableCellElement;
    cell.scope = "col";
    head.append(cell);
  }
  const body = whole.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    line.append(element("td", named(row)));
    for (const text of [...row.numbers, row.each, row.reaches]) line.append(element("td", String(text), "n"));
  }
  scroll.append(whole);
  return scroll;
};

/** The calls of one of these sockets, with their reasons. */
const calls = (row: Row, place: number): HTMLElement => {
  const article = element("article", "", "change");
  article.append(element("h3", row.count === 1 && row.of === 1 ? row.sockets : `${named(row)}, each`));
  article.append(...typedText(`calls-${place}`, row.calls.join("\n")));
  const why = document.createElement("ul");
  row.reasons.forEach((reason, list) => why.append(element("li", `${LISTS[list]}: ${reason}`)));
  article.append(why);
  return article;
};

/** Shows how the pool is shared out. */
export const showPool = (found: Shares): void => {
  const place = byId("answer");
  const hasBulk = found.total_bps > 0;
  byId("headline").textContent = hasBulk
    ? `${found.buffers} buffers shared out: ${found.total} together, of ${found.device} that the device moves`
    : `${found.buffers} buffers shared out: every message finds its buffers`;
  place.className = "verdict good";
  const facts = factsOf([
    ...(hasBulk ? [["bulk sockets together", found.total] as [string, string]] : []),
    ["the device moves", found.device],
    ["shared out", String(found.shared)],
    ["left over", String(found.left)],
    ["reserve", String(found.reserve)],
    ["memory of the pool", found.memory],
    ...(found.wait === null ? [] : [["a message waits at most", found.wait] as [string, string]]),
  ]);
  const notes = document.createElement("ul");
  for (const note of found.notes) notes.append(element("li", note));
  place.replaceChildren(facts, element("p", found.stop, "action"), bar(found), table(found.rows), element("h2", "To be known", "small"), notes);
  byId("plans").replaceChildren(...found.rows.map(calls));
};
