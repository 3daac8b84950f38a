import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { fromHeaderText, isTenantName } from '../../core/openai/tenant-name';
import { requireTenant } from '../../http/authentication/authentication';
import type { Authenticator } from '../../http/authentication/authenticator';
import { bearerKey } from '../../http/authentication/bearer-key';
import type { TenantSource } from '../../http/authentication/tenant-header';
import { headerValues } from '../../http/headers/header-values';

declare module 'fastify' {
  interface FastifyRequest {
    /** Whether the request carries the worker token, so that it is a line of a batch. */
    isWorker: boolean;
  }
}

/** Whether a bearer key is the worker token. */
export type WorkerTokenCheck = (key: string) => boolean;

/**
 * The check for the token in a file; without a file, no key is the token. The comparison takes the same time for
 * every key.
 *
 * @throws config_invalid if the file cannot be read, or does not hold one token
 */
export function readWorkerToken(file: string | undefined): WorkerTokenCheck {
  if (file === undefined) return () => false;
  let token: string;
  try {
    token = readFileSync(file, 'utf8').trim();
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    const message = `gateway.worker_token_file: cannot read ${file} (${code})`;
    throw new NightshiftError('config_invalid', message, { cause });
  }
  if (!/^[\x21-\x7e]{16,}$/.test(token)) {
    const message = `gateway.worker_token_file: ${file} must contain one token of at least 16 printable ASCII characters`;
    throw new NightshiftError('config_invalid', message);
  }
  const expected = digest(token);
  return (key) => timingSafeEqual(digest(key), expected);
}

/** What is needed to find out who sends a request. */
export interface CallerOptions {
  readonly auth: TenantSource;
  readonly authenticator: Authenticator;
  readonly isWorkerToken: WorkerTokenCheck;
}

/**
 * Sets `isWorker` and the tenant of every request. A worker names the tenant of its line; other requests get their
 * tenant as in the API (docs/design/api-contract.md#authentication-and-tenants).
 */
export function addCaller(app: FastifyInstance, options: CallerOptions): void {
  app.decorateRequest('isWorker', false);
  app.addHook('onRequest', identify(options));
}

function identify({ auth, authenticator, isWorkerToken }: CallerOptions) {
  const authenticate = requireTenant(auth, authenticator);
  const hook: onRequestHookHandler = function (request, reply, done) {
    const keys = headerValues(request, 'authorization').map(bearerKey);
    const [key = null] = keys;
    request.isWorker = keys.length === 1 && key !== null && isWorkerToken(key);
    if (!request.isWorker) return authenticate.call(this, request, reply, done);
    request.tenant = tenantOfLine(request);
    done();
  };
  return hook;
}

const FAIRNESS_HEADER = 'x-gateway-inference-fairness-id';

function tenantOfLine(request: FastifyRequest): string {
  const [given, another] = headerValues(request, FAIRNESS_HEADER);
  if (given === undefined) return request.tenant;
  const tenant = fromHeaderText(given);
  if (another === undefined && tenant !== null && isTenantName(tenant)) return tenant;
  const message = `The header ${FAIRNESS_HEADER} must name one tenant.`;
  throw new NightshiftError('invalid_request', message);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
