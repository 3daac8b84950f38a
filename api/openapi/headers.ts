type Json = Readonly<Record<string, unknown>>;

/** Headers of answers, by name. */
export const HEADERS = {
  'x-request-id': {
    description: "The request's own id if it is safe to log, else a new one",
    schema: { type: 'string' },
  },
  'openai-organization': { description: 'The tenant', schema: { type: 'string' } },
  'openai-processing-ms': { schema: { type: 'string', pattern: '^\\d+$' } },
  'openai-version': { schema: { type: 'string' } },
  'retry-after': {
    description: 'Seconds, 1 to 60',
    schema: { type: 'integer', minimum: 1, maximum: 60 },
  },
  'x-should-retry': {
    description: '`false` if a retry cannot succeed',
    schema: { type: 'string', enum: ['false'] },
  },
  'x-ratelimit-limit-requests': {
    description:
      'The nearer limit of the tenant: requests per minute, or open batches. Absent without a limit',
    schema: { type: 'integer' },
  },
  'x-ratelimit-remaining-requests': {
    description: 'How much of that limit remains',
    schema: { type: 'integer', minimum: 0 },
  },
  'x-ratelimit-reset-requests': { schema: { type: 'string' } },
  'content-range': { schema: { type: 'string' } },
  allow: { schema: { type: 'string' } },
};
const ON_EVERY_ANSWER = [
  'x-request-id',
  'openai-organization',
  'openai-processing-ms',
  'openai-version',
];
const ON_STATUS: Readonly<Record<number, readonly string[]>> = {
  206: ['content-range'],
  405: ['allow'],
  409: ['x-should-retry'],
  416: ['content-range'],
  429: [
    ...['retry-after', 'x-should-retry', 'x-ratelimit-limit-requests'],
    ...['x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'],
  ],
  503: ['retry-after'],
};

/** References to the headers of an answer with this status. */
export function headersOf(status: number): Json {
  const names = [...ON_EVERY_ANSWER, ...(ON_STATUS[status] ?? [])];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
