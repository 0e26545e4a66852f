// The time-sequence graph: segments, acknowledgements, the offered window, retransmissions and SACK blocks, down to a packet.

import uPlot from "uplot";
import { exact, short } from "./format";
import { Link, type Span, type View } from "./link";
import type { TraceChart } from "./model";
import { ACK, AGAIN, DATA, extent, firstFrom, firstOf, SACK, unpack, type Points } from "./points";
import { colour, onThemeChange } from "./theme";

const HEIGHT = 420;
const TICK = 7;
const NAMES = ["data", "sent again, or reordered", "acknowledged", "SACK block"];
const ROLES = ["flight", "again", "acked", "sack"];
/** What can be hidden: the kinds, and the end of the offered window. */
const WINDOW = 4;

/** Draws `chart` into `place` and keeps it drawn, together with those of `link`. */
export const draw = (place: HTMLElement, chart: TraceChart, link = new Link()): void => {
  const points = unpack(chart.points, chart.count, chart.begins_us);
  if (points.count === 0) return;
  const own: Span = [points.at[0], Math.max(points.at[points.count - 1], points.at[0] + 1e-6)];
  const ends = link.ends ?? own;
  const hidden = new Set<number>(chart.has_windows ? [] : [WINDOW]);
  let shown = ends;
  let plot: uPlot | undefined;
  const readout = document.createElement("p");
  readout.className = "readout";
  readout.setAttribute("role", "status");
  readout.textContent =
    "Drag to zoom, double-click for all, Shift and drag to pan; point at a packet for its number; a name hides what it names.";

  const show = (span: Span | null): void => {
    const [from, to] = span ?? ends;
    const width = Math.min(Math.max(to - from, 20e-6), ends[1] - ends[0]);
    const min = Math.min(Math.max(from, ends[0]), ends[1] - width);
    shown = [min, min + width];
    plot?.batch(() => {
      plot?.setScale("x", { min, max: min + width });
      plot?.setScale("y", level(points, min, min + width, hidden));
    });
  };
  const view: View = {
    show,
    point: (at) => {
      if (plot) plot.setCursor(at === null ? { left: -10, top: -10 } : { left: plot.valToPos(at, "x"), top: -10 }, false);
    },
  };
  const zoomTo = (span: Span | null): void => {
    show(span);
    link.show(view, span);
  };

  const create = (): void => {
    plot?.destroy();
    place.replaceChildren();
    const pointed = (at: number | null): void => link.point(view, at);
    plot = new uPlot(options(points, chart, place.clientWidth, readout, hidden, zoomTo, pointed), [[...ends], [0, 1]], place);
    plot.over.addEventListener("dblclick", () => zoomTo(null));
    pan(plot, zoomTo);
    show(shown);
  };

  create();
  const head = document.createElement("div");
  head.className = "panel";
  const name = document.createElement("b");
  name.textContent = "sequence number";
  head.append(name);
  place.before(head);
  place.after(legend(points, chart, hidden, () => show(shown)), readout);
  link.join(view);
  place.addEventListener("keydown", (event) => {
    const [min, max] = shown;
    const span = max - min;
    const moves: Record<string, () => void> = {
      ArrowLeft: () => zoomTo([min - span / 5, max - span / 5]),
      ArrowRight: () => zoomTo([min + span / 5, max + span / 5]),
      "+": () => zoomTo([min + span / 4, max - span / 4]),
      "=": () => zoomTo([min + span / 4, max - span / 4]),
      "-": () => zoomTo([min - span / 2, max + span / 2]),
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
      plot?.setSize({ width, height: HEIGHT });
    }
  }).observe(place);
};

