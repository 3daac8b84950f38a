'use strict';

/** The few elements of SVG that plots need, and colours for light and dark surroundings. */

/** Colours of series after the first, which is Nightshift's own. Each is legible on both backgrounds. */
const SERIES = ['s0', 's1', 's2', 's3', 's4'];

const STYLE = `
  .bg{fill:#fff}.ink{fill:#1f2328}.soft{fill:#59636e}.grid{stroke:#d1d9e0}.mark{stroke:#1f2328}
  .s0{fill:#0969da;stroke:#0969da}.s1{fill:#9a6700;stroke:#9a6700}.s2{fill:#8250df;stroke:#8250df}
  .s3{fill:#1a7f37;stroke:#1a7f37}.s4{fill:#afb8c1;stroke:#afb8c1}.line{fill:none}
  @media (prefers-color-scheme:dark){
    .bg{fill:#0d1117}.ink{fill:#f0f6fc}.soft{fill:#9198a1}.grid{stroke:#3d444d}.mark{stroke:#f0f6fc}
    .s0{fill:#4493f8;stroke:#4493f8}.s1{fill:#d29922;stroke:#d29922}.s2{fill:#ab7df8;stroke:#ab7df8}
    .s3{fill:#3fb950;stroke:#3fb950}.s4{fill:#656c76;stroke:#656c76}
  }`;

/** @param {{ width: number, height: number, title: string }} frame @param {string[]} parts elements */
function svg({ width, height, title }, parts) {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13" role="img">`;
  const frame = `<title>${escaped(title)}</title><style>${STYLE}</style>`;
  const ground = `<rect class="bg" width="${width}" height="${height}"/>`;
  const heading = text({ x: 16, y: 24, content: title, bold: true });
  return `${[head, frame, ground, heading, ...parts].join('\n')}\n</svg>\n`;
}

/** @param {{ x: number, y: number, content: string, anchor?: string, soft?: boolean, bold?: boolean }} options */
function text({ x, y, content, anchor = 'start', soft = false, bold = false }) {
  const weight = bold ? ' font-weight="600"' : '';
  const kind = soft ? 'soft' : 'ink';
  return `<text class="${kind}" x="${at(x)}" y="${at(y)}" text-anchor="${anchor}"${weight}>${escaped(content)}</text>`;
}

function rect({ x, y, width, height, kind }) {
  return `<rect class="${kind}" x="${at(x)}" y="${at(y)}" width="${at(width)}" height="${at(height)}"/>`;
}

function line({ x1, y1, x2, y2, kind }) {
  return `<line class="${kind}" x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}"/>`;
}

/** @param {{ points: [number, number][], kind: string }} options */
function polyline({ points, kind }) {
  const list = points.map(([x, y]) => `${at(x)},${at(y)}`).join(' ');
  return `<polyline class="${kind} line" stroke-width="2" points="${list}"/>`;
}

function dot({ x, y, kind }) {
  return `<circle class="${kind}" cx="${at(x)}" cy="${at(y)}" r="3.5"/>`;
}

/** A number as people read it. */
function shown(value) {
  if (value >= 1_000) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}

const at = (value) => Number(value.toFixed(1));

function escaped(content) {
  return content.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

module.exports = { dot, line, polyline, rect, SERIES, shown, svg, text };
