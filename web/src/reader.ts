// Reads a capture in a worker, so that the page stays alive: the reader is compiled to WebAssembly and knows what `fullpipe read` does.

interface Reader {
  memory: WebAssembly.Memory;
  room(length: number): number;
  read(nameLength: number, seed: bigint): number;
  place(): number;
}

/** What the page asks. */
export interface Asked {
  name: string;
  file: File;
}

/** What the page is told: a whole page, or why there is none. */
export interface Told {
  page?: string;
  error?: string;
}

const read = async ({ name, file }: Asked): Promise<Told> => {
  const [{ instance }, bytes] = await Promise.all([WebAssembly.instantiateStreaming(fetch("/reader.wasm"), {}), file.arrayBuffer()]);
  const reader = instance.exports as unknown as Reader;
  const title = new TextEncoder().encode(name);
  const at = reader.room(title.length + bytes.byteLength);
  const room = new Uint8Array(reader.memory.buffer, at, title.length + bytes.byteLength);
  room.set(title);
  room.set(new Uint8Array(bytes), title.length);
  const length = reader.read(title.length, crypto.getRandomValues(new BigUint64Array(1))[0]);
  const [kind, ...text] = [0, 1].map((from) => new TextDecoder().decode(new Uint8Array(reader.memory.buffer, reader.place() + from, from === 0 ? 1 : length - 1)));
  return kind === "P" ? { page: text[0] } : { error: text[0] };
};

addEventListener("message", (event: MessageEvent<Asked>) => {
  read(event.data).then(postMessage, (error: unknown) => postMessage({ error: `The reader failed: ${String(error)}` } satisfies Told));
});
