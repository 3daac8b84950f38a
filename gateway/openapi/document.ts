import { STATUS_CODES } from 'node:http';
import { securityOf, securityScheme, type Authentication } from '../../http/openapi/security';
import { version } from '../../platform/version';
import { GATEWAY_OPERATIONS, type GatewayOperation } from './operations';
import { HEADERS, headersOf, SCHEMAS } from './components';

type Json = Readonly<Record<string, unknown>>;

/**
 * The gateway as an OpenAPI 3.1 document. Bodies of requests and answers belong to the backends, so only what the
 * gateway reads of them is described (docs/design/gateway.md#the-gateway).
 */
export function gatewayDocument(auth: Authentication): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const operation of GATEWAY_OPERATIONS) {
    const path = (paths[operation.path] ??= {});
    path[operation.method] = describe(operation);
  }
  const scheme = securityScheme(auth);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Nightshift gateway',
      version: version(),
      description: "OpenAI's API for inference, in front of pools of model servers.",
    },
    paths,
    components: {
      schemas: SCHEMAS,
      headers: HEADERS,
      ...(scheme === null ? {} : { securitySchemes: { caller: scheme } }),
    },
    security: securityOf(auth),
  };
}

function describe(operation: GatewayOperation): Json {
  const { id, summary, answer, path, body, isQueued } = operation;
  const description = answer === null ? "The backend's answer, as it is" : 'Success';
  return {
    operationId: id,
    summary,
    parameters: isQueued ? REQUEST_HEADERS : parametersOf(path),
    ...(body === null ? {} : { requestBody: { required: true, content: bodyContent(body) } }),
    responses: {
      200: { description, headers: headersOf(200, isQueued), content: answerContent(operation) },
      ...Object.fromEntries(operation.errors.map((status) => [status, fault(status, isQueued)])),
    },
  };
}

function bodyContent(body: string): Json {
  const type = body === 'InferenceRequest' ? 'application/json' : 'multipart/form-data';
  return { [type]: { schema: reference(body) } };
}

function answerContent({ answer, isQueued }: GatewayOperation): Json {
  const json = { schema: answer === null ? {} : reference(answer) };
  const text = { schema: { type: 'string' } };
  return {
    'application/json': json,
    ...(isQueued ? { 'text/event-stream': text } : {}),
    ...(answer === 'Transcription' ? { 'text/plain': text } : {}),
  };
}

function fault(status: number, isPassed: boolean): Json {
  return {
    description: STATUS_CODES[status] ?? 'Error',
    headers: headersOf(status, isPassed),
    content: { 'application/json': { schema: reference('Error') } },
  };
}

function parametersOf(path: string): Json[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  return names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));
}

const REQUEST_HEADERS: readonly Json[] = [
  {
    name: 'x-gateway-inference-objective',
    in: 'header',
    description: 'Chooses the band of the request, by the setting gateway.objectives',
    schema: { type: 'string', examples: ['realtime', 'batch'] },
  },
  {
    name: 'x-slo-ttft-ms',
    in: 'header',
    description: 'How long the client waits for the first byte, ms',
    schema: { type: 'integer', minimum: 0 },
  },
  {
    name: 'x-request-id',
    in: 'header',
    description: 'Kept, sent to the backend and back',
    schema: { type: 'string' },
  },
];

function reference(schema: string): Json {
  return { $ref: `#/components/schemas/${schema}` };
}
