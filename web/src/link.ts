// What the charts of one connection share: the part of time in sight, and the cursor.

/** Seconds since the connection's first payload. */
export type Span = readonly [from: number, to: number];

/** A chart that follows others. */
export interface View {
  /** Shows this part, or all of it. */
  show(span: Span | null): void;
  /** Marks this time, or none. */
  point(at: number | null): void;
}

export class Link {
  /** What all charts together have, where that is known before they are drawn. */
  ends: Span | null = null;
  private readonly views: View[] = [];
  private span: Span | null = null;
  private isTelling = false;

  /** Another chart has this part. */
  cover([from, to]: Span): void {
    this.ends = this.ends ? [Math.min(this.ends[0], from), Math.max(this.ends[1], to)] : [from, to];
  }

  join(view: View): void {
    this.views.push(view);
    // A chart is drawn when it comes into sight, and others may have been zoomed before.
    if (this.span) view.show(this.span);
  }

  show(by: View, span: Span | null): void {
    this.span = span;
    this.others(by, (view) => view.show(span));
  }

  point(by: View, at: number | null): void {
    this.others(by, (view) => view.point(at));
  }

  private others(by: View, tell: (view: View) => void): void {
    if (this.isTelling) return;
    this.isTelling = true;
    for (const view of this.views) if (view !== by) tell(view);
    this.isTelling = false;
  }
}
