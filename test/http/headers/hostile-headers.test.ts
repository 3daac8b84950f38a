/**
 * Headers that are as long as a client may send them are read in linear time, so no other client waits.
 * CPU time is measured, so that a loaded machine does not matter.
 */
import { performance } from 'node:perf_hooks';
import net from 'node:net';
import type { FastifyRequest } from 'fastify';
import { headerParameters, trimBlanks } from '../../../http/headers/header-text';
import { formEntries } from '../../../http/multipart/form-entries';
import { parseEntryHeader } from '../../../http/multipart/entry-header';
import { bearerKey } from '../../../http/authentication/bearer-key';
import { headerValues } from '../../../http/headers/header-values';
import { BOUNDARY } from '../../support/api';
import { openTestServer } from '../../support/http-server';

const BLANKS = ' '.repeat(15_000);
const MIXED = ' \t'.repeat(7_500);

/** The first runs are those of code that is not compiled yet, and of the threads that compile it. */
const RUNS = 12;

/** Milliseconds of CPU that `work` takes; the best of {@link RUNS}. */
function cpuMs(work: () => unknown): number {
  const times = Array.from({ length: RUNS }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}

/** The longest time that the event loop was blocked during `work`. */
async function longestDelayMs(work: () => Promise<unknown>): Promise<number> {
  let longestMs = 0;
  let last = performance.now();
  const watch = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - last - 5);
    last = performance.now();
  }, 5);
  await work();
  clearInterval(watch);
  return longestMs;
}

function requestWith(name: string, value: string): FastifyRequest {
  const filler = Array.from({ length: 500 }, (_, i) => [`x-${i}`, `a${MIXED}b`]).flat();
  return { raw: { rawHeaders: [...filler, name, value] } } as unknown as FastifyRequest;
}

const header = (text: string) => Buffer.from(text);
const orMalformed = (work: () => unknown) => {
  try {
    work();
  } catch {
    // Only the time counts.
  }
};

it.each<[string, () => unknown]>([
  ['a header value', () => headerValues(requestWith('x-tenant', `a${BLANKS}b`), 'X-Tenant')],
  ['blanks around a value', () => trimBlanks(`${MIXED}a${MIXED}b${MIXED}`)],
  ['a key', () => bearerKey(`Bearer${BLANKS}a${BLANKS}b\n${BLANKS}c`)],
  [
    'parameters',
    () => headerParameters(`x; a${BLANKS}b${BLANKS}; c${BLANKS}=${BLANKS}"d${BLANKS}`),
  ],
  ['quotes that never close', () => headerParameters('; a="b\\"'.repeat(4_000))],
  ['semicolons', () => headerParameters(`x${'; '.repeat(8_000)}`)],
  [
    'the name of a field',
    () => parseEntryHeader(header(`content${BLANKS}disposition${BLANKS}x: a`)),
  ],
  [
    'a disposition',
    () => parseEntryHeader(header(`content-disposition: form-data${BLANKS}x; name${BLANKS}="a`)),
  ],
  [
    'a disposition of folded lines',
    () => parseEntryHeader(header(`content-disposition: form-data;${'\r\n '.repeat(5_000)}name=a`)),
  ],
  [
    'a file name',
    () =>
      parseEntryHeader(header(`content-disposition: form-data; name=a; filename*=utf-8'${BLANKS}`)),
  ],
])('reads %s of 15,000 blanks in less than 40 ms of CPU', (_what, work) => {
  expect(cpuMs(() => orMalformed(work))).toBeLessThan(40);
});

it('keeps the blanks inside a value, and removes only spaces and tabs around it', () => {
  expect(headerValues(requestWith('X-TENANT', `${MIXED}a${BLANKS}b${MIXED}`), 'x-tenant')).toEqual([
    `a${BLANKS}b`,
  ]);
  expect(trimBlanks('\u00a0a\u00a0')).toBe('\u00a0a\u00a0');
});

it('limits the headers of all entries of a form together', async () => {
  const one = `--${BOUNDARY}\r\ncontent-disposition: form-data; name=a${' '.repeat(7_000)}\r\n\r\n\r\n`;
  async function* source() {
    for (let part = 0; part < 10; part++) yield Buffer.from(one);
    yield Buffer.from(`--${BOUNDARY}--\r\n`);
  }
  let parts = 0;
  const read = async () => {
    for await (const part of formEntries(source(), BOUNDARY)) if (part.name === 'a') parts++;
  };
  await expect(read()).rejects.toThrow('the headers of its parts are longer than 65536 bytes');
  expect(parts).toBe(9);
});

it('delays no other client', async () => {
  const { port, close } = await openTestServer();
  const attack = (bytes: string) =>
    new Promise<void>((resolve, reject) => {
      const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes));
      socket.on('error', reject);
      socket.resume().on('close', () => resolve());
    });
  const hostile = `x: a${BLANKS}b\r\n`;
  const list = `GET /v1/items HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n${hostile}\r\n`;
  const round = () => Promise.all(Array.from({ length: 20 }, () => attack(list)));
  // The best of three rounds: another process may have had the CPU.
  const delays: number[] = [];
  for (let i = 0; i < 3; i++) delays.push(await longestDelayMs(round));
  await close();
  expect(Math.min(...delays)).toBeLessThan(250);
});
