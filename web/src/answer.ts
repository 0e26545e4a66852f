// What the simulator says of a connection, shown.

import { draw } from "./chart";
import type { Chart } from "./model";

export interface Answer {
  rate: string;
  rate_bps: number;
  limit: string;
  limiter: string;
  share: number;
  can_be_lifted: boolean;
  evidence: string[];
  action: string;
  shares: Record<string, number>;
  seconds: number | null;
  retransmissions: number;
  queue_delay: string;
  memory: string;
  product: string;
  failure: string | null;
  plans: { role: string; platform: string; changes: { do: string; why: string }[]; notes: string[] }[];
  chart: Chart | null;
}

const byId = (id: string): HTMLElement => document.getElementById(id)!;

export const element = (name: string, text: string, className = ""): HTMLElement => {
  const made = document.createElement(name);
  made.textContent = text;
  if (className !== "") made.className = className;
  return made;
};

/** Figures with their names. */
export const factsOf = (pairs: [string, string][]): HTMLElement => {
  const facts = element("dl", "", "facts");
  for (const [name, text] of pairs) {
    const pair = document.createElement("div");
    pair.append(element("dt", name), element("dd", text));
    facts.append(pair);
  }
  return facts;
};

/** Text that is typed, with a button that copies it. */
export const typedText = (id: string, text: string): HTMLElement[] => {
  const typed = document.createElement("pre");
  const code = element("code", text);
  code.id = id;
  typed.tabIndex = 0;
  typed.append(code);
  const button = element("button", "copy") as HTMLButtonElement;
  button.type = "button";
  button.dataset.copy = id;
  return [typed, button];
};

/** Says why there is no answer. */
export const refuse = (error = "no answer"): void => {
  byId("headline").textContent = "That can't be simulated";
  byId("answer").className = "verdict open";
  byId("answer").replaceChildren(element("p", error));
  byId("chart").replaceChildren();
  byId("plans").replaceChildren();
};

/** What to set at each end, as it is typed. */
const showPlans = (plans: Answer["plans"]): void => {
  const articles = plans.map(({ role, platform, changes, notes }) => {
    const article = element("article", "", "change");
    article.append(element("h3", plans.length === 1 ? platform : `${role}, ${platform}`));
    if (changes.length > 0) article.append(...typedText(`plan-${role}`, changes.map((change) => change.do).join("\n")));
    else article.append(element("p", "Nothing to set."));
    const why = document.createElement("ul");
    for (const text of new Set([...changes.map((change) => change.why), ...notes])) why.append(element("li", text));
    article.append(why);
    return article;
  });
  byId("plans").replaceChildren(...articles);
};

/** Shows what the simulator says of a connection. */
export const showAnswer = (found: Answer, seconds: number): void => {
  const place = byId("answer");
  const share = `${Math.round(found.share * 100)} % of the time`;
  byId("headline").textContent = `${found.rate}, limited by ${found.limit}, ${share}`;
  place.className = `verdict ${found.limiter === "path" ? "good" : found.can_be_lifted ? "bad" : "open"}`;
  const facts = factsOf([
    ["payload rate", found.rate],
    ...(found.seconds === null ? [] : [["transfer", `${found.seconds.toFixed(3)} s`] as [string, string]]),
    ["bandwidth-delay product", found.product],
    ["memory at most", found.memory],
    ["wait in the queue", found.queue_delay],
    ["retransmitted", String(found.retransmissions)],
    ["virtual time", `${Number(seconds.toFixed(3))} s`],
  ]);
  const why = document.createElement("ul");
  for (const text of found.evidence) why.append(element("li", text));
  place.replaceChildren(facts, element("p", `Do: ${found.action}`, "action"), element("h2", "Why", "small"), why);
  if (found.failure) place.append(element("p", found.failure, "problem"));
  showPlans(found.plans);
  const canvas = byId("chart").cloneNode(false) as HTMLElement;
  byId("chart").replaceWith(canvas);
  if (found.chart) draw(canvas, { ...found.chart, id: "answer" });
};
