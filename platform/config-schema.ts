import { z } from 'zod';
import { gatewaySection } from './config-gateway';
import { delegationSections } from './config-providers';
import {
  count,
  drainBudget,
  processCount,
  duration,
  durationText,
  headerBytes,
  headerName,
  hostName,
  listenHost,
  nonEmpty,
  port,
  ratio,
  retries,
  serverKeys,
  size,
  sizeText,
  url,
  weight,
} from './config-values';

const gatewayKeys = {
  ...serverKeys,
  inference_objective: z.string().min(1).optional(),
  send_fairness_header: z.boolean().default(false),
  http_client: z.enum(['nightshift', 'undici']).default('nightshift'),
  max_concurrency: count.optional(),
  audio_request_timeout: duration('1h'),
};

const globalGateway = z.strictObject({
  ...gatewayKeys,
  request_timeout: duration('5m'),
  max_retries: retries.prefault(3),
  initial_backoff: duration('1s'),
  max_backoff: duration('60s'),
});

/** Each entry must be complete, see docs/design/configuration.md#complete-entries. */
const modelGateway = z.strictObject({
  ...gatewayKeys,
  request_timeout: durationText,
  max_retries: retries,
  initial_backoff: durationText,
  max_backoff: durationText,
});

/** Names of `[A-Za-z0-9._-]` with slashes between them, as in every object key. */
const keyPrefix = z
  .string()
  .regex(/^([A-Za-z0-9._-]+\/)*[A-Za-z0-9._-]*$/, 'expected names such as team/nightshift');

/** Cross-checked in `config-object-store.ts`. */
const objectStore = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('filesystem'), path: z.string().min(1) }),
  z.strictObject({
    type: z.literal('s3'),
    bucket: nonEmpty,
    /** Without it, the region of AWS's own settings; `us-east-1` if there is an endpoint. */
    region: nonEmpty.optional(),
    endpoint: url.optional(),
    prefix: keyPrefix.default(''),
    use_path_style: z.boolean().default(false),
    server_side_encryption: z.enum(['AES256', 'aws:kms']).optional(),
    kms_key_id: nonEmpty.optional(),
    access_key_id: nonEmpty.optional(),
    /** Read once, when the process opens the store. */
    secret_access_key_file: nonEmpty.optional(),
    request_timeout: duration('30s'),
    flush_interval: duration('1s'),
    segment_bytes: size('1MiB'),
    cache_bytes: size('1GiB'),
    /** Without it, the folder of the operating system for temporary files. */
    cache_dir: nonEmpty.optional(),
  }),
]);

/** Each certificate and key is a file, which may be replaced while the process runs, or PEM text. */
/** Temporal joins it with the build id by a separator, so it must not contain one. */
const deploymentName = nonEmpty.regex(/^[^.:]+$/, 'must not contain "." or ":"');

const temporalTls = z.strictObject({
  ca_cert_file: nonEmpty.optional(),
  ca_cert_data: nonEmpty.optional(),
  client_cert_file: nonEmpty.optional(),
  client_cert_data: nonEmpty.optional(),
  client_key_file: nonEmpty.optional(),
  client_key_data: nonEmpty.optional(),
  server_name: nonEmpty.optional(),
  /** Accepted because Temporal's own tools accept it; the SDK does not support it, so a rule refuses it. */
  disable_host_verification: z.boolean().optional(),
});

/** Endpoints of batches unless `batch.endpoints` lists others. */
const DEFAULT_ENDPOINTS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/responses',
  '/v1/moderations',
  '/v1/audio/transcriptions',
  '/v1/audio/translations',
  '/v1/audio/speech',
];

/**
 * Names, defaults and types of all settings (docs/configuration.md explains each). Durations become
 * milliseconds, sizes become bytes. Every object is strict: an unknown key is an error, because a
 * misspelled setting would otherwise be ignored silently.
 */
