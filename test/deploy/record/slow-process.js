'use strict';

/**
 * Loaded into every process of a recorded stack (`--require`). The files of the folder $RECORD_FAULTS are faults of
 * the worker: with `block-event-loop` it blocks its event loop for most of each second, with `slow-disk` all its
 * writes take seconds, with `slow-journal` those of the journal.
 */
const fs = require('node:fs');
const promises = require('node:fs/promises');
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
  const { open } = promises;
  promises.open = async (file, ...rest) => {
    const handle = await open(file, ...rest);
    const fault = String(file).endsWith('.seg') ? 'slow-journal' : 'slow-disk';
    const write = handle.write.bind(handle);
    handle.write = async (...args) => {
      if (has(fault)) await new Promise((resolve) => setTimeout(resolve, WRITE_MS));
      return write(...args);
    };
    return handle;
  };
}
