// Draws the charts of a page, and lets its JSON be saved. All text of the page is there without this script.

import { draw as drawChart } from "./chart";
import type { Charts } from "./model";
import { draw as drawTrace } from "./trace";

const embedded = (id: string): string => document.getElementById(id)?.textContent ?? "{}";

const start = (): void => {
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
