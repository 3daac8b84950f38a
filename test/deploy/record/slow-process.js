'use strict';

/**
 * Loaded into every process of a recorded stack (`--require`). While the folder $RECORD_FAULTS has a file
 * `block-event-loop`, a worker blocks its event loop for most of each second. While it has `slow-disk`, a worker's
 * writes take seconds.
 */
const fs = require('node:fs');
const path = require('node:path');
const { isMainThread } = require('node:worker_threads');

const LOOK_MS = 1_000;
const BLOCK_MS = 900;
const WRITE_MS = 4_000;
const folder = process.env.RECORD_FAULTS;

if (isMainThread && folder !== undefined && process.argv[2] === 'worker') {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const has = (name) => fs.existsSync(path.join(folder, name));
  const look = () => void (has('block-event-loop') && Atomics.wait(cell, 0, 0, BLOCK_MS));
  setInterval(look, LOOK_MS).unref();
  void fs.promises.open(__filename).then(async (handle) => {
    const prototype = Object.getPrototypeOf(handle);
    await handle.close();
    const { write } = prototype;
    prototype.write = async function (...args) {
      if (has('slow-disk')) await new Promise((resolve) => setTimeout(resolve, WRITE_MS));
      return write.apply(this, args);
    };
  });
}
