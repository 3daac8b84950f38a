import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig, type Config } from '../../platform/config';
import { configSchema } from '../../platform/config-schema';
import { createMetricsRegistry } from '../../platform/metrics';
import { packageRoot } from '../../platform/package-root';
import { version } from '../../platform/version';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import { ruleFiles } from '../deploy/alert-rules';
import { describeWithGoTool, findGoTool, GO_TOOL_MS } from '../support/go-tool';
import { read, unknownWords } from './repository';

const CHART = 'deploy/helm/nightshift';
/** Helm built from source claims to be for an old Kubernetes. */
const KUBERNETES = ['--kube-version', '1.30.0'];
const EXAMPLES = fs.readdirSync(path.join(packageRoot(), CHART, 'ci'));

/* eslint-disable @typescript-eslint/no-explicit-any -- manifests have the types of Kubernetes, which we lack */
type Manifest = any;

interface Process {
  readonly name: string;
  readonly kind: string;
  readonly pod: Manifest;
  readonly container: Manifest;
}

/** The chart, rendered with one example of values. */
interface Rendered {
  readonly name: string;
  readonly manifests: readonly Manifest[];
  readonly all: readonly Process[];
}

let helm: string;
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-helm-'));

function run(args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(helm, args, { cwd: packageRoot(), encoding: 'utf8' });
}

function render(args: readonly string[]): Manifest[] {
  const done = run(['template', 'r', CHART, ...KUBERNETES, '--namespace', 'prod', ...args]);
  if (done.status !== 0) throw new Error(done.stderr);
  return parseAllDocuments(done.stdout)
    .map((document) => document.toJS())
    .filter((manifest) => manifest !== null);
}

function example(name: string): Manifest[] {
  return render(['--values', path.join(CHART, 'ci', name)]);
}

function processes(manifests: readonly Manifest[]): Process[] {
  return manifests
    .filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
    .map(({ kind, metadata, spec }) => {
      const [container] = spec.template.spec.containers;
      return { name: metadata.name, kind, pod: spec.template, container };
    });
}

/** Name of the file of this test that stands for a file of a Secret. */
function secretFile(mounted: string): string {
  return path.join(scratch, mounted.replaceAll('/', '_'));
}

/** The settings that a process of the chart runs with. */
function configOf({ pod, container }: Process, manifests: readonly Manifest[]): Config {
  const { configMap } = pod.spec.volumes.find((one: Manifest) => one.name === 'config');
  const map = manifests.find(
    ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMap.name,
  );
  const file = path.join(scratch, 'nightshift.yaml');
  fs.writeFileSync(file, map.data['nightshift.yaml']);
  const env: Record<string, string> = {};
  for (const { name, value } of container.env) {
    env[name] = value ?? 'from-a-secret';
    if (!name.endsWith('_FILE')) continue;
    env[name] = secretFile(value);
    fs.writeFileSync(env[name], 'a-secret');
  }
  const isGateway = container.args[0] === 'gateway';
  return loadConfig({ file, env, needs: isGateway ? ['pools'] : ['gateway', 'postgres'] });
}

/** Files that a process reads, by the variables that name them. */
function namedFiles({ container }: Process): string[] {
  const named = container.env
    .filter(({ name }: Manifest) => /_(FILE|DIR|PATH)$/.test(name))
    .map(({ value }: Manifest) => value as string);
  const { args } = container;
  return [...named, args[args.indexOf('--config') + 1]];
}

/** Whether a file is in a mount, under a name that its Secret, ConfigMap or folder has. */
function isMounted(file: string, { pod, container }: Process): boolean {
  const mounts = container.volumeMounts as Manifest[];
  const mount = mounts.find(({ mountPath }) => `${file}/`.startsWith(`${mountPath}/`));
  const volume = pod.spec.volumes.find(({ name }: Manifest) => name === mount?.name);
  const items = volume?.secret?.items as { path: string }[] | undefined;
  const inside = path.relative(mount?.mountPath ?? '/', file);
  return volume !== undefined && (items?.some((item) => item.path === inside) ?? true);
}

function labelsMatch(selector: Record<string, string>, labels: Record<string, string>): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

afterAll(() => fs.rmSync(scratch, { recursive: true }));

it('the chart has the version of the package', () => {
  const chart = read(`${CHART}/Chart.yaml`);
  expect(chart).toContain(`\nversion: ${version()}\n`);
  expect(chart).toContain(`\nappVersion: ${version()}\n`);
});