const pan = (plot: uPlot, zoomTo: (span: Span) => void): void => {
  plot.over.addEventListener("mousedown", (event) => {
    if (!event.shiftKey) return;
    event.stopImmediatePropagation();
    const { min, max } = plot.scales.x as { min: number; max: number };
    const perPixel = (max - min) / plot.over.clientWidth;
    const move = (moved: MouseEvent): void => {
      const by = (event.clientX - moved.clientX) * perPixel;
      zoomTo([min + by, max + by]);
    };
    const stop = (): void => {
      document.removeEventListener("mousemove", move);
      document.removeEventListener("mouseup", stop);
    };
    document.addEventListener("mousemove", move);
    document.addEventListener("mouseup", stop);
  }, true);
  plot.over.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.altKey) return;
    event.preventDefault();
    const { min, max } = plot.scales.x as { min: number; max: number };
    const at = plot.posToVal(event.offsetX, "x");
    const factor = event.deltaY < 0 ? 0.7 : 1 / 0.7;
    zoomTo([at - (at - min) * factor, at + (max - at) * factor]);
  }, { passive: false });
};

/** Names what is drawn, each a switch. */
const legend = (points: Points, chart: TraceChart, hidden: Set<number>, redraw: () => void): HTMLElement => {
  const list = document.createElement("ul");
  list.className = "legend";
  const add = (kind: number, role: string, text: string): void => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.ariaPressed = "true";
    const swatch = document.createElement("span");
    swatch.className = `swatch fill-${role}`;
    button.append(swatch, ` ${text}`);
    button.addEventListener("click", () => {
      if (!hidden.delete(kind)) hidden.add(kind);
      button.ariaPressed = String(!hidden.has(kind));
      redraw();
    });
    item.append(button);
    list.append(item);
  };
  NAMES.forEach((name, kind) => {
    const count = points.of[kind].length;
    if (count > 0) add(kind, ROLES[kind], `${name} (${exact("count", count)})`);
  });
  if (chart.has_windows) add(WINDOW, "window", "offered window");
  return list;
};

const options = (
  points: Points,
  chart: TraceChart,
  width: number,
  readout: HTMLElement,
  hidden: ReadonlySet<number>,
  zoomTo: (span: Span) => void,
  pointed: (at: number | null) => void,
): uPlot.Options => {
  const grid = { stroke: colour("grid"), width: 1 };
  const font = "12px system-ui, sans-serif";
  const axis = { stroke: colour("quiet"), grid, ticks: { show: false }, font, labelFont: font, labelSize: 18 };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
    padding: [8, 16, 0, 0],
    scales: {
      x: { time: false },
      // Set with every zoom.
      y: { auto: false, range: (_, min, max) => [min, max] },
    },
    axes: [
      { ...axis, size: 22, label: "time", space: 80, values: (_, ticks) => ticks.map((tick) => short("seconds", tick)) },
      { ...axis, size: 74, space: 40, values: (_, ticks) => ticks.map((tick) => short("bytes", tick)) },
    ],
    series: [{}, { show: true, stroke: "transparent", points: { show: false } }],
    hooks: {
      draw: [(plot) => paint(plot, points, hidden)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 3) return;
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoomTo([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
        },
      ],
      setCursor: [
        (plot) => {
          const { left } = plot.cursor;
          pointed(left == null || left < 0 ? null : plot.posToVal(left, "x"));
          tell(plot, points, chart, hidden, readout);
        },
      ],
    },
  };
};

/** The sequence numbers that are in sight. */
const level = (points: Points, min: number, max: number, hidden: ReadonlySet<number>): { min: number; max: number } => {
  const [low, high] = extent(points, firstFrom(points, min), firstFrom(points, max), !hidden.has(WINDOW));
  if (low > high) return { min: 0, max: 1 };
  const room = Math.max((high - low) * 0.04, 1);
  return { min: low - room, max: high + room };
};

