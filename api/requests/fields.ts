import { z } from 'zod';
import type { FaultCode } from './faults';

/*
 * Builders for the fields of requests. The messages complete "expected …" in the answer to a wrong
 * request (see `checkRequest`).
 */

/** The purposes that a file may have. */
export const PURPOSES = [
  'assistants',
  'batch',
  'fine-tune',
  'vision',
  'user_data',
  'evals',
] as const;

/** Completes "expected …" for a purpose. */
export const ONE_PURPOSE = `one of ${PURPOSES.join(', ')}`;

/** Bounds of a file's lifetime in seconds. */
const LIFETIME = { min: 3_600, max: 2_592_000 };

/** Options of a zod check: its issue carries this code. `error` sets the message. */
export function withCode(code: FaultCode): { params: { code: FaultCode } } {
  return { params: { code } };
}

/** A required string that is not empty. */
export function requiredText() {
  return z.string({ error: 'a string' }).min(1, { error: 'a non-empty string' });
}

/** One of several strings. An empty string has its own message. */
export function requiredChoice<const T extends readonly string[]>(values: T, expected: string) {
  return z.enum(values, {
    error: ({ input }) =>
      typeof input !== 'string' ? 'a string' : input === '' ? 'a non-empty string' : expected,
  });
}

/** A JSON integer within bounds, both included. */
export function integer({ min, max }: { min: number; max: number }) {
  const error = ({ code, input }: { code?: string; input?: unknown }): string => {
    if (code === 'too_small') return `an integer of at least ${min}, got ${String(input)}`;
    if (code === 'too_big') return `an integer of at most ${max}, got ${String(input)}`;
    return 'an integer';
  };
  return z.int({ error }).min(min, { error }).max(max, { error });
}

/** A string of at most `chars` code points. */
export function textUpTo(chars: number, expected: string) {
  const fits = (text: string): boolean => text.length <= chars || [...text].length <= chars;
  return z
    .string({ error: 'a string' })
    .refine(fits, { error: expected, ...withCode('string_above_max_length') })
    .meta({ maxLength: chars });
}

/** `{anchor: 'created_at', seconds}`, the lifetime of a file. */
export function expiresAfter() {
  return z.strictObject(
    {
      anchor: z.literal('created_at', {
        error: ({ input }) => (typeof input === 'string' ? "'created_at'" : 'a string'),
      }),
      seconds: integer(LIFETIME),
    },
    { error: 'an object' },
  );
}

/*
 * Parameters of queries and forms. They arrive as text. A repeated parameter of a query is an array.
 */

/** A parameter that may occur once. */
function singleText() {
  return z.string({ error: 'a single value' });
}

/** A parameter that is not empty. PostgreSQL text cannot contain NUL. */
export function nonEmptyText() {
  return singleText().regex(/^[^\u0000]+$/, { error: 'a non-empty text' });
}

/** One of several texts. */
export function choice<const T extends readonly string[]>(values: T, expected: string) {
  return z.enum(values, {
    error: ({ input }) => (typeof input === 'string' ? expected : 'a single value'),
  });
}

/** An integer as text, within bounds, both included. */
export function integerText(bounds: { min: number; max: number }) {
  return singleText()
    .transform((text, context) => {
      if (/^[+-]?\d{1,300}$/.test(text)) return Number(text);
      context.issues.push({
        code: 'invalid_type',
        expected: 'int',
        input: text,
        message: 'an integer',
      });
      return z.NEVER;
    })
    .pipe(integer(bounds));
}

/** A file's lifetime in seconds, as text in a form. */
export function lifetimeText() {
  return integerText(LIFETIME);
}

/** A field that must be a file. `isFile` recognizes the record of a received one. */
export function fileField<T>(isFile: (value: unknown) => value is T) {
  return z
    .custom<T>((value) => isFile(value), { error: 'a file' })
    .meta({ type: 'string', format: 'binary' });
}
