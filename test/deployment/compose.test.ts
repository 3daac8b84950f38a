import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parse } from 'yaml';
import { loadConfig } from '../../platform/config';
import { freePort } from '../support/free-port';
import { describeWithGoTool, findGoTool, GO_TOOL_MS } from '../support/go-tool';
import { until } from '../support/until';
import { exists, read, unknownWords } from './repository';

interface Service {
  readonly image: string;
  readonly profiles?: readonly string[];
  readonly user?: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>;
  readonly volumes?: readonly string[];
  readonly configs?: readonly { readonly source: string }[];
  readonly networks?: { readonly default: { readonly aliases: readonly string[] } };
  readonly deploy?: { readonly replicas: number };
  readonly ports?: readonly string[];
  readonly build?: string | { readonly dockerfile: string };
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
  const withSettings = ours.filter(([name]) => name !== 'simulator');
  const withDatabase = withSettings.filter(([name]) => name !== 'gateway');
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-deployment-'));
  const passwordFile = path.join(scratch, 'postgres-password');
  const ofProfile = (profile: string): [string, Service][] =>
    all.filter(([, { profiles }]) => profiles?.includes(profile) ?? true);

  beforeAll(() => fs.writeFileSync(passwordFile, 'a-password'));
  afterAll(() => fs.rmSync(scratch, { recursive: true }));

  /** The environment of a service, with a password file of this test. */
  function variables(name: string): Record<string, string> {
    const entries = Object.entries(compose.services[name]?.environment ?? {});
    const env = Object.fromEntries(entries.map(([key, value]) => [key, withDefaults(value)]));
    const key = 'NIGHTSHIFT__POSTGRES__PASSWORD_FILE';
    return { ...env, ...(env[key] === '' ? {} : { [key]: passwordFile }) };
  }

  it.each([
    ['minimal', ['api', 'gateway', 'migrate', 'simulator', 'worker'], []],
    [
      'full',
      ['api-s3', 'gateway', 'migrate', 'simulator', 'worker-s3'],
      ['grafana', 'prometheus', 's3'],
    ],
  ])('runs every process of an installation in the profile %s', (profile, processes, more) => {
    const names = ofProfile(profile).map(([name]) => name);
    const own = ours.map(([name]) => name).filter((name) => names.includes(name));
    expect(own.sort()).toEqual(processes);
    expect(names).toEqual(expect.arrayContaining(more));
    // Other services call an API and a worker by these names.
    const called = own.flatMap((name) => compose.services[name]?.networks?.default.aliases ?? name);
    expect(called.sort()).toEqual(['api', 'gateway', 'migrate', 'simulator', 'worker']);
  });

  it('starts the profile minimal unless another one is named', () => {
    expect(read('.env')).toMatch(/^COMPOSE_PROFILES=minimal$/m);
  });

  it('runs two workers in the profile full', () => {
    expect(compose.services['worker-s3']?.deploy).toEqual({ replicas: 2 });
  });

  it('pins every image by version and digest', () => {
    const foreign = all.filter(([, { build }]) => build === undefined);
    const images = foreign.map(([, { image }]) => image);
    expect(
      images.filter((image) => !/^[a-z/-]+:v?\d+\.\d+[.\d]*@sha256:[0-9a-f]{64}$/.test(image)),
    ).toEqual([]);
  });

  it.each(ours)('runs %s with a command and flags that exist', (_name, { command = [] }) => {
    expect(unknownWords(command)).toEqual([]);
  });

