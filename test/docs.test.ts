import fs from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { createProgram } from '../cli/program';
import { FAULT_CODES } from '../core/dispatch/drop-codes';
import { ERROR_CODES } from '../core/errors';
import { LINE_ERROR_CODES } from '../core/openai/result-line';
import { createApiMetrics } from '../platform/api-metrics';
import { createGatewayMetrics } from '../platform/gateway-metrics';
import { configSchema } from '../platform/config-schema';
import { createMetricsRegistry, type Registry } from '../platform/metrics';
import { createProcessesSeries } from '../platform/series/processes-series';
import { createWorkerMetrics } from '../platform/worker-metrics';
import rooms from '../rooms.json';
import { SEARCH_ATTRIBUTES } from '../workflows/contract';

const ROOT = path.resolve(__dirname, '..');
const PAGES = ['README.md', 'CHANGELOG.md', ...pagesBelow('docs')];

describe('docs/configuration.md', () => {
  const rows = tableRows(read('docs/configuration.md'));

  it('lists every setting and no other', () => {
    const text = read('docs/configuration.md');
    const missing = settings().filter((name) => !text.includes(`\`${name}\``));
    expect(missing).toEqual([]);
    expect(rows.map(({ name }) => name).filter((name) => !settings().includes(name))).toEqual([]);
  });

  it('states the true defaults', () => {
    const told = rows.filter(({ fallback }) => fallback !== null);
    const isOfOther = (name: string) =>
      name.startsWith(GATEWAY) || name.startsWith(AUDIO) || isOfS3(name);
    const values = nest(told.filter(({ name }) => !isOfOther(name)));
    expect(configSchema.parse(values)).toEqual(configSchema.parse({}));

    const url = { name: `${GATEWAY}url`, fallback: 'http://127.0.0.1' };
    const gateway = nest([url, ...told.filter(({ name }) => name.startsWith(GATEWAY))]);
    expect(configSchema.parse(gateway)).toEqual(configSchema.parse(nest([url])));

    const workers = { name: `${AUDIO}workers`, fallback: '[{ address: "127.0.0.1:8003" }]' };
    const audio = nest([workers, ...told.filter(({ name }) => name.startsWith(AUDIO))]);
    expect(configSchema.parse(audio)).toEqual(configSchema.parse(nest([workers])));

    const bucket = [
      { name: 'object_store.type', fallback: 's3' },
      { name: 'object_store.bucket', fallback: 'b' },
    ];
    const s3 = nest([...bucket, ...told.filter(({ name }) => isOfS3(name))]);
    expect(configSchema.parse(s3)).toEqual(configSchema.parse(nest(bucket)));
  });

  it('shows only valid examples', () => {
    const examples = [...read('docs/configuration.md').matchAll(/```yaml\n([\s\S]*?)```/g)];
    expect(examples.length).toBeGreaterThan(0);
    for (const [, example] of examples) {
      expect(configSchema.safeParse(parse(example ?? '')).error).toBeUndefined();
    }
  });
});

describe('docs/architecture.md', () => {
  it('shows every room on its floor, as rooms.json has them', () => {
    const rows = [...read('docs/architecture.md').matchAll(/^\| (\d) \| `([a-z]+)` \|/gm)];
    const shown = rows.map(([, floor, room]) => [room ?? '', Number(floor)]);
    expect(Object.fromEntries(shown)).toEqual(
      Object.fromEntries(Object.entries(rooms).map(([room, { floor }]) => [room, floor])),
    );
    const floors = rows.map(([, floor]) => Number(floor));
    expect(floors).toEqual([...floors].sort((a, b) => b - a));
  });
});

describe('docs/errors.md', () => {
  it.each([...Object.keys(ERROR_CODES), ...Object.keys(LINE_ERROR_CODES)])(
    'explains %s',
    (code) => {
      expect(read('docs/errors.md')).toContain(`| \`${code}\` |`);
    },
  );
});

