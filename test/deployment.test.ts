import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Command } from 'commander';
import { parse } from 'yaml';
import { createProgram } from '../cli/program';
import { loadConfig } from '../platform/config';

const ROOT = path.resolve(__dirname, '..');

interface Service {
  readonly image: string;
  readonly user?: string;
  readonly entrypoint?: readonly string[];
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
  const all = Object.entries(compose.services);
  const ours = all.filter(([, { image }]) => image === 'nightshift');
  const withDatabase = ours.filter(([name]) => name !== 'simulator');
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-deployment-'));
  const passwordFile = path.join(scratch, 'postgres-password');

  beforeAll(() => fs.writeFileSync(passwordFile, 'a-password'));
  afterAll(() => fs.rmSync(scratch, { recursive: true }));

  /** The environment of a service, with a password file of this test. */
  function variables(name: string): Record<string, string> {
    const entries = Object.entries(compose.services[name]?.environment ?? {});
    const env = Object.fromEntries(entries.map(([key, value]) => [key, String(value)]));
    return { ...env, NIGHTSHIFT__POSTGRES__PASSWORD_FILE: passwordFile };
  }

  it('runs every process of an installation', () => {
    expect(ours.map(([name]) => name).sort()).toEqual(['api', 'migrate', 'simulator', 'worker']);
  });

  it.each(ours)('runs %s with a command and flags that exist', (_name, { command = [] }) => {
    expect(unknownWords(command)).toEqual([]);
  });

  it.each(withDatabase)('gives %s valid settings', (name) => {
    const env = variables(name);
    const config = loadConfig({ env, needs: ['gateway', 'postgres'] });
    expect(config.object_store).toEqual({ type: 'filesystem', path: '/data' });
    // An unknown variable would have no effect and go unnoticed.
    const names = Object.keys(env).filter((name) => !name.startsWith('NIGHTSHIFT__'));
    const ofMemory = name === 'worker' ? ['MALLOC_ARENA_MAX', 'NODE_OPTIONS'] : [];
    expect(names.sort()).toEqual(['DATABASE_URL', ...ofMemory, 'TEMPORAL_ADDRESS']);
  });

  it.each(withDatabase)(
    'connects %s to PostgreSQL as its own user, with its own password',
    (name, service) => {
      const { postgres } = loadConfig({ env: variables(name), needs: [] });
      const { username, password, pathname } = new URL(postgres.url);
      expect([username, password, pathname]).toEqual([
        `nightshift_${name}`,
        'a-password',
        '/nightshift',
      ]);
      const file = service.environment?.['NIGHTSHIFT__POSTGRES__PASSWORD_FILE'];
      expect(file).toBe('/run/nightshift/postgres-password');
      const mounted = (service.volumes ?? []).filter((volume) => volume.startsWith('password-'));
      expect(mounted).toEqual([`password-${name}:/run/nightshift:ro`]);
    },
  );

  it('grants database rights to the users of the API and the worker', () => {
    const { postgres } = loadConfig({ env: variables('migrate'), needs: [] });
    expect(postgres.grants).toEqual({ api: 'nightshift_api', worker: 'nightshift_worker' });
  });

  it.each(all)('gives %s no privileges, and bounds its memory and processes', (name, service) => {
    const isWritable = ['temporal', 'temporal-ui'].includes(name);
    expect(service).toMatchObject({
      ...(isWritable ? {} : { read_only: true }),
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      mem_limit: expect.stringMatching(/^\d+[gm]$/),
      pids_limit: expect.any(Number),
    });
    // Compose copies configs into the container's root, so they do not go together.
    if (!isWritable) expect(service.configs).toBeUndefined();
  });

  it('contains no password', () => {
    const passwords = all.flatMap(([, { environment = {} }]) =>
      Object.keys(environment).filter((name) => /PASSWORD$|PWD$/.test(name)),
    );
    expect(passwords).toEqual([]);
    expect(read('docker-compose.yml')).not.toMatch(/:\/\/[^/\s@]*:[^/\s@]*@/);
  });

