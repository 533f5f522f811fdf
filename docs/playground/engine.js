'use strict';
// Runs the engine: a WASI program that reads a question from standard input and writes the answer to standard output.

const DONE = 0;
const BAD_FILE = 8;
const NO_SUCH = 52;

class Exit extends Error {}

async function loaded() {
  const data = Uint8Array.from(atob(document.getElementById('engine').textContent), (c) => c.charCodeAt(0));
  const unpacked = new Response(new Blob([data]).stream().pipeThrough(new DecompressionStream('gzip')));
  return WebAssembly.compile(await unpacked.arrayBuffer());
}

/** The answer to a question, both as JSON texts. */
async function answered(program, question) {
  const input = new TextEncoder().encode(question);
  const output = [[], []];
  let at = 0;
  let memory = null;
  const view = () => new DataView(memory.buffer);
  // Calls `each` with the bytes of each buffer of a list; returns how many bytes it took.
  const buffers = (list, n, each) => {
    let total = 0;
    for (let i = 0; i < n; i += 1) {
      const [start, length] = [view().getUint32(list + 8 * i, true), view().getUint32(list + 8 * i + 4, true)];
      total += each(new Uint8Array(memory.buffer, start, length));
    }
    return total;
  };
  const calls = {
    fd_read: (file, list, n, taken) => {
      if (file !== 0) return BAD_FILE;
      view().setUint32(taken, buffers(list, n, (into) => {
        const part = input.subarray(at, at + into.length);
        into.set(part);
        at += part.length;
        return part.length;
      }), true);
      return DONE;
    },
    fd_write: (file, list, n, taken) => {
      if (file !== 1 && file !== 2) return BAD_FILE;
      view().setUint32(taken, buffers(list, n, (from) => {
        output[file - 1].push(from.slice());
        return from.length;
      }), true);
      return DONE;
    },
    environ_sizes_get: (n, size) => {
      view().setUint32(n, 0, true);
      view().setUint32(size, 0, true);
      return DONE;
    },
    environ_get: () => DONE,
    fd_prestat_get: () => BAD_FILE,
    proc_exit: (code) => { throw new Exit(String(code)); },
  };
  // A call that a later compiler adds must not stop the page from loading.
  const known = new Proxy(calls, { get: (all, name) => all[name] ?? (() => NO_SUCH) });
  const instance = await WebAssembly.instantiate(program, { wasi_snapshot_preview1: known });
  memory = instance.exports.memory;
  const text = (parts) => new Blob(parts).text();
  try {
    instance.exports._start();
  } catch (error) {
    if (!(error instanceof Exit) || error.message !== '0') {
      const said = (await text(output[1])).trim() || String(error);
      throw new Error(`a bug in kueuecore stopped the engine, please report it with a link to this state: ${said}`);
    }
  }
  return text(output[0]);
}
