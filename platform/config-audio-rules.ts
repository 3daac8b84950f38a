import type { AudioConfig } from './config-audio';

type Rule = [isBroken: boolean, path: string, message: string];

const MAX_FILE_BYTES = 512 * 1024 ** 2;
const MAX_FILE = '512MiB';
const MAX_FLUSH_MS = 1_000;

/** The rules between settings of audio (docs/configuration.md#audio), with paths below `gateway`. */
export function audioRules(audio: AudioConfig | undefined, drainBudgetMs: number): Rule[] {
  if (audio === undefined) return [];
  const rules = [
    ...sizeRules(audio),
    ...workerRules(audio),
    ...waitRules(audio, drainBudgetMs),
    ...durationRules(audio),
  ];
  return rules.map(([isBroken, path, message]) => [isBroken, `audio/${path}`, message]);
}

function sizeRules({ max_file_bytes: fileBytes, spool }: AudioConfig): Rule[] {
  return [
    [fileBytes === 0, 'max_file_bytes', 'must be at least 1'],
    [fileBytes > MAX_FILE_BYTES, 'max_file_bytes', `must not exceed ${MAX_FILE}`],
    [
      spool.sheddable_bytes < fileBytes,
      'spool/sheddable_bytes',
      'must be at least gateway.audio.max_file_bytes, because a larger recording of a batch could never be received',
    ],
    [
      spool.max_bytes < spool.sheddable_bytes + fileBytes,
      'spool/max_bytes',
      'must be at least spool.sheddable_bytes and max_file_bytes together, so that batches leave room for one more recording',
    ],
  ];
}

function workerRules({ workers }: AudioConfig): Rule[] {
  const addresses = workers.map(({ address }) => address);
  return [
    [new Set(addresses).size < addresses.length, 'workers', 'names an address twice'],
    ...workers.flatMap((worker, i): Rule[] => [
      [
        worker.api_key_name !== undefined && worker.api_key_file !== undefined,
        `workers/${i}/api_key_file`,
        'set only one of api_key_name and api_key_file',
      ],
      [
        (worker.tls_client_cert_file === undefined) !== (worker.tls_client_key_file === undefined),
        `workers/${i}/tls_client_cert_file`,
        'a client certificate needs both tls_client_cert_file and tls_client_key_file',
      ],
    ]),
  ];
}

function waitRules(
  { scheduler, fair_request_queue: queue, accumulator }: AudioConfig,
  drainBudgetMs: number,
): Rule[] {
  const above = `must not exceed total_capacity, ${queue.total_capacity}`;
  return [
    [
      queue.queue_ttl <= scheduler.aging_threshold,
      'fair_request_queue/queue_ttl',
      'must be longer than scheduler.aging_threshold, because a request would expire before its promotion',
    ],
    [
      scheduler.shutdown_grace >= drainBudgetMs,
      'scheduler/shutdown_grace',
      'must be shorter than gateway.drain_budget, of which it is the last part',
    ],
    [
      accumulator.flush_interval > MAX_FLUSH_MS,
      'accumulator/flush_interval',
      'must not exceed 1s, because every request may wait for it',
    ],
    [queue.flow_capacity > queue.total_capacity, 'fair_request_queue/flow_capacity', above],
    [
      queue.sheddable_capacity > queue.total_capacity,
      'fair_request_queue/sheddable_capacity',
      above,
    ],
  ];
}

/** No duration of audio may be zero. */
function durationRules(audio: AudioConfig): Rule[] {
  const { min_timeout, aging_threshold, cancel_timeout, latency_ttl, cleanup_interval } =
    audio.scheduler;
  const { queue_ttl, batch_queue_ttl, no_backend_ttl } = audio.fair_request_queue;
  const { max_file_message, max_stream_message, ...grpc } = audio.grpc;
  const blocks: Readonly<Record<string, Readonly<Record<string, number>>>> = {
    scheduler: { min_timeout, aging_threshold, cancel_timeout, latency_ttl, cleanup_interval },
    fair_request_queue: { queue_ttl, batch_queue_ttl, no_backend_ttl },
    accumulator: { flush_interval: audio.accumulator.flush_interval },
    grpc,
    tts: audio.tts,
    stream: audio.stream,
  };
  return [
    [max_file_message === 0, 'grpc/max_file_message', 'must be at least 1'],
    [max_stream_message === 0, 'grpc/max_stream_message', 'must be at least 1'],
    ...Object.entries(blocks).flatMap(([block, durations]) =>
      Object.entries(durations).map(([key, ms]): Rule => {
        return [ms === 0, `${block}/${key}`, 'must be longer than 0'];
      }),
    ),
  ];
}
