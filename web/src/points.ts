// The packed points of a time-sequence graph: crates/page/src/html/trace.rs writes them.

export const DATA = 0;
export const AGAIN = 1;
export const ACK = 2;
export const SACK = 3;

export interface Points {
  count: number;
  /** Seconds since the first payload: before it, for the handshake, negative. */
  at: Float64Array;
  /** Packet numbers in the capture. */
  number: Float64Array;
  kind: Uint8Array;
  seq: Float64Array;
  len: Float64Array;
  /** The places of the points of each kind. */
  of: Uint32Array[];
  /** The lowest and the highest byte of each block of points, with and without the offered window. */
  low: Float64Array;
  high: Float64Array;
  highest: Float64Array;
}

/** Points of a block. */
const BLOCK = 1024;

export const unpack = (base64: string, count: number, begins_us: number): Points => {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  const points: Points = {
    count,
    at: new Float64Array(count),
    number: new Float64Array(count),
    kind: new Uint8Array(count),
    seq: new Float64Array(count),
    len: new Float64Array(count),
    of: [],
    low: new Float64Array(Math.ceil(count / BLOCK)).fill(Infinity),
    high: new Float64Array(Math.ceil(count / BLOCK)).fill(-Infinity),
    highest: new Float64Array(Math.ceil(count / BLOCK)).fill(-Infinity),
  };
  const counts = [0, 0, 0, 0];
  let place = 0;
  // Numbers go beyond 32 bits: no bit operators on the whole.
  const leb128 = (): number => {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = bytes[place];
      place += 1;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
  };
  const zigzag = (): number => {
    const value = leb128();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  };
  const expected = [0, 0, 0, 0];
  const sizes = [0, 0, 0, 0];
  let us = begins_us;
  let number = 0;
  for (let index = 0; index < count; index += 1) {
    const kind = bytes[place];
    place += 1;
    us += leb128();
    number += zigzag();
    const seq = expected[kind] + zigzag();
    const len = sizes[kind] + zigzag();
    expected[kind] = kind === DATA ? seq + len : seq;
    sizes[kind] = len;
    points.at[index] = us / 1e6;
    points.number[index] = number;
    points.kind[index] = kind;
    points.seq[index] = seq;
    points.len[index] = len;
    counts[kind] += 1;
    const block = Math.floor(index / BLOCK);
    points.low[block] = Math.min(points.low[block], seq);
    points.high[block] = Math.max(points.high[block], kind === ACK ? seq : seq + len);
    points.highest[block] = Math.max(points.highest[block], seq + len);
  }
  points.of = counts.map((size) => new Uint32Array(size));
  const filled = [0, 0, 0, 0];
  for (let index = 0; index < count; index += 1) {
    const kind = points.kind[index];
    points.of[kind][filled[kind]] = index;
    filled[kind] += 1;
  }
  return points;
};

/** The lowest and the highest byte of the points from `from` to before `to`. */
export const extent = (points: Points, from: number, to: number, withWindow: boolean): [number, number] => {
  const tops = withWindow ? points.highest : points.high;
  let low = Infinity;
  let high = -Infinity;
  for (let index = from; index < to; ) {
    const block = index / BLOCK;
    if (Number.isInteger(block) && index + BLOCK <= to) {
      low = Math.min(low, points.low[block]);
      high = Math.max(high, tops[block]);
      index += BLOCK;
      continue;
    }
    const seq = points.seq[index];
    const isBare = points.kind[index] === ACK && !withWindow;
    low = Math.min(low, seq);
    high = Math.max(high, isBare ? seq : seq + points.len[index]);
    index += 1;
  }
  return [low, high];
};

/** The first place in a list of points whose point is at or behind `index`. */
export const firstOf = (places: Uint32Array, index: number): number => {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (places[middle] < index) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** The place of the first point at or after `at`. */
export const firstFrom = (points: Points, at: number): number => {
  let low = 0;
  let high = points.count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (points.at[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
};
