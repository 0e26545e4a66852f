// Compiles what pages compute themselves: bindings/wasm for wasm32-unknown-unknown as gzip, the simulator (it stands in its page) and the
// reader of captures (the local web view serves it). It takes a Rust toolchain with that target (`rustup
// target add wasm32-unknown-unknown`). Compilers differ in their bytes, so that no test compares these: tests compare what they answer
// with what `fullpipe what-if` and `fullpipe read` do.
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { fileURLToPath } from "node:url";
import { packed } from "./packed.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = "wasm32-unknown-unknown";
// No path of this machine shall stand in it.
const cargo = process.env.CARGO_HOME ?? `${homedir()}/.cargo`;
const flags = `--remap-path-prefix=${root}= --remap-path-prefix=${cargo}=cargo`;
// Downloaded or read with every page: one unit, and nothing that it does not need.
const optimised = ["lto=\"fat\"", "codegen-units=1", "panic=\"abort\"", "opt-level=\"s\""].flatMap((setting) => ["--config", `profile.release.${setting}`]);
const compiled = async (feature) => {
  const words = ["build", "--locked", "--release", "--package", "fullpipe-wasm", "--no-default-features", "--features", feature];
  execFileSync("cargo", [...words, ...optimised, "--target", target, "--target-dir", "target/wasm"], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, RUSTFLAGS: flags },
  });
  return readFile(`${root}/target/wasm/${target}/release/fullpipe_wasm.wasm`);
};
const put = async (name, code, path) => {
  const text = await packed(code);
  await writeFile(`${root}/${path}`, text);
  console.log(`${name}: ${code.length} bytes, ${text.length} in ${path}`);
};
const simulator = await compiled("simulator");
await put("simulator", simulator, "crates/page/src/html/assets/simulator.wasm.gz");
const reader = await compiled("reader");
await put("reader", reader, "crates/web/src/assets/reader.wasm.gz");
