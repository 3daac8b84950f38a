import type { FastifyRequest } from 'fastify';
import { trimBlanks } from './header-text';

/**
 * Every value of a header, in the order of the wire, without the blanks around it. Node keeps only the
 * first value of some headers and joins the values of others: reading a header that way hides that a
 * client sent it twice (docs/design/api-contract.md#request-headers).
 */
export function headerValues(request: FastifyRequest, name: string): string[] {
  const wanted = name.toLowerCase();
  const { rawHeaders } = request.raw;
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const given = rawHeaders[i] ?? '';
    if (given.length !== wanted.length || given.toLowerCase() !== wanted) continue;
    values.push(trimBlanks(rawHeaders[i + 1] ?? ''));
  }
  return values;
}
