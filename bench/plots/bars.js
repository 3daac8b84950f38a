'use strict';

/** Bars that lie, group by group, with the least and the largest of the runs. */
const { line, rect, shown, svg, text } = require('./svg');

const WIDTH = 760;
const PLOT = { left: 170, right: 590, top: 44 };
const BAR = { height: 16, step: 23 };
const GROUP_GAP = 26;
const CAP = 4;

/**
 * @param {{ title: string, unit: string, max?: number, groups: { name: string, bars: Bar[] }[] }} plot
 *   a bar without a range was disturbed
 * @returns {string}
 */
function drawBars({ title, unit, max, groups }) {
  const highest = Math.max(
    ...groups.flatMap(({ bars }) => bars.map(({ range }) => range?.high ?? 0)),
  );
  const end = max ?? (highest || 1);
  const x = (value) => PLOT.left + ((PLOT.right - PLOT.left) * value) / end;
  const parts = [];
  let y = PLOT.top;
  for (const { name, bars } of groups) {
    parts.push(text({ x: 16, y: y + 12, content: name, soft: true }));
    y += GROUP_GAP - 4;
    for (const bar of bars) {
      parts.push(...drawBar(bar, { x, y, unit }));
      y += BAR.step;
    }
    y += GROUP_GAP - BAR.step + BAR.height / 2;
  }
  const axis = line({ x1: x(0), y1: PLOT.top, x2: x(0), y2: y - 8, kind: 'grid' });
  return svg({ width: WIDTH, height: y + 4, title }, [...parts, axis]);
}

function drawBar({ name, isOwn, range }, { x, y, unit }) {
  const middle = y + BAR.height / 2;
  const base = y + BAR.height - 3;
  const label = text({ x: PLOT.left - 8, y: base, content: name, anchor: 'end', bold: isOwn });
  if (range === undefined) {
    return [label, text({ x: PLOT.left + 6, y: base, content: 'disturbed', soft: true })];
  }
  const { median, low, high } = range;
  const width = x(median) - x(0);
  const value =
    low === high
      ? `${shown(median)} ${unit}`
      : `${shown(median)} ${unit} (${shown(low)} to ${shown(high)})`;
  const whisker = [
    line({ x1: x(low), y1: middle, x2: x(high), y2: middle, kind: 'mark' }),
    line({ x1: x(low), y1: middle - CAP, x2: x(low), y2: middle + CAP, kind: 'mark' }),
    line({ x1: x(high), y1: middle - CAP, x2: x(high), y2: middle + CAP, kind: 'mark' }),
  ];
  return [
    label,
    rect({ x: x(0), y, width, height: BAR.height, kind: isOwn ? 's0' : 's4' }),
    ...(low === high ? [] : whisker),
    text({ x: Math.max(x(high), x(median)) + 8, y: base, content: value }),
  ];
}

module.exports = { drawBars };