// Copies, because a chart reads no files outside of its folder, and some tools that install charts drop links. If
// they differ: cp deploy/prometheus/rules/*.yml deploy/helm/nightshift/rules/
it('the chart has exact copies of the alert rules in deploy/prometheus', () => {
  const filesIn = (folder: string) =>
    fs
      .readdirSync(path.join(packageRoot(), folder))
      .map((name) => [name, read(path.join(folder, name))]);
  expect(filesIn(`${CHART}/rules`)).toEqual(filesIn('deploy/prometheus/rules'));
});

/** Commands and settings of the processes. */
function describeCommands(rendered: () => Rendered): void {
  it('runs every process with a command and flags that exist', () => {
    const { all, name } = rendered();
    const commands = all.map(({ container }) => container.args[0]);
    const ofGateway = hasGateway(name) ? ['gateway'] : [];
    expect([...new Set(commands)].sort()).toEqual(['api', ...ofGateway, 'migrate', 'worker']);
    expect(all.flatMap(({ container }) => unknownWords(container.args))).toEqual([]);
  });

  it('gives every process valid settings and no unknown variable', () => {
    const { manifests, all } = rendered();
    for (const one of all) {
      expect(() => configOf(one, manifests)).not.toThrow();
      const others = one.container.env
        .map((variable: Manifest) => variable.name)
        .filter((variable: string) => !variable.startsWith('NIGHTSHIFT__'));
      const known = ['DATABASE_URL', 'TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE', 'NODE_OPTIONS'];
      expect(others.filter((variable: string) => !known.includes(variable))).toEqual([]);
    }
  });

  it('gives every worker longer to stop than its drain budget', () => {
    const { manifests, all } = rendered();
    for (const one of all.filter(({ container }) => container.args[0] === 'worker')) {
      const { worker } = configOf(one, manifests);
      const graceMs = one.pod.spec.terminationGracePeriodSeconds * 1_000;
      expect(graceMs).toBeGreaterThanOrEqual(Number(worker.drain_budget) + 60_000);
    }
  });

  it('gives the workers both roles', () => {
    const { manifests, all } = rendered();
    const workers = all.filter(({ container }) => container.args[0] === 'worker');
    const roles = workers.flatMap((one) => configOf(one, manifests).worker.roles);
    expect([...new Set(roles)].sort()).toEqual(['batch', 'exec']);
  });
}

