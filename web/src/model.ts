// What the page carries: written by crates/report (html/chart.rs, html/trace.rs).

export type Kind = "seconds" | "micros" | "bytes" | "rate" | "count";
export type Shape = "line" | "step" | "dashed" | "points";

export interface Series {
  name: string;
  role: string;
  shape: Shape;
  y: (number | null)[];
}

export interface Panel {
  label: string;
  unit: Kind;
  series: Series[];
}

export interface Band {
  from: number;
  to: number;
  label: string;
  role: string;
}

export interface Chart {
  id: string;
  title: string;
  axis: string;
  unit: Kind;
  is_log: boolean;
  x: number[];
  panels: Panel[];
  bands: Band[];
  /** From where on the axis a curve gains no more. */
  plateau: number | null;
}

export interface TraceChart {
  id: string;
  title: string;
  filter: string;
  count: number;
  seen: number;
  has_windows: boolean;
  /** The first and the last point on the axis of the connection's charts, in microseconds. */
  begins_us: number;
  ends_us: number;
  points: string;
}

export interface Charts {
  charts: Chart[];
  traces: TraceChart[];
}
