// Compiles the simulator for the pages: bindings/wasm for wasm32-unknown-unknown, gzip in base64. It takes a Rust toolchain with that
// target (`rustup target add wasm32-unknown-unknown`). Compilers differ in their bytes, so that no test compares these: one compares
// what it answers with what `fullpipe what-if` does.
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = "wasm32-unknown-unknown";
// No path of this machine shall stand in it.
const cargo = process.env.CARGO_HOME ?? `${homedir()}/.cargo`;
const flags = `--remap-path-prefix=${root}= --remap-path-prefix=${cargo}=cargo`;
execFileSync("cargo", ["build", "--locked", "--release", "--package", "fullpipe-wasm", "--target", target, "--target-dir", "target/wasm"], {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, RUSTFLAGS: flags },
});
const code = await readFile(`${root}/target/wasm/${target}/release/fullpipe_wasm.wasm`);
const packed = gzipSync(code, { level: 9 }).toString("base64");
await writeFile(`${root}/crates/report/src/html/assets/simulator.wasm.gz.b64`, packed);
console.log(`simulator: ${code.length} bytes, ${packed.length} on a page`);