/** Files, secrets and rights of the processes. */
function describeFiles(rendered: () => Rendered): void {
  it('mounts every file that a setting names', () => {
    const { all } = rendered();
    for (const one of all) {
      const missing = namedFiles(one).filter((file) => !isMounted(file, one));
      expect({ process: one.name, missing }).toEqual({ process: one.name, missing: [] });
    }
  });

  it('names volumes that exist, and mounts all of them', () => {
    const { all } = rendered();
    for (const { pod, container } of all) {
      const mounted = container.volumeMounts.map((one: Manifest) => one.name).sort();
      expect(pod.spec.volumes.map((one: Manifest) => one.name).sort()).toEqual(mounted);
    }
  });

  it('runs everything without root, privileges or a writable root', () => {
    const { all } = rendered();
    for (const { pod, container } of all) {
      expect(pod.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
      expect(pod.spec.automountServiceAccountToken).toBe(false);
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });

  it('contains no password', () => {
    const { all } = rendered();
    const variables = all.flatMap(({ container }) => container.env as Manifest[]);
    expect(JSON.stringify(variables)).not.toMatch(/:\/\/[^/\s@"]*:[^/\s@"]*@/);
    const secret = variables.filter(({ name }) => /(PASSWORD|SECRET|_KEY|KEY_ID)$/.test(name));
    expect(secret.filter(({ valueFrom }) => !valueFrom?.secretKeyRef)).toEqual([]);
  });
}

/** Probes, and the objects that select pods. */
function describePorts(rendered: () => Rendered): void {
  it('asks the ports on which the processes serve /health and /ready', () => {
    const { manifests, all } = rendered();
    for (const one of all.filter(({ kind }) => kind === 'Deployment')) {
      const { api, worker, gateway } = configOf(one, manifests);
      const own = { api, worker, gateway }[one.container.args[0] as 'api' | 'worker' | 'gateway'];
      const port = (wanted: string) =>
        one.container.ports.find((given: Manifest) => given.name === wanted)?.containerPort;
      expect(port('metrics')).toBe(own.observability_port);
      expect(own.observability_host).toBe('0.0.0.0');
      if (own === api || own === gateway) {
        expect([port('http'), own.host]).toEqual([own.port, '0.0.0.0']);
      }
      const { startupProbe, livenessProbe, readinessProbe } = one.container;
      const asked = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet);
      expect(asked).toEqual(
        ['/health', '/health', '/ready'].map((path) => ({ path, port: 'metrics' })),
      );
    }
  });

  it('selects pods that exist, with ports that they have', () => {
    const { manifests, all } = rendered();
    const pods = all.map(({ pod, container }) => ({ labels: pod.metadata.labels, container }));
    for (const { kind, spec, metadata } of manifests) {
      const selector = {
        Deployment: spec?.selector?.matchLabels,
        PodDisruptionBudget: spec?.selector?.matchLabels,
        NetworkPolicy: spec?.podSelector?.matchLabels,
        Service: spec?.selector,
      }[kind as string];
      if (selector === undefined) continue;
      const selected = pods.filter(({ labels }) => labelsMatch(selector, labels));
      expect({ kind, name: metadata.name, found: selected.length > 0 }).toMatchObject({
        found: true,
      });
      const ports = (spec.ports ?? []).map(({ targetPort }: Manifest) => targetPort);
      for (const { container } of selected) {
        const has = (container.ports ?? []).map((port: Manifest) => port.name);
        expect(has).toEqual(expect.arrayContaining(ports));
      }
    }
  });
}

/** Whether an example turns the gateway on. */
function hasGateway(name: string): boolean {
  return ['all-values.yaml', 'gateway-values.yaml'].includes(name);
}

/** The gateway, and the way of workers through it. */
function describeGateway(): void {
  const parts = (name: string) => {
    const manifests = example(name);
    const all = processes(manifests);
    const [gateway, worker] = ['gateway', 'worker'].map((command) =>
      all.find(({ container }) => container.args[0] === command),
    ) as [Process, Process];
    return { manifests, gateway, worker };
  };

  it.each(['all-values.yaml', 'gateway-values.yaml'])(
    'sends workers through the gateway, with its token, under a name that it answers to (%s)',
    (name) => {
      const { manifests, gateway, worker } = parts(name);
      const { global_inference_gateway: way } = configOf(worker, manifests);
      const { gateway: own } = configOf(gateway, manifests);
      const service = manifests.find(
        ({ kind, metadata }) => kind === 'Service' && metadata.name === gateway.name,
      );
      expect(way?.url).toBe(`http://${service.metadata.name}:${service.spec.ports[0].port}`);
      expect(service.spec.ports[0].port).toBe(own.port);
      expect(own.allowed_hosts).toContain(service.metadata.name);
      const file = way?.api_key_file ?? '';
      expect(namedFiles(gateway)).toContain(file);
      expect([isMounted(file, gateway), isMounted(file, worker)]).toEqual([true, true]);
      expect(way?.send_fairness_header).toBe(true);
      const queueMs = own.fair_request_queue.batch_queue_ttl;
      expect(way?.request_timeout).toBeGreaterThan(2 * queueMs);
    },
  );

  it('runs one gateway, which gets requests until its replacement does, and then its whole drain', () => {
    const { manifests, gateway } = parts('all-values.yaml');
    const { spec } = manifests.find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === gateway.name,
    );
    const { gateway: own } = configOf(gateway, manifests);
    expect(spec.replicas).toBe(1);
    expect(spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
    const preStopSec = Number(gateway.container.lifecycle.preStop.exec.command[1]);
    const graceMs = gateway.pod.spec.terminationGracePeriodSeconds * 1_000;
    expect(graceMs).toBeGreaterThanOrEqual(preStopSec * 1_000 + own.drain_budget + 10_000);
  });

  it('keeps the pod in its Service as long as requests wait for a backend', () => {
    const { manifests, gateway } = parts('gateway-values.yaml');
    const { readinessProbe } = gateway.container;
    const { fair_request_queue: queue } = configOf(gateway, manifests).gateway;
    const goneMs = readinessProbe.periodSeconds * readinessProbe.failureThreshold * 1_000;
    expect(goneMs).toBeGreaterThanOrEqual(queue.no_backend_ttl);
  });

  it('gives the gateway the database of the API only if it reads API keys', () => {
    const urlOf = (name: string) => {
      const { gateway, manifests } = parts(name);
      return configOf(gateway, manifests).postgres.url;
    };
    expect(urlOf('all-values.yaml')).toContain('//nightshift_api:');
    expect(urlOf('gateway-values.yaml')).toBe('');
  });

  it('gives paths of its own to the gateway on the host of the API', () => {
    const manifests = example('all-values.yaml').filter(({ kind }) => kind === 'Ingress');
    const paths = manifests.map(({ spec }) =>
      spec.rules[0].http.paths.map((one: Manifest) => one.path as string),
    );
    expect(new Set(manifests.map(({ spec }) => spec.rules[0].host)).size).toBe(1);
    const [ofApi, ofGateway] = paths.sort((a, b) => a.length - b.length);
    expect(ofApi).toEqual(['/v1']);
    const served = [...configSchema.parse({}).batch.endpoints, '/v1/models'];
    expect([...ofGateway].sort()).toEqual(served.sort());
  });

  it('does not give the token to workers that send elsewhere', () => {
    const values = path.join(CHART, 'ci', 'gateway-values.yaml');
    const elsewhere = ['--set', 'config.global_inference_gateway.url=http://models:1'];
    const manifests = render(['--values', values, ...elsewhere]);
    const worker = processes(manifests).find(({ container }) => container.args[0] === 'worker')!;
    const { global_inference_gateway: way } = configOf(worker, manifests);
    expect(way).toMatchObject({ url: 'http://models:1', send_fairness_header: false });
    expect(way?.api_key_file).toBeUndefined();
    expect(JSON.stringify(worker.pod)).not.toContain('worker-token');
  });
}

/** Autoscalers. */
function describeScaling(rendered: () => Rendered): void {
  it('scales and disrupts Deployments that exist, by metrics that exist', () => {
    const { name, manifests, all } = rendered();
    const registry = createMetricsRegistry('worker');
    createWorkerMetrics(registry);
    const metrics = registry.getMetricsAsArray().map((metric) => metric.name);
    const deployments = all.filter(({ kind }) => kind === 'Deployment').map((one) => one.name);
    const scalers = manifests.filter(({ kind }) => /Autoscaler|ScaledObject/.test(kind));
    for (const { spec } of scalers) {
      expect(deployments).toContain(spec.scaleTargetRef.name);
      const used =
        spec.metrics?.map((metric: Manifest) => metric.pods.metric.name) ??
        spec.triggers.map(({ metadata }: Manifest) => /sum\((\w+)\{/.exec(metadata.query)?.[1]);
      expect(metrics).toEqual(expect.arrayContaining(used));
      // With a number of replicas, each upgrade would undo the scaling.
      const target = manifests.find(
        ({ kind, metadata }) => kind === 'Deployment' && metadata.name === spec.scaleTargetRef.name,
      );
      expect(target.spec.replicas).toBeUndefined();
    }
    const wanted: Record<string, number> = { 'filesystem-values.yaml': 1, 'all-values.yaml': 1 };
    expect(scalers).toHaveLength(wanted[name] ?? 0);
  });
}

/** KEDA's objects. */
function describeKeda(): void {
  it('counts only the pods of the workers that are scaled, as Prometheus anchors its patterns', () => {
    const scaler = example('all-values.yaml').find(({ kind }) => kind === 'ScaledObject');
    const [trigger] = scaler.spec.triggers;
    const [, pattern = ''] = /pod=~"([^"]*)"/.exec(trigger.metadata.query) ?? [];
    const { name } = scaler.spec.scaleTargetRef;
    const pods = [`${name}-7c9d8b6f5-x2x4z`, `${name}-large-7c9d8b6f5-x2x4z`];
    expect(pods.filter((pod) => new RegExp(`^(?:${pattern})$`).test(pod))).toEqual([pods[0]]);
  });
}

/** The Prometheus Operator's objects. */
function describeMonitoring(): void {
  it('names the jobs by which the alert rules select', () => {
    const manifests = example('all-values.yaml');
    const monitor = manifests.find(({ kind }) => kind === 'ServiceMonitor');
    const { jobLabel, selector, endpoints } = monitor.spec;
    const services = manifests.filter(
      ({ kind, metadata }) =>
        kind === 'Service' && labelsMatch(selector.matchLabels, metadata.labels),
    );
    const jobs = services.map(({ metadata }) => metadata.labels[jobLabel]);
    expect(jobs.sort()).toEqual(['nightshift-api', 'nightshift-gateway', 'nightshift-worker']);
    const scraped = read('deploy/prometheus/prometheus.yml').matchAll(/job_name: (\S+)/g);
    expect([...scraped].map(([, job]) => job).sort()).toEqual(jobs);
    const ports = services.flatMap(({ spec }) => spec.ports.map((port: Manifest) => port.name));
    expect(ports).toEqual(services.map(() => endpoints[0].port));
    expect(endpoints[0].path).toBe('/metrics');
  });

  it('loads every alert rule unchanged', () => {
    const rule = example('all-values.yaml').find(({ kind }) => kind === 'PrometheusRule');
    const shipped = ruleFiles().flatMap((file) => parse(fs.readFileSync(file, 'utf8')).groups);
    expect(shipped.length).toBeGreaterThan(3);
    const byName = (a: Manifest, b: Manifest): number => a.name.localeCompare(b.name);
    expect([...rule.spec.groups].sort(byName)).toEqual(shipped.sort(byName));
    expect(rule.metadata.labels).toMatchObject({ release: 'prometheus' });
  });

  it('contains nothing that needs the operator unless a value asks for it', () => {
    const groups = example('s3-values.yaml').map(({ apiVersion }) => apiVersion as string);
    expect(groups.filter((group) => group.startsWith('monitoring.coreos.com'))).toEqual([]);
  });
}

describeWithGoTool('helm', 'the chart', () => {
  beforeAll(async () => void (helm = (await findGoTool('helm'))!), GO_TOOL_MS);

  it.each(EXAMPLES)('passes the linter with %s', (name) => {
    const values = path.join(CHART, 'ci', name);
    const done = run(['lint', CHART, '--strict', ...KUBERNETES, '--values', values]);
    expect(done).toMatchObject({ status: 0 });
  });

  it.each([
    ['postgres.hots=x', 'hots'],
    ['workers.exec.autoscaling.type=cpu', 'type'],
    ['workers.batch.roles[0]=exec', 'no entry of workers has the role "batch"'],
    ['postgres.passwords.secret=', 'postgres.passwords.secret is required'],
    ['config.auth.mode=none', 'config.auth.mode is none'],
    ['objectStore.s3.bucket=', 'objectStore.s3.bucket is required'],
    ['gateway.enabled=true', 'config.gateway.pools is required'],
  ])('refuses %s', (value, message) => {
    expect(() =>
      render(['--values', path.join(CHART, 'ci', 's3-values.yaml'), '--set', value]),
    ).toThrow(message);
  });

  describe.each(EXAMPLES)('with %s', (name) => {
    let result: Rendered;
    beforeAll(() => {
      const manifests = example(name);
      result = { name, manifests, all: processes(manifests) };
    });
    describeCommands(() => result);
    describeFiles(() => result);
    describePorts(() => result);
    describeScaling(() => result);
  });

  it('migrates before anything else, with settings of its own', () => {
    const hooks = example('s3-values.yaml').filter(
      ({ metadata }) => metadata.annotations?.['helm.sh/hook'],
    );
    expect(hooks.map(({ kind, metadata }) => [kind, metadata.annotations['helm.sh/hook']])).toEqual(
      [
        ['ConfigMap', 'pre-install,pre-upgrade'],
        ['Job', 'pre-install,pre-upgrade'],
      ],
    );
    const weights = hooks.map(({ metadata }) =>
      Number(metadata.annotations['helm.sh/hook-weight']),
    );
    expect(weights[0]).toBeLessThan(weights[1]!);
  });

  it('renders with the values that docs/kubernetes.md shows', () => {
    const [, values = ''] = /```yaml\n([^]*?)```/.exec(read('docs/kubernetes.md')) ?? [];
    const file = path.join(scratch, 'documented.yaml');
    fs.writeFileSync(file, values);
    const manifests = render(['--values', file]);
    for (const one of processes(manifests)) {
      expect(configOf(one, manifests).auth.mode).toBe('api_key');
    }
  });

  describeGateway();
  describeKeda();
  describeMonitoring();
});