  it('creates one password per database user, once, and keeps it', () => {
    const { entrypoint = [], command = [], volumes = [] } = compose.services['passwords']!;
    const [shell = '', ...flags] = entrypoint;
    const script = (command[0] ?? '').replaceAll('$$', '$').replaceAll('/passwords', scratch);
    const folders = volumes.map((volume) => path.basename(volume.split(':')[1]!));
    for (const folder of folders) fs.mkdirSync(path.join(scratch, folder));
    const make = (): string[] => {
      execFileSync(shell, [...flags, script]);
      return folders.map((folder) =>
        fs.readFileSync(path.join(scratch, folder, 'postgres-password'), 'utf8'),
      );
    };
    const made = make();
    expect(made.filter((password) => /^[0-9a-f]{64}$/.test(password))).toHaveLength(5);
    expect(new Set(made).size).toBe(5);
    expect(make()).toEqual(made);
  });

  it('mounts into PostgreSQL the passwords of exactly the users that it creates', () => {
    const folders = (name: string): string[] =>
      (compose.services[name]?.volumes ?? [])
        .filter((volume) => volume.startsWith('password-'))
        .map((volume) => volume.replace(/:ro$/, '').replace(/:\/(run\/)?passwords\//, ' '));
    expect(folders('postgres')).toEqual(folders('passwords'));
    const users = /array\[(.*)\]/.exec(read('deploy/postgres-roles.sql'))?.[1] ?? '';
    const made = users.split(', ').map((user) => user.replaceAll("'", ''));
    expect(folders('postgres').map((one) => one.split(' ')[1])).toEqual(['postgres', ...made]);
  });

  it('connects Temporal to PostgreSQL as its own user', () => {
    const { environment, command = [], volumes } = compose.services['temporal']!;
    expect(environment).toMatchObject({ POSTGRES_USER: 'temporal', SKIP_DB_CREATE: 'true' });
    expect(volumes).toEqual(['password-temporal:/run/temporal:ro']);
    expect(command[0]).toContain('cat /run/temporal/postgres-password');
  });

  it('publishes only ports that are in use, on loopback only', () => {
    const { api } = loadConfig({ env: variables('api'), needs: [] });
    const published = Object.values(compose.services).flatMap(({ ports = [] }) => ports);
    expect(published.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
    expect(compose.services['api']!.ports).toEqual([
      `127.0.0.1:${api.port}:${api.port}`,
      `127.0.0.1:${api.observability_port}:${api.observability_port}`,
    ]);
  });

  it('lets other containers reach the observability ports', () => {
    const { api, worker } = loadConfig({ env: variables('worker'), needs: [] });
    expect([api.observability_host, worker.observability_host]).toEqual(['0.0.0.0', '0.0.0.0']);
    expect(api.allowed_hosts).toEqual(['api', 'worker']);
  });

  it('sends requests to the port on which the simulator listens', () => {
    const { command = [] } = compose.services['simulator']!;
    const url = variables('worker')['NIGHTSHIFT__GLOBAL_INFERENCE_GATEWAY__URL'];
    expect(url).toBe(`http://simulator:${command[command.indexOf('--port') + 1]}`);
  });

  it('refers only to services, volumes and configs that it defines', () => {
    for (const service of Object.values(compose.services)) {
      const before = service.depends_on ?? [];
      const services = Array.isArray(before) ? (before as string[]) : Object.keys(before);
      const sources = (service.volumes ?? []).map((volume) => volume.split(':')[0]!);
      const volumes = sources.filter((source) => !source.startsWith('./'));
      const files = sources.filter((source) => source.startsWith('./'));
      const configs = (service.configs ?? []).map(({ source }) => source);
      expect(files.filter((file) => !exists(file))).toEqual([]);
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

  it('copies files that exist, and all that the executable needs', () => {
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
