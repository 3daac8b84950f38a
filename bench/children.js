'use strict';

/** Programs that the benchmarks start. Each is always ended, by its own process id. */
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { createInterface } = require('node:readline');

const living = new Set();

/**
 * Starts a program and waits for the first line of its stdout, or of its stderr, that `isReady` accepts.
 *
 * @param {{ command: string, args: string[], env?: NodeJS.ProcessEnv, cwd?: string,
 *   isReady: (line: string) => boolean, readyTimeoutMs: number, readyOn?: 'stdout' | 'stderr' }} options
 * @returns {Promise<{ pid: number, readyLine: string, stop(timeoutMs: number): Promise<void> }>}
 *   `stop` sends SIGTERM and closes stdin, then SIGKILL after `timeoutMs`.
 */
async function startChild({ command, args, env, cwd, ...ready }) {
  const child = spawn(command, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
  living.add(child);
  const exited = once(child, 'exit').then(() => living.delete(child));
  const tail = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    tail.push(line);
    if (tail.length > 20) tail.shift();
  });
  const readyLine = await firstLine(child, { ...ready, exited, tail });
  return {
    pid: child.pid,
    readyLine,
    async stop(timeoutMs) {
      if (!living.has(child)) return;
      child.kill('SIGTERM');
      child.stdin.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
      await exited;
      clearTimeout(timer);
    },
  };
}

function firstLine(child, { isReady, readyTimeoutMs, readyOn = 'stdout', exited, tail }) {
  return new Promise((resolve, reject) => {
    const give = (what) =>
      reject(new Error(`${child.spawnargs.join(' ')}: ${what}\n${tail.join('\n')}`));
    const timer = setTimeout(() => {
      child.kill('SIGTERM');
      give(`not ready after ${readyTimeoutMs} ms`);
    }, readyTimeoutMs);
    child.on('error', (error) => give(error.message));
    void exited.then(() => {
      clearTimeout(timer);
      give('ended before it was ready');
    });
    createInterface({ input: child[readyOn] }).on('line', (line) => {
      if (!isReady(line)) return;
      clearTimeout(timer);
      resolve(line);
    });
  });
}

/** Ends what still runs; for the last moment of this process. */
function endChildren() {
  for (const child of living) child.kill('SIGTERM');
}

module.exports = { endChildren, startChild };
