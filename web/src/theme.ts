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

/** Calls `redraw` when the colours change. */
export const onThemeChange = (redraw: () => void): void => {
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", () => {
      known.clear();
      redraw();
    });
  }
};
