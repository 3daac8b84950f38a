import { connect } from 'node:net';
import { NightshiftError } from '../../core/errors';
import { isFree } from '../../embedded/locks/ports';
import { urlHost } from '../../embedded/url-host';
import { redactUrl, type Config } from '../../platform/config';
import { lazy } from '../lazy-modules';
import { isForGatewayOnly } from './config-needs';
import { gatewayChecks } from './doctor-gateway';
import { providerChecks } from './doctor-providers';
import type { Check } from './doctor-result';

/** It sends 20 MiB, perhaps over a slow line. */
const STORE_TIMEOUT_MS = 120_000;
const CONNECT_TIMEOUT_MS = 3_000;

/** Checks of everything outside the process that a configuration needs. */
export function doctorChecks(config: Config): Check[] {
  return isForGatewayOnly(config) ? checksOfGateway(config) : checksOfBatches(config);
}

function checksOfGateway(config: Config): Check[] {
  const { auth, gateway } = config;
  const pools = Object.values(gateway.pools);
  return [
    ...portChecks([
      ['gateway.port', gateway.host, gateway.port],
      ['gateway.observability_port', gateway.observability_host, gateway.observability_port],
    ]),
    ...(auth.mode === 'api_key' ? [postgresCheck(config)] : []),
    ...reachableChecks(
      'backend',
      pools.flatMap(({ backends }) => backends.map(({ url }) => url)),
    ),
    ...(gateway.audio?.workers ?? []).map(({ address }) => audioWorkerCheck(address)),
  ];
}

function checksOfBatches(config: Config): Check[] {
  const { api, worker } = config;
  return [
    ...portChecks([
      ['api.port', api.host, api.port],
      ['api.observability_port', api.observability_host, api.observability_port],
      ['worker.observability_port', worker.observability_host, worker.observability_port],
    ]),
    postgresCheck(config),
    {
      name: 'Temporal',
      run: () => checkTemporal(config.temporal),
      advice: 'Set temporal.address (TEMPORAL_ADDRESS) and temporal.namespace',
    },
    {
      name: 'namespace',
      run: () => checkNamespace(config.temporal),
      advice:
        'Run nightshift migrate with credentials that may change the namespace, or ask the administrator of Temporal to do so (docs/operations.md)',
    },
    {
      name: 'object store',
      run: () => checkObjectStore(config.object_store),
      advice: storeAdvice(config.object_store),
      timeoutMs: STORE_TIMEOUT_MS,
    },
    ...reachableChecks('gateway', gatewayUrls(config)),
    ...gatewayChecks(config),
    ...providerChecks(config),
  ];
}

function postgresCheck({ postgres }: Config): Check {
  return {
    name: 'PostgreSQL',
    run: () => checkPostgres(postgres.url),
    advice: 'Set postgres.url (DATABASE_URL), or run nightshift migrate if tables are missing',
  };
}

function reachableChecks(name: string, urls: readonly string[]): Check[] {
  return [...new Set(urls)].map((url) => ({
    name,
    run: () => checkReachable(url),
    advice: 'Start the model server, or correct its url in the settings',
  }));
}

function audioWorkerCheck(address: string): Check {
  return {
    name: 'audio worker',
    run: () => checkReachable(`http://${address}`, address),
    advice: 'Start the audio worker, or correct gateway.audio.workers',
  };
}

function portChecks(
  ports: readonly (readonly [setting: string, host: string, port: number])[],
): Check[] {
  return ports.map(([setting, host, port]) => ({
    name: setting,
    run: () => checkPort({ host, port, setting }),
    advice: `Set ${setting} to a free port, or stop the process that listens there`,
  }));
}

interface PortToCheck {
  readonly host: string;
  readonly port: number;
  readonly setting: string;
}

/** A port on which Nightshift itself answers is fine. */
async function checkPort({ host, port, setting }: PortToCheck): Promise<string> {
  if (port === 0 || (await isFree(host, port, setting))) return `${port} is free`;
  const base = `http://${urlHost(host)}:${port}`;
  const isOurs =
    /"status":\s*"ok"/.test(await textOf(`${base}/health`)) ||
    // The gateway's own port passes requests on and has no health page.
    /"title":\s*"Nightshift/.test(await textOf(`${base}/openapi.json`));
  if (isOurs) return `${port} is used by a running nightshift`;
  throw new NightshiftError('port_in_use', `port ${port} is in use by another program`);
}

