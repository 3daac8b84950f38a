import fs from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { createMetricsRegistry } from '../../platform/metrics';
import { packageRoot } from '../../platform/package-root';
import { version } from '../../platform/version';
import { createWorkerMetrics } from '../../platform/worker-metrics';
import { ruleFiles } from '../deploy/alert-rules';
import { describeWithGoTool, GO_TOOL_MS } from '../support/go-tool';
import {
  CHART,
  EXAMPLES,
  KUBERNETES,
  configOf,
  example,
  findHelm,
  isMounted,
  labelsMatch,
  namedFiles,
  processes,
  removeScratch,
  render,
  runHelm,
  scratchFile,
  type Manifest,
  type Rendered,
} from './chart';
import { read, unknownWords } from './repository';

afterAll(removeScratch);

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
  beforeAll(findHelm, GO_TOOL_MS);

  it.each(EXAMPLES)('passes the linter with %s', (name) => {
    const values = path.join(CHART, 'ci', name);
    const done = runHelm(['lint', CHART, '--strict', ...KUBERNETES, '--values', values]);
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
    const file = scratchFile('documented.yaml');
    fs.writeFileSync(file, values);
    const manifests = render(['--values', file]);
    for (const one of processes(manifests)) {
      expect(configOf(one, manifests).auth.mode).toBe('api_key');
    }
  });

  describeKeda();
  describeMonitoring();
});
