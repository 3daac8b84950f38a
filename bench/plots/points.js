'use strict';

/** Points with their spread over a logarithmic axis, joined series by series. */
const { dot, line, polyline, SERIES, shown, svg, text } = require('./svg');

const SIZE = { width: 760, height: 360 };
const PLOT = { left: 76, right: 560, top: 52, bottom: 306 };
const LABEL_STEP = 16;

/**
 * @param {{ title: string, xLabel: string, unit: string, series: { name: string, points: { x: number, range: Range }[] }[] }} plot
 *   both axes are logarithmic
 * @returns {string}
 */
function drawPoints({ title, xLabel, unit, series }) {
  const all = series.flatMap(({ points }) => points);
  if (all.length === 0)
    return svg({ ...SIZE, title }, [text({ x: 16, y: 60, content: 'disturbed', soft: true })]);
  const xs = all.map((point) => point.x);
  const ys = all.flatMap(({ range }) => [range.low, range.high]).filter((value) => value > 0);
  const x = scale(decades(xs), [PLOT.left, PLOT.right]);
  const y = scale(decades(ys), [PLOT.bottom, PLOT.top]);
  const ticks = [
    ...powers(decades(xs)).map((value) => xTick(value, x)),
    ...powers(decades(ys)).map((value) => yTick(value, y)),
  ].flat();
  const labels = [
    text({ x: PLOT.left, y: PLOT.top - 10, content: unit, soft: true }),
    text({ x: PLOT.right, y: PLOT.bottom + 38, content: xLabel, anchor: 'end', soft: true }),
  ];
  const drawn = series.map((one, i) => drawSeries(one, { x, y, kind: SERIES[i % SERIES.length] }));
  return svg({ ...SIZE, title }, [...ticks, ...labels, ...drawn.flat(), ...legend(series, y)]);
}

function drawSeries({ points }, { x, y, kind }) {
  return [
    polyline({ points: points.map((point) => [x(point.x), y(point.range.median)]), kind }),
    ...points.flatMap((point) => {
      const at = x(point.x);
      const { low, high, median } = point.range;
      return [
        line({ x1: at, y1: y(low), x2: at, y2: y(high), kind: 'mark' }),
        dot({ x: at, y: y(median), kind }),
      ];
    }),
  ];
}

/** Names at the ends of the lines, moved apart where they would overlap. */
function legend(series, y) {
  const ends = series
    .map(({ name, points }, i) => ({ name, i, range: points.at(-1)?.range }))
    .filter(({ range }) => range !== undefined)
    .sort((a, b) => y(a.range.median) - y(b.range.median));
  let last = -Infinity;
  return ends.flatMap(({ name, i, range }) => {
    last = Math.max(y(range.median) + 4, last + LABEL_STEP);
    const content = `${name}: ${shown(range.median)}`;
    return [
      dot({ x: PLOT.right + 16, y: last - 4, kind: SERIES[i % SERIES.length] }),
      text({ x: PLOT.right + 26, y: last, content }),
    ];
  });
}

function xTick(value, x) {
  return [
    line({ x1: x(value), y1: PLOT.top, x2: x(value), y2: PLOT.bottom, kind: 'grid' }),
    text({ x: x(value), y: PLOT.bottom + 18, content: shown(value), anchor: 'middle', soft: true }),
  ];
}

function yTick(value, y) {
  return [
    line({ x1: PLOT.left, y1: y(value), x2: PLOT.right, y2: y(value), kind: 'grid' }),
    text({ x: PLOT.left - 8, y: y(value) + 4, content: shown(value), anchor: 'end', soft: true }),
  ];
}

/** Powers of ten around the values, as exponents. */
function decades(values) {
  const from = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const to = Math.ceil(Math.log10(Math.max(...values)) - 1e-9);
  return [from, Math.max(to, from + 1)];
}

function powers([from, to]) {
  return Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
}

function scale([from, to], [start, end]) {
  return (value) => {
    const exponent = Math.log10(Math.max(value, 10 ** from));
    return start + ((end - start) * (exponent - from)) / (to - from);
  };
}

module.exports = { drawPoints };
