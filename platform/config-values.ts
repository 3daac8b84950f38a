import { z } from 'zod';
import { parseDurationMs, parseSizeBytes } from './units';

/* The kinds of values that settings have. Each accepts numbers and the text of environment variables. */

const MIN_HEADER_BYTES = 1024;
const MAX_HEADER_BYTES = 256 * 1024;
const DURATION_SHAPE = 'a duration such as 250ms, 4s, 5m, 24h';

/** A duration in milliseconds; required. */
export const durationText = z
  .unknown()
  .transform((value, ctx) =>
    orIssue(parseDurationMs(asText(value)), { value, ctx, expected: DURATION_SHAPE }),
  );
/** A size in bytes; required. */
export const sizeText = z.unknown().transform((value, ctx) =>
  orIssue(parseSizeBytes(asText(value)), {
    value,
    ctx,
    expected: 'a size in bytes or such as 200MiB',
  }),
);

/** The size limit of the headers of a request, in bytes. */
export const headerBytes = z.unknown().transform((value, ctx) => {
  const bytes = parseSizeBytes(asText(value));
  const fits = bytes !== null && bytes >= MIN_HEADER_BYTES && bytes <= MAX_HEADER_BYTES;
  return orIssue(fits ? bytes : null, { value, ctx, expected: 'a size from 1KiB to 256KiB' });
});
/** A duration in milliseconds, with a default. */
export const duration = (fallback: string) => durationText.prefault(fallback);
/** A size in bytes, with a default. */
export const size = (fallback: string) => sizeText.prefault(fallback);
/** A whole number, or its digits as text (from an environment variable); an empty text is invalid. */
const whole = (min: number, max: number, expected: string) =>
  z.unknown().transform((value, ctx) => {
    const number = /^\d+$/.test(asText(value)) ? Number(value) : NaN;
    return orIssue(number >= min && number <= max ? number : null, { value, ctx, expected });
  });
/** A TCP port; 0 takes any free one. */
export const port = whole(0, 65_535, 'a port between 0 and 65535');
/** A whole number of at least 1. */
export const count = whole(1, Number.MAX_SAFE_INTEGER, 'a whole number of at least 1');
/** How often a request is sent again. */
export const retries = whole(0, 1_000, 'a whole number between 0 and 1000');
/** A duration in milliseconds, or `auto`. */
export const drainBudget = z.unknown().transform((value, ctx): 'auto' | number => {
  if (value === 'auto') return 'auto';
  return orIssue(parseDurationMs(asText(value)), {
    value,
    ctx,
    expected: `auto or ${DURATION_SHAPE}`,
  });
});
/** How many processes a worker has, or `auto`. */
export const processCount = z.union([z.literal('auto'), count], {
  error: 'expected auto or a whole number of at least 1',
});
/** A number, or its text, within a range that includes both ends. */
export const numberIn = (min: number, max: number, expected: string) =>
  z.unknown().transform((value, ctx) => {
    const number = Number(asText(value) || NaN);
    return orIssue(number >= min && number <= max ? number : null, { value, ctx, expected });
  });
/** The range that Temporal allows for the weights of its fairness keys. */
export const weight = numberIn(0.001, 1_000, 'a number between 0.001 and 1000');
/** A part of a whole. */
export const ratio = numberIn(0, 1, 'a number between 0 and 1');
/** The name of an HTTP header. */
export const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'expected the name of a header');
/** A name or address to listen on. */
export const listenHost = z
  .string()
  .trim()
  .min(1, 'expected an address to listen on, such as 127.0.0.1');
/** As in a browser's `Host` header, without the port. */
export const hostName = z
  .string()
  .regex(/^(\*|[^\s:/*[\]]+|[0-9a-fA-F:.]+)$/, 'expected a name without a port, or *');
/** An absolute URL of http or https. */
export const url = z.url({ protocol: /^https?$/ });
/** A text that is not empty. */
export const nonEmpty = z.string().min(1, 'expected a text that is not empty');
/** How a model server is reached. */
export const serverKeys = {
  url,
  api_key_name: z.string().min(1).optional(),
  api_key_file: z.string().min(1).optional(),
  tls_insecure_skip_verify: z.boolean().default(false),
  tls_ca_cert_file: z.string().min(1).optional(),
  tls_client_cert_file: z.string().min(1).optional(),
  tls_client_key_file: z.string().min(1).optional(),
};

interface Check {
  readonly value: unknown;
  readonly ctx: { addIssue(issue: { code: 'custom'; message: string; input: unknown }): void };
  readonly expected: string;
}

function orIssue(parsed: number | null, { value, ctx, expected }: Check): number {
  if (parsed !== null) return parsed;
  const message = value === undefined ? `required: ${expected}` : `expected ${expected}`;
  ctx.addIssue({ code: 'custom', message, input: value });
  return z.NEVER;
}

/** The text of a string or number; empty for any other value, because that cannot be a number. */
function asText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
