import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { version } from '../../platform/version';
import { COMMON_ERRORS, type Operation, OPERATIONS } from './operations';
import { HEADERS, headersOf } from './headers';
import { type Authentication, securityOf, securityScheme } from './security';
import { errorShape } from './shapes';

type Json = Readonly<Record<string, unknown>>;

/** What differs from one installation to another. */
export interface DocumentOptions {
  readonly auth: Authentication;
  /** Endpoints that batches may be created for. */
  readonly endpoints: readonly string[];
}

/** The API of this installation as an OpenAPI 3.1 document. */
export function openApiDocument({ auth, endpoints }: DocumentOptions): Json {
  const used = new Map<string, Json>();
  const paths: Record<string, Record<string, Json>> = {};
  const scheme = securityScheme(auth);
  for (const operation of OPERATIONS) {
    const path = (paths[operation.path] ??= {});
    path[operation.method] = describe(operation, used);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Nightshift',
      version: version(),
      description: "OpenAI's Files, Uploads and Batches API.",
    },
    paths,
    components: {
      schemas: withEndpoints(used, endpoints),
      headers: HEADERS,
      ...(scheme === null ? {} : { securitySchemes: { caller: scheme } }),
    },
    security: securityOf(auth),
  };
}

/** The schemas by name; a batch is created for one of the endpoints that are served here. */
function withEndpoints(used: ReadonlyMap<string, Json>, endpoints: readonly string[]): Json {
  const schemas = Object.fromEntries([...used].sort(([a], [b]) => (a < b ? -1 : 1)));
  const create = schemas['CreateBatch'] ?? {};
  const properties = { ...(create['properties'] as Json), endpoint: { enum: endpoints } };
  return { ...schemas, CreateBatch: { ...create, properties } };
}

function describe(operation: Operation, used: Map<string, Json>): Json {
  const { id, summary, answer } = operation;
  const type = answer === null ? 'application/octet-stream' : 'application/json';
  const schema = answer === null ? {} : refer(answer, used);
  const content = { [type]: { schema } };
  const success = (status: number, description: string): Json => {
    return { [status]: { description, headers: headersOf(status), content } };
  };
  return {
    operationId: id,
    summary,
    parameters: parametersOf(operation),
    ...bodyOf(operation, used),
    responses: {
      ...success(200, 'Success'),
      ...(answer === null ? success(206, 'The range') : {}),
      ...errorsOf(operation, used),
    },
  };
}

function bodyOf({ json, form }: Operation, used: Map<string, Json>): Json {
  const shape = json ?? form;
  if (shape === undefined) return {};
  const type = json === undefined ? 'multipart/form-data' : 'application/json';
  const schema = refer(shape, used, 'input');
  return { requestBody: { required: true, content: { [type]: { schema } } } };
}

function errorsOf({ errors }: Operation, used: Map<string, Json>): Json {
  const content = { 'application/json': { schema: refer(errorShape, used) } };
  return Object.fromEntries(
    [...errors, ...COMMON_ERRORS].map((status) => [
      status,
      { description: STATUS_CODES[status] ?? 'Error', headers: headersOf(status), content },
    ]),
  );
}

function parametersOf({ path, query, isRepeatable, answer }: Operation): Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    return { name, in: 'path', required: true, schema: idSchema(name) };
  });
  const inQuery = Object.entries(query?.shape ?? {}).map(([name, shape]) => {
    return { name, in: 'query', required: false, schema: plain(shape as z.ZodType, 'input') };
  });
  const inHeader = [
    ...(isRepeatable === true ? [{ name: 'Idempotency-Key', in: 'header', schema: KEY }] : []),
    ...(answer === null ? [{ name: 'Range', in: 'header', schema: RANGE }] : []),
  ];
  return [...inPath, ...inQuery, ...inHeader];
}

const KEY = { type: 'string', pattern: '^[ -~]{1,255}$' };
const RANGE = { type: 'string', examples: ['bytes=0-1023'] };

/** An id of another kind is nobody's; that of a batch tells its kind, and is judged by it. */
function idSchema(name: string | undefined): Json {
  return { type: 'string', ...(name === 'batch_id' ? { pattern: '^batch_' } : {}) };
}

/** A reference to a shape, which is put among the components together with those it is made of. */
function refer(shape: z.ZodType, used: Map<string, Json>, io: 'input' | 'output' = 'output'): Json {
  const { $defs, ...schema } = plain(shape, io);
  for (const [id, part] of Object.entries(($defs ?? {}) as Record<string, Json>)) {
    used.set(id, bare(part));
  }
  const { id } = schema;
  if (typeof id !== 'string') return schema;
  used.set(id, bare(schema));
  return { $ref: componentOf(id) };
}

function plain(shape: z.ZodType, io: 'input' | 'output'): Json {
  return without('$schema', rewritten(z.toJSONSchema(shape, { io })) as Json);
}

/** The name is the component's key. */
function bare(schema: Json): Json {
  return without('id', schema);
}

function without(name: string, json: Json): Json {
  return Object.fromEntries(Object.entries(json).filter(([key]) => key !== name));
}

function componentOf(id: string): string {
  return `#/components/schemas/${id}`;
}

/** References of JSON Schema as those of an OpenAPI document. */
function rewritten(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rewritten);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      key === '$ref' && typeof member === 'string'
        ? [key, member.replace('#/$defs/', componentOf(''))]
        : [key, rewritten(member)],
    ),
  );
}
