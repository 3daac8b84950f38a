'use strict';

/**
 * Checks the production dependencies for known vulnerabilities with `npm audit`. Fails if one is of high or
 * critical severity, and shows the others: an update for each low one would stop work for no gain. If the
 * audit service does not answer, it says "not checked" and succeeds, because a service that is away says
 * nothing about this commit.
 */
const { spawnSync } = require('node:child_process');
const path = require('node:path');

const TIMEOUT_MS = 60_000;
const FAILING = ['high', 'critical'];

/** What the output of `npm audit --json` means: `kind` is ok, vulnerable or unchecked. */
function judge(output) {
  let report;
  try {
    report = JSON.parse(output);
  } catch {
    return { kind: 'unchecked', text: 'npm audit: not checked (no report)' };
  }
  const found = report.vulnerabilities;
  if (found === undefined) {
    const reason = report.message || report.error?.summary || 'no report';
    return { kind: 'unchecked', text: `npm audit: not checked (${reason})` };
  }
  const all = Object.values(found);
  const serious = all.filter(({ severity }) => FAILING.includes(severity));
  const lines = all.map(({ name, severity, range }) => `  ${severity}: ${name} ${range}`);
  const summary = `npm audit: ${all.length} vulnerable packages, ${serious.length} of them seriously`;
  return {
    kind: serious.length > 0 ? 'vulnerable' : 'ok',
    text: [summary, ...lines].join('\n'),
  };
}

function main() {
  const done = spawnSync('npm', ['audit', '--omit=dev', '--json'], {
    cwd: path.resolve(__dirname, '..'),
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const { kind, text } = judge(done.stdout ?? '');
  process.stderr.write(`${text}\n`);
  process.exitCode = kind === 'vulnerable' ? 1 : 0;
}

if (require.main === module) main();

module.exports = { judge };