const paint = (plot: uPlot, points: Points, hidden: ReadonlySet<number>): void => {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales.x as { min: number; max: number };
  const { min: low, max: high } = plot.scales.y as { min: number; max: number };
  const perSecond = bbox.width / (max - min);
  const perByte = bbox.height / (high - low);
  const x = (at: number): number => bbox.left + (at - min) * perSecond;
  const y = (seq: number): number => bbox.top + bbox.height - (seq - low) * perByte;
  const from = Math.max(firstFrom(points, min) - 1, 0);
  const to = Math.min(firstFrom(points, max) + 1, points.count);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const pixels = uPlot.pxRatio;
  // Two stairs: what was acknowledged, and where the offered window ends.
  for (const [role, kind] of [["window", WINDOW], ["acked", ACK]] as const) {
    if (hidden.has(kind)) continue;
    const isWindow = kind === WINDOW;
    ctx.beginPath();
    let begun = false;
    let before = 0;
    let lastX = -1;
    const acks = points.of[ACK];
    // One before, so that the stair comes in from the left.
    for (let place = Math.max(firstOf(acks, from) - 1, 0); place < acks.length && acks[place] < to; place += 1) {
      const index = acks[place];
      const at = x(points.at[index]);
      const level = y(points.seq[index] + (isWindow ? points.len[index] : 0));
      // A step within a pixel can't be seen.
      if (begun && at - lastX < 0.5 && Math.abs(level - before) < 0.5) continue;
      if (begun) ctx.lineTo(at, before);
      if (begun) ctx.lineTo(at, level);
      else ctx.moveTo(at, level);
      begun = true;
      before = level;
      lastX = at;
    }
    if (begun) ctx.lineTo(bbox.left + bbox.width, before);
    ctx.strokeStyle = colour(role);
    ctx.lineWidth = 1.5 * pixels;
    ctx.stroke();
  }
  // A segment is a bar from its first to its last byte: at least a dot. What falls on the pixels of the one before is not
  // drawn again.
  for (const kind of [SACK, DATA, AGAIN]) {
    if (hidden.has(kind)) continue;
    ctx.fillStyle = colour(ROLES[kind]);
    const wide = (kind === DATA ? 2 : 3) * pixels;
    let lastX = -10;
    let lastY = -10;
    const places = points.of[kind];
    for (let place = firstOf(places, from); place < places.length && places[place] < to; place += 1) {
      const index = places[place];
      const left = x(points.at[index]);
      const top = y(points.seq[index] + points.len[index]);
      if (Math.abs(left - lastX) < 0.7 && Math.abs(top - lastY) < 0.7) continue;
      const tall = Math.max(points.len[index] * perByte, wide);
      ctx.fillRect(left - wide / 2, top, wide, tall);
      lastX = left;
      lastY = top;
      // What was sent again hides on a steep line: a tick on the axis tells when.
      if (kind === AGAIN) ctx.fillRect(left - pixels / 2, bbox.top + bbox.height - TICK * pixels, pixels, TICK * pixels);
    }
  }
  ctx.restore();
};

/** Names the packet nearest to the cursor. */
const tell = (
  plot: uPlot,
  points: Points,
  chart: TraceChart,
  hidden: ReadonlySet<number>,
  readout: HTMLElement,
): void => {
  const { left, top } = plot.cursor;
  if (left == null || top == null || left < 0) return;
  const reach = 12;
  const from = firstFrom(points, plot.posToVal(left - reach, "x"));
  const to = firstFrom(points, plot.posToVal(left + reach, "x"));
  let best = -1;
  let nearest = Infinity;
  for (let index = from; index < to; index += 1) {
    if (hidden.has(points.kind[index])) continue;
    const across = plot.valToPos(points.at[index], "x") - left;
    const base = points.seq[index];
    const isBar = points.kind[index] !== ACK;
    const a = plot.valToPos(base, "y");
    const b = isBar ? plot.valToPos(base + points.len[index], "y") : a;
    const up = top > a ? top - a : top < b ? b - top : 0;
    const distance = Math.hypot(across, up);
    if (distance < nearest) {
      nearest = distance;
      best = index;
    }
  }
  if (best < 0 || nearest > 40) return;
  const kind = points.kind[best];
  const seq = exact("count", points.seq[best]);
  const len = exact("bytes", points.len[best]);
  const what = kind === ACK
    ? `acknowledges ${seq}${chart.has_windows ? `, window ${len}` : ""}`
    : `${NAMES[kind]}: ${len} from ${seq}`;
  const filter = document.createElement("code");
  filter.textContent = `frame.number == ${points.number[best]}`;
  readout.replaceChildren(`Packet ${exact("count", points.number[best])}, ${exact("seconds", points.at[best])}: ${what}. `, filter);
};