  it.each(withSettings)('gives %s valid settings', (name) => {
    const env = variables(name);
    const needs = name === 'gateway' ? (['pools'] as const) : (['gateway', 'postgres'] as const);
    const config = loadConfig({ env, needs });
    const stores = {
      s3: { type: 's3', bucket: 'nightshift', endpoint: 'http://s3:7070', use_path_style: true },
      filesystem: { type: 'filesystem', path: '/data' },
    };
    if (!['migrate', 'gateway'].includes(name)) {
      expect(config.object_store).toMatchObject(stores[name.endsWith('-s3') ? 's3' : 'filesystem']);
    }
    // An unknown variable would have no effect and go unnoticed.
    const names = Object.keys(env).filter((name) => !name.startsWith('NIGHTSHIFT__'));
    const ofMemory = name.startsWith('worker') ? ['MALLOC_ARENA_MAX', 'NODE_OPTIONS'] : [];
    const ofDatabase = name === 'gateway' ? [] : ['DATABASE_URL'];
    expect(names.sort()).toEqual([...ofDatabase, ...ofMemory, 'TEMPORAL_ADDRESS']);
  });

  it.each(withDatabase)(
    'connects %s to PostgreSQL as its own user, with its own password',
    (name, service) => {
      const user = name.replace('-s3', '');
      const { postgres } = loadConfig({ env: variables(name), needs: [] });
      const { username, password, pathname } = new URL(postgres.url);
      expect([username, password, pathname]).toEqual([
        `nightshift_${user}`,
        'a-password',
        '/nightshift',
      ]);
      const file = service.environment?.['NIGHTSHIFT__POSTGRES__PASSWORD_FILE'];
      expect(file).toBe('/run/nightshift/postgres-password');
      const mounted = (service.volumes ?? []).filter((volume) => volume.startsWith('password-'));
      expect(mounted).toEqual([`password-${user}:/run/nightshift:ro`]);
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
      Object.keys(environment).filter((name) => /PASSWORD$|PWD$|SECRET$/.test(name)),
    );
    expect(passwords).toEqual([]);
    expect(read('docker-compose.yml')).not.toMatch(/:\/\/[^/\s@]*:[^/\s@]*@/);
  });

  it('creates one password per database user and a token for workers, once, and keeps them', () => {
    const { entrypoint = [], command = [], volumes = [] } = compose.services['passwords']!;
    const [shell = '', ...flags] = entrypoint;
    const script = (command[0] ?? '').replaceAll('$$', '$').replaceAll('/passwords', scratch);
    const folders = volumes.map((volume) => path.basename(volume.split(':')[1]!));
    for (const folder of folders) fs.mkdirSync(path.join(scratch, folder));
    const secretIn = (folder: string): string =>
      folder === 'gateway' ? 'worker-token' : 'postgres-password';
    const make = (): string[] => {
      execFileSync(shell, [...flags, script]);
      return folders.map((folder) =>
        fs.readFileSync(path.join(scratch, folder, secretIn(folder)), 'utf8'),
      );
    };
    const made = make();
    expect(made.filter((secret) => /^[0-9a-f]{64}$/.test(secret))).toHaveLength(6);
    expect(new Set(made).size).toBe(6);
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
    for (const name of ['api', 'api-s3']) {
      expect(compose.services[name]!.ports).toEqual([
        `127.0.0.1:${api.port}:${api.port}`,
        `127.0.0.1:${api.observability_port}:${api.observability_port}`,
      ]);
    }
    const { gateway } = loadConfig({ env: variables('gateway'), needs: ['pools'] });
    expect(compose.services['gateway']!.ports).toEqual([
      `127.0.0.1:${gateway.port}:${gateway.port}`,
    ]);
    // Two services of one profile cannot publish the same port.
    for (const profile of ['minimal', 'full']) {
      const taken = ofProfile(profile).flatMap(([, { ports = [] }]) => ports);
      expect(new Set(taken).size).toBe(taken.length);
    }
  });

  it('serves audio with the simulator, or with the worker of the profile audio', () => {
    const { gateway } = loadConfig({ env: variables('gateway'), needs: ['pools'] });
    const { command = [] } = compose.services['simulator']!;
    const port = command[command.indexOf('--audio-port') + 1];
    expect(gateway.audio?.workers).toMatchObject([{ address: `simulator:${port}` }]);
    expect(compose.services['gateway']!.volumes).toContain(gateway.audio?.spool.dir);
    const worker = compose.services['audio-worker'];
    expect(worker).toMatchObject({ profiles: ['audio'], read_only: true });
    const { dockerfile } = worker?.build as { readonly dockerfile: string };
    expect(read(dockerfile)).toContain(`EXPOSE ${port}`);
  });

  it('lets other containers reach the observability ports', () => {
    const { api, worker, gateway } = loadConfig({ env: variables('worker'), needs: [] });
    for (const { observability_host: host } of [api, worker, gateway]) expect(host).toBe('0.0.0.0');
    expect(api.allowed_hosts).toEqual(['api', 'worker']);
    expect(gateway.allowed_hosts).toEqual(['gateway']);
  });

  it('sends requests through the gateway, with its token, to the port on which the simulator listens', () => {
    const { command = [] } = compose.services['simulator']!;
    const after = (flag: string) => command[command.indexOf(flag) + 1];
    const config = loadConfig({ env: variables('gateway'), needs: ['gateway', 'pools'] });
    const { gateway, global_inference_gateway: ofWorker, concurrency } = config;
    const backends = Object.values(gateway.pools).flatMap((pool) => pool.backends);
    expect(backends.map(({ url }) => url)).toEqual([`http://simulator:${after('--port')}`]);
    expect(ofWorker?.url).toBe(`http://gateway:${gateway.port}`);
    expect(ofWorker?.api_key_file).toBe(gateway.worker_token_file);
    expect(gateway.worker_token_file).toBe('/run/gateway/worker-token');
    for (const name of ['gateway', 'worker', 'worker-s3']) {
      expect(compose.services[name]!.volumes).toContain('worker-token:/run/gateway:ro');
    }
    expect(compose.services['passwords']!.volumes).toContain('worker-token:/passwords/gateway');
    expect(gateway.adaptive.max).toBe(Number(after('--slots')));
    expect(concurrency.per_model).toBe(2 * Number(after('--slots')));
  });

  it('gives the gateway longer to stop than its drain budget', () => {
    const { gateway } = loadConfig({ env: variables('gateway'), needs: ['pools'] });
    expect(compose.services['gateway']).toMatchObject({ stop_grace_period: '1m' });
    expect(gateway.drain_budget).toBeLessThanOrEqual(30_000);
  });

  it('refers only to services, volumes and configs that it defines', () => {
    for (const service of Object.values(compose.services)) {
      const before = service.depends_on ?? [];
      const services = Array.isArray(before) ? (before as string[]) : Object.keys(before);
      const sources = (service.volumes ?? []).map((volume) => volume.split(':')[0]!);
      // One that begins with a slash is a path in the container, with a volume of its own.
      const volumes = sources.filter((source) => !/^\.?\//.test(source));
      const files = sources.filter((source) => source.startsWith('./'));
      const configs = (service.configs ?? []).map(({ source }) => source);
      expect(files.filter((file) => !exists(file))).toEqual([]);
      const { profiles } = service;
      const together =
        profiles === undefined ? all.filter(([, one]) => !one.profiles) : ofProfile(profiles[0]!);
      expect(together.map(([name]) => name)).toEqual(expect.arrayContaining(services));
      expect(Object.keys(compose.volumes)).toEqual(expect.arrayContaining(volumes));
      expect(Object.keys(compose.configs)).toEqual(expect.arrayContaining(configs));
    }
  });
});

