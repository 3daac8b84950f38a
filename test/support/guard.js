'use strict';

/**
 * Runs one server for the tests and never outlives them: `node guard.js OWNER_PID COMMAND ARGS…`.
 * It stops the server on SIGTERM, and by itself when the process OWNER_PID is gone (a Jest that
 * was killed runs no teardown). It ends when the server ends, with its exit code.
 */
const { spawn } = require('node:child_process');
const fs = require('node:fs');

const KILL_AFTER_MS = 8_000;
const WATCH_EVERY_MS = 500;

const [ownerText, command, ...args] = process.argv.slice(2);
const owner = Number(ownerText);
const server = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });

server.on('error', (error) => {
  console.error(error.message);
  process.exit(127);
});
server.on('exit', (code) => {
  if (!isAlive(owner)) removeRunFolder();
  process.exit(code ?? 1);
});
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
setInterval(() => {
  if (!isAlive(owner)) stop();
}, WATCH_EVERY_MS).unref();

function stop() {
  server.kill('SIGTERM');
  setTimeout(() => server.kill('SIGKILL'), KILL_AFTER_MS).unref();
}

function removeRunFolder() {
  const folder = process.env.NIGHTSHIFT_TEST_RUN;
  if (folder) fs.rmSync(folder, { recursive: true, force: true });
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