describe('the answers of the gateway in docs/errors.md', () => {
  const section = read('docs/errors.md').split('## Answers of the gateway')[1]?.split('\n## ')[0];
  it.each(FAULT_CODES)('explains %s', (code) => {
    expect(section).toContain(`| \`${code}\` |`);
  });
});

describe('docs/operations.md', () => {
  it('names every command', () => {
    const commands = createProgram().commands.flatMap((command) =>
      command.commands.length > 0
        ? command.commands.map((part) => `${command.name()} ${part.name()}`)
        : [command.name()],
    );
    const text = read('docs/operations.md');
    expect(commands.filter((name) => !text.includes(`| \`nightshift ${name}`))).toEqual([]);
  });

  it('names every search attribute', () => {
    const text = read('docs/operations.md');
    const missing = Object.keys(SEARCH_ATTRIBUTES).filter(
      (name) => !text.includes(`| \`${name}\` |`),
    );
    expect(missing).toEqual([]);
  });
});

describe('docs/metrics.md', () => {
  it('lists every series with its type and labels, and no other', async () => {
    const listed = metricRows(read('docs/metrics.md')).filter(([name]) => !isForeign(name));
    expect(listed.length).toBeGreaterThan(30);
    expect(Object.fromEntries(listed)).toEqual(await registered());
    // Each name once.
    expect(new Set(listed.map(([name]) => name)).size).toBe(listed.length);
  });
});

describe("the series of Temporal's SDK in docs/metrics.md", () => {
  const names = metricRows(read('docs/metrics.md')).map(([name]) => name);
  const suffixes = /^temporal_|_seconds$/g;

  it('are known to the SDK', () => {
    const folder = path.join(ROOT, 'node_modules/@temporalio/core-bridge/releases');
    const [file = ''] = fs.readdirSync(folder).map((name) => path.join(folder, name, 'index.node'));
    const code = fs.readFileSync(file, 'latin1');
    const foreign = names.filter(isForeign);
    expect(foreign.length).toBeGreaterThan(5);
    expect(foreign.filter((name) => !code.includes(name.replace(suffixes, '')))).toEqual([]);
  });
});

describe('log messages in docs/operations.md', () => {
  // In italics and in lower case, as the log has them.
  const quoted = [...read('docs/operations.md').matchAll(/\*([a-z][^*|]+)\*/g)].map(([, text]) =>
    (text ?? '').replace(/\s+/g, ' '),
  );

  it.each(quoted)('"%s" is written by the product', (message) => {
    const writers = ['activities', 'inference', 'storage', 'workers', 'workflows'].flatMap(sources);
    expect(writers.some((file) => read(file).includes(message))).toBe(true);
  });
});

describe('every page', () => {
  it.each(PAGES)('%s links only to files that exist', (page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target]) => target);
    const dead = links.filter((link) => !exists(path.join(path.dirname(page), link ?? '')));
    expect(dead).toEqual([]);
  });

  it.each(PAGES.filter((page) => /^docs\/(design\/)?[^/]+$/.test(page)))(
    '%s begins with a sentence that says what it is for',
    (page) => {
      expect(read(page)).toMatch(/^# .+\n\n[A-Z`*[][^|\n]+/);
    },
  );

  it.each(PAGES)('%s names only files and scripts that exist', (page) => {
    const text = read(page);
    const files = [...text.matchAll(/`((?:[a-z-]+\/)+[a-z0-9.-]*)`/g)]
      .map(([, name]) => name ?? '')
      .filter(
        (name) =>
          !/^(application|audio|multipart|text)\/|^http\/protobuf$|^nightshift\/testing$/.test(
            name,
          ),
      );
    const scripts = [...text.matchAll(/npm (?:run )?(demo|start|test|lint|[a-z:]+)\b/g)]
      .map(([, name]) => name ?? '')
      .filter((name) => !NOT_SCRIPTS.includes(name));
    const known = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    expect(files.filter((name) => !exists(name))).toEqual([]);
    expect(scripts.filter((name) => !(name in known.scripts))).toEqual([]);
  });
});

