// Draws the charts of a page, and lets its JSON be saved. All text of the page is there without this script.

import { draw as drawChart } from "./chart";
import { Link, type Span } from "./link";
import type { Charts } from "./model";
import { draw as drawTrace } from "./trace";

const embedded = (id: string): string => document.getElementById(id)?.textContent ?? "{}";

/** Lets a table be put in another order by its headings. Cells have their bare value where they show it in words. */
const sorts = (table: HTMLTableElement): void => {
  const body = table.tBodies[0];
  const value = (row: HTMLTableRowElement, column: number): string | number => {
    const cell = row.cells[column];
    if (cell.dataset.value === undefined) return cell.textContent ?? "";
    return cell.dataset.value === "" ? -Infinity : Number(cell.dataset.value);
  };
  [...table.tHead!.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const rows = [...body.rows];
      // Numbers begin with the largest, words with the first.
      const isNumber = rows.some((row) => row.cells[column].dataset.value !== undefined);
      const isDown = heading.ariaSort === null ? isNumber : heading.ariaSort === "ascending";
      for (const other of table.tHead!.rows[0].cells) other.ariaSort = null;
      heading.ariaSort = isDown ? "descending" : "ascending";
      const order = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0);
      const sorted = rows.sort((a, b) => (isDown ? -1 : 1) * order(value(a, column), value(b, column)));
      body.append(...sorted);
    });
  });
};

/** The parts of a long page, to jump to: a bar that stays in sight. */
const contents = (): void => {
  const headings = [...document.querySelectorAll<HTMLElement>("main > section > h2")];
  if (headings.length < 3) return;
  const bar = document.createElement("nav");
  bar.ariaLabel = "On this page";
  const list = document.createElement("ul");
  const links = new Map<Element, HTMLAnchorElement>();
  headings.forEach((heading, place) => {
    heading.id = `part-${place}`;
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = `#${heading.id}`;
    link.textContent = heading.textContent;
    item.append(link);
    list.append(item);
    links.set(heading.parentElement!, link);
  });
  bar.append(list);
  document.querySelector("main")!.before(bar);
  // The part that fills the middle of the window is the one that is read.
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const link = links.get(target)!;
        if (!isIntersecting) link.removeAttribute("aria-current");
        else {
          link.setAttribute("aria-current", "true");
          // Where the bar is wider than the window.
          list.scrollTo({ left: link.offsetLeft - list.offsetLeft - list.clientWidth / 3 });
        }
      }
    },
    { rootMargin: "-49% 0px -50% 0px" },
  );
  for (const part of links.keys()) watcher.observe(part);
};

/** Says in place of a chart that its numbers are no whole ones: a page may have been cut on its way. All else is there. */
const damaged = (place: HTMLElement): void => {
  const note = document.createElement("p");
  note.className = "problem";
  note.textContent = "This chart can't be drawn: the numbers that the page carries for it are damaged.";
  place.replaceChildren(note);
};

const numbers = (): Charts => {
  try {
    return JSON.parse(embedded("charts")) as Charts;
  } catch {
    for (const place of document.querySelectorAll<HTMLElement>(".chart .canvas")) damaged(place);
    return { charts: [], traces: [] };
  }
};

const start = (): void => {
  contents();
  for (const table of document.querySelectorAll<HTMLTableElement>("table.sorts")) sorts(table);
  const charts = numbers();
  // A chart is drawn when it comes into sight: a page may have many.
  const waiting = new Map<Element, () => void>();
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        watcher.unobserve(entry.target);
        waiting.get(entry.target)?.();
        waiting.delete(entry.target);
      }
    },
    { rootMargin: "600px" },
  );
  const later = (selector: string, draw: (place: HTMLElement) => void): void => {
    const place = document.querySelector<HTMLElement>(`${selector} .canvas`);
    if (!place) return;
    waiting.set(place, () => {
      try {
        draw(place);
      } catch {
        damaged(place);
      }
    });
    watcher.observe(place);
  };
  // The charts of a connection show the same part of it, and have one cursor.
  const links = new Map<Element, Link>();
  const linkOf = (selector: string, ends: Span): Link | undefined => {
    const connection = document.querySelector(selector)?.closest("article");
    if (!connection) return undefined;
    const link = links.get(connection) ?? new Link();
    links.set(connection, link);
    link.cover(ends);
    return link;
  };
  for (const chart of charts.charts) {
    const selector = `[data-chart="${chart.id}"]`;
    const link = chart.axis === "time" && chart.x.length > 1 ? linkOf(selector, [chart.x[0], chart.x[chart.x.length - 1]]) : undefined;
    later(selector, (place) => drawChart(place, chart, link));
  }
  for (const chart of charts.traces) {
    const selector = `[data-trace="${chart.id}"]`;
    const link = linkOf(selector, [chart.begins_us / 1e6, chart.ends_us / 1e6]);
    later(selector, (place) => drawTrace(place, chart, link));
  }
  addEventListener("beforeprint", () => {
    for (const draw of waiting.values()) draw();
    waiting.clear();
  });

  const save = document.getElementById("save");
  if (save) {
    save.hidden = false;
    save.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([embedded("document")], { type: "application/json" }));
      link.download = "fullpipe.json";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
};

start();
