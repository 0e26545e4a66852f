// What stands above a panel: its name, and its lines, each a switch with its value.

import type uPlot from "uplot";
import { exact } from "./format";
import type { Kind, Shape } from "./model";
import { colour } from "./theme";

/** A panel without its numbers. */
interface Named {
  label: string;
  unit: Kind;
  series: { name: string; role: string; shape: Shape }[];
}

export class Head {
  readonly element = document.createElement("div");
  private readonly time = document.createElement("span");
  private readonly buttons: HTMLButtonElement[] = [];
  private readonly values: HTMLElement[] = [];

  constructor(private readonly panel: Named, hasTime: boolean) {
    this.element.className = "panel";
    const name = document.createElement("b");
    name.textContent = panel.label;
    const list = document.createElement("ul");
    list.className = "legend";
    for (const line of panel.series) {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      const swatch = document.createElement("span");
      swatch.className = `swatch ${line.shape}`;
      button.append(swatch, line.name);
      const value = document.createElement("span");
      value.className = "value";
      item.append(button, value);
      list.append(item);
      this.buttons.push(button);
      this.values.push(value);
    }
    this.time.className = "time";
    this.element.append(name, list, ...(hasTime ? [this.time] : []));
  }

  /** Switches the lines of `plot`; `hidden` remembers which are off, by the panel's place and theirs. */
  follow(plot: uPlot, hidden: Set<string>, place: number): void {
    this.buttons.forEach((button, index) => {
      const key = `${place}/${index}`;
      (button.firstElementChild as HTMLElement).style.color = colour(this.panel.series[index].role);
      const show = (isShown: boolean): void => {
        button.ariaPressed = String(isShown);
        if (plot.series[index + 1].show !== isShown) plot.setSeries(index + 1, { show: isShown }, false);
      };
      button.addEventListener("click", () => {
        if (!hidden.delete(key)) hidden.add(key);
        show(!hidden.has(key));
      });
      show(!hidden.has(key));
    });
  }

  /** Shows a value for each line; none where there is no place to show the values of. */
  tell(time: string, values: readonly (number | null)[]): void {
    this.time.textContent = time;
    this.values.forEach((value, index) => {
      value.textContent = index < values.length ? exact(this.panel.unit, values[index]) : "";
    });
  }
}
