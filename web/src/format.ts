// Numbers as a person writes them, in the units of docs/json.md.

import type { Kind } from "./model";

const digits = (value: number): string => {
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
};

const scaled = (value: number, units: string[], step: number): string => {
  let place = 0;
  while (Math.abs(value) >= step && place < units.length - 1) {
    value /= step;
    place += 1;
  }
  return `${place === 0 && Number.isInteger(value) ? value : digits(value)} ${units[place]}`;
};

const grouped = (value: number): string => value.toLocaleString("en-US", { maximumFractionDigits: 0 });

/** A value with its unit, as exact as it is known. */
export const exact = (kind: Kind, value: number | null | undefined): string => {
  if (value === null || value === undefined) return "\u2013";
  switch (kind) {
    case "rate":
      return scaled(value, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"], 1000);
    case "micros":
      return scaled(value, ["us", "ms", "s"], 1000);
    case "bytes":
      return `${grouped(value)} B`;
    case "seconds":
      return `${value.toFixed(value < 10 ? 4 : 3)} s`;
    case "count":
      return grouped(value);
  }
};

/** `1.50 MB` as `1.5 MB`, `6.00 MB` as `6 MB`. */
const trimmed = (text: string): string => text.replace(/\.(\d*?)0+(?= |$)/, (_, rest: string) => (rest === "" ? "" : `.${rest}`));

/** A value for the ticks of an axis: short. */
export const short = (kind: Kind, value: number): string => {
  if (value === 0 && kind !== "seconds") return "0";
  switch (kind) {
    case "bytes":
      return trimmed(scaled(value, ["B", "kB", "MB", "GB"], 1000));
    case "seconds":
      return `${+value.toFixed(6)} s`;
    case "count":
      return value >= 10_000 ? trimmed(scaled(value, ["", "k", "M", "G"], 1000).trim()) : grouped(value);
    default:
      return trimmed(exact(kind, value));
  }
};
