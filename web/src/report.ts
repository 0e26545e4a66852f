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

const start = (): void => {
  for (const table of document.querySelectorAll<HTMLTableElement>("table.sorts")) sorts(table);
  const charts = JSON.parse(embedded("charts")) as Charts;
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
    waiting.set(place, () => draw(place));
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
