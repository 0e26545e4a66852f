// Panels over one axis, with one cursor and one zoom.

import uPlot from "uplot";
import { exact, short } from "./format";
import { Head } from "./head";
import { Link, type Span, type View } from "./link";
import type { Chart, Panel } from "./model";
import { colour, onThemeChange } from "./theme";

const HEIGHT = 150;
/** What the axis below the last panel takes. */
const AXIS = 42;
const STRIP = 10;
/** Steps of an axis that counts: there is no half segment. */
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();
/** Roles that are drawn as areas. */
const AREAS = new Set(["rate", "flight"]);
/** No cursor. */
const AWAY = { left: -10, top: -10 };

/** Draws `chart` into `place` and keeps it drawn, together with those of `link`. */
export const draw = (place: HTMLElement, chart: Chart, link = new Link()): void => {
  const last = chart.x.length - 1;
  const ends: Span = link.ends ?? [chart.x[0] ?? 0, chart.x[last] ?? 1];
  const plots: uPlot[] = [];
  /** The lines that were switched off by their names: they stay so when the colours change. */
  const hidden = new Set<string>();
  let shown = ends;
  // What it holds can be used: it is no picture as a whole, each panel is one.
  place.setAttribute("role", "group");

  const show = (span: Span | null): void => {
    const [from, to] = span ?? ends;
    const width = Math.min(Math.max(to - from, (ends[1] - ends[0]) / 1e6), ends[1] - ends[0]);
    const min = Math.min(Math.max(from, ends[0]), ends[1] - width);
    shown = [min, min + width];
    for (const plot of plots) plot.setScale("x", { min, max: min + width });
  };
  const view: View = {
    show,
    point: (at) => {
      for (const plot of plots) plot.setCursor(at === null ? AWAY : { left: plot.valToPos(at, "x"), top: AWAY.top }, false);
    },
  };
  const zoomTo = (span: Span | null): void => {
    show(span);
    link.show(view, span);
  };

  const create = (): void => {
    for (const plot of plots.splice(0)) plot.destroy();
    place.replaceChildren();
    if (chart.bands.length > 0) place.append(legendOf(chart));
    const width = place.clientWidth;
    chart.panels.forEach((panel, index) => {
      const isFirst = index === 0;
      const isLast = index === chart.panels.length - 1;
      const heard = {
        zoomed: (from: number, to: number) => {
          if (from !== shown[0] || to !== shown[1]) zoomTo([from, to]);
        },
        pointed: (at: number | null) => link.point(view, at),
      };
      const data: uPlot.AlignedData = [chart.x, ...panel.series.map((line) => line.y)];
      const head = new Head(panel, isFirst);
      const picture = document.createElement("div");
      picture.setAttribute("role", "img");
      picture.ariaLabel = spoken(panel);
      place.append(head.element, picture);
      const plot = new uPlot(options(chart, panel, width, isFirst, isLast, heard, head), data, picture);
      head.follow(plot, hidden, index);
      plots.push(plot);
    });
    for (const plot of plots) plot.over.addEventListener("dblclick", () => zoomTo(null));
    show(shown);
  };

  create();
  link.join(view);
  place.addEventListener("keydown", (event) => {
    const [min, max] = shown;
    const span = max - min;
    const middle = (min + max) / 2;
    const moves: Record<string, () => void> = {
      ArrowLeft: () => zoomTo([min - span / 5, max - span / 5]),
      ArrowRight: () => zoomTo([min + span / 5, max + span / 5]),
      "+": () => zoomTo([middle - span / 4, middle + span / 4]),
      "=": () => zoomTo([middle - span / 4, middle + span / 4]),
      "-": () => zoomTo([middle - span, middle + span]),
      "0": () => zoomTo(null),
    };
    const move = moves[event.key];
    if (move) {
      event.preventDefault();
      move();
    }
  });
  onThemeChange(place, create);
  let width = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth !== width && place.clientWidth > 0) {
      width = place.clientWidth;
      for (const plot of plots) plot.setSize({ width, height: plot.height });
    }
  }).observe(place);
};