/** The text at a URL; empty if there is no answer in time. */
async function textOf(url: string): Promise<string> {
  const signal = AbortSignal.timeout(CONNECT_TIMEOUT_MS);
  const response = await fetch(url, { signal }).catch(() => null);
  return (await response?.text().catch(() => null)) ?? '';
}

async function checkPostgres(url: string): Promise<string> {
  const pool = lazy.pool().openPool(url);
  try {
    await lazy.migrate().checkSchema(pool);
    return `${redactUrl(url)}, tables up to date`;
  } finally {
    await pool.end();
  }
}

async function checkTemporal(temporal: Config['temporal']): Promise<string> {
  const { connection } = lazy.connection().openClient(temporal);
  const { namespace, address } = temporal;
  try {
    await connection.ensureConnected();
    await connection.workflowService.describeNamespace({ namespace });
    return `${address}, namespace ${namespace}`;
  } catch (cause) {
    const { details = '', message } = cause as { details?: string; message: string };
    const what = details.includes('not found')
      ? `has no namespace ${namespace}`
      : 'does not answer';
    throw new NightshiftError('temporal_unavailable', `${address} ${what} (${details || message})`);
  } finally {
    await connection.close();
  }
}

/** Checks what `migrate` sets up in the namespace. With `--skip-namespace` an administrator must do that. */
async function checkNamespace(temporal: Config['temporal']): Promise<string> {
  const client = lazy.connection().openClient(temporal);
  try {
    const { missing, unknown } = await lazy.namespaceCheck().checkNamespace(client);
    if (missing.length > 0) {
      const what = `namespace ${temporal.namespace} lacks ${missing.join(', ')}`;
      throw new NightshiftError('temporal_unavailable', what);
    }
    const unseen =
      unknown.length === 0 ? '' : `; these credentials cannot read its ${unknown.join(', ')}`;
    return `${temporal.namespace} has what Nightshift needs${unseen}`;
  } finally {
    await client.connection.close();
  }
}

/** Tries everything that Nightshift relies on, above all that of many writers of one object exactly one wins. */
async function checkObjectStore(settings: Config['object_store']): Promise<string> {
  const { store, close } = await lazy.storage().openStorage(settings);
  try {
    await lazy.proveStore().proveStore(store);
    return `${placeOf(settings)} is writable, and creates an object only once`;
  } finally {
    await close();
  }
}

function storeAdvice(settings: Config['object_store']): string {
  if (settings.type === 'filesystem') {
    return 'Set object_store.path to a directory that every process can write';
  }
  return 'docs/configuration.md#s3 lists the rights and the features that the bucket needs';
}

function placeOf(settings: Config['object_store']): string {
  return settings.type === 'filesystem' ? settings.path : `bucket ${settings.bucket}`;
}

function gatewayUrls(config: Config): string[] {
  const gateways = [config.global_inference_gateway, ...Object.values(config.model_gateways ?? {})];
  return gateways.flatMap((gateway) => (gateway === undefined ? [] : [gateway.url]));
}

/** Only connects: a model server has no request that is free of charge. */
function checkReachable(url: string, shown = redactUrl(url)): Promise<string> {
  const { hostname, port, protocol } = new URL(url);
  const at = {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
  };
  return new Promise((resolve, reject) => {
    const socket = connect({ ...at, timeout: CONNECT_TIMEOUT_MS }, () => {
      socket.destroy();
      resolve(`${shown} accepts connections`);
    });
    socket.once('error', (error) =>
      reject(new NightshiftError('unavailable', `${shown}: ${error.message}`)),
    );
    socket.once('timeout', () => {
      socket.destroy(
        new NightshiftError('unavailable', `no connection within ${CONNECT_TIMEOUT_MS / 1_000} s`),
      );
    });
  });
}
