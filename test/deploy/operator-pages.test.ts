import fs from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { createProgram } from '../../cli/program';
import { exists, read } from '../deployment/repository';
import { alertRules } from './alert-rules';
import { dashboards } from './grafana-dashboards';
import { metricsPage } from './metrics-page';

/** What an operator on call follows must exist: alerts, panels, log messages, series, commands and flags. */
const PAGES = [
  ...['backup', 'kubernetes', 'metrics', 'operations', 'sizing', 'temporal', 'troubleshooting'],
  ...['tracing', 'upgrading'],
].map((name) => `docs/${name}.md`);
/** Commands of Temporal's UI. */
const BUTTONS = ['Cancel', 'Reset', 'Terminate'];

describe.each(PAGES)('%s', (page) => {
  const text = read(page).replace(/\s+/g, ' ');

  it('names only alerts that exist', () => {
    const known = alertRules().map(({ alert }) => alert);
    const named = [...text.matchAll(/`(Nightshift[A-Z]\w+)`/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });

  it('names only series that exist', () => {
    const known = metricsPage().metrics.map(({ name }) => name);
    const named = [...text.matchAll(/`(\w+_(?:total|seconds))(?:\{[^`]*)?`/g)];
    expect(named.map(([, name = '']) => name).filter((name) => !known.includes(name))).toEqual([]);
  });

  it('names only panels, dashboards and log messages that exist', () => {
    const titles = dashboards().flatMap(({ title, panels }) => [
      title.replace('Nightshift: ', '').toLowerCase(),
      ...panels.map((panel) => panel.title.toLowerCase()),
    ]);
    const quoted = [...text.matchAll(/(?<!\*)\*([A-Za-z][^*|]*)\*(?!\*)/g)];
    const unknown = quoted
      .map(([, quote = '']) => quote)
      .filter((quote) => !titles.includes(quote.toLowerCase()) && !BUTTONS.includes(quote))
      .filter((quote) => !isWritten(quote));
    expect(unknown).toEqual([]);
  });

  it('names only commands and flags that exist', () => {
    const lines = [...read(page).matchAll(/(?:`|^(?:npx )?)nightshift ([a-z][^`\n#]*)/gm)];
    const unknown = lines.flatMap(([, words = '']) => unknownIn(words.trim().split(/\s+/)));
    expect(unknown).toEqual([]);
  });
});

it.each(alertRules().map((rule) => [rule.alert, rule] as const))(
  'the section that %s links to says what to do about it',
  (alert, rule) => {
    const [page = '', anchor = ''] = (rule.annotations['runbook'] ?? '').split('#');
    const sections = read(page).split(/^#+ /m);
    const titleOf = (section: string): string => section.split('\n', 1)[0] ?? '';
    const toAnchor = (title: string): string =>
      title
        .toLowerCase()
        .replace(/[^\w\s-]/g, '')
        .replace(/\s/g, '-');
    const section = sections.find((one) => toAnchor(titleOf(one)) === anchor) ?? '';
    expect(section).toContain(`\`${alert}\``);
  },
);

let sources: string | undefined;

/** Whether a text, up to an ellipsis, is in the code of the product. */
function isWritten(quote: string): boolean {
  sources ??= [
    'activities',
    'api',
    'client',
    'gateway',
    'inference',
    'platform',
    'storage',
    'workers',
    'workflows',
  ]
    .flatMap(sourcesBelow)
    .map(read)
    .join('\n');
  return sources.includes(quote.replace(/ ?….*$/, ''));
}

function sourcesBelow(folder: string): string[] {
  return fs
    .readdirSync(path.join(__dirname, '..', '..', folder), { withFileTypes: true })
    .flatMap((entry) => {
      const name = path.join(folder, entry.name);
      if (entry.isDirectory()) return sourcesBelow(name);
      return name.endsWith('.ts') && exists(name) ? [name] : [];
    });
}

/** The first words of a command line are commands, as far as they are known; flags belong to the last one. */
function unknownIn(words: readonly string[]): string[] {
  let command: Command = createProgram();
  const flags = new Set<string>();
  for (const [at, word] of words.entries()) {
    const inner = command.commands.find((one) => one.name() === word);
    if (inner !== undefined) command = inner;
    else if (at === 0) return [word];
    if (word.startsWith('--')) flags.add(word.replace(/=.*|[^\w-].*/, ''));
  }
  for (const { long } of command.options) if (long != null) flags.delete(long);
  flags.delete('--help');
  return [...flags];
}
