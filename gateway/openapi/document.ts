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
  const { id, summary, answer, path } = operation;
  const isPassed = answer === null;
  const content = isPassed
    ? { 'application/json': { schema: {} }, 'text/event-stream': { schema: { type: 'string' } } }
    : { 'application/json': { schema: reference(answer) } };
  const description = isPassed ? "The backend's answer, as it is" : 'Success';
  const body = { 'application/json': { schema: reference('InferenceRequest') } };
  return {
    operationId: id,
    summary,
    parameters: isPassed ? REQUEST_HEADERS : parametersOf(path),
    ...(isPassed ? { requestBody: { required: true, content: body } } : {}),
    responses: {
      200: { description, headers: headersOf(200, isPassed), content },
      ...Object.fromEntries(operation.errors.map((status) => [status, fault(status, isPassed)])),
    },
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
  if (!path.includes('{model}')) return [];
  return [{ name: 'model', in: 'path', required: true, schema: { type: 'string' } }];
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
