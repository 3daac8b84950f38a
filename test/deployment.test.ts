import fs from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { parse } from 'yaml';
import { createProgram } from '../cli/program';
import { loadConfig } from '../platform/config';

const ROOT = path.resolve(__dirname, '..');

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>;
  readonly volumes?: readonly string[];
  readonly configs?: readonly { readonly source: string }[];
  readonly ports?: readonly string[];
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly configs: Readonly<Record<string, unknown>>;
}

describe('docker-compose.yml', () => {
  const compose = parse(read('docker-compose.yml'), { merge: true }) as Compose;
  const ours = Object.entries(compose.services).filter(([, { image }]) => image === 'nightshift');

  it('runs every process of an installation', () => {
    expect(ours.map(([name]) => name).sort()).toEqual(['api', 'migrate', 'simulator', 'worker']);
  });

  it.each(ours)('gives %s a command and flags that exist', (_name, { command = [] }) => {
    expect(unknownWords(command)).toEqual([]);
  });

  it.each(ours)('gives %s settings that the product accepts', (name, { environment = {} }) => {
    const env = Object.fromEntries(Object.entries(environment).map(([k, v]) => [k, String(v)]));
    const config = loadConfig({ env, needs: ['gateway', 'postgres'] });
    expect(config.object_store).toEqual({ type: 'filesystem', path: '/data' });
    // Every variable is one that is read: an unknown one would leave no trace.
    const names = Object.keys(env).filter((name) => !name.startsWith('NIGHTSHIFT__'));
    const ofMemory = name === 'worker' ? ['MALLOC_ARENA_MAX', 'NODE_OPTIONS'] : [];
    expect(names.sort()).toEqual(['DATABASE_URL', ...ofMemory, 'TEMPORAL_ADDRESS']);
  });

  it.each(ours)('gives %s no privileges, and bounds what it may use', (_name, service) => {
    expect(service).toMatchObject({
      read_only: true,
      tmpfs: ['/tmp'],
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      mem_limit: expect.stringMatching(/^\d+[gm]$/),
      pids_limit: expect.any(Number),
    });
  });

  it('publishes on loopback only, and the ports that are listened on', () => {
    const { environment = {} } = compose.services['api']!;
    const { api } = loadConfig({ env: environment as Record<string, string>, needs: [] });
    const published = Object.values(compose.services).flatMap(({ ports = [] }) => ports);
    expect(published.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
    expect(compose.services['api']!.ports).toEqual([
      `127.0.0.1:${api.port}:${api.port}`,
      `127.0.0.1:${api.observability_port}:${api.observability_port}`,
    ]);
  });

  it('lets other containers reach the ports of health and metrics', () => {
    const { environment = {} } = compose.services['worker']!;
    const env = environment as Record<string, string>;
    const { api, worker } = loadConfig({ env: { ...env, NODE_OPTIONS: '' }, needs: [] });
    expect([api.observability_host, worker.observability_host]).toEqual(['0.0.0.0', '0.0.0.0']);
    expect(api.allowed_hosts).toEqual(['api', 'worker']);
  });

  it('sends to the simulator where it listens', () => {
    const { command = [], environment = {} } = compose.services['simulator']!;
    const url = environment['NIGHTSHIFT__GLOBAL_INFERENCE_GATEWAY__URL'];
    expect(url).toBe(`http://simulator:${command[command.indexOf('--port') + 1]}`);
  });

  it('refers only to services, volumes and configs that it has', () => {
    for (const service of Object.values(compose.services)) {
      const before = service.depends_on ?? [];
      const services = Array.isArray(before) ? (before as string[]) : Object.keys(before);
      const volumes = (service.volumes ?? []).map((volume) => volume.split(':')[0]!);
      const configs = (service.configs ?? []).map(({ source }) => source);
      expect(Object.keys(compose.services)).toEqual(expect.arrayContaining(services));
      expect(Object.keys(compose.volumes)).toEqual(expect.arrayContaining(volumes));
      expect(Object.keys(compose.configs)).toEqual(expect.arrayContaining(configs));
    }
  });
});

describe('Dockerfile', () => {
  const text = read('Dockerfile');

  it('names commands that exist', () => {
    const named = /docker run nightshift (.*)/.exec(text)?.[1]?.split(' | ') ?? [];
    expect(named.length).toBeGreaterThan(0);
    expect(named.flatMap((command) => unknownWords([command]))).toEqual([]);
  });

  it('copies what is there, and all that the executable needs', () => {
    const copied = [...text.matchAll(/^COPY (?:--from=build )?(.+) \S+$/gm)].flatMap(([, words]) =>
      (words ?? '').split(' ').map((name) => name.replace(/^\/build\//, '')),
    );
    const made = ['dist', 'node_modules'];
    expect(copied.filter((name) => !made.includes(name) && !exists(name))).toEqual([]);
    expect(copied).toEqual(
      expect.arrayContaining([
        'cli/nightshift.js',
        'cli/prepare.js',
        'storage/postgres/migrations',
      ]),
    );
    // Its absence tells cli/prepare.js that there is nothing to install or build.
    expect(copied).not.toContain('tsconfig.build.json');
  });
});

/** Words of a command line that the program does not know: its command, then its flags. */
function unknownWords([name = '', ...words]: readonly string[]): string[] {
  const command = createProgram().commands.find((one: Command) => one.name() === name);
  if (!command) return [name];
  const flags = words.filter((word) => word.startsWith('-'));
  return flags.filter((flag) => !command.options.some(({ long }) => long === flag));
}

function read(file: string): string {
  return fs.readFileSync(path.join(ROOT, file), 'utf8');
}

function exists(file: string): boolean {
  return fs.existsSync(path.join(ROOT, file));
}
