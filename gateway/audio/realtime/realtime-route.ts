import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { WebSocketServer } from 'ws';
import { NightshiftError } from '../../../core/errors';
import { type Upgrade, upgradeOf } from '../../../http/connections/web-sockets';
import { headerValues } from '../../../http/headers/header-values';
import type { AudioConfig } from '../../../platform/config-audio';
import type { StatusPolicy } from '../../../core/dispatch/drop-codes';
import type { Logger } from '../../../platform/logger';
import { answerFault } from '../../answers/drop-answer';
import { LiveSession } from './live-session';
import type { LiveSessions } from './live-sessions';
import type { StreamLease, StreamTable } from './stream-table';

/** What the route needs. */
export interface RealtimeContext {
  readonly table: StreamTable;
  readonly sessions: LiveSessions;
  readonly limits: AudioConfig['stream'];
  readonly policy: StatusPolicy;
  readonly logger: Logger;
}

/** The path of the route below `/v1`. */
export const REALTIME_PATH = '/realtime';

const MAX_MESSAGE_BYTES = 1024 * 1024;

/** Adds `GET /realtime`: live transcription over WebSocket (docs/design/realtime.md#the-upgrade). */
export function addRealtimeRoute(app: FastifyInstance, context: RealtimeContext): void {
  const server = new WebSocketServer({
    ...{ noServer: true, clientTracking: false, perMessageDeflate: false },
    maxPayload: MAX_MESSAGE_BYTES,
    // The other one, if any, is the client's key.
    handleProtocols: (protocols) => (protocols.has('realtime') ? 'realtime' : false),
  });
  app.get(REALTIME_PATH, (request, reply) => {
    const upgrade = upgradeOf(request.raw);
    if (upgrade === undefined) return answerWithoutUpgrade(reply);
    checkHandshake(request);
    const model = modelOf(request);
    const lease = model === null ? null : takeStream(context, model, reply);
    if (model !== null && lease === null) return reply;
    const first = model === null || lease === null ? null : { model, lease };
    accept({ context, server, request, reply, upgrade }, first);
    return reply;
  });
}

interface Handshake {
  readonly context: RealtimeContext;
  readonly server: WebSocketServer;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly upgrade: Upgrade;
}

function accept(
  { context, server, request, reply, upgrade: { socket, head } }: Handshake,
  first: { readonly model: string; readonly lease: StreamLease } | null,
): void {
  const { table, sessions, limits, logger } = context;
  reply.hijack();
  let isAccepted = false;
  server.handleUpgrade(request.raw, socket, head, (webSocket) => {
    isAccepted = true;
    reply.raw.statusCode = 101;
    const session: LiveSession = new LiveSession({
      ...{ socket: webSocket, table, first, logger, limits },
      metadata: traceOf(request),
      onEnded: () => sessions.remove(session),
    });
    sessions.add(session);
  });
  // The client was gone.
  if (!isAccepted) first?.lease.release();
}

/** @throws invalid_request if the request is no handshake that the library accepts */
function checkHandshake({ raw: { headers } }: FastifyRequest): void {
  const isKey = /^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '');
  const isVersion = headers['sec-websocket-version'] === '13';
  const isProtocol = /^[\w!#$%&'*+.^`|~-]+(\s*,\s*[\w!#$%&'*+.^`|~-]+)*$/.test(
    headers['sec-websocket-protocol'] ?? 'none',
  );
  if (isKey && isVersion && isProtocol) return;
  const message = 'The headers Sec-WebSocket-* are not those of a handshake of version 13.';
  throw new NightshiftError('invalid_request', message);
}

/** The model of the address; null if the client names it later. @throws invalid_request */
function modelOf({ url }: FastifyRequest): string | null {
  const query = new URL(url, 'http://gateway').searchParams;
  const [model, intent] = [query.get('model'), query.get('intent')];
  if (intent !== null && intent !== 'transcription') {
    const message = "Only the intent 'transcription' is supported.";
    throw new NightshiftError('invalid_request', message, {
      param: 'intent',
      apiCode: 'invalid_value',
    });
  }
  if (model !== null && model !== '') return model;
  if (intent !== null) return null;
  const message = "The address must say 'intent=transcription' or name a model.";
  const options = { param: 'model', apiCode: 'missing_required_parameter' };
  throw new NightshiftError('invalid_request', message, options);
}

/** Takes a stream; null if the request was answered instead. @throws not_found, invalid_request */
function takeStream(
  { table, policy }: RealtimeContext,
  model: string,
  reply: FastifyReply,
): StreamLease | null {
  // A worker that has not answered yet may have it.
  if (table.isComplete || table.hasModel(model)) table.checkModel(model, 'model');
  if (!table.isReady(model)) {
    void answerFault(reply, 'no_backends', { policy, readyBackends: 0, retryAfterSec: 5 });
    return null;
  }
  const lease = table.take({ model, language: '', rate: null, vad: false });
  if (lease === null) answerBusy(reply);
  return lease;
}

function answerBusy(reply: FastifyReply): void {
  const message = 'All streams of the audio workers are in use. Please try again.';
  const error = { message, type: 'server_error', param: null, code: 'no_capacity' };
  void reply.code(503).header('retry-after', '5').send({ error });
}

function answerWithoutUpgrade(reply: FastifyReply) {
  const message = 'This route needs a WebSocket: send the headers of a handshake.';
  const error = { message, type: 'invalid_request_error', param: null, code: null };
  return reply.code(426).header('upgrade', 'websocket').send({ error });
}

function traceOf(request: FastifyRequest): Readonly<Record<string, string>> {
  const metadata: Record<string, string> = { 'x-request-id': request.id };
  for (const name of ['traceparent', 'tracestate']) {
    const [value] = headerValues(request, name);
    if (value !== undefined && /^[\x20-\x7e]+$/.test(value)) metadata[name] = value;
  }
  return metadata;
}
