import type { FastifyRequest } from 'fastify';

/**
 * The different values of a header that may have been sent more than once, as they came; empty ones
 * do not count. Node itself keeps the first, or joins them into one.
 */
export function headerValues(request: FastifyRequest, name: string): string[] {
  const wanted = name.toLowerCase();
  const { rawHeaders } = request.raw;
  const values = new Set<string>();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const value = (rawHeaders[i + 1] ?? '').replace(/^[ \t]+|[ \t]+$/g, '');
    if (rawHeaders[i]?.toLowerCase() === wanted && value !== '') values.add(value);
  }
  return [...values];
}