describe('the programs of the other images', () => {
  const compose = parse(read('docker-compose.yml'), { merge: true }) as Compose;

  it('get the secrets that the service of secrets creates, where they read them', () => {
    const { volumes = [] } = compose.services['secrets']!;
    expect(volumes).toEqual(['secret-s3:/secrets/s3', 'secret-grafana:/secrets/grafana']);
    const { environment, volumes: mounts } = compose.services['grafana']!;
    expect(environment).toMatchObject({
      GF_SECURITY_ADMIN_PASSWORD__FILE: '/run/grafana/grafana-secret',
    });
    expect(mounts).toContain('secret-grafana:/run/grafana:ro');
    for (const name of ['s3', 'api-s3', 'worker-s3']) {
      expect(compose.services[name]!.volumes).toContain('secret-s3:/run/s3:ro');
    }
    const file = compose.services['api-s3']!.environment!;
    expect(file['NIGHTSHIFT__OBJECT_STORE__SECRET_ACCESS_KEY_FILE']).toBe('/run/s3/s3-secret');
  });

  it('lets Prometheus find every API, worker and gateway at its port of metrics', () => {
    const { scrape_configs: jobs } = parse(read('deploy/prometheus/prometheus.yml')) as {
      scrape_configs: { dns_sd_configs: { names: string[]; port: number }[] }[];
    };
    const { api, worker, gateway } = loadConfig({ env: {}, needs: [] });
    const targets = jobs.flatMap(({ dns_sd_configs: found }) => found);
    expect(targets).toMatchObject([
      { names: ['api'], port: api.observability_port },
      { names: ['worker'], port: worker.observability_port },
      { names: ['gateway'], port: gateway.observability_port },
    ]);
    const { volumes } = compose.services['prometheus']!;
    expect(volumes).toContain('./deploy/prometheus:/etc/prometheus:ro');
  });

  it('gives Grafana the dashboards where it looks for them, and the address of Prometheus', () => {
    const folder = 'deploy/grafana/provisioning';
    const { providers } = parse(read(`${folder}/dashboards/nightshift.yml`)) as {
      providers: { options: { path: string } }[];
    };
    const { volumes, ports } = compose.services['grafana']!;
    for (const { options } of providers) {
      expect(volumes).toContain(`./deploy/grafana/dashboards:${options.path}:ro`);
    }
    expect(volumes).toContain(`./${folder}:/etc/grafana/provisioning:ro`);
    expect(ports).toEqual(['127.0.0.1:3000:3000']);
    const { datasources } = parse(read(`${folder}/datasources/nightshift.yml`)) as {
      datasources: { url: string }[];
    };
    expect(datasources.map(({ url }) => url)).toEqual(['http://prometheus:9090']);
  });

  describeWithGoTool('versitygw', 'the S3 server', () => {
    it(
      'starts with its script, and answers its health check',
      async () => {
        const program = (await findGoTool('versitygw'))!;
        const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-compose-s3-'));
        fs.writeFileSync(path.join(folder, 's3-secret'), 'a-secret');
        const port = await freePort();
        const { entrypoint = [], command = [] } = compose.services['s3']!;
        const script = command[0]!
          .replaceAll('$$', '$')
          .replaceAll('/objects', `${folder}/objects`)
          .replaceAll('/run/s3', folder)
          .replace(':7070', `127.0.0.1:${port}`)
          .replace('exec versitygw', `exec ${program}`);
        const [shell = '', ...flags] = entrypoint;
        const child = spawn(shell, [...flags, script], { stdio: 'ignore' });
        const isHealthy = async () =>
          (await fetch(`http://127.0.0.1:${port}/health`).catch(() => null))?.status === 200;
        try {
          await until(isHealthy, 20_000, 'the S3 server');
          // The bucket exists, and its objects need a signature.
          expect((await fetch(`http://127.0.0.1:${port}/nightshift/x`)).status).toBe(403);
        } finally {
          child.kill('SIGKILL');
          fs.rmSync(folder, { recursive: true });
        }
      },
      GO_TOOL_MS,
    );
  });
});

/** `${NAME:-default}` without the variable. */
function withDefaults(value: unknown): string {
  return String(value).replace(/\$\{\w+:-([^}]*)\}/g, '$1');
}
