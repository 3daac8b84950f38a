import { z } from 'zod';
import { count, duration, nonEmpty, numberIn, size } from './config-values';

/** One audio worker. `slots` and `models` only take away from what the worker says of itself. */
const worker = z.strictObject({
  /** `host:port`. */
  address: z.string().regex(/^(\[[0-9a-fA-F:]+\]|[^\s:/]+):\d{1,5}$/, 'expected host:port'),
  slots: count.optional(),
  models: z.array(nonEmpty).min(1).optional(),
  api_key_name: nonEmpty.optional(),
  api_key_file: nonEmpty.optional(),
  tls: z.boolean().default(false),
  tls_insecure_skip_verify: z.boolean().default(false),
  tls_ca_cert_file: nonEmpty.optional(),
  tls_client_cert_file: nonEmpty.optional(),
  tls_client_key_file: nonEmpty.optional(),
});

const priority = z.enum(['REALTIME', 'BATCH']);

/** `gateway.audio` (docs/configuration.md#audio). Without it, the gateway has no audio workers. */
export const audioSection = z.strictObject({
  workers: z.array(worker).min(1, 'name at least one audio worker'),
  max_file_bytes: size('25MiB'),
  max_input_characters: count.prefault(4_096),
  spool: z
    .strictObject({
      dir: nonEmpty.default('spool'),
      max_bytes: size('4GiB'),
      sheddable_bytes: size('2GiB'),
    })
    .prefault({}),
  scheduler: z
    .strictObject({
      default_priority: priority.default('BATCH'),
      speech_priority: priority.default('REALTIME'),
      aging_threshold: duration('30s'),
      min_timeout: duration('30s'),
      timeout_factor: numberIn(1, 10, 'a number between 1 and 10').prefault(2),
      cancel_timeout: duration('100ms'),
      cancel_quarantine: duration('2s'),
      shutdown_grace: duration('10s'),
      latency_ttl: duration('60s'),
      cleanup_interval: duration('30s'),
    })
    .prefault({}),
  fair_request_queue: z
    .strictObject({
      total_capacity: count.prefault(1_000),
      flow_capacity: count.prefault(100),
      sheddable_capacity: count.prefault(900),
      queue_ttl: duration('5m'),
      batch_queue_ttl: duration('2m'),
      no_backend_ttl: duration('10s'),
    })
    .prefault({}),
  accumulator: z
    .strictObject({
      flush_interval: duration('50ms'),
      max_batch_size: numberIn(1, 64, 'a number between 1 and 64').prefault(8),
      mode: z.enum(['per_model', 'single']).default('per_model'),
      max_item_seconds: numberIn(1, 86_400, 'a number between 1 and 86400').prefault(120),
    })
    .prefault({}),
  grpc: z
    .strictObject({
      file_keepalive: duration('30s'),
      file_keepalive_timeout: duration('10s'),
      max_file_message: size('30MiB'),
      stream_keepalive: duration('10s'),
      stream_keepalive_timeout: duration('5s'),
      max_stream_message: size('10MiB'),
      health_interval: duration('2s'),
      health_timeout: duration('1s'),
    })
    .prefault({}),
  tts: z.strictObject({ timeout: duration('60s') }).prefault({}),
  stream: z
    .strictObject({
      idle_timeout: duration('60s'),
      max_session: duration('60m'),
      resume_buffer: duration('30s'),
    })
    .prefault({}),
  postprocessing: z
    .strictObject({
      default: z.array(z.enum(['itn-en'])).default(['itn-en']),
      models: z.record(nonEmpty, z.array(z.enum(['itn-en']))).default({}),
    })
    .prefault({}),
});

/** The settings of audio. */
export type AudioConfig = z.output<typeof audioSection>;
/** The settings of one audio worker. */
export type AudioWorkerConfig = AudioConfig['workers'][number];

/** The settings of a gateway without audio workers, which passes forms on to HTTP pools. */
export const WITHOUT_AUDIO_WORKERS: AudioConfig = {
  ...audioSection.parse({ workers: [{ address: 'none:0' }] }),
  workers: [],
};
