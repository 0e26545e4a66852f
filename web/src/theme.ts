// Colours come from the style, so that light, dark and print have theirs.

const known = new Map<string, string>();

/** The colour of a role, as the style has it now. */
export const colour = (role: string): string => {
  let value = known.get(role);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim() || "#777777";
    known.set(role, value);
  }
  return value;
};

/** What is to be drawn again, by its place. */
const redraws = new Map<Element, () => void>();

for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  matchMedia(query).addEventListener("change", () => {
    known.clear();
    for (const [place, redraw] of redraws) if (place.isConnected) redraw();
  });
}

/** Calls `redraw` when the colours change, as long as `place` is on the page. */
export const onThemeChange = (place: Element, redraw: () => void): void => {
  for (const other of redraws.keys()) if (!other.isConnected) redraws.delete(other);
  redraws.set(place, redraw);
};
