import type { z } from 'zod';
import { COMMON_ERRORS, type Operation, OPERATIONS } from '../../api/openapi/operations';
import { errorShape } from '../../api/openapi/shapes';

/** A request and its answer, as a test has made them. */
export interface Exchange {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly payload: unknown;
  readonly status: number;
  readonly body: unknown;
}

/** Where an exchange is not as the OpenAPI document says; empty where it is, or is none of its own. */
export function undocumented(exchange: Exchange): string[] {
  const operation = operationOf(exchange);
  const { status, body, method, url } = exchange;
  if (operation === null || method === 'HEAD') return [];
  const what = `${method} ${url} ${status}`;
  if (status >= 400) {
    const known = [...operation.errors, ...COMMON_ERRORS].includes(status);
    return [...(known ? [] : [`${what} is not documented`]), ...faults(what, errorShape, body)];
  }
  const answer = operation.answer === null ? [] : faults(what, operation.answer, body);
  const asked = operation.json === undefined ? [] : jsonFaults(operation.json, exchange);
  return [...answer, ...asked];
}

function jsonFaults(shape: z.ZodType, { method, url, payload }: Exchange): string[] {
  const text = typeof payload === 'string' || Buffer.isBuffer(payload) ? String(payload) : '{}';
  return faults(`request ${method} ${url}`, shape, JSON.parse(text));
}

function faults(what: string, shape: z.ZodType, value: unknown): string[] {
  const { error } = shape.safeParse(value);
  return (error?.issues ?? []).map(({ path, message }) => `${what}: ${path.join('.')}: ${message}`);
}

function operationOf({ method, url }: Exchange): Operation | null {
  const path = url.split('?', 1)[0]?.replace(/\/+$/, '') ?? '';
  const fits = (one: Operation) =>
    one.method.toUpperCase() === method &&
    new RegExp(`^${one.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(path);
  return OPERATIONS.find(fits) ?? null;
}