/** Words after "npm" that are not scripts of package.json. */
const NOT_SCRIPTS = [
  'audit',
  'ci',
  'install',
  'installs',
  'pack',
  'package',
  'publish',
  'run',
  'version',
];

/** Series of Temporal's SDK, which no registry of ours has. */
const isForeign = (name: string): boolean => name.startsWith('temporal_');

/** Type and labels by name, as the tables of the page have them. */
function metricRows(text: string): [string, string][] {
  const rows = text.matchAll(/^\| `([a-z0-9_]+)` \| (counter|gauge|histogram) \| ([^|]+) \|/gm);
  return [...rows].map(([, name = '', type = '', labels = '']) => {
    const names = [...labels.matchAll(/`([a-zA-Z_]+)`/g)].map(([, label]) => label);
    return [name, [type, ...names].join(' ')];
  });
}

interface Metric {
  readonly labelNames: readonly string[];
  get(): Promise<{ readonly type: string }>;
}

/** The same of the registries of API, worker and gateway. */
async function registered(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const parent = (registry: Registry) => void createProcessesSeries(registry, () => 0);
  for (const create of [createApiMetrics, createWorkerMetrics, createGatewayMetrics, parent]) {
    const registry = createMetricsRegistry('worker');
    registry.clear();
    create(registry);
    for (const metric of registry.getMetricsAsArray()) {
      const { labelNames, get } = metric as unknown as Metric;
      const { type } = await get.call(metric);
      found[metric.name] = [type, ...labelNames].join(' ');
    }
  }
  return found;
}

const GATEWAY = 'global_inference_gateway.';
const AUDIO = 'gateway.audio.';

/** Whether only a bucket has this setting. */
function isOfS3(name: string): boolean {
  return /^object_store\.(?!type$|path$)/.test(name);
}

interface Row {
  readonly name: string;
  /** YAML text, null where there is no default. */
  readonly fallback: string | null;
}

function tableRows(text: string): Row[] {
  return [...text.matchAll(/^\| `([a-z_.]+)` \| (?:`(.+?)`|–) \|/gm)].map(([, name, fallback]) => ({
    name: name ?? '',
    fallback: fallback ?? null,
  }));
}

function nest(rows: readonly Row[]): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const { name, fallback } of rows) {
    const steps = name.split('.');
    const last = steps.pop() ?? '';
    let place = root;
    for (const step of steps) place = (place[step] ??= {}) as Record<string, unknown>;
    place[last] = parse(fallback ?? '');
  }
  return root;
}

/** Dotted names of all settings, those below `model_gateways` aside: they are the global gateway's. */
function settings(): string[] {
  const names = new Set<string>();
  const schema = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' });
  walk(schema as Schema, '', names);
  return [...names].filter((name) => !name.startsWith('model_gateways'));
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

function walk(schema: Schema, name: string, names: Set<string>): void {
  const branches = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  for (const branch of branches) walk(branch, name, names);
  const isLeaf = !schema.properties && !branches.some((branch) => branch.properties);
  const isMixed = branches.some((branch) => !branch.properties) && !isLeaf;
  if ((isLeaf || isMixed) && name !== '') names.add(name);
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    walk(child, name === '' ? key : `${name}.${key}`, names);
  }
}

function pagesBelow(folder: string): string[] {
  return filesBelow(folder).filter((name) => name.endsWith('.md'));
}

function sources(folder: string): string[] {
  return filesBelow(folder).filter((name) => name.endsWith('.ts'));
}

function filesBelow(folder: string): string[] {
  return fs.readdirSync(path.join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = `${folder}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(name) : [name];
  });
}

function read(file: string): string {
  return fs.readFileSync(path.join(ROOT, file), 'utf8');
}

function exists(file: string): boolean {
  return fs.existsSync(path.join(ROOT, file));
}
