// What the program holds as gzip.
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

// As zopfli packs it, where it is installed: any reader of gzip takes it, and the program that it stands in has a limit.
export const packed = async (content) => {
  const folder = await mkdtemp(join(tmpdir(), "fullpipe-"));
  const file = join(folder, "content");
  try {
    await writeFile(file, content);
    return execFileSync("zopfli", ["-c", file], { maxBuffer: 2 * content.length });
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    console.warn("without zopfli: 5 % larger");
    return gzipSync(content, { level: 9 });
  } finally {
    await rm(folder, { recursive: true });
  }
};