/** What a panel shows, for those who don't see it. */
const spoken = (panel: Panel): string => `${panel.label}: ${panel.series.map((line) => line.name).join(", ")}`;

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
  heard: { zoomed: (from: number, to: number) => void; pointed: (at: number | null) => void },
  head: Head,
): uPlot.Options => {
  const grid = { stroke: colour("grid"), width: 1 };
  const axis = { stroke: colour("quiet"), grid, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const spaced = panel.series.some((line) => line.shape === "points");
  return {
    width,
    height: HEIGHT + (isLast ? AXIS : 0),
    cursor: { sync: { key: chart.id, setSeries: false }, drag: { x: true, y: false }, points: { size: 6 } },
    legend: { show: false },
    padding: [isFirst && chart.bands.length > 0 ? STRIP + 6 : 6, 16, 0, 0],
    scales: {
      x: { time: false, distr: chart.is_log ? 3 : 1, log: 2 },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.06 : 1] },
    },
    axes: [
      {
        ...axis,
        size: isLast ? 22 : 8,
        label: isLast ? chart.axis : undefined,
        labelSize: isLast ? 18 : 0,
        labelFont: "12px system-ui, sans-serif",
        space: 70,
        // The panels have one axis: its figures stand below the last.
        values: (_, ticks) => ticks.map((tick) => (tick === null || !isLast ? "" : short(chart.unit, tick))),
      },
      {
        ...axis,
        size: 74,
        space: 34,
        incrs: panel.unit === "count" ? WHOLE : undefined,
        values: (_, ticks) => ticks.map((tick) => short(panel.unit, tick)),
      },
    ],
    series: [
      { label: chart.axis },
      ...panel.series.map((line): uPlot.Series => ({
        label: line.name,
        stroke: colour(line.role),
        width: line.shape === "dashed" ? 1.5 : 2,
        // What flows is an area: it shows below a line that it touches, as bytes in flight do at the end of the window.
        fill: AREAS.has(line.role) && !spaced ? `${colour(line.role)}2b` : undefined,
        dash: line.shape === "dashed" ? [6, 5] : undefined,
        points: { show: spaced, size: 6, fill: colour(line.role) },
        spanGaps: spaced,
        paths: line.shape === "step" ? uPlot.paths.stepped!({ align: 1 }) : undefined,
      })),
    ],
    hooks: {
      drawClear: [(plot) => bands(plot, chart, isFirst)],
      draw: [(plot) => plateau(plot, chart, isFirst)],
      setScale: [
        (plot, key) => {
          const { min, max } = plot.scales.x;
          if (key === "x" && min != null && max != null) heard.zoomed(min, max);
        },
      ],
      setLegend: [
        (plot) => {
          const place = plot.cursor.idx;
          if (place == null) head.tell("", []);
          else head.tell(exact(chart.unit, chart.x[place]), panel.series.map((line) => line.y[place]));
        },
      ],
      setCursor: [
        (plot) => {
          const { left, event } = plot.cursor;
          // Only of the panel that the pointer is on: the others follow it.
          if (event) heard.pointed(left == null || left < 0 ? null : plot.posToVal(left, "x"));
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

/** From where on a curve gains no more. */
const plateau = (plot: uPlot, chart: Chart, isFirst: boolean): void => {
  if (chart.plateau == null) return;
  const { ctx, bbox } = plot;
  const pixels = uPlot.pxRatio;
  const x = plot.valToPos(chart.plateau, "x", true);
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("quiet");
  ctx.lineWidth = pixels;
  ctx.setLineDash([3 * pixels, 4 * pixels]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  if (isFirst) {
    // On the side that has room.
    const isRight = x < bbox.left + bbox.width * 0.8;
    ctx.font = `${12 * pixels}px system-ui, sans-serif`;
    ctx.textAlign = isRight ? "left" : "right";
    ctx.textBaseline = "top";
    ctx.fillText("plateau", x + (isRight ? 5 : -5) * pixels, bbox.top + bbox.height - 18 * pixels);
  }
  ctx.restore();
};
