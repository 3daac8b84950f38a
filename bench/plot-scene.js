#!/usr/bin/env node
'use strict';

/**
 * Draws a record of `nightshift demo --scene flow --record <file>` as SVG on stdout: the time to the first token of
 * users in each second, 95th percentile, alone, beside a batch that is sent straight, and through the gateway.
 *
 * Usage: node bench/plot-scene.js <record> > plot.svg
 */
const fs = require('node:fs');
const { quantile } = require('./figures');

const SIZE = { width: 760, height: 330 };
const PLOT = { left: 62, right: 744, top: 34, bottom: 286 };
const RANGE_MS = { from: 30, to: 10_000 };
const GRID_MS = [30, 100, 300, 1_000, 3_000, 10_000];
/** The first 8 s of each part do not count; bursts begin every 10 s and last 5 s. */
const LEAD_SEC = 8;
const BURST = { fromSec: 5, everySec: 10, seconds: 5 };
/** Colours that differ in lightness too. */
const COLOURS = ['#1b7837', '#b2182b', '#2166ac'];

const [file] = process.argv.slice(2);
if (file === undefined) {
  process.stderr.write('Usage: node bench/plot-scene.js <record> > plot.svg\n');
  process.exit(1);
}
process.stdout.write(draw(JSON.parse(fs.readFileSync(file, 'utf8')).arms));

function draw(arms) {
  const seconds = Math.round(arms[0].tookMs / 1_000);
  const x = (sec) => PLOT.left + ((PLOT.right - PLOT.left) * sec) / seconds;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${SIZE.height}" font-family="sans-serif" font-size="12">`,
    '<title>Time to the first token of users, 95th percentile of each second</title>',
    `<rect width="${SIZE.width}" height="${SIZE.height}" fill="#fff"/>`,
    ...bursts(seconds, x),
    ...GRID_MS.map((ms) => grid(ms)),
    ...arms.map(({ answers }, i) => line(answers, { seconds, x, colour: COLOURS[i] })),
    `<line x1="${x(LEAD_SEC)}" x2="${x(LEAD_SEC)}" y1="${PLOT.top}" y2="${PLOT.bottom}" stroke="#555" stroke-dasharray="3 3"/>`,
    text(x(LEAD_SEC) + 4, PLOT.top + 12, 'counted from here'),
    text(PLOT.left, PLOT.bottom + 16, '0 s'),
    text(PLOT.right - 26, PLOT.bottom + 16, `${seconds} s`),
    text(x(seconds / 2) - 80, PLOT.bottom + 16, 'grey: bursts of users'),
    ...arms.map(({ name }, i) => legend(name, i)),
    text(PLOT.left, 20, 'Time to the first token of users, 95th percentile of each second'),
  ];
  return `${parts.join('\n')}\n</svg>\n`;
}

function bursts(seconds, x) {
  const rects = [];
  for (let sec = BURST.fromSec; sec < seconds; sec += BURST.everySec) {
    const end = Math.min(seconds, sec + BURST.seconds);
    const width = (x(end) - x(sec)).toFixed(1);
    rects.push(
      `<rect x="${x(sec).toFixed(1)}" y="${PLOT.top}" width="${width}" height="${PLOT.bottom - PLOT.top}" fill="#eee"/>`,
    );
  }
  return rects;
}

/** A logarithmic scale. */
function y(ms) {
  const { from, to } = RANGE_MS;
  const part = Math.log(Math.min(to, Math.max(from, ms)) / from) / Math.log(to / from);
  return PLOT.bottom - (PLOT.bottom - PLOT.top) * part;
}

function grid(ms) {
  const at = y(ms).toFixed(1);
  const label = ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`;
  const rule = `<line x1="${PLOT.left}" x2="${PLOT.right}" y1="${at}" y2="${at}" stroke="#ccc"/>`;
  return `${rule}\n${text(PLOT.left - 50, Number(at) + 4, label)}`;
}

function line(answers, { seconds, x, colour }) {
  const points = [];
  for (let sec = 0; sec < seconds; sec++) {
    const times = answers
      .filter(({ isUser, dueMs }) => isUser && Math.floor(dueMs / 1_000) === sec)
      .map(({ ttftMs }) => ttftMs);
    if (times.length === 0) continue;
    points.push(`${x(sec + 0.5).toFixed(1)},${y(quantile(times, 0.95)).toFixed(1)}`);
  }
  return `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`;
}

function legend(name, i) {
  const left = PLOT.left + 232 * i;
  const at = SIZE.height - 10;
  const mark = `<line x1="${left}" x2="${left + 22}" y1="${at - 4}" y2="${at - 4}" stroke="${COLOURS[i]}" stroke-width="3"/>`;
  return `${mark}\n${text(left + 28, at, name)}`;
}

function text(left, top, content) {
  return `<text x="${left}" y="${top}" fill="#222">${content}</text>`;
}
