// Builds the script and the style that crates/page puts and crates/web put into their pages. `--check` says whether they are fresh.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { packed } from "./packed.mjs";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const report = "../crates/page/src/html/assets/";
const pages = [
  { entry: "src/report.ts", out: `${report}report.js.gz` },
  { entry: "src/what-if.ts", out: `${report}what-if.js.gz` },
  { entry: "src/report.css", out: `${report}report.css` },
  { entry: "src/live.ts", out: "../crates/web/src/assets/live.js.gz" },
  { entry: "src/reader.ts", out: "../crates/web/src/assets/reader.js" },
];

let stale = 0;
for (const { entry, out } of pages) {
  const result = await build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    charset: "ascii",
    legalComments: "none",
    // The licence of what is bundled goes along (uPlot: MIT).
    banner: { js: "/* uPlot 1.6.32, (c) Leon Sorokin, MIT */", css: "/* uPlot 1.6.32, (c) Leon Sorokin, MIT */" },
  });
  // What would end the element that the text stands in.
  const text = result.outputFiles[0].text.replaceAll("</", "<\\/");
  const path = here(out);
  // The program holds its scripts as gzip, because the packaged one has a limit to its size.
  const isPacked = out.endsWith(".gz");
  if (process.argv.includes("--check")) {
    const written = await readFile(path);
    if ((isPacked ? gunzipSync(written) : written).toString("utf8") !== text) {
      console.error(`${out} is stale: run \`npm run build\` in web/`);
      stale = 1;
    }
  } else {
    const bytes = isPacked ? await packed(text) : text;
    await writeFile(path, bytes);
    console.log(`${out}: ${bytes.length} bytes`);
  }
}
process.exit(stale);