export const configSchema = z.strictObject({
  api: z
    .strictObject({
      host: listenHost.default('127.0.0.1'),
      port: port.prefault(8000),
      observability_host: listenHost.default('127.0.0.1'),
      observability_port: port.prefault(8081),
      allowed_hosts: z.array(hostName).optional(),
      max_header_bytes: headerBytes.prefault('16KiB'),
      header_timeout: duration('10s'),
      min_body_rate: size('4KiB'),
      body_grace: duration('60s'),
      max_connections: count.prefault(2_000),
      max_connections_per_address: count.prefault(1_000),
    })
    .prefault({}),
  worker: z
    .strictObject({
      observability_host: listenHost.default('127.0.0.1'),
      observability_port: port.prefault(9090),
      drain_budget: drainBudget.prefault('auto'),
      roles: z
        .array(z.enum(['batch', 'exec']))
        .min(1, 'expected batch, exec or both')
        .default(['batch', 'exec']),
      exec_slots: count.prefault(100),
      processes: processCount.prefault('auto'),
      heartbeat_timeout: duration('10s'),
    })
    .prefault({}),
  gateway: gatewaySection,
  secrets_dir: z.string().default('/etc/.secrets'),
  auth: z
    .strictObject({
      mode: z.enum(['none', 'header', 'api_key']).default('none'),
      tenant_header: headerName.default('X-MaaS-Username'),
      require_tenant: z.boolean().default(true),
      allow_public_bind: z.boolean().default(false),
    })
    .prefault({}),
  temporal: z
    .strictObject({
      address: z.string().default('127.0.0.1:7233'),
      namespace: z.string().default('default'),
      api_key: nonEmpty.optional(),
      api_key_file: nonEmpty.optional(),
      /** Without it, TLS is used if there is an API key. */
      tls: z.union([z.boolean(), temporalTls]).optional(),
      payload_codec: nonEmpty.optional(),
      /** Without it, workers have no version. */
      worker_versioning: z
        .strictObject({ deployment_name: deploymentName, build_id: nonEmpty })
        .optional(),
      inactive_patches: z.array(nonEmpty).default([]),
    })
    .prefault({}),
  postgres: z
    .strictObject({
      url: z.string().default(''),
      /** Read once, together with the settings; its content becomes the password of `url`. */
      password_file: nonEmpty.optional(),
      /** Database roles to which `migrate` grants access. */
      grants: z.strictObject({ api: nonEmpty.optional(), worker: nonEmpty.optional() }).optional(),
    })
    .prefault({}),
  object_store: objectStore.prefault({ type: 'filesystem', path: './data' }),
  global_inference_gateway: globalGateway.optional(),
  model_gateways: z.record(z.string().min(1), modelGateway).optional(),
  ...delegationSections,
  concurrency: z
    .strictObject({
      global: count.prefault(100),
      per_model: count.prefault(10),
      adaptive: z.boolean().default(true),
      lanes_per_model: count.prefault(32),
      in_flight_bytes: size('128MiB'),
    })
    .prefault({}),
  fairness: z
    .strictObject({
      default: weight.prefault(1),
      tenants: z.record(z.string().min(1), weight).default({}),
      models: z.record(z.string().min(1), weight).default({}),
    })
    .prefault({}),
  batch: z
    .strictObject({
      cancel_grace: duration('60s'),
      expiry_grace: duration('0s'),
      finalize_window: duration('24h'),
      harvest_grace: duration('12m'),
      reroute_after: duration('5m'),
      single_model_batches: z.boolean().default(false),
      moderation_default_model: z.string().default('omni-moderation-latest'),
      endpoints: z.array(z.string().startsWith('/')).min(1).default(DEFAULT_ENDPOINTS),
    })
    .prefault({}),
  limits: z
    .strictObject({
      max_requests: count.prefault(50_000),
      max_file_bytes: size('200MiB'),
      max_inputs: count.prefault(50_000),
      max_line_bytes: size('16MiB'),
      max_json_depth: count.prefault(10_000),
      max_json_tokens: count.prefault(10_000_000),
      max_answer_bytes: size('64MiB'),
      /** Limits of each tenant; an absent one means no limit. */
      tenant: z
        .strictObject({
          requests_per_minute: count.optional(),
          max_batches: count.optional(),
          max_stored_bytes: sizeText.optional(),
          max_enqueued_requests: count.optional(),
          max_files: count.prefault(100_000),
          max_uploads: count.prefault(1_000),
          max_upload_parts: count.prefault(10_000),
        })
        .prefault({}),
    })
    .prefault({}),
  pass_through_headers: z.array(headerName).default([]),
  pass_through_key_file: z.string().min(1).optional(),
  retention: z
    .strictObject({
      output_files: duration('30d'),
      batches: duration('90d'),
      scratch: duration('24h'),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      max_label_values: count.prefault(200),
      idle_series: duration('1h'),
    })
    .prefault({}),
  /** Spans are exported by OTLP if an endpoint is set. */
  tracing: z
    .strictObject({
      otlp_endpoint: z.string().optional(),
      protocol: z.enum(['grpc', 'http/protobuf']).default('grpc'),
      sample_ratio: ratio.prefault(1),
      request_ratio: ratio.prefault(0.01),
      slow_request: duration('60s'),
    })
    .prefault({}),
  log: z
    .strictObject({
      level: z.enum(['trace', 'debug', 'info', 'warn', 'error']).default('info'),
      format: z.enum(['auto', 'json', 'pretty']).default('auto'),
    })
    .prefault({}),
});

/** The parsed and complete configuration. Treat it as immutable. */
export type Config = z.output<typeof configSchema>;
/** How to call one model server; the same type in both gateway modes. */
export type GatewayConfig = z.output<typeof globalGateway>;
