'use strict';

/** Programs that the benchmarks start. Each is always ended, by its own process id. */
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { createInterface } = require('node:readline');

/** Between two looks whether a server is ready. */
const PROBE_MS = 50;

const living = new Set();

/**
 * Starts a program and waits for the first line of its stdout, or of its stderr, that `isReady` accepts, or until
 * a GET of `readyUrl` succeeds.
 *
 * @param {{ command: string, args: string[], env?: NodeJS.ProcessEnv, cwd?: string, readyTimeoutMs: number,
 *   isReady?: (line: string) => boolean, readyOn?: 'stdout' | 'stderr', readyUrl?: string }} options
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
  const isLate = whenLate(child, { ...ready, exited, tail });
  const isUp = ready.readyUrl === undefined ? firstLine(child, ready) : firstAnswer(child, ready);
  const readyLine = await Promise.race([isUp, isLate.failure]).finally(isLate.forget);
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

/** Fails when the program ends or takes too long; too late, it is ended. */
function whenLate(child, { readyTimeoutMs, exited, tail }) {
  let timer;
  const failure = new Promise((_, reject) => {
    const give = (what) =>
      reject(new Error(`${child.spawnargs.join(' ')}: ${what}\n${tail.join('\n')}`));
    timer = setTimeout(() => {
      child.kill('SIGTERM');
      give(`not ready after ${readyTimeoutMs} ms`);
    }, readyTimeoutMs);
    child.on('error', (error) => give(error.message));
    void exited.then(() => give('ended before it was ready'));
  });
  // Once it is ready, its end is no failure.
  failure.catch(() => undefined);
  return { failure, forget: () => clearTimeout(timer) };
}

function firstLine(child, { isReady, readyOn = 'stdout' }) {
  return new Promise((resolve) => {
    createInterface({ input: child[readyOn] }).on('line', (line) => {
      if (isReady(line)) resolve(line);
    });
  });
}

async function firstAnswer(child, { readyUrl, readyTimeoutMs }) {
  child.stdout.resume();
  const untilMs = performance.now() + readyTimeoutMs;
  while (performance.now() < untilMs) {
    const { ok } = await fetch(readyUrl).catch(() => ({ ok: false }));
    if (ok) return '';
    await new Promise((resolve) => setTimeout(resolve, PROBE_MS));
  }
  return '';
}

/** Ends what still runs; for the last moment of this process. */
function endChildren() {
  for (const child of living) child.kill('SIGTERM');
}

module.exports = { endChildren, startChild };
