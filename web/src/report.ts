// Draws the charts of a page, and lets its JSON be saved. All text of the page is there without this script.

import { draw as drawChart } from "./chart";
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
  for (const chart of charts.charts) later(`[data-chart="${chart.id}"]`, (place) => drawChart(place, chart));
  for (const chart of charts.traces) later(`[data-trace="${chart.id}"]`, (place) => drawTrace(place, chart));
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
