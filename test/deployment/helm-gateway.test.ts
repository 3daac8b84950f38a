import path from 'node:path';
import { configSchema } from '../../platform/config-schema';
import { describeWithGoTool, GO_TOOL_MS } from '../support/go-tool';
import {
  CHART,
  configOf,
  example,
  findHelm,
  isMounted,
  namedFiles,
  processes,
  removeScratch,
  render,
  type Manifest,
  type Process,
} from './chart';

/** The gateway and a worker of an example. */
function parts(name: string) {
  const manifests = example(name);
  const all = processes(manifests);
  const [gateway, worker] = ['gateway', 'worker'].map((command) =>
    all.find(({ container }) => container.args[0] === command),
  ) as [Process, Process];
  return { manifests, gateway, worker };
}

/** The way of workers. */
function describeWay(): void {
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

  it('gives a gateway room for recordings that wait', () => {
    const values = path.join(CHART, 'ci', 'gateway-values.yaml');
    const workers = ['--set', 'config.gateway.audio.workers[0].address=audio:8003'];
    const gatewayOf = (flags: string[]) => {
      const manifests = render(['--values', values, ...flags]);
      const all = processes(manifests);
      const gateway = all.find(({ container }) => container.args[0] === 'gateway')!;
      return { gateway, audio: configOf(gateway, manifests).gateway.audio };
    };
    const { gateway, audio } = gatewayOf(workers);
    expect(audio?.workers).toMatchObject([{ address: 'audio:8003' }]);
    expect(isMounted(`${audio?.spool.dir}/file`, gateway)).toBe(true);
    // Forms may also be for model servers.
    const without = gatewayOf([]);
    expect(without.audio).toBeUndefined();
    expect(isMounted('/app/.nightshift/spool/file', without.gateway)).toBe(true);
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

/** The pod, and the way of users. */
function describePod(): void {
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
    const { endpoints } = configSchema.parse({}).batch;
    const groups = endpoints.map((endpoint) => endpoint.replace(/^\/v1\/audio\/.*/, '/v1/audio'));
    const served = new Set([...groups, '/v1/realtime', '/v1/models']);
    expect([...ofGateway].sort()).toEqual([...served].sort());
  });
}

describeWithGoTool('helm', "the chart's gateway", () => {
  beforeAll(findHelm, GO_TOOL_MS);
  afterAll(removeScratch);

  describeWay();
  describePod();
});
