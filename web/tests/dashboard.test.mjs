// The dashboard for Grafana against what Grafana publishes of its own files (@grafana/schema): a key that it does not know, or a value
// of another type, is an error of the compiler. crates/cli/tests/metrics.rs starts it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const here = dirname(fileURLToPath(import.meta.url));
const dashboard = JSON.parse(readFileSync(join(here, "../../packaging/grafana/fullpipe.json"), "utf8"));
const panels = "@grafana/schema/dist/types/raw/composable";

/** The dashboard as a program, each panel of the type of its kind. */
const program = ({ panels: all, ...rest }) => {
  const kinds = [...new Set(all.map(({ type }) => type))];
  return [
    `import type { Dashboard, Panel, FieldConfigSource, DataSourceRef } from "@grafana/schema";`,
    ...kinds.map((kind) => `import type * as ${kind} from "../node_modules/${panels}/${kind}/panelcfg/x/types.gen";`),
    // Enumerations are their values in JSON, and what is left out is filled in by Grafana.
    `type Loose<T> = T extends string ? \`\${T}\`
       : T extends number ? (\`\${T}\` extends \`\${infer N extends number}\` ? N : T)
       : T extends (infer U)[] ? Loose<U>[]
       : T extends object ? { [K in keyof T]?: Loose<T[K]> } : T;`,
    // @grafana/schema leaves the queries of Prometheus out: these are the fields of its data source.
    `interface Query { refId: string; expr: string; legendFormat?: string; instant?: boolean;
       format?: "time_series" | "table" | "heatmap"; datasource: DataSourceRef }`,
    `type Of<O, F> = Omit<Loose<Panel>, "options" | "targets" | "fieldConfig"> & { options?: Loose<O>; targets: Query[];
       fieldConfig: Loose<FieldConfigSource> & { defaults: { custom?: Loose<F> } } };`,
    `export const dashboard: Loose<Omit<Dashboard, "panels">> = ${JSON.stringify(rest)};`,
    ...all.map((panel, at) => {
      return `export const panel${at}: Of<${panel.type}.Options, ${panel.type}.FieldConfig> = ${JSON.stringify(panel)};`;
    }),
  ].join("\n");
};

/** What the compiler says of it. */
const complaints = (text) => {
  const name = join(here, "dashboard.generated.ts");
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (file) => file === name || fileExists.call(host, file);
  host.readFile = (file) => (file === name ? text : readFile.call(host, file));
  host.getSourceFile = (file, ...more) =>
    file === name ? ts.createSourceFile(file, text, ts.ScriptTarget.ES2022) : getSourceFile.call(host, file, ...more);
  const made = ts.createProgram([name], options, host);
  return ts.getPreEmitDiagnostics(made).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
};

test("the dashboard has what Grafana's schema knows, and nothing else", () => {
  assert.deepEqual(complaints(program(dashboard)), []);
});

test("what Grafana does not know is found wherever it stands", () => {
  const spoilt = (change) => {
    const copy = structuredClone(dashboard);
    change(copy);
    return complaints(program(copy)).length;
  };
  assert.ok(spoilt((copy) => (copy.panel = [])));
  assert.ok(spoilt((copy) => (copy.panels[0].options.legend.displayMode = "lists")));
  assert.ok(spoilt((copy) => (copy.panels[0].fieldConfig.defaults.custom.fillOpacity = "20")));
  assert.ok(spoilt((copy) => (copy.panels[0].gridPos.width = 3)));
  assert.ok(spoilt((copy) => (copy.panels[0].targets[0].query = "up")));
});
