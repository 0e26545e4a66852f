// Panels over one axis, with one cursor and one zoom.

import uPlot from "uplot";
import { exact, short } from "./format";
import type { Chart, Panel } from "./model";
import { colour, onThemeChange } from "./theme";

const HEIGHT = 190;
const STRIP = 10;

/** Draws `chart` into `place` and keeps it drawn. */
export const draw = (place: HTMLElement, chart: Chart): void => {
  const last = chart.x.length - 1;
  const ends: [number, number] = [chart.x[0] ?? 0, chart.x[last] ?? 1];
  const plots: uPlot[] = [];
  let busy = false;

  const zoomTo = (from: number, to: number): void => {
    const span = Math.max(to - from, (ends[1] - ends[0]) / 1e6);
    const low = Math.min(Math.max(from, ends[0]), ends[1] - span);
    const min = Math.max(low, ends[0]);
    busy = true;
    for (const plot of plots) plot.setScale("x", { min, max: Math.min(min + span, ends[1]) });
    busy = false;
  };

  const create = (): void => {
    const zoom = plots[0] && { min: plots[0].scales.x.min!, max: plots[0].scales.x.max! };
    for (const plot of plots.splice(0)) plot.destroy();
    place.replaceChildren();
    if (chart.bands.length > 0) place.append(legendOf(chart));
    const width = place.clientWidth;
    chart.panels.forEach((panel, index) => {
      const isFirst = index === 0;
      const isLast = index === chart.panels.length - 1;
      plots.push(new uPlot(options(chart, panel, width, isFirst, isLast, (from, to) => {
        if (!busy) zoomTo(from, to);
      }), [chart.x, ...panel.series.map((line) => line.y)], place));
    });
    for (const plot of plots) plot.over.addEventListener("dblclick", () => zoomTo(...ends));
    if (zoom) zoomTo(zoom.min, zoom.max);
  };

  create();
  place.addEventListener("keydown", (event) => {
    const scale = plots[0]?.scales.x;
    if (!scale || scale.min == null || scale.max == null) return;
    const span = scale.max - scale.min;
    const middle = (scale.min + scale.max) / 2;
    const moves: Record<string, () => void> = {
      ArrowLeft: () => zoomTo(scale.min! - span / 5, scale.max! - span / 5),
      ArrowRight: () => zoomTo(scale.min! + span / 5, scale.max! + span / 5),
      "+": () => zoomTo(middle - span / 4, middle + span / 4),
      "=": () => zoomTo(middle - span / 4, middle + span / 4),
      "-": () => zoomTo(middle - span, middle + span),
      "0": () => zoomTo(...ends),
    };
    const move = moves[event.key];
    if (move) {
      event.preventDefault();
      move();
    }
  });
  onThemeChange(create);
  let width = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth !== width && place.clientWidth > 0) {
      width = place.clientWidth;
      for (const plot of plots) plot.setSize({ width, height: plot.height });
    }
  }).observe(place);
};

const legendOf = (chart: Chart): HTMLElement => {
  const list = document.createElement("ul");
  list.className = "legend";
  const seen = new Set<string>();
  for (const band of chart.bands) {
    if (seen.has(band.label)) continue;
    seen.add(band.label);
    const item = document.createElement("li");
    const swatch = document.createElement("span");
    swatch.className = `swatch fill-${band.role}`;
    item.append(swatch, ` ${band.label}`);
    list.append(item);
    if (seen.size === 8) break;
  }
  return list;
};

const options = (
  chart: Chart,
  panel: Panel,
  width: number,
  isFirst: boolean,
  isLast: boolean,
  zoomed: (from: number, to: number) => void,
): uPlot.Options => {
  const grid = { stroke: colour("grid"), width: 1 };
  const axis = { stroke: colour("quiet"), grid, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const spaced = panel.series.some((line) => line.shape === "points");
  return {
    width,
    height: HEIGHT + (isLast ? 42 : 24),
    class: isFirst ? "first" : "other",
    cursor: { sync: { key: chart.id, setSeries: false }, drag: { x: true, y: false }, points: { size: 6 } },
    legend: { live: true },
    padding: [isFirst && chart.bands.length > 0 ? STRIP + 6 : 8, 26, 0, 0],
    scales: {
      x: { time: false, distr: chart.is_log ? 3 : 1, log: 2 },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 22,
        label: isLast ? chart.axis : undefined,
        labelSize: isLast ? 18 : 0,
        labelFont: "12px system-ui, sans-serif",
        space: 70,
        values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(chart.unit, tick))),
      },
      {
        ...axis,
        size: 78,
        label: panel.label,
        labelSize: 18,
        labelFont: "12px system-ui, sans-serif",
        space: 34,
        values: (_, ticks) => ticks.map((tick) => short(panel.unit, tick)),
      },
    ],
    series: [
      { label: chart.axis, value: (_, value) => exact(chart.unit, value) },
      ...panel.series.map((line): uPlot.Series => ({
        label: line.name,
        stroke: colour(line.role),
        width: line.shape === "dashed" ? 1.5 : 2,
        dash: line.shape === "dashed" ? [6, 5] : undefined,
        points: { show: spaced, size: 6, fill: colour(line.role) },
        spanGaps: spaced,
        paths: line.shape === "step" ? uPlot.paths.stepped!({ align: 1 }) : undefined,
        value: (_, value) => exact(panel.unit, value),
      })),
    ],
    hooks: {
      drawClear: [(plot) => bands(plot, chart, isFirst)],
      setScale: [
        (plot, key) => {
          const { min, max } = plot.scales.x;
          if (key === "x" && min != null && max != null) zoomed(min, max);
        },
      ],
    },
  };
};

/** The limiter of each span: a strip above the first panel, a tint behind all. */
const bands = (plot: uPlot, chart: Chart, isFirst: boolean): void => {
  const { ctx, bbox } = plot;
  const pixels = uPlot.pxRatio;
  ctx.save();
  for (const band of chart.bands) {
    const left = Math.max(plot.valToPos(band.from, "x", true), bbox.left);
    const right = Math.min(plot.valToPos(band.to, "x", true), bbox.left + bbox.width);
    if (right <= left) continue;
    ctx.fillStyle = colour(band.role);
    ctx.globalAlpha = 0.1;
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    if (isFirst) {
      ctx.globalAlpha = 1;
      ctx.fillRect(left, bbox.top - STRIP * pixels, Math.max(right - left, 1), (STRIP - 3) * pixels);
    }
  }
  ctx.restore();
};
