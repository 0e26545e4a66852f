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
}

export interface TraceChart {
  id: string;
  title: string;
  filter: string;
  count: number;
  seen: number;
  has_windows: boolean;
  points: string;
}

export interface Charts {
  charts: Chart[];
  traces: TraceChart[];
}
